package cluster

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"strings"
	"time"

	"github.com/starling-operator/starling/runtime/effect"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
)

// eventQuiet is how long an Event that is there is not counted again: a hook that
// says the same in each run does not write each time.
const eventQuiet = time.Minute

// event makes an Event, or counts the one that says the same. Its name comes from
// what it says, by whom and about what; the API server drops it an hour after it
// was last counted, and then there is a new one.
func (w *Writer) event(ctx context.Context, manager string, wr effect.Write) error {
	c, about, e := w.o.Client, wr.Ref, wr.Event
	uid, err := w.eventUID(ctx, about, e)
	if err != nil {
		return err
	}
	namespace := about.Namespace
	if namespace == "" {
		namespace = "default" // where those of cluster-scoped objects are looked for
	}
	ref := effect.Ref{APIVersion: "v1", Kind: "Event", Namespace: namespace, Name: eventName(manager, uid, wr)}
	live, err := c.Get(ctx, ref)
	if err != nil {
		return err
	}
	now := w.o.Now().UTC()
	if live != nil {
		return w.countEvent(ctx, manager, ref, live, now)
	}
	_, err = c.Write(ctx, manager, effect.Write{Kind: effect.WriteCreate, Ref: ref, IfAbsent: true, Object: map[string]any{
		"apiVersion": "v1", "kind": "Event",
		"metadata":       map[string]any{"name": ref.Name, "namespace": ref.Namespace},
		"involvedObject": map[string]any{"apiVersion": about.APIVersion, "kind": about.Kind, "namespace": about.Namespace, "name": about.Name, "uid": uid},
		"type":           e.Type, "reason": e.Reason, "message": e.Message, "count": 1,
		"firstTimestamp": now.Format(time.RFC3339), "lastTimestamp": now.Format(time.RFC3339),
		"source":             map[string]any{"component": "starling"},
		"reportingComponent": "starling", "reportingInstance": manager,
	}})
	if apierrors.HasStatusCause(err, corev1.NamespaceTerminatingCause) {
		return nil // it would go with the others there, and the run waits for no end of a namespace
	}
	return err
}

// eventUID is the uid of what an Event is about; "" when it is not there. A grant for Events gives no right to read
// the object, so a read that is forbidden is no error.
func (w *Writer) eventUID(ctx context.Context, about effect.Ref, e *effect.Event) (string, error) {
	if e.UID != "" {
		return e.UID, nil
	}
	if w.o.Known != nil {
		if uid := uidOf(w.o.Known(about)); uid != "" {
			return uid, nil
		}
	}
	live, err := w.o.Client.Get(ctx, about)
	if apierrors.IsForbidden(err) {
		return "", nil
	}
	return uidOf(live), err
}

func (w *Writer) countEvent(ctx context.Context, manager string, ref effect.Ref, live map[string]any, now time.Time) error {
	text, _ := live["lastTimestamp"].(string)
	if last, err := time.Parse(time.RFC3339, text); err == nil && now.Sub(last) < eventQuiet {
		return nil
	}
	count, _ := live["count"].(int64)
	_, err := w.o.Client.Write(ctx, manager, effect.Write{Kind: effect.WritePatch, Ref: ref, Patch: &effect.Patch{
		Type: effect.PatchMerge, Body: map[string]any{"count": count + 1, "lastTimestamp": now.Format(time.RFC3339)},
	}})
	if apierrors.IsNotFound(err) {
		return nil // its hour was over at this moment
	}
	return err
}

func eventName(manager, uid string, w effect.Write) string {
	sum := sha256.Sum256(fmt.Appendf(nil, "%q", []string{
		manager, w.Ref.APIVersion, w.Ref.Kind, uid, w.Event.Type, w.Event.Reason, w.Event.Message,
	}))
	name := w.Ref.Name
	if len(name) > 200 {
		name = strings.TrimRight(name[:200], ".-")
	}
	return name + "." + hex.EncodeToString(sum[:8])
}
