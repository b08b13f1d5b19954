// Package plan says what Starling would do to a cluster: it has the engine run in a
// world that lies over the cluster, until nothing is left to do, and tells what has
// become different there. Hooks set off each other, charts are rendered with the values
// that hooks have found, objects are applied by the rules of the API server; the cluster
// itself is only read.
package plan

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"slices"

	"github.com/starling-operator/starling/builtins"
	"github.com/starling-operator/starling/modules/release"
	"github.com/starling-operator/starling/modules/status"
	"github.com/starling-operator/starling/modules/values"
	"github.com/starling-operator/starling/runtime/effect"
	"github.com/starling-operator/starling/runtime/generation"
	"github.com/starling-operator/starling/runtime/sim"
)

// Plan is what would change. Its JSON form is what `starling plan -o json` prints.
// Secrets are masked in all of it.
type Plan struct {
	// Modules are those of the tree, by name, and those whose releases would go.
	Modules []Module `json:"modules"`
	// Objects are what would be created, updated or deleted, by kind, namespace and
	// name.
	Objects []Object `json:"objects"`
	// Controllers are what controllers do about the children of their parents, in order, and for what
	// the rest waits. The objects are among Objects.
	Controllers []status.Parent `json:"controllers"`
	// Drift are the objects that releases hold, and that are not as the charts have
	// rendered them: somebody else has changed or deleted them, and `run` puts them right, but
	// for those that it leaves so. Of a field, Old is the release's and New is what is there.
	Drift []Object `json:"drift"`
	// Messages are what http.send would send.
	Messages []Message `json:"messages"`
	// Problems are hooks that fail, parts of the user's config that are not taken, fields of templates that the
	// API server drops, and why.
	Problems []Problem `json:"problems"`
	// Scheduled are hooks with a schedule that have not run in the plan: time does not pass in it.
	Scheduled []string `json:"scheduled"`
	// Webhooks are the configurations of webhooks that `run` keeps, each with its hook: they are not in the plan.
	Webhooks []string `json:"webhooks,omitempty"`
	// Warnings are what is odd in the tree, the user's config and modules, and stops
	// nothing.
	Warnings []string `json:"warnings"`
	// unread: objects of releases could not be compared, as the warnings say.
	unread bool
}

// Action is what becomes of something.
type Action string

// Changes of modules and objects.
const (
	None      Action = "none"
	Install   Action = "install"
	Upgrade   Action = "upgrade"
	Uninstall Action = "uninstall"
	Create    Action = "create"
	Update    Action = "update"
	Delete    Action = "delete"
	// Changed and Missing are objects of Plan.Drift.
	Changed Action = "changed"
	Missing Action = "missing"
)

// Module is what becomes of one module's release.
type Module struct {
	Name   string `json:"name"`
	Action Action `json:"action"`
	// State and Reason are as in `starling get modules`, at the end.
	State  status.ModuleState `json:"state"`
	Reason string             `json:"reason,omitempty"`
	// Error is why the module is not as it should be at the end.
	Error string `json:"error,omitempty"`
	// Release is nil for a module without a chart.
	Release *status.Release `json:"release,omitempty"`
	// Values are what the chart sees otherwise than in the last revision.
	Values []Field `json:"values,omitempty"`
}

// Object is an object that would change.
type Object struct {
	Action     Action `json:"action"`
	effect.Ref `json:",inline"`
	// By are the hooks and releases that change it: "hook web/hooks/a.star:f",
	// "release web", "crds of web", "garbage collection".
	By []string `json:"by"`
	// ChangedBy are the field managers of others that have written an object of Plan.Drift, the
	// one that wrote last first. Left says that `run` leaves it so: its module only reports drift, or it may
	// have done its work.
	ChangedBy []string `json:"changedBy,omitempty"`
	Left      bool     `json:"left,omitempty"`
	// UserConfig says that the object holds the user's config: the ConfigMap of the instance, or a Module
	// object. The paths of its Fields begin with the section, "web.replicas", or with "spec".
	UserConfig bool `json:"userConfig,omitempty"`
	// Fields are what differs in an object that is updated, or has been changed, and all that is in a
	// ConfigMap of the user's config that is created.
	Fields []Field `json:"fields,omitempty"`
	// Object is any other one that is created, as it was asked for: without what the API
	// server fills in.
	Object map[string]any `json:"object,omitempty"`
}

