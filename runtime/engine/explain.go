package engine

import (
	"errors"
	"fmt"
	"io/fs"
	"slices"

	"github.com/starling-operator/starling/modules/status"
	"github.com/starling-operator/starling/modules/values"
	"github.com/starling-operator/starling/runtime/message"
)

// Explain returns what the values of a module, or of the global hooks for "global", are
// made of; what is in it does not change, so that others may look at it. Errors: there is
// no such module; nothing was started yet.
func (e *Engine) Explain(module string) (values.ExplainInput, error) {
	if e.gen == nil {
		return values.ExplainInput{}, errors.New("it has no values: it stands by, another process holds the lease")
	}
	m := e.module(module)
	if m == nil {
		return values.ExplainInput{}, e.noModule(module)
	}
	files := m.from.Tree.Files
	in := values.ExplainInput{
		Section: e.sources(m), ChartKey: m.gen.Decl.ValuesKey, Notes: e.explainNotes(m),
		Read: func(name string) []byte {
			data, _ := fs.ReadFile(files, name) // a file that is not there has no lines
			return data
		},
	}
	if !m.isGlobal() {
		global := e.sources(e.global)
		in.Global = &global
		in.Switches = []values.SwitchSources{e.switchSources(m)}
		return in, nil
	}
	for _, other := range e.order() {
		in.Switches = append(in.Switches, e.switchSources(e.modules[other]))
	}
	return in, nil
}

func (t *turn) noModule(name string) error {
	names := slices.Clone(t.agenda.Tree())
	slices.Sort(names)
	return fmt.Errorf("there is no module %q; %s", name, message.DidYouMean(name, names, "see: starling get modules"))
}

// sources is the section of a module with the layers of its hooks and their calls.
func (t *turn) sources(m *module) values.SectionSources {
	out := values.SectionSources{Section: m.values.Section(), ConfigName: t.configName()}
	out.ConfigText = t.config.Text(out.Key)
	if object := t.config.ValuesFrom(m.name); object != "" {
		out.ConfigName, out.ConfigText, out.Object = object, "", true
	}
	return out
}

// ModuleSpec is what is in force of a module by its Module object, as its spec has it; nil: nothing.
// Only read.
func (e *Engine) ModuleSpec(module string) map[string]any { return e.config.Spec(module) }

// configName names the user's ConfigMap, with what became of it.
func (t *turn) configName() string {
	name := fmt.Sprintf("ConfigMap %s/%s", t.opts.Namespace, t.opts.Name)
	if t.config.Known() && t.config.State() != ConfigPresent {
		name += " (as it was; now " + string(t.config.State()) + ")"
	}
	return name
}

// switchSources are those that switch a module on or off.
func (e *Engine) switchSources(m *module) values.SwitchSources {
	out := values.SwitchSources{
		Key: values.EnabledKey(m.gen.Key), Default: m.gen.Decl.Enabled, Pos: m.gen.Decl.Pos,
		Tree: e.gen.Values.Switch(m.name), Config: e.config.Accepted().Switch(m.name),
		TreeFile: e.gen.Tree.ValuesFile, ConfigName: e.configName(),
	}
	if object := e.config.SwitchFrom(m.name); object != "" {
		out.ConfigName, out.Object = object, true
	}
	out.Hook, out.Op = e.layers.SwitchedBy(out.Key)
	return out
}

// explainNotes are what else one should know of a module's values.
func (t *turn) explainNotes(m *module) []string {
	var out []string
	if state, reason := t.moduleState(m); state == status.ModuleOff {
		note := "the module is off, its hooks do not run"
		if reason != "" {
			note += ": " + reason
		}
		out = append(out, note)
	}
	for _, h := range m.hooks {
		if why := h.subjects.Failure(); why != "" {
			out = append(out, fmt.Sprintf("hook %s has failed, what it gave before stays: %s", h.gen.ID, why))
		}
	}
	for _, h := range m.hooks {
		if why := h.subjects.Waiting(); why != "" {
			out = append(out, fmt.Sprintf("controller %s: %s", h.gen.ID, why))
		}
	}
	if m.broken != "" {
		out = append(out, "the module is broken, its hooks do not run: "+m.broken)
	}
	switch {
	case m.gen.ChartValues != nil:
		out = append(out, "chart_values() in "+m.gen.Tree.ModuleFile+" decides what the chart sees of these values")
	case m.gen.Decl.ValuesKey != "":
		out = append(out, "the chart sees these values, those below global aside, below "+m.gen.Decl.ValuesKey)
	}
	return out
}
