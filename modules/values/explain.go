package values

import (
	"maps"
	"slices"

	"github.com/starling-operator/starling/runtime/effect"
)

// SectionSources is a [Section] with the texts that it was read from.
type SectionSources struct {
	Section
	// ConfigName names the object that holds the user's config: "ConfigMap
	// starling-system/starling".
	ConfigName string
	// Object: ConfigName is the Module object, whose spec.values are the section.
	Object bool
	// ConfigText is the text of the section's key in it; lines are told only when it
	// says the same as Config.
	ConfigText string
	// ConfigFile, instead of ConfigName, is the file that ConfigText is, in which the
	// section stands at ConfigKeys.
	ConfigFile string
	ConfigKeys []string
}

// SwitchSources are all who may switch one module; nil: says nothing.
type SwitchSources struct {
	// Key is the full name, "fooEnabled".
	Key string
	// Default is module(enabled=…), Pos the "file:line" of the call; "": there is none.
	Default bool
	Pos     string
	// Tree, Config are those of the tree's values.yaml and of the user's config.
	Tree, Config *bool
	// Hook is the id of the global hook whose operation Op sets the switch.
	Hook string
	Op   *effect.ValueOp
	// TreeFile and ConfigName say where the two stand.
	TreeFile, ConfigName string
	// Object: ConfigName is the Module object, whose spec.enabled is Config.
	Object bool
}

// ExplainInput is all that [ExplainInput.Explain] needs. Nothing in it changes any more,
// so that it may be used in any goroutine.
type ExplainInput struct {
	// Section is the module's, or the global one.
	Section SectionSources
	// Global is the global section, nil when that is Section.
	Global *SectionSources
	// Switches are the module's own, or those of all modules for the global section.
	Switches []SwitchSources
	// ChartKey is the key under which the chart sees the module's values; "": the root.
	ChartKey string
	// Notes are said beside the values.
	Notes []string
	// Process is what the ids of the process' runs begin with; "": they are not kept.
	Process string
	// Read returns a file of the tree, nil when it is not there.
	Read func(file string) []byte
}

// Explanation says of each value of a module who gave it.
type Explanation struct {
	// Module is the module's name, or "global".
	Module string `json:"module"`
	// Notes are what else one should know, a line each.
	Notes []string `json:"notes,omitempty"`
	// ChartKey is the key under which the chart sees the module's values.
	ChartKey string `json:"chartKey,omitempty"`
	// Process is what the ids of runs begin with: run 7 of process k3f9 is k3f9-7.
	Process string `json:"process,omitempty"`
	// Values are those in force and those that were taken away, by path.
	Values []Entry `json:"values"`

	secrets *secrets
}

// Entry is one value: what is no map, or an empty one. A list is one value.
type Entry struct {
	// Path is Keys as people read them, see [PathString].
	Path string   `json:"path"`
	Keys []string `json:"keys"`
	// Value is what is in force, with *** for what is known as secret.
	Value any `json:"value"`
	// Removed: nothing is in force, since the first of Chain took it away.
	Removed bool `json:"removed,omitempty"`
	// Secret: Value holds, or is, a secret.
	Secret bool `json:"secret,omitempty"`
	// Chain is who gave a value here, what wins first; never empty.
	Chain []Step `json:"chain"`
}

// Step is what one layer says of a path.
type Step struct {
	// Value is what the layer gives, with *** for what is known as secret; nothing
	// when it takes away what lies below (Removed).
	Value   any  `json:"value"`
	Removed bool `json:"removed,omitempty"`
	Source

	marks [][]string // the secrets in Value
}

// Explain says of each value who gave it.
func (in ExplainInput) Explain() Explanation {
	own := newTracer(in.Section, in.Read)
	trace := own.chain
	view := map[string]any{GlobalKey: own.full}
	removed := func() [][]string { return prefixed(own.removed(), GlobalKey) }
	tracers := []*tracer{own}
	if in.Global == nil {
		trace = func(path []string) []Step { return own.chain(path[1:]) }
	} else {
		global := newTracer(*in.Global, in.Read)
		tracers = append(tracers, global)
		view = ModuleView(own.full, global.full)
		trace = func(path []string) []Step {
			if path[0] != GlobalKey {
				return own.chain(path)
			}
			return slices.Concat(global.chain(path[1:]), own.chain(path))
		}
		removed = func() [][]string { return slices.Concat(own.removed(), prefixed(global.removed(), GlobalKey)) }
	}
	x := Explanation{Module: in.Section.Name, Notes: in.Notes, ChartKey: in.ChartKey, Process: in.Process, secrets: newSecrets(tracers)}
	x.Values = []Entry{}
	add := func(path []string, value any, there bool) {
		chain := trace(path)
		if !there && len(chain) > 0 && chain[0].Value == nil {
			chain[0].Removed = true // a null that the schema does not take counts as nothing
		}
		if len(chain) > 0 && (there || chain[0].Removed) {
			x.Values = append(x.Values, x.entry(path, value, !there, chain))
		}
	}
	ends(nil, view, func(path []string, v any) {
		if len(path) > 1 || path[0] != GlobalKey {
			add(path, v, true)
		}
	})
	seen := map[string]bool{}
	for _, path := range removed() {
		if _, there := lookup(view, path); !there && !seen[pathKey(path)] {
			seen[pathKey(path)] = true
			add(path, nil, false)
		}
	}
	for _, s := range in.Switches {
		chain := s.chain(in.Read)
		x.Values = append(x.Values, x.entry([]string{s.Key}, chain[0].Value, false, chain))
	}
	slices.SortStableFunc(x.Values, func(a, b Entry) int { return slices.Compare(a.Keys, b.Keys) })
	return x
}

func (x Explanation) entry(path []string, value any, removed bool, chain []Step) Entry {
	e := Entry{Path: PathString(path), Keys: path, Removed: removed, Chain: chain}
	e.Value, e.Secret = x.secrets.hide(value, chain[0].marks)
	for i, s := range e.Chain {
		e.Chain[i].Value, _ = x.secrets.hide(s.Value, s.marks)
	}
	return e
}

// ends calls f for the path of everything in m that is no map, or an empty one.
func ends(path []string, m map[string]any, f func([]string, any)) {
	for _, k := range slices.Sorted(maps.Keys(m)) {
		p := append(slices.Clip(path), k)
		if child, ok := m[k].(map[string]any); ok && len(child) > 0 {
			ends(p, child, f)
		} else {
			f(p, m[k])
		}
	}
}

func prefixed(paths [][]string, key string) [][]string {
	out := make([][]string, 0, len(paths))
	for _, p := range paths {
		out = append(out, append([]string{key}, p...))
	}
	return out
}

// chain is who says something of a switch, what wins first.
func (s SwitchSources) chain(read func(string) []byte) []Step {
	var out []Step
	if s.Config != nil {
		source := Source{Layer: LayerConfig, Config: s.ConfigName, Key: s.Key}
		if s.Object {
			source.Layer, source.Key = LayerObject, "spec.enabled"
		}
		out = append(out, Step{Value: *s.Config, Source: source})
	}
	if s.Op != nil {
		out = append(out, Step{Value: s.Op.Value, Source: hookSource(LayerHook, s.Hook, *s.Op, nil)})
	}
	if s.Tree != nil {
		line := newPositions(read(s.TreeFile)).line([]string{s.Key})
		out = append(out, Step{Value: *s.Tree, Source: Source{Layer: LayerTree, File: s.TreeFile, Line: line}})
	}
	file, line := splitPos(s.Pos)
	return append(out, Step{Value: s.Default, Source: Source{Layer: LayerModule, File: file, Line: line}})
}