// Field is one value that differs.
type Field struct {
	// Path leads there: "spec.replicas", "spec.containers[web].image".
	Path string `json:"path"`
	// Old and New are plain data; absent: there was, or will be, nothing.
	Old *any `json:"old,omitempty"`
	New *any `json:"new,omitempty"`
	// Secret says that the value is masked.
	Secret bool `json:"secret,omitempty"`
	// Why is who gave a module its new value, or took the old one away: layer, file
	// and line, or hook and run; nil when nobody did.
	Why *values.Source `json:"why,omitempty"`
}

// Message is one that http.send would send.
type Message struct {
	Hook string `json:"hook"`
	// Request is "POST https://chat.example.com/hook"; of a secret URL the host only.
	Request string `json:"request"`
}

// Problem is what keeps the plan from being the whole one, beside modules that fail.
type Problem struct {
	// Hook is one whose last run has failed, "" for what is no hook's: the user's
	// config, or a part of it, that is not taken, or a field of a template.
	Hook  string `json:"hook,omitempty"`
	Error string `json:"error"`
}

// Changes says whether anything would change.
func (p *Plan) Changes() bool {
	return len(p.Objects)+len(p.Messages) > 0 || slices.ContainsFunc(p.Modules, func(m Module) bool { return m.Action != None })
}

// Drifted says whether objects of releases are not as their charts have rendered them.
func (p *Plan) Drifted() bool { return len(p.Drift) > 0 }

// Failed says whether the plan is not the whole one, because modules or hooks fail.
func (p *Plan) Failed() bool {
	return len(p.Problems) > 0 || slices.ContainsFunc(p.Modules, func(m Module) bool { return m.Error != "" })
}

// Make plans: it begins a process in a world that has none and lies over an origin, and
// says what it has changed there once nothing is left to do that does not wait for a
// time.
func Make(ctx context.Context, w *sim.World) (*Plan, error) {
	begun, err := Begin(ctx, w)
	if err != nil {
		return nil, err
	}
	if err := w.Settle(ctx); err != nil {
		return nil, err
	}
	p, err := begun.Plan(ctx)
	if lost := w.Store().Lost(); lost != nil {
		return nil, lost // what was planned rests on what could not be read
	}
	return p, err
}

// Begun is a world in which a process has begun, and what Helm knew then.
type Begun struct {
	w        *sim.World
	releases map[release.Ref]*sim.Release
}

// Begin begins a process in a world that has none and lies over an origin. Nothing has
// happened in it yet.
func Begin(ctx context.Context, w *sim.World) (*Begun, error) {
	if err := w.Begin(ctx); err != nil {
		return nil, err
	}
	before, _, err := releases(ctx, w)
	if lost := w.Store().Lost(); lost != nil {
		return nil, lost
	}
	return &Begun{w, before}, err
}

