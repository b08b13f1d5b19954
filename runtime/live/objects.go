package live

import (
	"context"

	"github.com/starling-operator/starling/modules/status"
	"github.com/starling-operator/starling/runtime/effect"
	"github.com/starling-operator/starling/runtime/engine"
	"github.com/starling-operator/starling/runtime/modules"
)

// openObjects prepares the Module objects. They say nothing, and nobody looks at them, when they
// are switched off.
func (d *Driver) openObjects(own effect.Instance) {
	d.user = &userConfig{put: d.inbox.put, own: own, gone: map[string]bool{},
		objects: map[string]modules.Object{}, asked: map[string]engine.ConfigObject{}}
	if d.o.ModuleObjects {
		d.user.state = unread
	}
	d.o.Client.UseOthers(d.user.others)
	d.objects = modules.New(modules.Options{
		Instance: own, Client: d.o.Client, Define: d.defineObjects, Objects: d.user.known,
		Facts:     d.objectFacts,
		Elsewhere: func(module string) bool { return d.generation.Load().Elsewhere[module] },
		Reconcile: func(module, how string) {
			d.releases.Again(module, how == effect.WithoutHooks)
			d.inbox.put(engine.Reconcile{Module: module})
		},
		Event: func(about effect.Ref, e effect.Event) {
			d.event(func(context.Context) (effect.Ref, string) { return about, e.UID }, e)
		},
		Log: d.o.Log,
	})
}

// defineObjects applies the definition of Module objects. The watch looks for them at once.
func (d *Driver) defineObjects(ctx context.Context) error {
	return d.guard(func() error {
		changed, err := modules.Define(ctx, d.o.Client)
		if changed {
			d.watches.Kick()
		}
		return err
	})
}

// objectFacts are what the statuses of all modules hang on.
func (d *Driver) objectFacts(ctx context.Context) (facts map[string]modules.Facts, ready, stays, known bool) {
	type answer struct {
		status status.Status
		specs  map[string]map[string]any
		stays  bool
	}
	got, err := ask(ctx, d, func(e *engine.Engine) answer {
		a := answer{status: e.Status(), specs: map[string]map[string]any{}, stays: e.Stays()}
		for _, m := range a.status.Modules {
			a.specs[m.Name] = e.ModuleSpec(m.Name)
		}
		return a
	})
	if err != nil || got.status.Generation == 0 {
		return nil, false, false, false
	}
	gen := d.generation.Load()
	out := make(map[string]modules.Facts, len(got.status.Modules))
	for _, m := range got.status.Modules {
		d.addFound(&m)
		f := modules.Facts{Module: m, Spec: got.specs[m.Name]}
		if g := gen.Modules[m.Name]; g != nil && g.Tree != nil && g.Tree.Chart != nil {
			f.ChartVersion = g.Tree.Chart.Version
		}
		if last, is := d.repairs.Load(m.Name); is {
			f.Repair = last.(*modules.Repair)
		}
		out[m.Name] = f
	}
	var global []status.Hook
	for _, h := range got.status.Hooks {
		if d.answers.add(&h, gen.Hook(h.ID)); gen.Global != nil && h.Module == gen.Global.Name {
			global = append(global, h)
		}
		if f, there := out[h.Module]; there {
			f.Hooks = append(f.Hooks, h)
			out[h.Module] = f
		}
	}
	if failing := d.globalFailing.News(global); len(failing) > 0 { // there is no Module object of global hooks
		d.event(d.deployment, effect.Event{Type: "Warning", Reason: modules.HookFailed, Message: "hook " + status.Failing(failing)})
	}
	return out, got.status.Ready, got.stays, true
}

// checkModule says why what a Module object asks for is refused. The engine is asked for no more than
// the schemas and values of now: the check itself, which may take long, runs beside it.
func (d *Driver) checkModule(ctx context.Context, plain map[string]any) (refused string, err error) {
	kept, _, err := modules.Filter(plain)
	if err != nil {
		return "", err
	}
	o := modules.Read(kept)
	values := o.Config().Values
	if _, ours := o.Owner(d.user.own); !ours || values == "" {
		return "", nil
	}
	check, err := ask(ctx, d, func(e *engine.Engine) engine.ObjectCheck { return e.CheckObject(o.Name) })
	if check == nil || err != nil {
		return "", err // ValuesValid says that there is no such module
	}
	select {
	case d.checks <- struct{}{}: // large values cost memory
		defer func() { <-d.checks }()
	case <-ctx.Done():
		return "", ctx.Err()
	}
	settings := func(a engine.CheckSettings) engine.SettingsChecked { return d.executor.CheckSettings(ctx, a) }
	return modules.Refusal(check(values, d.marks.Evaluating, settings)), nil
}
