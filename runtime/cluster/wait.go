package cluster

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/starling-operator/starling/runtime/effect"
)

const (
	// firstLook is how long after a delete the object is looked for; each later pause is
	// twice as long, up to lastLook.
	firstLook = 100 * time.Millisecond
	lastLook  = 2 * time.Second
)

// gone waits until the object of a delete, which has this UID, is gone.
func (w *Writer) gone(ctx context.Context, wr effect.Write, uid string) error {
	left, next := wr.Wait, firstLook
	for {
		live, err := w.o.Client.Get(ctx, wr.Ref)
		if err != nil || live == nil || uidOf(live) != uid {
			return err
		}
		if left <= 0 {
			return &Error{msg: fmt.Sprintf("%s is deleted, but still there after %s%s; it is tried again", wr.Ref, wr.Wait, heldBy(live))}
		}
		next = min(next, left)
		if err := w.o.Pause(ctx, next); err != nil {
			return &Error{msg: fmt.Sprintf("%s is deleted; the wait for its end was cut short", wr.Ref), err: err}
		}
		left -= next
		next = min(2*next, lastLook)
	}
}

// heldBy names the finalizers of an object.
func heldBy(obj map[string]any) string {
	finalizers := effect.At[[]any](obj, "metadata", "finalizers")
	var names []string
	for _, f := range finalizers {
		if name, ok := f.(string); ok {
			names = append(names, name)
		}
	}
	if len(names) == 0 {
		return ""
	}
	return cut(", held by the finalizer " + strings.Join(names, ", "))
}

// Pause waits for d; the error is why ctx has ended before.
func Pause(ctx context.Context, d time.Duration) error {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-ctx.Done():
		return context.Cause(ctx)
	case <-timer.C:
		return nil
	}
}