// Plan says what has changed in the world, by now.
func (b *Begun) Plan(ctx context.Context) (*Plan, error) {
	w, before := b.w, b.releases
	after, refused, err := releases(ctx, w)
	if err != nil {
		return nil, err
	}
	drift, unread, err := drifted(ctx, w, after)
	if err != nil {
		return nil, err
	}
	m := newMasker(w, before, after) // it knows the Secrets that have been read until now
	for i := range drift {
		drift[i].Fields = m.fields(drift[i].Kind, drift[i].Fields)
	}
	p := &Plan{Modules: []Module{}, Objects: objects(w, m), Controllers: controllers(w, m), Drift: drift, unread: len(unread) > 0, Messages: []Message{}, Problems: []Problem{}, Scheduled: []string{}, Warnings: []string{}}
	st := w.Status()
	refs := slices.SortedFunc(maps.Keys(b.union(after)), compareRefs)
	for _, s := range st.Modules {
		ref, ok := w.ModuleRef(s.Name)
		if at := slices.IndexFunc(refs, func(r release.Ref) bool { return r.Module == s.Name }); !ok && at >= 0 {
			ref = refs[at] // it had a chart once
		}
		refs = slices.DeleteFunc(refs, func(r release.Ref) bool { return r == ref })
		out := module(s, before[ref], after[ref], m)
		if out.Action == Install || out.Action == Upgrade {
			if out.Values, err = changed(w, s.Name, before[ref], after[ref], m); err != nil {
				return nil, err
			}
		}
		p.Modules = append(p.Modules, out)
	}
	for _, ref := range refs {
		if gen := w.Generation(); gen.Elsewhere[ref.Module] {
			p.Warnings = append(p.Warnings, fmt.Sprintf("%s: its release %s in %s is given back, and stays as it is", gen.NotHere(ref.Module), ref.Name, ref.Namespace))
			continue
		}
		// Its module is gone, or its release has another name or namespace now. After an
		// uninstall, or once the new one is there, so is the release.
		state := status.Module{Name: ref.Module, State: status.ModuleOff, Reason: "no longer in the tree"}
		if at := slices.IndexFunc(st.Modules, func(s status.Module) bool { return s.Name == ref.Module }); at >= 0 {
			state.State, state.Reason = st.Modules[at].State, "its release is another one now"
		}
		p.Modules = append(p.Modules, module(state, before[ref], after[ref], m))
	}
	slices.SortStableFunc(p.Modules, func(a, b Module) int { return cmp.Compare(a.Name, b.Name) })
	for _, h := range st.Hooks {
		if one := w.Generation().Hook(h.ID); one != nil && one.Session {
			continue // what somebody has typed
		} else if one != nil && h.Runs == 0 && waits(one, st) {
			p.Scheduled = append(p.Scheduled, h.ID)
		}
		p.Webhooks = append(p.Webhooks, webhooks(w.Generation().Hook(h.ID), st)...)
		if h.State == status.HookFailed {
			p.Problems = append(p.Problems, Problem{Hook: h.ID, Error: m.Text(h.LastError)})
		}
	}
	for _, ref := range slices.SortedFunc(maps.Keys(refused), compareRefs) {
		if !slices.ContainsFunc(p.Modules, func(s Module) bool { return s.Name == ref.Module && s.Error != "" }) {
			p.Problems = append(p.Problems, Problem{Error: m.Text(fmt.Sprintf("release %s cannot be read: %s", ref, errorText(refused[ref])))})
		}
	}
	for _, text := range unread {
		p.Warnings = append(p.Warnings, m.Text(text))
	}
	p.Warnings = append(p.Warnings, underWay(before, w.Later())...)
	b.addWarnings(p, st, m)
	for _, s := range w.Sent {
		for _, msg := range s.Messages {
			p.Messages = append(p.Messages, Message{Hook: s.Hook, Request: m.Text(msg.Where())})
		}
	}
	return p, nil
}

// waits says whether a hook that has not run has a schedule, and its module is on.
func waits(h *generation.Hook, st status.Status) bool {
	if isOff(h, st) {
		return false
	}
	return slices.ContainsFunc(h.Bindings, func(b builtins.Binding) bool { return b.Schedule != nil })
}

// webhooks are the configurations that run keeps for a hook whose module is on.
func webhooks(h *generation.Hook, st status.Status) (kinds []string) {
	if h == nil || isOff(h, st) {
		return nil
	}
	for _, b := range h.Bindings {
		switch {
		case b.Admission == nil:
		case b.Admission.Mutate:
			kinds = append(kinds, "MutatingWebhookConfiguration of "+h.ID)
		default:
			kinds = append(kinds, "ValidatingWebhookConfiguration of "+h.ID)
		}
	}
	slices.Sort(kinds)
	return slices.Compact(kinds)
}

