package cluster

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"slices"

	"github.com/starling-operator/starling/runtime/effect"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/kubernetes/scheme"
	kjson "sigs.k8s.io/json"
)

// PageSize is how many objects one request of a list asks for.
const PageSize = 500

// Get returns the object that ref names, as the API server sent it, or nil when
// it is not there. The namespace is ignored for cluster-scoped kinds.
func (c *Client) Get(ctx context.Context, ref effect.Ref) (map[string]any, error) {
	act := action{word: "get", ref: ref}
	m, err := c.Mapping(ctx, ref.APIVersion, ref.Kind)
	if err != nil {
		return nil, c.explain(err, act)
	}
	act.mapping = m
	if ref.Name == "" {
		return nil, fmt.Errorf("cannot get a %s without a name", ref.Kind)
	}
	if m.Namespaced && ref.Namespace == "" {
		return nil, fmt.Errorf("cannot get %s: its kind lives in namespaces, so give one", ref)
	}
	req, err := c.request(http.MethodGet, m, ref.Namespace, ref.Name)
	if err != nil {
		return nil, err
	}
	body, err := c.do(ctx, req)
	switch {
	case missingResource(err):
		c.forgetKind(m)
		return nil, notServed(ref.APIVersion, ref.Kind)
	case apierrors.IsNotFound(err):
		return nil, nil
	case err != nil:
		return nil, c.explain(err, act)
	}
	return decodeObject(body)
}

// List returns the objects of a kind, sorted by namespace and name. No namespaces
// (or "*") means all; cluster-scoped kinds ignore them. labels and fields are
// selectors as kubectl takes them, "" for none. It reads in pages.
func (c *Client) List(ctx context.Context, apiVersion, kind string, namespaces []string, labels, fields string) ([]map[string]any, error) {
	act := action{word: "list", ref: effect.Ref{APIVersion: apiVersion, Kind: kind}}
	m, err := c.Mapping(ctx, apiVersion, kind)
	if err != nil {
		return nil, c.explain(err, act)
	}
	act.mapping = m
	if !m.Namespaced || len(namespaces) == 0 || slices.Contains(namespaces, "*") {
		namespaces = []string{""}
	}
	namespaces = slices.Compact(slices.Sorted(slices.Values(namespaces)))
	out := []map[string]any{}
	for _, ns := range namespaces {
		var found []map[string]any
		o := metav1.ListOptions{LabelSelector: labels, FieldSelector: fields}
		_, err := c.Each(ctx, m, ns, o, func(obj map[string]any) error {
			found = append(found, obj)
			return nil
		})
		if apierrors.IsResourceExpired(err) || apierrors.IsGone(err) {
			// The list took longer than the server keeps its state: once more.
			found = nil
			_, err = c.Each(ctx, m, ns, o, func(obj map[string]any) error {
				found = append(found, obj)
				return nil
			})
		}
		if err != nil {
			act.ref.Namespace = ns
			return nil, c.explain(err, act)
		}
		out = append(out, found...)
	}
	slices.SortFunc(out, func(a, b map[string]any) int {
		an, bn := effect.RefOf(a), effect.RefOf(b)
		return cmp.Or(cmp.Compare(an.Namespace, bn.Namespace), cmp.Compare(an.Name, bn.Name))
	})
	return out, nil
}

// Each lists a kind in one namespace ("" for all) page by page and calls fn with
// one decoded object at a time, so that a large list never is in memory as a
// whole. It returns the resourceVersion of the list: that of its first page, from
// which a watch goes on. An error of fn ends the list. Errors of the API server
// are client-go's status errors; 410 Gone means that the pages took too long and
// the caller begins again.
func (c *Client) Each(ctx context.Context, m Mapping, namespace string, o metav1.ListOptions, fn func(obj map[string]any) error) (string, error) {
	o.Limit = cmp.Or(o.Limit, PageSize)
	version := ""
	for {
		req, err := c.request(http.MethodGet, m, namespace, "")
		if err != nil {
			return "", err
		}
		if m.Metadata {
			req.SetHeader("Accept", metadataOf("PartialObjectMetadataList"))
		}
		page, err := c.page(ctx, req.SpecificallyVersionedParams(&o, scheme.ParameterCodec, schema.GroupVersion{Version: "v1"}).Stream, m, fn)
		if err != nil {
			if missingResource(err) {
				c.forgetKind(m)
			}
			return "", err
		}
		version = cmp.Or(version, page.ResourceVersion)
		if page.Continue == "" {
			return version, nil
		}
		// A continue token carries its resourceVersion.
		o.Continue, o.ResourceVersion, o.ResourceVersionMatch = page.Continue, "", ""
	}
}

// page reads one page of a list from open's stream.
func (c *Client) page(ctx context.Context, open func(context.Context) (io.ReadCloser, error), m Mapping, fn func(map[string]any) error) (metav1.ListMeta, error) {
	ctx, cancel := bounded(ctx)
	defer cancel()
	body, err := open(ctx)
	if err != nil {
		return metav1.ListMeta{}, err
	}
	defer body.Close()
	meta, err := decodeList(body, func(obj map[string]any) error {
		// The items of built-in kinds do not say what they are.
		if _, ok := obj["kind"]; !ok {
			obj["kind"] = m.Kind
		}
		if _, ok := obj["apiVersion"]; !ok {
			obj["apiVersion"] = m.APIVersion()
		}
		return fn(obj)
	})
	if ctx.Err() != nil {
		return metav1.ListMeta{}, ctx.Err()
	}
	return meta, err
}

// decodeList reads a JSON list object and hands out its items one by one.
func decodeList(r io.Reader, fn func(map[string]any) error) (metav1.ListMeta, error) {
	var meta metav1.ListMeta
	d := kjson.NewDecoderCaseSensitivePreserveInts(r)
	broken := func(err error) error { return fmt.Errorf("the API server's list cannot be read: %w", err) }
	if err := expect(d, '{'); err != nil {
		return meta, broken(err)
	}
	for d.More() {
		key, err := d.Token()
		if err != nil {
			return meta, broken(err)
		}
		switch key {
		case "metadata":
			if err := d.Decode(&meta); err != nil {
				return meta, broken(err)
			}
		case "items":
			if err := decodeItems(d, fn); err != nil {
				return meta, err
			}
		default:
			var skip json.RawMessage
			if err := d.Decode(&skip); err != nil {
				return meta, broken(err)
			}
		}
	}
	if err := expect(d, '}'); err != nil {
		return meta, broken(err)
	}
	return meta, nil
}

func decodeItems(d kjson.Decoder, fn func(map[string]any) error) error {
	token, err := d.Token()
	if err != nil {
		return fmt.Errorf("the API server's list cannot be read: %w", err)
	}
	if token == nil { // "items": null
		return nil
	}
	if token != json.Delim('[') {
		return fmt.Errorf("the API server's list cannot be read: items is no list")
	}
	for d.More() {
		var item any // a map would be filled by reflection
		if err := d.Decode(&item); err != nil {
			return fmt.Errorf("the API server's list cannot be read: %w", err)
		}
		if item == nil {
			continue
		}
		obj, is := item.(map[string]any)
		if !is {
			return errors.New("the API server's list cannot be read: an item is no object")
		}
		if err := fn(obj); err != nil {
			return err
		}
	}
	return expect(d, ']')
}

func expect(d kjson.Decoder, delim json.Delim) error {
	token, err := d.Token()
	if err != nil {
		return err
	}
	if token != delim {
		return fmt.Errorf("expected %q", delim.String())
	}
	return nil
}
