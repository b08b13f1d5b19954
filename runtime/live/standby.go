package live

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/starling-operator/starling/builtins"
	"github.com/starling-operator/starling/modules/release"
	"github.com/starling-operator/starling/runtime/cluster"
	"github.com/starling-operator/starling/runtime/effect"
	"github.com/starling-operator/starling/runtime/engine"
	"github.com/starling-operator/starling/runtime/object"
	"github.com/starling-operator/starling/runtime/watch"
)

// A process that waits for the Lease stands by: it has an engine that answers reviews, and withholds
// all else. It watches what the process that leads keeps. The Lease comes with another engine, which
// begins as after a restart, and goes with it; what an engine has said of reviews counts on until the next one is sure.

// The ids of the watches on what is kept, and on the Lease.
const (
	keptWatch  = "kept"
	leaseWatch = "lease"
)

// standsBy says whether the engine is one that does not lead.
func (d *Driver) standsBy() bool { return d.engine != d.leading }

// standBy begins to stand by.
func (d *Driver) standBy() {
	if !d.standsBy() {
		d.engine = engine.New(d.engineOptions())
	}
	d.holder.becomes(waits)
	d.user.again()
	d.answerReviews()
	d.watches.Start(watch.Spec{
		ID: keptWatch, APIVersion: "v1", Kind: "Secret", Namespaces: []string{d.o.Namespace},
		Labels: effect.InstanceLabel + "=" + d.kept.Instance() + "," + cluster.KeptLabel,
	})
	d.watches.Start(watch.Spec{
		ID: leaseWatch, APIVersion: "coordination.k8s.io/v1", Kind: "Lease", Namespaces: []string{d.o.Namespace}, Names: []string{d.o.Name},
	})
}

// takeOver has the engine work that leads. The user's config is read anew, but by a process that has the Lease at
// once. Requests wait for hooks to begin, also in a process that has the Lease before it could stand by: others hand
// them to it.
func (d *Driver) takeOver() {
	d.webhooks.Lead(d.work())
	d.holder.becomes(takesOver)
	if !d.standsBy() {
		d.answerReviews()
		if time.Since(d.since) > d.o.Lease.Retry {
			d.lookAnew()
		}
		d.user.again()
		return
	}
	d.warm, _ = d.Ready()
	d.served.Store(d.warm)
	d.watches.Stop(keptWatch)
	d.watches.Stop(leaseWatch)
	d.handOver(d.leading)
	d.busy().Go(d.endOwed)
	d.lookAnew()
}

// handOver has another engine work. Inputs that wait for the one before it say nothing to this one: it knows no watch
// and no action of it.
func (d *Driver) handOver(to *engine.Engine) {
	d.used = max(d.used, d.engine.Numbers())
	d.watching.Range(func(id, _ any) bool {
		d.outgoing = append(d.outgoing, id.(string))
		d.watching.Delete(id)
		d.metrics.state.watched(id.(string))            // the next engine has one of the same hook and binding
		d.metrics.forget(engine.WatchHook(id.(string))) // no run was waited for
		return true
	})
	d.answers.inherit()
	d.inherits = true
	d.sleep(time.Time{})
	d.engine, d.begun = to, false
}

// lookAnew has the engine that leads go by nothing older than its Lease: what is kept is not, and a watch that
// lags behind would have it take for gone what is merely new, or go by what users have asked for before.
func (d *Driver) lookAnew() {
	d.watches.Renew()
	d.watches.Stop(configWatch) // or it would be read once more as it was
	d.watches.Stop(objectsWatch)
	d.configSeen.Store(false)
	d.user.forget()
	d.inbox.drop(slotOfConfig)
	d.watchConfig()
}

// endOutgoing ends the watches of the engine before this one. Those of a module that this one cannot begin yet
// go on for a while: reviews of it rest on them.
func (d *Driver) endOutgoing() {
	if !d.inherits {
		return
	}
	d.inherits = d.answers.settleAll()
	d.outgoing = slices.DeleteFunc(d.outgoing, func(id string) bool {
		if d.answers.owes(moduleOf(engine.WatchHook(id))) {
			return false
		}
		d.watches.Stop(id)
		return true
	})
}

// endOwed has a look once nothing is owed any more.
func (d *Driver) endOwed() {
	select {
	case <-time.After(owedFor):
		_, _ = ask(d.work(), d, func(*engine.Engine) bool { return true }) // the look comes after it
	case <-d.work().Done():
	}
}

// moduleOf is the module of a hook, by the id of that.
func moduleOf(hook string) string {
	module, _, _ := strings.Cut(hook, "/")
	return module
}

// unanswered says why the API server is not answered, or "".
func (d *Driver) unanswered() string {
	if !d.webhooks.Ready() {
		return "webhooks have no certificate yet"
	}
	return ""
}

// keptSynced has the engine begin, or takes in what was missed.
func (d *Driver) keptSynced() {
	if d.term.Load().began.Swap(true) {
		kept := d.whatIsKept(anyModule)
		for _, m := range d.generation.Load().All() {
			if _, there := kept[m.Name]; !there {
				kept[m.Name] = nil // any more
			}
		}
		for module, data := range kept {
			d.inbox.put(engine.Kept{Module: module, Data: data})
		}
		return
	}
	d.busy().Go(d.awaitSeal)
	d.busy().Go(func() {
		d.begin(func() (engine.Start, error) {
			refs, err := d.releases.Installed(d.work())
			if err != nil {
				return engine.Start{}, fmt.Errorf("release records: %w", err)
			}
			return engine.Start{Standby: true, Installed: refsOf(refs)}, nil
		})
	})
}

// keptChanged has the engine know what is kept of the modules of these Secrets.
func (d *Driver) keptChanged(events []watch.Event) {
	modules := map[string]bool{}
	for _, ev := range events {
		if o, is := ev.Result.(*object.Object); is {
			modules[cluster.KeptModule(o.Map())] = true
		}
	}
	kept := d.whatIsKept(func(module string) bool { return modules[module] })
	for module := range modules {
		d.inbox.put(engine.Kept{Module: module, Data: kept[module]})
	}
}

// whatIsKept reads the watch on what is kept of some modules. A Secret that cannot be read is left out, and the
// log says so: the process that leads ends over it.
func (d *Driver) whatIsKept(of func(module string) bool) map[string]map[string][]byte {
	var secrets []map[string]any
	for _, v := range d.watches.Snapshot(keptWatch) {
		if o, is := v.(*object.Object); is && of(cluster.KeptModule(o.Map())) {
			secrets = append(secrets, o.Map())
		}
	}
	kept, err := d.kept.Read(secrets)
	if err != nil {
		d.log("", "").Log(builtins.LevelWarn, err.Error(), nil)
	}
	return kept
}

func anyModule(string) bool { return true }

// refsOf are the releases as the engine knows them.
func refsOf(refs []release.Ref) (out []engine.ReleaseRef) {
	for _, r := range refs {
		out = append(out, engine.ReleaseRef(r))
	}
	return out
}
