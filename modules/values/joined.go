package values

import (
	"maps"
	"reflect"
	"slices"
	"strings"
)

// joined is a tree of keys: which layer sets, removes or asks for a map where. A hook
// with for_each has a layer per object; the tree finds what one layer changes, and with
// which others it meets, without a look at all of them. It never changes once it is in
// use; nil is the empty tree.
type joined struct {
	ends     []end // by hook
	branches branches
}

// end is an edit that does something at its own place, and whose it is.
type end struct {
	hook string
	edit *edit
}

// ends says that the edit does something at its own place, not only below it.
func (e *edit) ends() bool { return e != nil && (e.kind != editInner || e.ensure) }

func (e *edit) child(key string) *edit {
	if e == nil {
		return nil
	}
	return e.children[key]
}

func (x *joined) child(key string) *joined {
	if x == nil {
		return nil
	}
	return x.branches.at(key)
}

// add puts an edit into a tree that is not in use yet. Hooks come in order.
func (x *joined) add(hook string, e *edit) {
	if e.ends() {
		x.ends = append(x.ends, end{hook, e})
	}
	for k, c := range e.children {
		next := x.branches.at(k)
		if next == nil {
			next = &joined{}
			x.branches = x.branches.with(k, next)
		}
		next.add(hook, c)
	}
}

// with returns the tree in which a hook has one edit in the place of another; nil: none.
func (x *joined) with(hook string, old, now *edit) *joined {
	out := &joined{}
	if x != nil {
		*out = *x
	}
	if old.ends() || now.ends() {
		out.ends = slices.DeleteFunc(slices.Clone(out.ends), func(e end) bool { return e.hook == hook })
		if now.ends() {
			i, _ := slices.BinarySearchFunc(out.ends, hook, func(e end, hook string) int { return strings.Compare(e.hook, hook) })
			out.ends = slices.Insert(out.ends, i, end{hook, now})
		}
	}
	for k := range childEdits([]*edit{old, now}) {
		out.branches = out.branches.with(k, x.child(k).with(hook, old.child(k), now.child(k)))
	}
	if len(out.ends) == 0 && out.branches.empty() {
		return nil
	}
	return out
}

// sets returns the first hook but one whose edit sets or removes what is here; "": none does.
func (x *joined) sets(except string) string {
	for _, e := range x.ends {
		if e.edit.kind != editInner && e.hook != except {
			return e.hook
		}
	}
	return ""
}

// creates says that after the edits something is here.
func (x *joined) creates() bool {
	if x == nil {
		return false
	}
	if slices.ContainsFunc(x.ends, func(e end) bool { return e.edit.creates() }) {
		return true
	}
	for _, c := range x.branches.all() {
		if c.creates() {
			return true
		}
	}
	return false
}

// owner returns a hook other than one that owns path, something that contains it, or
// something in it, and where; "": there is none.
func (x *joined) owner(path []string, except string) (hook string, at []string) {
	for i, k := range path {
		if x == nil {
			return "", nil
		}
		if hook := x.sets(except); hook != "" {
			return hook, path[:i]
		}
		x = x.child(k)
	}
	return x.ownerBelow(path, except)
}

func (x *joined) ownerBelow(path []string, except string) (hook string, at []string) {
	if x == nil {
		return "", nil
	}
	if hook := x.sets(except); hook != "" {
		return hook, path
	}
	for k, c := range x.branches.all() {
		if hook, at := c.ownerBelow(append(slices.Clip(path), k), except); hook != "" {
			return hook, at
		}
	}
	return "", nil
}

// hooks notes whose edits the tree holds.
func (x *joined) hooks(out map[string]bool) {
	for _, e := range x.ends {
		out[e.hook] = true
	}
	for _, c := range x.branches.all() {
		c.hooks(out)
	}
}

// patch computes what layers give anew where some of them have changed.
type patch struct {
	c    *Composer
	part func(*layer) *edit // upper or defaults
}

// root is at for the root of values, which is always a map.
func (p patch) root(x *joined, touched []*edit, base, old map[string]any) map[string]any {
	m, ok := p.at(nil, x, touched, value{base, true}, value{old, true}).v.(map[string]any)
	if !ok {
		return map[string]any{}
	}
	return m
}

// at is what the edits of x leave of base at path. Touched are the edits that have come
// or gone since it was the old value. It returns that very value when nothing differs.
func (p patch) at(path []string, x *joined, touched []*edit, base, old value) value {
	was, wasMap := old.v.(map[string]any)
	under, _ := base.v.(map[string]any)
	if x == nil || x.sets("") != "" || !wasMap || anySets(touched) || under == nil && !x.creates() {
		return p.whole(path, x, base, old)
	}
	out := was
	for k, below := range childEdits(touched) {
		before := valueIn(was, k)
		out = put(out, was, k, before, p.at(append(slices.Clip(path), k), x.child(k), below, valueIn(under, k), before))
	}
	return value{out, true}
}

// put changes out at k when now differs from before; was is copied first, if it is out.
func put(out, was map[string]any, k string, before, now value) map[string]any {
	if now.there == before.there && same(now.v, before.v) {
		return out
	}
	if same(out, was) {
		out = maps.Clone(was)
	}
	if now.there {
		out[k] = now.v
	} else {
		delete(out, k)
	}
	return out
}

// whole is at without the old value: of all edits at path and below it.
func (p patch) whole(path []string, x *joined, base, old value) value {
	var edits []*edit
	if x != nil {
		hooks := map[string]bool{}
		x.hooks(hooks)
		for _, hook := range slices.Sorted(maps.Keys(hooks)) {
			i, _ := p.c.find(hook)
			e := p.part(p.c.layers[i])
			for _, k := range path {
				e = e.child(k)
			}
			edits = append(edits, e)
		}
	}
	v, there := applyAll(edits, base.v, base.there)
	if there && old.there {
		v = graft(v, old.v)
	}
	return value{v, there}
}

// graft returns what equals v, and is the very same as old wherever that equals it: a
// comparison of maps by their address then shows the change.
func graft(v, old any) any {
	now, isMap := v.(map[string]any)
	before, wasMap := old.(map[string]any)
	if !isMap || !wasMap || now == nil || before == nil {
		if reflect.DeepEqual(v, old) {
			return old
		}
		return v
	}
	out, equal := now, len(now) == len(before)
	for k, e := range now {
		was, there := before[k]
		if !there {
			equal = false
			continue
		}
		next := graft(e, was)
		equal = equal && same(next, was)
		if same(next, e) {
			continue
		}
		if same(out, now) {
			out = maps.Clone(now)
		}
		out[k] = next
	}
	if equal {
		return old
	}
	return out
}

// value is what stands at a path, if there is something.
type value struct {
	v     any
	there bool
}

func valueIn(m map[string]any, key string) value {
	v, there := m[key]
	return value{v, there}
}
