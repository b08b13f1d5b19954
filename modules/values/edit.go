package values

import (
	"maps"
	"slices"

	"github.com/starling-operator/starling/runtime/effect"
)

// edit is a set of operations folded into a tree of keys: what they do together,
// whatever their order was. A node either sets, or removes, or leads to
// children; then it may also ask for a map to be there (ensure).
type edit struct {
	kind     editKind
	ensure   bool
	value    any
	children map[string]*edit
	from     *source // with [Located]: the call that sets, removes or ensures
}

// source is the call that an edit comes from.
type source struct {
	pos    string
	origin *effect.Origin
	within []effect.Place // later calls, which changed parts of what it set
}

type editKind uint8

const (
	editInner editKind = iota
	editSet
	editRemove
)

// fold makes the two trees of a hook's operations: the defaults, and all others.
func fold(ops []effect.ValueOp) (upper, defaults *edit) {
	upper, defaults = &edit{}, &edit{}
	for _, op := range ops {
		foldOne(op, upper, defaults, nil)
	}
	return upper, defaults
}

// foldOne adds the next operation to the trees of a hook; from is the call that it comes
// from, nil when nobody asks.
func foldOne(op effect.ValueOp, upper, defaults *edit, from *source) {
	v := normal(op.Value)
	switch op.Op {
	case effect.OpSet:
		upper.set(op.Path, v, from)
	case effect.OpDefault:
		defaults.set(op.Path, v, from)
	case effect.OpRemove:
		upper.remove(op.Path, from)
	case effect.OpMerge:
		if m, ok := v.(map[string]any); ok {
			upper.merge(op.Path, m, from)
		} else {
			upper.set(op.Path, v, from)
		}
	}
}

// change notes that a later call has changed what is at path in the value that the node
// sets.
func (e *edit) change(path []string, from *source) {
	if from == nil {
		return
	}
	if e.from == nil {
		e.from = &source{}
	}
	// A source may stand in several nodes, after a merge.
	s := *e.from
	s.within = append(slices.Clip(s.within), effect.Place{Path: slices.Clone(path), Pos: from.pos, Origin: from.origin})
	e.from = &s
}

// list returns how many keys of path lead to a list that the rest of path would
// reach into, in base as the node leaves it; -1 when there is none.
func (e *edit) list(base any, path []string) int {
	for i, key := range path {
		if e != nil {
			switch e.kind {
			case editSet:
				base, e = e.value, nil
			case editRemove:
				return -1
			}
		}
		switch v := base.(type) {
		case []any:
			return i
		case map[string]any:
			base = v[key]
		default:
			base = nil
		}
		if e != nil {
			e = e.children[key]
		}
		if e == nil && base == nil {
			return -1
		}
	}
	return -1
}

// walk goes down to path, making inner nodes. It stops at a node that sets or
// removes, and returns the rest of the path.
func (e *edit) walk(path []string) (*edit, []string) {
	for i, key := range path {
		if e.kind != editInner {
			return e, path[i:]
		}
		child := e.children[key]
		if child == nil {
			child = &edit{}
			if e.children == nil {
				e.children = map[string]*edit{}
			}
			e.children[key] = child
		}
		e = child
	}
	return e, nil
}

func (e *edit) set(path []string, v any, from *source) {
	n, rest := e.walk(path)
	switch {
	case len(rest) == 0:
		*n = edit{kind: editSet, value: v, from: from}
	case n.kind == editRemove:
		*n = edit{kind: editSet, value: nested(rest, v), from: from}
	default:
		n.value = setIn(n.value, rest, v)
		n.change(rest, from)
	}
}

func (e *edit) remove(path []string, from *source) {
	n, rest := e.walk(path)
	switch {
	case len(rest) == 0:
		*n = edit{kind: editRemove, from: from}
	case n.kind == editSet:
		n.value = removeIn(n.value, rest)
		n.change(rest, from)
	}
}

func (e *edit) merge(path []string, m map[string]any, from *source) {
	n, rest := e.walk(path)
	switch n.kind {
	case editRemove:
		*n = edit{kind: editSet, value: nested(rest, mergeDrop(nil, m)), from: from}
	case editSet:
		under, _ := lookup(n.value, rest)
		um, _ := under.(map[string]any)
		n.value = setIn(n.value, rest, mergeDrop(um, m))
		n.changes(rest, m, from)
	default:
		if !n.ensure {
			n.ensure, n.from = true, from
		}
		for k, v := range m {
			switch v := v.(type) {
			case nil:
				n.remove([]string{k}, from)
			case map[string]any:
				n.merge([]string{k}, v, from)
			default:
				n.set([]string{k}, v, from)
			}
		}
	}
}

