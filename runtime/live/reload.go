package live

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/rs/zerolog"

	"github.com/starling-operator/starling/builtins"
	"github.com/starling-operator/starling/modules/status"
	"github.com/starling-operator/starling/modules/tree"
	"github.com/starling-operator/starling/runtime/engine"
	"github.com/starling-operator/starling/runtime/generation"
	"github.com/starling-operator/starling/runtime/script"
)

// Reload puts another state of the module tree in force: it is compiled beside the one in
// force, and takes its place module by module. A module that cannot be used stays as it was, and
// so do all when the tree has none; status, metrics, the log and an Event say why. Calls must
// not overlap.
func (d *Driver) Reload(ctx context.Context, t *tree.Tree) {
	before := d.generation.Load()
	if t.Digest == before.Tree.Digest {
		if reason := before.HeldReason(); reason != "" {
			d.held(before, reason)
		} else if d.reloadFailure.Swap(nil) != nil {
			d.reloaded(zerolog.InfoLevel, fmt.Sprintf("the module tree is that of generation %d again", before.Number))
		}
		return
	}
	began := time.Now()
	next := d.o.Load(script.Charged(ctx, d.slots.charge), t, before)
	if ctx.Err() != nil {
		return // what a stop has cut short says nothing about the tree
	}
	for _, p := range next.Problems {
		if !slices.Contains(before.Problems, p) {
			d.o.Log.Warn().Msg(p.String())
		}
	}
	d.o.Log.Debug().Stringer("took", time.Since(began).Round(time.Millisecond)).Msg("the changed module tree is compiled")
	// The error says that this process ends.
	_, _ = ask(ctx, d, func(*engine.Engine) bool { d.follow(before, next); return true })
}

// follow has a generation take the place of another one. It runs on the engine's
// goroutine.
func (d *Driver) follow(before, next *generation.Generation) {
	if d.begun {
		d.handle(engine.Reload{Generation: next, Barred: d.barred(next)})
		if now := d.generation.Load(); d.standsBy() && now != before {
			d.o.Inputs.Followed(before, next, now) // the engine that leads later begins with it
		}
		return
	}
	adopted, err := engine.Follow(d.o.Inputs.Options(d.engineOptions()), before, next)
	d.o.Inputs.Followed(before, next, adopted)
	if err != nil {
		d.unused("refused", err.Error())
		return
	}
	d.adopted(adopted)
}

// barred says why hooks of a generation must not run, by their ids.
func (d *Driver) barred(g *generation.Generation) map[string]string {
	out := map[string]string{}
	for _, h := range g.Hooks() {
		if why := d.marks.barred(h); why != "" {
			out[h.ID] = why
		}
	}
	return out
}

// adopted has all that is done from now on go by a generation.
func (d *Driver) adopted(next *generation.Generation) {
	d.o.Client.WritesOf(next.Tree.Digest) // from now on: nothing leaves before the Lease says so
	before := d.generation.Swap(next)
	d.executor.Use(next)
	d.webhooks.Use(next)
	if d.receive != nil {
		d.receive.Know(next)
	}
	d.marks.use(next)
	d.marks.renew()
	if d.begun {
		d.metrics.generation.Set(float64(next.Number))
	}
	text, level := fmt.Sprintf("generation %d of the module tree is in force", next.Number), zerolog.DebugLevel
	if what := difference(before, next); what != "" {
		text, level = text+": "+what, zerolog.InfoLevel
	}
	if reason := next.HeldReason(); reason != "" {
		d.o.Log.WithLevel(level).Msg(text)
		d.held(next, reason)
		return
	}
	if d.reloadFailure.Swap(nil) != nil {
		level = zerolog.InfoLevel
	}
	d.reloaded(level, text)
}

// held says that modules are not as in the tree.
func (d *Driver) held(g *generation.Generation, reason string) {
	d.failed("held", reason, fmt.Sprintf("generation %d of the module tree is in force, apart from modules that stay as they were: %s", g.Number, reason))
}

// reloaded says that the module tree is in force. A file of no module may change many times a second,
// the log itself for one: nobody is told of that.
func (d *Driver) reloaded(level zerolog.Level, text string) {
	d.metrics.reloads.WithLabelValues("accepted").Inc()
	d.metrics.reloadFailed.Set(0)
	d.o.Log.WithLevel(level).Msg(text)
	d.tellOfReload("Normal", "Reloaded", text)
}

// ReloadFailed notes that the module tree cannot be read as a whole: what is in force
// goes on.
func (d *Driver) ReloadFailed(err error) { d.unused("unreadable", err.Error()) }

// unused says that nothing of the tree is in force.
func (d *Driver) unused(result, reason string) {
	d.failed(result, reason, fmt.Sprintf("the module tree has changed and cannot be used: %s; generation %d goes on", reason, d.generation.Load().Number))
}

func (d *Driver) failed(result, reason, text string) {
	d.metrics.reloads.WithLabelValues(result).Inc()
	d.metrics.reloadFailed.Set(1)
	failure := &status.ReloadFailure{Reason: reason, Since: time.Now()}
	before := d.reloadFailure.Load()
	if before != nil {
		failure.Since = before.Since
	}
	if d.reloadFailure.Store(failure); before != nil && before.Reason == reason {
		return
	}
	d.o.Log.Error().Msg(text)
	d.tellOfReload("Warning", "ReloadFailed", text)
}

// difference names the modules in which generations differ.
func difference(before, next *generation.Generation) string {
	var parts []string
	list := func(what string, names []string) {
		const shown = 5
		if more := len(names) - shown; more > 1 {
			names = append(names[:shown:shown], fmt.Sprintf("%d more", more))
		}
		if len(names) > 0 {
			parts = append(parts, what+" "+strings.Join(names, ", "))
		}
	}
	var changed, added, gone []string
	if before.Global != next.Global {
		changed = append(changed, "global")
	}
	for _, name := range next.Names {
		switch old := before.Modules[name]; {
		case old == nil:
			added = append(added, name)
		case old != next.Modules[name] && (old.Err == nil || next.Modules[name].Err == nil):
			changed = append(changed, name)
		}
	}
	for _, name := range before.Names {
		if next.Modules[name] == nil {
			gone = append(gone, name)
		}
	}
	list("changed:", changed)
	list("new:", added)
	list("gone:", gone)
	return strings.Join(parts, "; ")
}

// gone takes away what is left of hooks that are not in the tree any more.
func (d *Driver) gone(a engine.Gone) {
	d.metrics.gone(a.Module, a.Hook)
	if a.Hook == "" {
		d.outbox.gone(a.Module)
		d.releases.Forget(a.Module)
		d.busy().Go(func() {
			if err := d.guard(func() error { return d.executor.ForgetCRDs(d.work(), a.Module) }); err != nil && d.work().Err() == nil {
				d.log(a.Module, "").Log(builtins.LevelWarn, err.Error(), nil)
			}
		})
		d.repairs.Delete(a.Module)
	}
	d.answers.gone(a.Module, a.Hook)
}
