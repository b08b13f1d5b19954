package live

import (
	"context"
	"os"
	"time"

	"github.com/starling-operator/starling/runtime/effect"
)

// podName is the environment variable by which a Deployment tells its pods their names.
const podName = "POD_NAME"

// maxEventMessage is how long the API server lets an Event's message be.
const maxEventMessage = 1024

// tellOfReload makes an Event of what has become of the module tree: people look at
// their Deployment first. That all is well is said only after something was not.
func (d *Driver) tellOfReload(typ, reason, message string) {
	told := d.eventTold.Swap(typ == "Warning")
	if !d.started || typ == "Normal" && !told {
		return
	}
	if len(message) > maxEventMessage {
		message = message[:maxEventMessage-3] + "…"
	}
	d.busy.Go(func() {
		ctx, cancel := context.WithTimeout(d.work, 10*time.Second)
		defer cancel()
		about, uid := d.deployment(ctx)
		err := d.writer.Write(ctx, "starling", effect.Write{
			Kind: effect.WriteEvent, Ref: about, Event: &effect.Event{UID: uid, Type: typ, Reason: reason, Message: message},
		})
		if err != nil { // status, metrics and the log say it all the same
			d.o.Log.Debug().Err(err).Msg("no Event about the module tree")
		}
	})
}

// deployment finds the Deployment of this process by the owners of its pod. Where there
// is none, or it may not be read, it is the instance's Lease, which is always there.
func (d *Driver) deployment(ctx context.Context) (ref effect.Ref, uid string) {
	lease := effect.Ref{APIVersion: "coordination.k8s.io/v1", Kind: "Lease", Namespace: d.o.Namespace, Name: d.o.Name}
	ref = effect.Ref{APIVersion: "v1", Kind: "Pod", Namespace: d.o.Namespace, Name: os.Getenv(podName)}
	if ref.Name == "" {
		return lease, ""
	}
	for _, kind := range []string{"ReplicaSet", "Deployment"} {
		obj, err := d.o.Client.Get(ctx, ref)
		if err != nil || obj == nil {
			return lease, ""
		}
		owner := controllerOf(obj)
		if owner["kind"] != kind {
			return lease, ""
		}
		name, _ := owner["name"].(string)
		uid, _ = owner["uid"].(string)
		ref = effect.Ref{APIVersion: "apps/v1", Kind: kind, Namespace: d.o.Namespace, Name: name}
	}
	return ref, uid
}

// controllerOf returns the owner reference of an object's controller, nil without one.
func controllerOf(obj map[string]any) map[string]any {
	meta, _ := obj["metadata"].(map[string]any)
	owners, _ := meta["ownerReferences"].([]any)
	for _, o := range owners {
		owner, _ := o.(map[string]any)
		if owner["controller"] == true {
			return owner
		}
	}
	return nil
}
