package store

import (
	"cmp"
	"maps"
	"reflect"
	"slices"

	"github.com/starling-operator/starling/runtime/object"
)

// creation is an object as its creator has sent it, and as it was stored then.
type creation struct{ sent, stored map[string]any }

// note remembers who has changed an object, and what is gone.
func (o *over) note(c change, actor string) {
	if c.after == nil && c.before != nil {
		o.gone[uidOf(c.before)] = true
	}
	if o.by[c.resource] == nil {
		o.by[c.resource] = map[string][]string{}
	}
	if who := o.by[c.resource][c.key]; actor != "" && !slices.Contains(who, actor) {
		o.by[c.resource][c.key] = append(who, actor)
	}
}

// came remembers a copy of what a client has sent.
func (w *write) came(obj map[string]any) {
	if w.store.over != nil {
		w.sent, _ = copied(obj)
	}
}

// made remembers an object that was created.
func (o *over) made(k *kind, key string, sent, stored map[string]any) {
	if o == nil || sent == nil {
		return
	}
	gr := k.keptIn()
	if k.keptAs != nil {
		sent, stored = converted(sent, k.keptAs.GVK()), inForm(k.keptAs, stored)
	}
	if texts, ok := sent["stringData"].(map[string]any); ok && k.Kind.Kind == "Secret" {
		data, _ := sent["data"].(map[string]any)
		data = maps.Clone(data)
		if data == nil {
			data = map[string]any{}
		}
		maps.Copy(data, texts) // it is stored there; only the keys count
		sent["data"] = data
	}
	if o.created[gr] == nil {
		o.created[gr] = map[string]creation{}
	}
	o.created[gr][key] = creation{sent, stored}
}

// asked returns what of a value was sent, or is no longer as it was stored first.
func asked(now, stored, sent any) any {
	switch v := now.(type) {
	case map[string]any:
		was, _ := stored.(map[string]any)
		by, _ := sent.(map[string]any)
		out := map[string]any{}
		for key, e := range v {
			if _, said := by[key]; said {
				out[key] = asked(e, was[key], by[key])
			} else if first, there := was[key]; !there || !reflect.DeepEqual(first, e) {
				out[key] = e
			}
		}
		return out
	case []any:
		was, _ := stored.([]any)
		by, _ := sent.([]any)
		if len(was) != len(v) || len(by) != len(v) {
			return now
		}
		out := make([]any, len(v))
		for i := range v {
			out[i] = asked(v[i], was[i], by[i])
		}
		return out
	}
	return now
}

// As says on whose behalf changes are made from now on: [Difference.By] names them.
func (s *Store) As(actor string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.actor = actor
}

// Difference is an object that is not as the origin has it.
type Difference struct {
	Kind            Kind
	Namespace, Name string
	// Before is the object in the origin, After the one in the store; nil: not there.
	Before, After map[string]any
	// Asked is, of an object that is new, the part of After that somebody has asked
	// for: without what the API server fills in.
	Asked map[string]any
	// By are those who have changed it, in order; see [Store.As].
	By []string
}

// Differences are the objects of a store made by [Over] that are not as the origin
// has them, by kind, namespace and name. A difference in bookkeeping alone
// (resourceVersion, generation, managedFields) is none.
func (s *Store) Differences() []Difference {
	s.mu.Lock()
	defer s.unlock()
	if s.over == nil {
		return nil
	}
	var out []Difference
	for gr, t := range s.tables {
		k := s.anyVersion(gr)
		if k == nil {
			continue
		}
		known := s.over.known[gr]
		for key, who := range s.over.by[gr] {
			before, after := known[key], t.objects[key]
			if before == nil && after == nil || before != nil && after != nil && sameButBookkeeping(before, after) {
				continue
			}
			named := after
			if named == nil {
				named = before
			}
			d := Difference{Kind: k.Kind, Namespace: namespaceOf(named), Name: nameOf(named), Before: before, After: after, By: who}
			if born, ok := s.over.created[gr][key]; ok && before == nil {
				d.Asked, _ = asked(after, born.stored, born.sent).(map[string]any)
			}
			out = append(out, d)
		}
	}
	slices.SortFunc(out, func(a, b Difference) int {
		return cmp.Or(cmp.Compare(a.Kind.Kind, b.Kind.Kind), cmp.Compare(a.Kind.Group, b.Kind.Group), cmp.Compare(a.Namespace, b.Namespace), cmp.Compare(a.Name, b.Name))
	})
	return out
}

// Bookkeeping are the fields of metadata that the API server itself keeps.
var Bookkeeping = []string{"resourceVersion", "generation", "managedFields", "uid", "creationTimestamp", "selfLink"}

func sameButBookkeeping(a, b map[string]any) bool {
	am, bm := metaOf(a), metaOf(b)
	if len(a) != len(b) {
		return false
	}
	for key, v := range a {
		if key != "metadata" && !object.Same(v, b[key]) {
			return false
		}
	}
	same := func(a, b map[string]any) bool {
		for key, v := range a {
			if !slices.Contains(Bookkeeping, key) && !object.Same(v, b[key]) {
				return false
			}
		}
		return true
	}
	return same(am, bm) && same(bm, am)
}
