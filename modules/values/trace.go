package values

import (
	"maps"
	"reflect"
	"slices"
	"strconv"
	"strings"

	"github.com/starling-operator/starling/runtime/effect"
)

// tracer composes a section layer by layer and tells of any path which layer says what.
type tracer struct {
	s     Section
	stops []stop // lowest first
	full  map[string]any
}

// stop is the work of one layer: what it says of a path, given what lies below.
type stop struct {
	below map[string]any
	says  func(path []string, below any, there bool) []Step
}

func newTracer(in SectionSources, read func(string) []byte) *tracer {
	t := &tracer{s: in.Section, full: map[string]any{}}
	lazy := &lines{read: read, known: map[string]*positions{}}
	for _, l := range in.Static {
		var prefix []string
		switch {
		case l.Name == LayerTree:
			prefix = []string{in.Key}
		case l.Key != "":
			prefix = []string{l.Key}
		}
		t.merge(l.Data, func(path []string) Source {
			return Source{Layer: l.Name, File: l.File, Line: lazy.of(l.File).nearest(append(slices.Clip(prefix), path...))}
		})
	}
	t.fill(lazy)
	defaults, upper := &calls{}, &calls{}
	var lower, higher []*edit
	hooks := slices.SortedStableFunc(slices.Values(in.Hooks), func(a, b HookLayer) int { return strings.Compare(a.Hook, b.Hook) })
	for _, h := range hooks {
		ops := Located(h.Ops, nil, nil)
		for _, op := range ops {
			if op.Op == effect.OpDefault {
				defaults.add(h.Hook, op)
			} else {
				upper.add(h.Hook, op)
			}
		}
		u, d := fold(ops)
		lower, higher = append(lower, d), append(higher, u)
	}
	t.hooks(LayerDefault, defaults, lower)
	config := configPositions(in)
	t.merge(in.Config, func(path []string) Source {
		s := Source{Layer: LayerConfig, Config: in.ConfigName, Key: in.Key}
		switch {
		case in.ConfigFile != "":
			s = Source{Layer: LayerConfig, File: in.ConfigFile}
		case in.Object:
			s.Layer, s.Key = LayerObject, "spec.values"
		}
		s.Line = config.nearest(slices.Concat(in.ConfigKeys, path))
		return s
	})
	t.hooks(LayerHook, upper, higher)
	t.fill(lazy)
	return t
}

// configPositions are those in the text of the config, when that is what is in force.
func configPositions(in SectionSources) *positions {
	m, err := parseYAML([]byte(in.ConfigText))
	if err != nil {
		return nil
	}
	if section, _ := lookup(m, in.ConfigKeys); !reflect.DeepEqual(normal(section), normal(in.Config)) {
		return nil
	}
	return newPositions([]byte(in.ConfigText))
}

// chain returns what the layers say of a path, what wins first.
func (t *tracer) chain(path []string) []Step {
	var out []Step
	for _, s := range t.stops {
		below, there := lookup(s.below, path)
		out = append(out, s.says(path, below, there)...)
	}
	slices.Reverse(out)
	return out
}

// merge lays a map over what is there.
func (t *tracer) merge(data map[string]any, source func(path []string) Source) {
	if len(data) == 0 {
		return
	}
	t.stops = append(t.stops, stop{t.full, func(path []string, _ any, there bool) []Step {
		v, says, ends := data[path[0]], true, 1
		if _, ok := data[path[0]]; !ok {
			return nil
		}
		for _, key := range path[1:] {
			m, isMap := v.(map[string]any)
			if !isMap {
				v, says = nil, false // something else stands above the path
				break
			}
			if v, says = m[key]; !says {
				return nil
			}
			ends++
		}
		switch {
		case says && (v != nil || !there):
			return []Step{{Value: v, Source: source(path)}}
		case there:
			return []Step{{Removed: true, Source: source(path[:ends])}}
		}
		return nil
	}})
	t.full = Merge(t.full, data)
}

// hooks applies what hooks do.
func (t *tracer) hooks(layer string, c *calls, edits []*edit) {
	if len(c.children) == 0 && len(c.ops) == 0 {
		return
	}
	after := applyMaps(edits, t.full)
	t.stops = append(t.stops, stop{t.full, func(path []string, below any, there bool) []Step {
		var out []Step
		for _, call := range c.on(path) {
			rest := path[len(call.op.Path):]
			v, gives := lookup(call.op.Value, rest)
			switch {
			case call.op.Op == effect.OpMerge:
				// It only asks for a map; what it puts there has its own operations.
				if _, isMap := below.(map[string]any); len(rest) > 0 || isMap {
					continue
				}
				gives = true
			case call.op.Op == effect.OpRemove || !gives:
				if !there {
					continue
				}
				v, gives = nil, false
			}
			below, there = v, gives
			out = append(out, Step{Value: v, Removed: !gives, Source: hookSource(layer, call.hook, call.op, rest), marks: marksIn(call.op.Secrets, rest)})
		}
		v, _ := lookup(after, path)
		_, is := v.(map[string]any)
		if _, was := below.(map[string]any); is && !was {
			if made := c.under(path); made != nil {
				out = append(out, Step{Value: map[string]any{}, Source: hookSource(layer, made.hook, made.op, nil)})
			}
		}
		return out
	}})
	t.full = after
}

