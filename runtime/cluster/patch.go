package cluster

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"slices"

	"github.com/starling-operator/starling/runtime/apply"
	"github.com/starling-operator/starling/runtime/effect"
	"github.com/starling-operator/starling/runtime/message"
	"github.com/starling-operator/starling/runtime/object"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// patchType is the media type of a patch that the API server carries out, or "".
func patchType(t effect.PatchType) string {
	switch t {
	case effect.PatchMerge:
		return mergeType
	case effect.PatchJSON:
		return "application/json-patch+json"
	case effect.PatchStrategic:
		return "application/strategic-merge-patch+json"
	}
	return ""
}

func (p *pending) patch(ctx context.Context) (map[string]any, error) {
	patch, ref := p.write.Patch, p.write.Ref
	if p.write.Guard != nil && p.live == nil {
		return nil, p.notFound()
	}
	if patch.Type == effect.PatchJQ {
		return p.program(ctx)
	}
	mediaType := patchType(patch.Type)
	if mediaType == "" {
		return nil, fmt.Errorf("unknown kind of patch %q", patch.Type)
	}
	body := patch.Body
	if uid, version := p.fence(); version != "" {
		body = fencedPatch(body, uid, version)
	}
	obj, err := p.submit(ctx, http.MethodPatch, ref.Name, patch.Subresource, mediaType, body, nil)
	if patch.Type == effect.PatchJSON && unfit(err) {
		return nil, &Error{err: err,
			msg: fmt.Sprintf("cannot %s: the JSON patch does not fit the object: a path is not there, or a test fails", p.act)}
	}
	if err != nil || obj["kind"] != ref.Kind {
		return nil, err // the answer to a patch of a Scale is a Scale
	}
	return obj, nil
}

// replace makes an object, or writes it as a whole, beside labels and annotations of others.
func (p *pending) replace(ctx context.Context) (map[string]any, error) {
	ref, want := p.write.Ref, apply.Noted(p.wanted())
	if p.unseen() {
		obj, err := p.submit(ctx, http.MethodPost, "", "", jsonType, want, nil)
		if apierrors.IsAlreadyExists(err) {
			err = p.conflict() // as an apply meets one
		}
		return obj, err
	}
	live, err := p.client.Get(ctx, ref)
	if err != nil {
		return nil, err
	}
	if uid, version := p.fence(); uid != uidOf(live) || version != "" && version != versionOf(live) {
		return nil, p.conflict()
	}
	p.act.word = "patch" // what may be refused from here on
	patch, err := apply.Replacement(&unstructured.Unstructured{Object: want}, &unstructured.Unstructured{Object: live})
	if err != nil || patch == nil {
		return live, err
	}
	return p.submit(ctx, http.MethodPatch, ref.Name, "", mergeType, json.RawMessage(patch), nil)
}

// unfit tells a JSON patch that cannot be carried out, of which the API server says
// nothing else, from a result that is not valid.
func unfit(err error) bool {
	var api apierrors.APIStatus
	if !apierrors.IsInvalid(err) || !errors.As(err, &api) {
		return false
	}
	details := api.Status().Details
	return details == nil || !slices.ContainsFunc(details.Causes, func(c metav1.StatusCause) bool { return c.Field != "" })
}

// fencedPatch makes a patch that the API server refuses with a conflict when the
// object is not at version any more: to set another one is to claim that state.
func fencedPatch(body any, uid, version string) any {
	switch body := body.(type) {
	case map[string]any:
		body, metadata := effect.WithMetadata(body)
		metadata["resourceVersion"] = version
		if uid != "" {
			metadata["uid"] = uid
		}
		return body
	case []any:
		return append(slices.Clone(body), map[string]any{"op": "add", "path": "/metadata/resourceVersion", "value": version})
	}
	return body
}

// program runs a jq program on the object that was read and puts the result in its
// place, if it differs.
func (p *pending) program(ctx context.Context) (map[string]any, error) {
	if p.live == nil {
		return nil, p.notFound()
	}
	_, version := p.fence()
	if versionOf(p.live) != version {
		return nil, p.conflict()
	}
	if p.jq == nil {
		return nil, errors.New("jq programs are not run here")
	}
	after, err := p.jq(ctx, p.write.Patch.Program, p.live)
	if err != nil {
		text := err.Error()
		if p.write.Ref.Kind == "Secret" {
			text = "it fails; its message is not shown, because it may quote the secret"
		}
		return nil, &Error{msg: fmt.Sprintf("cannot %s: the jq program: %s", p.act, cut(message.Line(text))), err: err}
	}
	if object.Same(p.live, after) {
		return p.live, nil
	}
	if m, ok := after["metadata"].(map[string]any); ok {
		m["resourceVersion"] = version // also where the program has left it out
	}
	return p.submit(ctx, http.MethodPut, p.write.Ref.Name, p.write.Patch.Subresource, jsonType, after, nil)
}

// conflict is the error that the API server gives for a state that has passed.
func (p *pending) conflict() error {
	reason := errors.New("the object has been modified")
	return apierrors.NewConflict(p.mapping.GVR.GroupResource(), p.write.Ref.Name, reason)
}

// notFound is the error that the API server gives for an object that is not there.
func (p *pending) notFound() error {
	return apierrors.NewNotFound(p.mapping.GVR.GroupResource(), p.write.Ref.Name)
}