// changes is change for each leaf of a map that was merged into the value.
func (e *edit) changes(path []string, m map[string]any, from *source) {
	if from != nil {
		leaves(path, m, func(path []string) { e.change(path, from) })
	}
}

// empty says that the node does nothing.
func (e *edit) empty() bool { return e.kind == editInner && !e.ensure && len(e.children) == 0 }

// creates says that after the node something is there.
func (e *edit) creates() bool {
	if e.kind == editSet || e.ensure {
		return true
	}
	for _, c := range e.children {
		if c.creates() {
			return true
		}
	}
	return false
}

// applyAll is what is left of base after one node after the other; false means that nothing is there. base is not
// changed. It looks at each map once, however many nodes there are: a hook with for_each has a layer an object.
func applyAll(nodes []*edit, base any, there bool) (any, bool) {
	for i, e := range slices.Backward(nodes) {
		if e.kind != editInner { // nothing before it counts
			base, there = e.value, e.kind == editSet
			nodes = nodes[i+1:]
			break
		}
	}
	old, isMap := base.(map[string]any)
	var inner []*edit
	for _, e := range nodes {
		if !e.empty() && (isMap || e.creates()) {
			inner, isMap = append(inner, e), true
		}
	}
	if len(inner) == 0 {
		return base, there
	}
	children := childEdits(inner)
	out := make(map[string]any, len(old)+len(children))
	maps.Copy(out, old)
	for k, cs := range children {
		was, ok := out[k]
		if v, ok := applyAll(cs, was, ok); ok {
			out[k] = v
		} else {
			delete(out, k)
		}
	}
	return out, true
}

// applyMaps is applyAll for the root of values, which is always a map.
func applyMaps(nodes []*edit, base map[string]any) map[string]any {
	v, _ := applyAll(nodes, base, true)
	if m, ok := v.(map[string]any); ok {
		return m
	}
	return map[string]any{}
}

// ops lists the node's operations in the order of their paths; set names the
// kind of the operations that set.
func (e *edit) ops(path []string, set effect.ValueOpKind) []effect.ValueOp {
	switch e.kind {
	case editSet:
		return []effect.ValueOp{e.from.on(effect.ValueOp{Op: set, Path: slices.Clone(path), Value: e.value})}
	case editRemove:
		return []effect.ValueOp{e.from.on(effect.ValueOp{Op: effect.OpRemove, Path: slices.Clone(path)})}
	}
	var out []effect.ValueOp
	created := false
	for _, k := range slices.Sorted(maps.Keys(e.children)) {
		child := e.children[k]
		created = created || child.creates()
		out = append(out, child.ops(append(path, k), set)...)
	}
	if e.ensure && !created && len(path) > 0 {
		ensure := e.from.on(effect.ValueOp{Op: effect.OpMerge, Path: slices.Clone(path), Value: map[string]any{}})
		out = slices.Insert(out, 0, ensure)
	}
	return out
}

// setIn returns v with value at path; what is no map on the way is replaced by
// one.
func setIn(v any, path []string, value any) any {
	if len(path) == 0 {
		return value
	}
	old, _ := v.(map[string]any)
	out := make(map[string]any, len(old)+1)
	maps.Copy(out, old)
	out[path[0]] = setIn(old[path[0]], path[1:], value)
	return out
}

// removeIn returns v without what is at path, which is not empty.
func removeIn(v any, path []string) any {
	old, ok := v.(map[string]any)
	if !ok {
		return v
	}
	child, ok := old[path[0]]
	if !ok {
		return v
	}
	out := maps.Clone(old)
	if len(path) == 1 {
		delete(out, path[0])
	} else {
		out[path[0]] = removeIn(child, path[1:])
	}
	return out
}

// lookup returns what is at the exact keys of path.
func lookup(v any, path []string) (any, bool) {
	for _, k := range path {
		m, ok := v.(map[string]any)
		if !ok {
			return nil, false
		}
		if v, ok = m[k]; !ok {
			return nil, false
		}
	}
	return v, true
}
