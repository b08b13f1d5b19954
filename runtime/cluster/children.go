package cluster

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/starling-operator/starling/runtime/effect"
	"github.com/starling-operator/starling/runtime/reconcile"
)

// children carries out what a controller does about the children of one parent, side by side: one that
// fails holds up no other. The error tells of the first that failed, and how many did.
func (w *Writer) children(ctx context.Context, manager string, wr effect.Write) error {
	var mu sync.Mutex
	var first error
	at, failed := len(wr.Children), 0
	err := sideBySide(len(wr.Children), w.o.SideBySide, func(i int) error {
		err := w.child(ctx, manager, wr.Children[i], wr.Cause)
		if err == nil || ctx.Err() != nil {
			return err
		}
		mu.Lock()
		defer mu.Unlock()
		if failed++; i < at {
			at, first = i, err
		}
		return nil
	})
	switch {
	case err != nil || failed == 0:
		return err
	case failed > 1:
		return fmt.Errorf("%w (%d of %d children fail)", first, failed, len(wr.Children))
	}
	return first
}

func (w *Writer) child(ctx context.Context, manager string, m effect.Write, cause *effect.Cause) error {
	p, err := w.o.Client.begin(ctx, manager, m)
	if err != nil {
		return err
	}
	if m.Kind == effect.WriteApply && m.Unchanged == nil {
		p.ours = func(live map[string]any) error {
			_, now := reconcile.ParentOf(live)
			if _, uid := reconcile.ParentOf(m.Object); now == uid && appliedFields(live, manager) != nil {
				return nil // it has lost its label
			}
			return fmt.Errorf("cannot apply %s: it is there, and this controller did not make it for this parent: delete it, or give the child another name", m.Ref)
		}
	}
	asked := time.Now()
	obj, err := p.run(ctx)
	if m.Recreate && fixed(err) {
		m.Kind, m.Recreate = effect.WriteDelete, false
		return w.child(ctx, manager, m, cause)
	}
	if err == nil && (obj != nil || m.Kind == effect.WriteDelete) {
		w.o.Observe(m.Ref, obj, cause, asked)
	}
	return err
}

// fixed tells that the API server has refused the change of a field that cannot be changed. It has no
// reason for that, only words.
func fixed(err error) bool {
	var api apierrors.APIStatus
	if !apierrors.IsInvalid(err) || !errors.As(err, &api) || api.Status().Details == nil {
		return false
	}
	for _, c := range api.Status().Details.Causes {
		if c.Type == metav1.CauseTypeFieldValueInvalid || c.Type == metav1.CauseType("FieldValueForbidden") {
			for _, words := range []string{"immutable", "may not be changed", "may not change", "updates to "} {
				if strings.Contains(c.Message, words) {
					return true
				}
			}
		}
	}
	return false
}

// Same says whether a forced apply of want by manager would leave live as it is. False where that is
// not known.
func Same(want, live map[string]any, manager string) bool { return asItShouldBe(want, live, manager) }

// Written says whether manager has applied live, and when it has changed it last; zero: not known.
func Written(live map[string]any, manager string) (applied bool, at time.Time) {
	if appliedFields(live, manager) == nil {
		return false, at
	}
	metadata, _ := live["metadata"].(map[string]any)
	entries, _ := metadata["managedFields"].([]any)
	for _, e := range entries {
		entry, _ := e.(map[string]any)
		if entry["manager"] == manager && entry["operation"] == string(metav1.ManagedFieldsOperationApply) && entry["subresource"] == nil {
			text, _ := entry["time"].(string)
			at, _ = time.Parse(time.RFC3339, text)
		}
	}
	return true, at
}

// Takers returns the other managers of an object, without those that write its status only.
func Takers(live map[string]any, manager string) (out []string) {
	metadata, _ := live["metadata"].(map[string]any)
	entries, _ := metadata["managedFields"].([]any)
	for _, e := range entries {
		entry, _ := e.(map[string]any)
		if by, _ := entry["manager"].(string); by != manager && by != "" && entry["subresource"] != "status" {
			out = append(out, by)
		}
	}
	return out
}