// isOff says whether the module of a hook is off.
func isOff(h *generation.Hook, st status.Status) bool {
	return slices.ContainsFunc(st.Modules, func(m status.Module) bool { return m.Name == h.Module && m.State == status.ModuleOff })
}

// module compares the releases of a module.
func module(s status.Module, before, after *sim.Release, m *masker) Module {
	out := Module{Name: s.Name, Action: None, State: s.State, Reason: m.Text(s.Reason), Release: s.Release}
	if s.State == status.ModuleFailed || s.State == status.ModuleBroken {
		out.Error = m.Text(cmp.Or(s.LastError, s.Reason))
	}
	switch {
	case before == nil && after == nil:
		return out
	case before == nil:
		out.Action = Install
	case after == nil:
		out.Action = Uninstall
		out.Release = &status.Release{Name: before.Name, Namespace: before.Namespace, Revision: before.Revision}
	case after.Revision != before.Revision:
		out.Action = Upgrade
	}
	return out
}

// changed are the values of a module that its chart sees otherwise than before, and why.
func changed(w *sim.World, name string, before, after *sim.Release, m *masker) ([]Field, error) {
	in, err := w.Explain(name)
	if err != nil {
		return nil, err
	}
	view := func(r *sim.Release) map[string]any {
		if r == nil {
			return nil
		}
		nested, ok := r.Values[in.ChartKey].(map[string]any)
		if in.ChartKey == "" || !ok {
			return r.Values
		}
		nested = maps.Clone(nested)
		nested[values.GlobalKey] = r.Values[values.GlobalKey]
		return nested
	}
	var out []Field
	for _, c := range values.Changes(view(before), view(after), in.Explain()) {
		f := Field{Path: m.Key(c.Path), Why: c.Why}
		if c.Kind != values.ChangeAdd {
			f.Old = &c.Old
		}
		if c.Kind != values.ChangeRemove {
			f.New = &c.New
		}
		hid := false
		f.Old, hid = m.plain(f.Old)
		f.New, f.Secret = m.plain(f.New)
		f.Secret = f.Secret || hid || c.Secret
		if m.sounds(c.Keys[len(c.Keys)-1], f.Old, f.New) && scalar(f.Old) && scalar(f.New) {
			f.Old, f.New, f.Secret = hidden(f.Old), hidden(f.New), true // however short it is
		}
		out = append(out, f)
	}
	return out, nil
}

// releases are what Helm knows: of the tree's modules, recorded or not, as they may take
// over what somebody else has installed, and of all that is recorded. A release that
// cannot be read is in refused, with the reason: the right to read it may be missing.
func releases(ctx context.Context, w *sim.World) (out map[release.Ref]*sim.Release, refused map[release.Ref]error, err error) {
	refs, err := w.Installed(ctx)
	if err != nil {
		return nil, nil, err
	}
	out, refused = map[release.Ref]*sim.Release{}, map[release.Ref]error{}
	for _, name := range w.Modules() {
		if ref, ok := w.ModuleRef(name); ok && !slices.Contains(refs, ref) {
			refs = append(refs, ref)
		}
	}
	defer w.ReleasesAhead(refs)()
	for _, ref := range refs {
		r, err := w.ReleaseOf(ctx, ref)
		switch {
		case ctx.Err() != nil:
			return nil, nil, context.Cause(ctx)
		case err != nil:
			refused[ref] = err
		case r != nil:
			out[ref] = r
		}
	}
	return out, refused, nil
}

func compareRefs(a, b release.Ref) int {
	return cmp.Or(cmp.Compare(a.Module, b.Module), cmp.Compare(a.Namespace, b.Namespace), cmp.Compare(a.Name, b.Name))
}

// union are the releases that have been there before or are there after.
func (b *Begun) union(after map[release.Ref]*sim.Release) map[release.Ref]*sim.Release {
	out := maps.Clone(b.releases)
	maps.Copy(out, after)
	return out
}
