package cluster

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	kjson "sigs.k8s.io/json"
)

const (
	jsonType  = "application/json"
	applyType = "application/apply-patch+yaml" // JSON is YAML
	mergeType = "application/merge-patch+json"
)

// metadataOf asks for metadata alone, of an API server that has that.
func metadataOf(kind string) string {
	return jsonType + ";as=" + kind + ";g=meta.k8s.io;v=v1," + jsonType
}

// do sends a request and returns the body of its answer. Errors are client-go's
// status errors.
func (c *Client) do(ctx context.Context, req *rest.Request) ([]byte, error) {
	ctx, cancel := bounded(ctx)
	defer cancel()
	res := req.Do(ctx)
	// Error reads the Status in the answer; Raw alone would not.
	if err := res.Error(); err != nil {
		return nil, err
	}
	return res.Raw()
}

// bounded gives ctx the deadline of one request, unless it has one.
func bounded(ctx context.Context) (context.Context, context.CancelFunc) {
	if _, ok := ctx.Deadline(); ok {
		return context.WithCancel(ctx)
	}
	return context.WithTimeout(ctx, requestTimeout)
}

// request starts a request for a collection (name "") or one object.
func (c *Client) request(verb string, m Mapping, namespace, name string) (*rest.Request, error) {
	path := apiPath(m.GVR.GroupVersion())
	if m.Namespaced && namespace != "" {
		if !validSegment(namespace) {
			return nil, fmt.Errorf("%q is no name of a namespace", namespace)
		}
		path = append(path, "namespaces", namespace)
	}
	path = append(path, m.GVR.Resource)
	if name != "" {
		if !validSegment(name) {
			return nil, fmt.Errorf("%q is no name of an object", name)
		}
		path = append(path, name)
	}
	return c.rest.Verb(verb).AbsPath(path...), nil
}

// validSegment says whether text can be one segment of a URL path and nothing
// more: a name with a slash would reach another resource.
func validSegment(text string) bool { return len(rest.IsValidPathSegmentName(text)) == 0 }

// Watch opens the watch of a kind in one namespace ("" for all, or for
// cluster-scoped kinds) and returns its stream: JSON watch events, one after the
// other. It does not count against the client's rate limit. The caller closes it.
// Errors are client-go's status errors; [Client.Explain] makes them readable.
func (c *Client) Watch(ctx context.Context, m Mapping, namespace string, o metav1.ListOptions) (io.ReadCloser, error) {
	o.Watch = true
	req, err := c.request(http.MethodGet, m, namespace, "")
	if err != nil {
		return nil, err
	}
	if m.Metadata {
		req.SetHeader("Accept", metadataOf("PartialObjectMetadata"))
	}
	// To decompress takes 40 KiB for each stream, also for one on which nothing comes.
	req.SetHeader("Accept-Encoding", "identity")
	// A burst of events is no reason to make the next watch wait, and the caller tries again.
	return req.Throttle(nil).MaxRetries(0).SpecificallyVersionedParams(&o, scheme.ParameterCodec, schema.GroupVersion{Version: "v1"}).Stream(ctx)
}

// decodeObject reads one JSON object. Integers stay integers.
func decodeObject(body []byte) (map[string]any, error) {
	var m map[string]any
	if err := kjson.UnmarshalCaseSensitivePreserveInts(body, &m); err != nil {
		return nil, fmt.Errorf("the API server's answer is no JSON object")
	}
	if m == nil {
		return nil, fmt.Errorf("the API server's answer is empty")
	}
	return m, nil
}

// missingResource says whether a 404 means that the URL leads nowhere (the kind
// is not served) and not that the named object is not there.
func missingResource(err error) bool {
	if !apierrors.IsNotFound(err) {
		return false
	}
	var api apierrors.APIStatus
	if !errors.As(err, &api) {
		return false
	}
	s := api.Status()
	// The server names the object in its own 404; a path that it does not know
	// gives "the server could not find the requested resource".
	return s.Details == nil || s.Details.Name == "" || hasUnexpectedCause(s.Details)
}

func hasUnexpectedCause(d *metav1.StatusDetails) bool {
	return slices.ContainsFunc(d.Causes, func(cause metav1.StatusCause) bool {
		return cause.Type == metav1.CauseTypeUnexpectedServerResponse && strings.Contains(cause.Message, "404 page not found")
	})
}
