package values

import (
	"fmt"
	"reflect"
	"slices"
	"strings"
	"sync"
	"sync/atomic"

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
	// Name is [LayerChart], [LayerFolder] or [LayerTree].
	Name string
	// File is the path of the file in the tree, "" when there is none.
	File string
	// Data is plain data. Key is that below which it stands in the file, "" for the root.
	Data map[string]any
	Key  string
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
	// asks are fields that ConfigSchema requires, and Static does not have.
	asks []Problem
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
	section Section // without its Hooks: these are the layers
	// base is the static layers with schema defaults.
	base map[string]any
	// layers are sorted by hook.
	layers          []*layer
	upper, defaults *joined
	secret          int // how many of the layers set secrets

	once sync.Once
	from atomic.Pointer[change] // nil: computed from nothing
	done atomic.Pointer[composed]

	// passed are values that the schema for hooks has nothing against; nil: none are known.
	passed atomic.Pointer[map[string]any]
	// checked is the last one that was found to be in order, see CheckHook.
	checked atomic.Pointer[checked]
}

// checked is a composer with a layer that comes into force, likely.
type checked struct {
	layer *layer
	*Composer
}

// composed is what a composer has computed, step by step.
type composed struct {
	lower map[string]any // base, values.default of hooks
	mid   map[string]any // and the user's config
	upper map[string]any // and what hooks set
	user  map[string]any // and defaults of the config schema
	full  map[string]any // and those of the schema
	// room is what more defaults may take, or less than that; once it is used up there
	// are none in user and full.
	room room
}

// plain says that no schema has filled in a default: they come and go where no edit
// leads to.
func (x *composed) plain() bool { return same(x.full, x.upper) }

// change is how a composer differs from one that has computed its values: by layers that
// have come, and by others that have gone.
type change struct {
	was    *composed
	layers []*layer
}

// layer is a HookLayer ready to apply.
type layer struct {
	HookLayer
	upper, defaults *edit
}

func newLayer(h HookLayer) *layer {
	upper, defaults := fold(h.Ops)
	return &layer{HookLayer: h, upper: upper, defaults: defaults}
}

// secret is 1 for a layer that sets secrets, else 0.
func (l *layer) secret() int {
	if slices.ContainsFunc(l.Ops, func(op effect.ValueOp) bool { return len(op.Secrets) > 0 }) {
		return 1
	}
	return 0
}

// NewComposer prepares a section. The section must not change any more.
func NewComposer(s Section) *Composer {
	base := map[string]any{}
	for _, l := range s.Static {
		base = Merge(base, l.Data)
	}
	c := &Composer{section: s}
	x := &composed{upper: base}
	c.fill(x)
	c.base = x.full
	return c.WithHooks(s.Hooks)
}

// WithHooks returns a composer with these layers alone.
func (c *Composer) WithHooks(hooks []HookLayer) *Composer {
	out := &Composer{section: c.section, base: c.base}
	out.section.Hooks = nil
	upper, defaults := &joined{}, &joined{}
	for _, h := range slices.SortedStableFunc(slices.Values(hooks), func(a, b HookLayer) int { return strings.Compare(a.Hook, b.Hook) }) {
		l := newLayer(h)
		out.layers = append(out.layers, l)
		out.secret += l.secret()
		upper.add(h.Hook, l.upper)
		defaults.add(h.Hook, l.defaults)
	}
	out.upper, out.defaults = upper, defaults
	return out
}

// Section returns what the composer was made from, with the layers sorted by
// hook.
func (c *Composer) Section() Section {
	s := c.section
	for _, l := range c.layers {
		s.Hooks = append(s.Hooks, l.HookLayer)
	}
	return s
}

// WithConfig returns a composer with another user's config.
func (c *Composer) WithConfig(config map[string]any) *Composer {
	if reflect.DeepEqual(c.section.Config, config) {
		return c
	}
	s := c.section
	s.Config = config
	out := &Composer{section: s, base: c.base, layers: c.layers, upper: c.upper, defaults: c.defaults, secret: c.secret}
	out.passed.Store(c.passed.Load())
	return out
}

// WithHook returns a composer in which ops are the layer of hook; without ops
// the hook has none. Where c has computed its values, the other one computes only what
// this layer changes, and what is as it was is the same map.
func (c *Composer) WithHook(hook string, ops []effect.ValueOp) *Composer {
	return c.withLayer(newLayer(HookLayer{Hook: hook, Ops: ops}))
}

func (c *Composer) find(hook string) (int, bool) {
	return slices.BinarySearchFunc(c.layers, hook, func(l *layer, hook string) int { return strings.Compare(l.Hook, hook) })
}