// fill lets the schemas fill gaps.
func (t *tracer) fill(lazy *lines) {
	schemas := []*Schema{t.s.ConfigSchema, t.s.Schema}
	for i, schema := range schemas {
		if schema == nil {
			continue
		}
		after := schema.Default(t.full)
		t.stops = append(t.stops, stop{t.full, func(path []string, below any, there bool) []Step {
			v, filled := lookup(after, path)
			switch {
			case below != nil, !filled, there && v == nil:
				return nil
			}
			return []Step{{Value: v, Source: defaultSource(lazy, path, schema, schemas[1-i])}}
		}})
		t.full = after
	}
}

// removed returns the paths that a layer takes away by name.
func (t *tracer) removed() [][]string {
	var out [][]string
	nulls := func(path []string, v any) {
		if v == nil {
			out = append(out, path)
		}
	}
	for _, l := range t.s.Static {
		ends(nil, l.Data, nulls)
	}
	ends(nil, t.s.Config, nulls)
	for _, h := range t.s.Hooks {
		for _, op := range h.Ops {
			if op.Op == effect.OpRemove && len(op.Path) > 0 {
				out = append(out, op.Path)
			}
		}
	}
	return out
}

// calls is a tree of keys with the operations at each.
type calls struct {
	ops      []call
	children map[string]*calls
}

type call struct {
	hook string
	op   effect.ValueOp
}

func (c *calls) add(hook string, op effect.ValueOp) {
	for _, key := range op.Path {
		next := c.children[key]
		if next == nil {
			if c.children == nil {
				c.children = map[string]*calls{}
			}
			next = &calls{}
			c.children[key] = next
		}
		c = next
	}
	c.ops = append(c.ops, call{hook, op})
}

// under returns an operation below path that makes maps on its way, nil for none.
func (c *calls) under(path []string) *call {
	for _, key := range path {
		if c = c.children[key]; c == nil {
			return nil
		}
	}
	for _, key := range slices.Sorted(maps.Keys(c.children)) {
		for _, made := range c.children[key].ops {
			if made.op.Op != effect.OpRemove {
				return &made
			}
		}
		if made := c.under([]string{key}); made != nil {
			return made
		}
	}
	return nil
}

// on returns the operations on path and on what holds it, in the order in which they
// are applied.
func (c *calls) on(path []string) []call {
	out := slices.Clone(c.ops)
	for _, key := range path {
		if c = c.children[key]; c == nil {
			break
		}
		out = append(out, c.ops...)
	}
	slices.SortStableFunc(out, func(a, b call) int { return strings.Compare(a.hook, b.hook) })
	return out
}

// hookSource is the place of an operation, or of the later call that changed what is at
// rest in its value.
func hookSource(layer, hook string, op effect.ValueOp, rest []string) Source {
	if hook == LayerEnabled || strings.HasPrefix(hook, LayerExports+" ") { // it is no hook
		return Source{Layer: hook}
	}
	s := Source{Layer: layer, Hook: hook}
	pos, origin := op.Pos, op.Origin
	if op.Origin != nil {
		for _, w := range op.Origin.Within {
			if hasPrefix(rest, w.Path) {
				pos, origin = w.Pos, w.Origin
			}
		}
	}
	s.File, s.Line = splitPos(pos)
	if origin != nil && origin.Run > 0 {
		at := origin.At
		s.Run, s.At = origin.Run, &at
	}
	return s
}

// splitPos takes "file:line" apart.
func splitPos(pos string) (file string, line int) {
	i := strings.LastIndexByte(pos, ':')
	if i < 0 {
		return pos, 0
	}
	line, err := strconv.Atoi(pos[i+1:])
	if err != nil {
		return pos, 0
	}
	return pos[:i], line
}

// lines are the files that keys are looked for in, each parsed once.
type lines struct {
	read  func(string) []byte
	known map[string]*positions
}

func (t *lines) of(file string) *positions {
	p, ok := t.known[file]
	if !ok && file != "" && t.read != nil {
		p = newPositions(t.read(file))
		t.known[file] = p
	}
	return p
}
