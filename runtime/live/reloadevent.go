package live

import (
	"context"
	"os"
	"strings"
	"time"

	"github.com/starling-operator/starling/runtime/effect"
	"github.com/starling-operator/starling/runtime/message"
)

// podName is the environment variable by which a Deployment tells its pods their names.
const podName = "POD_NAME"

// maxEventMessage is how long the API server lets an Event's message be.
const maxEventMessage = 1024

// tellOfReload makes an Event of what has become of the module tree: people look at
// their Deployment first. That all is well is said only after something was not.
func (d *Driver) tellOfReload(typ, reason, message string) {
	warned := d.eventWarned.Swap(typ == "Warning")
	if !d.started.Load() || typ == "Normal" && !warned {
		return
	}
	d.event(d.deployment, effect.Event{Type: typ, Reason: reason, Message: message})
}

// tellOfConfig makes an Event, at the user's ConfigMap, of a part of it that is refused.
func (d *Driver) tellOfConfig(message string) {
	about := effect.Ref{APIVersion: "v1", Kind: "ConfigMap", Namespace: d.o.Namespace, Name: d.o.Name}
	d.event(func(context.Context) (effect.Ref, string) { return about, "" },
		effect.Event{Type: "Warning", Reason: "ConfigRefused", Message: message})
}

// event makes an Event beside all else; about names its object, and the uid where it is
// known.
func (d *Driver) event(about func(context.Context) (effect.Ref, string), e effect.Event) {
	e.Message = message.Fit(e.Message, maxEventMessage)
	d.busy().Go(func() {
		ctx, cancel := context.WithTimeout(d.work(), 10*time.Second)
		defer cancel()
		var ref effect.Ref
		ref, e.UID = about(ctx)
		err := d.writer.Write(ctx, "starling", effect.Write{Kind: effect.WriteEvent, Ref: ref, Event: &e})
		if err != nil { // status, metrics and the log say it all the same
			d.o.Log.Debug().Err(err).Msg("no Event about " + ref.String())
		}
	})
}

// deployment finds the Deployment of this process. Its pods have its name with two more
// parts, so that one object needs to be read, and no other. Where there is none, or it
// may not be read, it is the instance's Lease, which is always there.
func (d *Driver) deployment(ctx context.Context) (ref effect.Ref, uid string) {
	lease := effect.Ref{APIVersion: "coordination.k8s.io/v1", Kind: "Lease", Namespace: d.o.Namespace, Name: d.o.Name}
	name := deploymentOf(os.Getenv(podName))
	if name == "" {
		return lease, ""
	}
	ref = effect.Ref{APIVersion: "apps/v1", Kind: "Deployment", Namespace: d.o.Namespace, Name: name}
	obj, err := d.o.Client.Get(ctx, ref)
	if err != nil || obj == nil {
		return lease, ""
	}
	uid = effect.At[string](obj, "metadata", "uid")
	return ref, uid
}

// deploymentOf returns the name of the Deployment that a pod of this name may be of: that
// of a pod is "<deployment>-<hash of the template>-<5 characters>".
func deploymentOf(pod string) string {
	for range 2 {
		i := strings.LastIndexByte(pod, '-')
		if i < 1 {
			return ""
		}
		pod = pod[:i]
	}
	return pod
}
