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

// Explain returns what the values of a module, or of the global hooks for "global", are made of; what is in it does
// not change, so that others may look at it. Errors: there is no such module; nothing was started yet.
func (v *View) Explain(module string) (values.ExplainInput, error) {
	if v.gen == nil {
		return values.ExplainInput{}, errors.New("it has no values: it stands by, another process holds the lease")
	}
	m := v.module(module)
	if m == nil {
		return values.ExplainInput{}, v.noModule(module)
	}
	files := m.from.Tree.Files
	in := values.ExplainInput{
		Section: v.sources(m), ChartKey: m.gen.Decl.ValuesKey, Notes: v.explainNotes(m),
		Read: func(name string) []byte {
			data, _ := fs.ReadFile(files, name) // a file that is not there has no lines
			return data
		},
	}
	if !m.isGlobal() {
		global := v.sources(v.global)
		in.Global = &global
		in.Switches = []values.SwitchSources{v.switchSources(m)}
		return in, nil
	}
	for _, other := range v.order() {
		in.Switches = append(in.Switches, v.switchSources(v.modules[other]))
	}
	return in, nil
}

func (g *ground) noModule(name string) error {
	names := slices.Clone(g.agenda.Tree())
	slices.Sort(names)
	return fmt.Errorf("there is no module %q; %s", name, message.DidYouMean(name, names, "see: starling get modules"))
}

// sources is the section of a module with the layers of its hooks and their calls.
func (g *ground) sources(m *module) values.SectionSources {
	out := values.SectionSources{Section: m.values.Section(), ConfigName: g.configName()}
	out.ConfigText = g.config.Seen().Data[out.Key]
	if object := g.config.ValuesFrom(m.name); object != "" {
		out.ConfigName, out.ConfigText, out.Object = object, "", true
	}
	return out
}

// ModuleSpec is what is in force of a module by its Module object, as its spec has it; nil: nothing. Only read.
func (v *View) ModuleSpec(module string) map[string]any { return v.config.Spec(module) }

// configName names the user's ConfigMap, with what became of it.
func (g *ground) configName() string {
	name := fmt.Sprintf("ConfigMap %s/%s", g.opts.Namespace, g.opts.Name)
	if g.config.Known() && g.config.Seen().State != ConfigPresent {
		name += " (as it was; now " + string(g.config.Seen().State) + ")"
	}
	return name
}

// switchSources are those that switch a module on or off.
func (v *View) switchSources(m *module) values.SwitchSources {
	out := values.SwitchSources{
		Key: values.EnabledKey(m.gen.Key), Default: m.gen.Decl.Enabled, Pos: m.gen.Decl.Pos,
		Tree: v.gen.Values.Switch(m.name), Config: v.config.Accepted().Switch(m.name),
		TreeFile: v.gen.Tree.ValuesFile, ConfigName: v.configName(),
	}
	if object := v.config.SwitchFrom(m.name); object != "" {
		out.ConfigName, out.Object = object, true
	}
	out.Hook, out.Op = v.layers.SwitchedBy(out.Key)
	return out
}

// explainNotes are what else one should know of a module's values.
func (g *ground) explainNotes(m *module) []string {
	var out []string
	if state, reason := g.moduleState(m); state == status.ModuleOff {
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
