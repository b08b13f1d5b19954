package plan

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/starling-operator/starling/runtime/apply"
	"github.com/starling-operator/starling/runtime/effect"
	"github.com/starling-operator/starling/runtime/object"
	"github.com/starling-operator/starling/runtime/sim"
	"github.com/starling-operator/starling/runtime/sim/store"
)

// objects are what differs in the world, Starling's own records aside.
func objects(w *sim.World, m *masker) []Object {
	out := []Object{}
	instance := w.Instance()
	for _, d := range w.Store().Differences() {
		if d.Kind.Kind == "Namespace" && d.Kind.Group == "" && d.Name == instance.Namespace && d.Before == nil {
			d.Before = asMade(d.After) // Starling itself would be there
		}
		config := m.userConfig(instance, d)
		if len(config) == 0 && (own(d.Before) || own(d.After)) || d.Kind.Kind == "Event" || len(d.By) == 0 {
			continue
		}
		o := Object{
			Action: Update, By: d.By,
			Ref: effect.Ref{APIVersion: d.Kind.APIVersion(), Kind: d.Kind.Kind, Namespace: d.Namespace, Name: d.Name},
		}
		switch {
		case len(config) > 0 && d.After != nil:
			o.UserConfig, o.Fields = true, config
			if d.Before == nil {
				o.Action = Create
			}
		case d.Before == nil:
			o.Action, o.Object = Create, m.created(d.Asked)
		case d.After == nil, deleting(d.After) && !deleting(d.Before):
			o.Action = Delete
		default:
			if o.Fields = m.update(d.Before, d.After); len(o.Fields) == 0 {
				continue
			}
		}
		out = append(out, o)
	}
	return out
}

// asMade is a namespace without what somebody has written to it since it was made.
func asMade(namespace map[string]any) map[string]any {
	out, meta := effect.WithMetadata(namespace)
	labels := effect.Cloned(meta, "labels")
	meta["labels"] = effect.Only(labels, "kubernetes.io/metadata.name", "app.kubernetes.io/managed-by")
	delete(meta, "annotations")
	return out
}

// own says that an object is a record of Starling or of Helm, and none of a module's.
func own(obj map[string]any) bool {
	if obj["type"] == "helm.sh/release.v1" {
		return true
	}
	labels := effect.At[map[string]any](obj, "metadata", "labels")
	_, is := labels[effect.InstanceLabel]
	return is
}

func deleting(obj map[string]any) bool {
	meta, _ := obj["metadata"].(map[string]any)
	return meta["deletionTimestamp"] != nil
}

// bookkeeping are fields of objects that only say how the objects came about, and the conditions: these are compared apart.
func bookkeeping(path []string) bool {
	return len(path) == 2 && path[0] == "metadata" && slices.Contains(store.Bookkeeping, path[1]) ||
		slices.Equal(path, []string{"metadata", "labels", effect.ReleasedByLabel}) ||
		len(path) == 3 && path[1] == "annotations" && slices.Contains(effect.Signatures, path[2]) || // nobody here has the key
		slices.Equal(path, conditions) ||
		len(path) == 3 && path[0] == "status" && strings.HasPrefix(path[1], conditions[1]+"[") && slices.Contains(clocks, path[2])
}

// conditions are a list of status, whose elements have a type in the place of a name.
var conditions = []string{"status", "conditions"}

// clocks are fields of conditions that follow the clock.
var clocks = []string{"lastTransitionTime", "lastUpdateTime", "lastHeartbeatTime", "lastProbeTime"}

// update compares two states of an object.
func (m *masker) update(before, after map[string]any) []Field {
	d := differ{skip: bookkeeping}
	d.compare(nil, before, after)
	d.conditions(object.Inside(before, conditions), object.Inside(after, conditions))
	kind, _ := after["kind"].(string)
	return m.fields(kind, d.fields)
}

// conditions compares the conditions of an object by their types; their order says nothing.
func (d *differ) conditions(a, b any) {
	if object.Same(a, b) {
		return
	}
	al, aIs := a.([]any)
	bl, bIs := b.([]any)
	na, nb := named(al, "type"), named(bl, "type")
	switch {
	case a != nil && !aIs || b != nil && !bIs:
		d.add(conditions, &a, &b)
	case na == nil || nb == nil:
		d.lists(conditions, al, bl)
	default:
		d.elements(conditions, na, nb)
	}
}

// fields masks what differs in an object of a kind.
func (m *masker) fields(kind string, fields []Field) []Field {
	fields = m.masked(fields)
	if kind != "Secret" {
		return fields
	}
	for i := range fields {
		if f := &fields[i]; strings.HasPrefix(f.Path, "data") || strings.HasPrefix(f.Path, "stringData") {
			f.Secret, f.Old, f.New = true, hidden(f.Old), hidden(f.New)
		}
	}
	return fields
}

// created is an object without bookkeeping, empty parts and secrets.
func (m *masker) created(obj map[string]any) map[string]any {
	var v any = obj
	masked, _ := m.plain(&v)
	out, _ := (*masked).(map[string]any)
	if meta, ok := out["metadata"].(map[string]any); ok {
		for _, name := range store.Bookkeeping {
			delete(meta, name)
		}
		if labels, is := meta["labels"].(map[string]any); is {
			delete(labels, effect.ReleasedByLabel)
		}
	}
	hideData(out)
	for key, part := range out {
		if m, ok := part.(map[string]any); ok && len(m) == 0 {
			delete(out, key)
		}
	}
	return out
}

