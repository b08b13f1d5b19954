package values

import (
	"fmt"
	"slices"
	"strings"
	"sync"

	"github.com/starling-operator/starling/runtime/effect"
)

// HookLayer is what the last successful run of one hook asked for.
type HookLayer struct {
	// Hook is the hook's id.
	Hook string
	Ops  []effect.ValueOp
}

// Layer is one static source of values.
type Layer struct {
	// Name is "chart values.yaml" or "tree values.yaml".
	Name string
	// File is the path of the file in the tree, "" when there is none.
	File string
	// Data is plain data.
	Data map[string]any
}

// Section holds all sources of the values of one module, or of the global ones.
type Section struct {
	// Name is the module's name, or "global".
	Name string
	// Key is the section's name in configs: "ingressNginx", "global".
	Key string
	// Static are the files, lowest first.
	Static []Layer
	// ConfigSchema describes what a user may set; nil: anything.
	ConfigSchema *Schema
	// Schema describes what hooks and templates may use; nil: anything.
	Schema *Schema
	// Config is the section of the user's config that is in force.
	Config map[string]any
	// Hooks are the layers of the hooks, in any order. The operations of global
	// hooks come without their "global" key, see [SplitGlobal].
	Hooks []HookLayer
}

// Compose returns the section's values. To compose more than once, keep a
// [Composer].
func (s Section) Compose() map[string]any { return NewComposer(s).Compose() }

// ComposeFor is [Composer.For] for one call.
func (s Section) ComposeFor(hook string, own []effect.ValueOp) (map[string]any, error) {
	return NewComposer(s).For(hook, own)
}

// Composer composes the values of one [Section] again and again: what does not
// change is kept. It never changes, so it may be used from several goroutines;
// the With methods return another one, which shares what it can.
type Composer struct {
	section Section
	// base is the static layers with schema defaults.
	base map[string]any
	// layers are sorted by hook.
	layers []layer

	once sync.Once
	mid  map[string]any // base, values.default of hooks, user's config
	full map[string]any
}

// layer is a HookLayer ready to apply.
type layer struct {
	hook            string
	upper, defaults *edit
}

func newLayer(hook string, ops []effect.ValueOp) layer {
	upper, defaults := fold(ops)
	return layer{hook: hook, upper: upper, defaults: defaults}
}

// NewComposer prepares a section. The section must not change any more.
func NewComposer(s Section) *Composer {
	base := map[string]any{}
	for _, l := range s.Static {
		base = Merge(base, l.Data)
	}
	c := &Composer{section: s}
	c.base = c.fill(base)
	c.section.Hooks = slices.Clone(s.Hooks)
	slices.SortStableFunc(c.section.Hooks, func(a, b HookLayer) int { return strings.Compare(a.Hook, b.Hook) })
	for _, h := range c.section.Hooks {
		c.layers = append(c.layers, newLayer(h.Hook, h.Ops))
	}
	return c
}

// Section returns what the composer was made from, with the layers sorted by
// hook.
func (c *Composer) Section() Section { return c.section }

// WithConfig returns a composer with another user's config.
func (c *Composer) WithConfig(config map[string]any) *Composer {
	s := c.section
	s.Config = config
	return &Composer{section: s, base: c.base, layers: c.layers}
}

// WithHook returns a composer in which ops are the layer of hook; without ops
// the hook has none.
func (c *Composer) WithHook(hook string, ops []effect.ValueOp) *Composer {
	return c.withLayer(HookLayer{Hook: hook, Ops: ops}, newLayer(hook, ops))
}

func (c *Composer) withLayer(h HookLayer, l layer) *Composer {
	i, found := slices.BinarySearchFunc(c.layers, h.Hook, func(l layer, hook string) int {
		return strings.Compare(l.hook, hook)
	})
	end := i
	if found {
		end++
	}
	var hooks []HookLayer
	var layers []layer
	if len(h.Ops) > 0 {
		hooks, layers = []HookLayer{h}, []layer{l}
	}
	out := &Composer{section: c.section, base: c.base}
	out.section.Hooks = slices.Concat(c.section.Hooks[:i], hooks, c.section.Hooks[end:])
	out.layers = slices.Concat(c.layers[:i], layers, c.layers[end:])
	return out
}

// Compose returns the values. The result is read only; asking again is free.
func (c *Composer) Compose() map[string]any {
	c.compute()
	return c.full
}

// For returns the values as a run of hook sees them: all other layers, and own,
// the operations of the run so far, in the place of the hook's stored layer. The
// result is read only.
//
// It fails when an operation reaches into a list; the error names the path and
// the place of the call.
func (c *Composer) For(hook string, own []effect.ValueOp) (map[string]any, error) {
	others := c.WithHook(hook, nil)
	if len(own) == 0 {
		return others.Compose(), nil
	}
	l := layer{hook: hook, upper: &edit{}, defaults: &edit{}}
	before := others.Compose()
	for _, op := range own {
		n := -1
		if op.Op == effect.OpDefault {
			n = l.defaults.list(c.base, op.Path)
		} else {
			n = l.upper.list(before, op.Path)
		}
		if n >= 0 {
			return nil, listError(op, op.Path[:n])
		}
		foldOne(op, l.upper, l.defaults, nil)
	}
	return others.withLayer(HookLayer{Hook: hook, Ops: own}, l).Compose(), nil
}

func listError(op effect.ValueOp, list []string) error {
	pos := ""
	if op.Pos != "" {
		pos = op.Pos + ": "
	}
	return fmt.Errorf("%svalues path %s: %s is a list, and a path does not reach into one; %s the whole list",
		pos, PathString(op.Path), PathString(list), op.Op)
}

func (c *Composer) compute() {
	c.once.Do(func() {
		upper, defaults := make([]*edit, len(c.layers)), make([]*edit, len(c.layers))
		for i, l := range c.layers {
			upper[i], defaults[i] = l.upper, l.defaults
		}
		c.mid = Merge(applyMaps(defaults, c.base), c.section.Config)
		c.full = c.fill(applyMaps(upper, c.mid))
	})
}

// configured returns the values without what hooks set: what the user's config
// is checked against.
func (c *Composer) configured() map[string]any {
	c.compute()
	return c.fill(c.mid)
}

// fill puts schema defaults where nothing is.
func (c *Composer) fill(v map[string]any) map[string]any {
	return c.section.Schema.Default(c.section.ConfigSchema.Default(v))
}