func (c *Composer) withLayer(now *layer) *Composer {
	i, found := c.find(now.Hook)
	if !found && len(now.Ops) == 0 {
		return c
	}
	old, end := &layer{}, i
	if found {
		old, end = c.layers[i], i+1
	}
	known := c.checked.Load()
	if known != nil && (known.layer.Hook != now.Hook || !Equal(known.layer.Ops, now.Ops)) {
		known = nil
	}
	var layers []*layer
	if len(now.Ops) > 0 {
		if known != nil {
			now.upper, now.defaults = known.layer.upper, known.layer.defaults
		}
		layers = []*layer{now}
	}
	out := &Composer{section: c.section, base: c.base, secret: c.secret + now.secret() - old.secret()}
	out.layers = slices.Concat(c.layers[:i], layers, c.layers[end:])
	if known != nil {
		out.upper, out.defaults = known.upper, known.defaults
		out.done.Store(known.compute())
		out.passed.Store(known.passed.Load())
		return out
	}
	out.upper = c.upper.with(now.Hook, old.upper, now.upper)
	out.defaults = c.defaults.with(now.Hook, old.defaults, now.defaults)
	out.passed.Store(c.passed.Load())
	from := c.from.Load() // before the other one, in the place of which it may go
	if was := c.done.Load(); was != nil {
		from = &change{was: was}
	}
	if from != nil {
		out.from.Store(&change{from.was, append(slices.Clip(from.layers), old, now)})
	}
	return out
}

// Compose returns the values. The result is read only; asking again is free.
func (c *Composer) Compose() map[string]any { return c.compute().full }

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
	l := &layer{HookLayer: HookLayer{Hook: hook, Ops: own}, upper: &edit{}, defaults: &edit{}}
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
	return others.withLayer(l).Compose(), nil
}

func listError(op effect.ValueOp, list []string) error {
	pos := ""
	if op.Pos != "" {
		pos = op.Pos + ": "
	}
	return fmt.Errorf("%svalues path %s: %s is a list, and a path does not reach into one; %s the whole list",
		pos, PathString(op.Path), PathString(list), op.Op)
}

func (c *Composer) compute() *composed {
	c.once.Do(func() {
		if c.done.Load() != nil {
			return
		}
		if from := c.from.Load(); from != nil {
			c.done.Store(c.recompute(*from))
			c.from.Store(nil)
			return
		}
		upper, defaults := make([]*edit, len(c.layers)), make([]*edit, len(c.layers))
		for i, l := range c.layers {
			upper[i], defaults[i] = l.upper, l.defaults
		}
		x := &composed{lower: applyMaps(defaults, c.base)}
		x.mid = Merge(x.lower, c.section.Config)
		x.upper = applyMaps(upper, x.mid)
		c.fill(x)
		c.done.Store(x)
	})
	return c.done.Load()
}

// recompute is compute after some layers have changed.
func (c *Composer) recompute(from change) *composed {
	x := *from.was
	var touched []*edit
	for _, l := range from.layers {
		touched = append(touched, l.defaults)
	}
	x.lower = patch{c, func(l *layer) *edit { return l.defaults }}.root(c.defaults, touched, c.base, x.lower)
	if !same(x.lower, from.was.lower) {
		x.mid = Merge(x.lower, c.section.Config)
	}
	for _, l := range from.layers {
		touched = append(touched, l.upper)
	}
	x.upper = patch{c, func(l *layer) *edit { return l.upper }}.root(c.upper, touched, x.mid, x.upper)
	if same(x.upper, from.was.upper) {
		return &x
	}
	if !x.room.used() {
		x.user = c.section.ConfigSchema.refill(x.upper, from.was.upper, x.user, touched, &x.room)
		if !same(x.user, x.upper) || !same(from.was.user, from.was.upper) {
			touched = nil // see plain
		}
		x.full = c.section.Schema.refill(x.user, from.was.user, x.full, touched, &x.room)
	}
	if x.room.used() {
		if c.fill(&x); reflect.DeepEqual(x.full, from.was.full) {
			x.full = from.was.full
		}
	}
	return &x
}

// configured returns the values without what hooks set: what the user's config
// is checked against; over says that its defaults would be too many.
func (c *Composer) configured() (v map[string]any, over bool) {
	x := &composed{upper: c.compute().mid}
	c.fill(x)
	return x.full, x.room.used()
}

// fill puts schema defaults where upper has nothing.
func (c *Composer) fill(x *composed) {
	room := newRoom()
	x.user = c.section.ConfigSchema.fill(x.upper, room)
	x.full = c.section.Schema.fill(x.user, room)
	if x.room = *room; x.room.used() {
		x.user, x.full = x.upper, x.upper
	}
}