func (m *masker) masked(fields []Field) []Field {
	for i := range fields {
		f := &fields[i]
		old, hidOld := m.plain(f.Old)
		now, hidNew := m.plain(f.New)
		path := m.Key(f.Path)
		f.Old, f.New, f.Secret, f.Path = old, now, hidOld || hidNew || path != f.Path, path
	}
	return fields
}

// differ collects where plain data differs.
type differ struct {
	fields []Field
	skip   func(path []string) bool
}

func (d *differ) compare(path []string, a, b any) {
	if d.skip != nil && d.skip(path) || object.Same(a, b) {
		return
	}
	am, aIs := a.(map[string]any)
	bm, bIs := b.(map[string]any)
	if aIs && bIs {
		for _, key := range slices.Sorted(maps.Keys(apply.Union(am, bm))) {
			d.pair(append(path, key), am, bm, key)
		}
		return
	}
	al, aIs := a.([]any)
	bl, bIs := b.([]any)
	if aIs && bIs {
		d.lists(path, al, bl)
		return
	}
	d.add(path, &a, &b)
}

// pair compares what two maps hold under one key.
func (d *differ) pair(path []string, a, b map[string]any, key string) {
	path = slices.Clip(path)
	if d.skip != nil && d.skip(path) {
		return
	}
	va, inA := a[key]
	vb, inB := b[key]
	switch {
	case inA && inB:
		d.compare(path, va, vb)
	case inA:
		d.leaves(path, va, func(path []string, v any) { d.add(path, &v, nil) })
	default:
		d.leaves(path, vb, func(path []string, v any) { d.add(path, nil, &v) })
	}
}

// leaves calls fn for what maps hold at their ends: lists and empty maps are one.
func (d *differ) leaves(path []string, v any, fn func([]string, any)) {
	if d.skip != nil && d.skip(path) {
		return
	}
	m, is := v.(map[string]any)
	if !is || len(m) == 0 {
		fn(path, v)
		return
	}
	for _, key := range slices.Sorted(maps.Keys(m)) {
		d.leaves(slices.Clip(append(path, key)), m[key], fn)
	}
}

// lists compares elements by their names where all have one, else by their places.
func (d *differ) lists(path []string, a, b []any) {
	na, nb := named(a, "name"), named(b, "name")
	if na == nil || nb == nil {
		for i := range max(len(a), len(b)) {
			at := element(path, fmt.Sprint(i))
			switch {
			case i >= len(a):
				d.leaves(at, b[i], func(path []string, v any) { d.add(path, nil, &v) })
			case i >= len(b):
				d.leaves(at, a[i], func(path []string, v any) { d.add(path, &v, nil) })
			default:
				d.compare(at, a[i], b[i])
			}
		}
		return
	}
	d.elements(path, na, nb)
	was, is := order(a, nb), order(b, na)
	if !slices.Equal(was, is) {
		var old, now any = was, is
		d.add(append(element(path, "*"), "name"), &old, &now)
	}
}

// elements compares the elements of two lists by their names.
func (d *differ) elements(path []string, a, b map[string]any) {
	for _, name := range slices.Sorted(maps.Keys(apply.Union(a, b))) {
		d.pair(element(path, name), a, b, name)
	}
}

// order are the names of the elements that another list has, too: init containers, say,
// run one after the other.
func order(list []any, in map[string]any) []any {
	out := []any{}
	for _, e := range list {
		if name, _ := nameOf(e, "name"); in[name] != nil {
			out = append(out, name)
		}
	}
	return out
}

// element is the path of a list's element.
func element(path []string, name string) []string {
	if len(path) == 0 {
		return []string{"[" + name + "]"}
	}
	out := slices.Clone(path)
	out[len(out)-1] += "[" + name + "]"
	return out
}

// nameOf is what an element of a list has under key.
func nameOf(e any, key string) (name string, has bool) {
	m, _ := e.(map[string]any)
	name, has = m[key].(string)
	return name, has
}

// named are the elements of a list by what they have under key; nil when not all have it, or two have the same.
func named(list []any, key string) map[string]any {
	if len(list) == 0 {
		return map[string]any{}
	}
	out := map[string]any{}
	for _, e := range list {
		name, ok := nameOf(e, key)
		if _, twice := out[name]; !ok || twice {
			return nil
		}
		out[name] = e
	}
	return out
}

func (d *differ) add(path []string, old, now *any) {
	d.fields = append(d.fields, Field{Path: pathText(path), Old: old, New: now})
}

// pathText writes a path as people do.
func pathText(path []string) string {
	var b strings.Builder
	for i, key := range path {
		if name, _, _ := strings.Cut(key, "["); strings.ContainsAny(name, ". /") {
			fmt.Fprintf(&b, "[%q]", key)
			continue
		}
		if i > 0 {
			b.WriteByte('.')
		}
		b.WriteString(key)
	}
	return b.String()
}
