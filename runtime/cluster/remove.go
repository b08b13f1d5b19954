package cluster

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/starling-operator/starling/runtime/effect"
)

// Writes that take objects away.

// Delete deletes an object as it was seen: seen has its uid, and its version where the decision hangs on what is in
// it. One that was not seen, or has changed meanwhile, is read, and goes says whether it still has to go. Left says that
// it stays, or that another one is in its place.
func (c *Client) Delete(ctx context.Context, manager string, ref effect.Ref, seen map[string]any, goes func(live map[string]any) bool) (obj map[string]any, left bool, err error) {
	p, err := c.begin(ctx, manager, effect.Write{Kind: effect.WriteDelete, Ref: ref})
	if err != nil {
		return nil, false, err
	}
	uid, decided := uidOf(seen), seen != nil
	p.live, p.seen = seen, seen != nil
	p.ours = func(live map[string]any) error {
		if !decided && (uid != "" && uidOf(live) != uid || !goes(live)) {
			return errLeft
		}
		uid, decided = uidOf(live), false
		return nil
	}
	if obj, err = p.run(ctx); errors.Is(err, errLeft) {
		return nil, true, nil
	}
	return obj, false, err
}

// remove deletes an object as [Client.Delete] does, and has its end observed.
func (w *Writer) remove(ctx context.Context, manager string, ref effect.Ref, seen map[string]any, cause *effect.Cause, goes func(live map[string]any) bool) error {
	asked := time.Now()
	obj, left, err := w.o.Client.Delete(ctx, manager, ref, seen, goes)
	if err == nil && !left {
		w.o.Observe(ref, obj, cause, asked)
	}
	return err
}

// errLeft says that an object is not the one any more that was to be deleted.
var errLeft = errors.New("the object stays")

func (p *pending) delete(ctx context.Context) (map[string]any, error) {
	policy := metav1.DeletePropagationBackground
	switch p.write.Propagation {
	case "", "background":
	case "foreground":
		policy = metav1.DeletePropagationForeground
	case "orphan":
		policy = metav1.DeletePropagationOrphan
	default:
		return nil, fmt.Errorf("propagation %q is none of background, foreground, orphan", p.write.Propagation)
	}
	if (p.write.Guard != nil || p.ours != nil) && p.live == nil {
		return nil, nil // nothing was there to look at, so nothing is deleted
	}
	options := p.deleteOptions()
	options["propagationPolicy"] = policy
	obj, err := p.submit(ctx, http.MethodDelete, p.write.Ref.Name, "", jsonType, options, nil)
	switch {
	case apierrors.IsNotFound(err) && !missingResource(err):
		return nil, nil
	case err != nil:
		return nil, err
	case !stillThere(obj):
		return nil, nil
	}
	return obj, nil
}

// deleteOptions holds the delete to the object that was seen.
func (p *pending) deleteOptions() map[string]any {
	options := map[string]any{"apiVersion": "v1", "kind": "DeleteOptions"}
	uid, version := p.fence()
	preconditions := map[string]any{}
	if uid != "" {
		preconditions["uid"] = uid
	}
	if version != "" {
		preconditions["resourceVersion"] = version
	}
	if len(preconditions) > 0 {
		options["preconditions"] = preconditions
	}
	return options
}

// stillThere tells the object of a delete that waits (for finalizers, or a grace
// period) from the answer to one that is done: a Status, or the last state.
func stillThere(obj map[string]any) bool {
	meta, _ := obj["metadata"].(map[string]any)
	if obj["kind"] == "Status" || meta["deletionTimestamp"] == nil {
		return false
	}
	finalizers, _ := meta["finalizers"].([]any)
	grace, _ := meta["deletionGracePeriodSeconds"].(int64)
	return len(finalizers) > 0 || grace > 0
}

func (p *pending) evict(ctx context.Context) (map[string]any, error) {
	ref := p.write.Ref
	if p.write.Guard != nil && p.live == nil {
		return nil, nil
	}
	_, err := p.submit(ctx, http.MethodPost, ref.Name, "eviction", jsonType, map[string]any{
		"apiVersion": "policy/v1", "kind": "Eviction",
		"metadata":      map[string]any{"name": ref.Name, "namespace": ref.Namespace},
		"deleteOptions": p.deleteOptions(),
	}, nil)
	if apierrors.IsNotFound(err) && !missingResource(err) {
		return nil, nil
	}
	return nil, err
}
