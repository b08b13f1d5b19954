package cluster

import (
	"context"
	"net/http"
	"testing"

	"github.com/starling-operator/starling/runtime/effect"
	"github.com/starling-operator/starling/runtime/object"
	"github.com/starling-operator/starling/runtime/reconcile"
)

// onDelete calls between, once, as a deletion comes in: the object has been looked at.
func (s *setWorld) onDelete(between func()) {
	s.api.OnRequest(func(r *http.Request) {
		if r.Method == http.MethodDelete {
			s.api.OnRequest(nil)
			between()
		}
	})
}

// withMeta is obj as it is in the cluster, with a change of its metadata.
func (s *setWorld) withMeta(name string, change func(metadata map[string]any)) {
	obj := object.CopyPlain(s.api.Object("v1", "ConfigMap", "a", name)).(map[string]any)
	if change(obj["metadata"].(map[string]any)); uidOf(obj) == "" { // another one
		s.api.Remove("v1", "ConfigMap", "a", name)
	}
	s.api.Put(obj)
}

// Between the look at a member of a set and its deletion somebody puts another object in its place, takes it over, or
// changes something that does not matter.
func TestAMemberIsDeletedAsItWasSeen(t *testing.T) {
	replace := func(s *setWorld) {
		s.api.Remove("v1", "ConfigMap", "a", "c")
		s.api.Put(configMap("a", "c"))
	}
	relabel := func(s *setWorld) {
		s.withMeta("c", func(m map[string]any) { m["labels"], m["annotations"] = map[string]any{"mine": "yes"}, nil })
	}
	touch := func(s *setWorld) {
		s.withMeta("c", func(m map[string]any) { m["finalizers"] = []any{"example.com/x"} })
		s.withMeta("c", func(m map[string]any) { m["finalizers"] = nil })
	}
	for name, test := range map[string]struct {
		between func(*setWorld)
		unknown bool // the answer to the write that made it was lost
		want    []string
	}{
		"replaced":            {replace, false, []string{"b", "c"}},
		"replaced, unknown":   {replace, true, []string{"b", "c"}},
		"taken over, unknown": {relabel, true, []string{"b", "c"}},
		"touched":             {touch, false, []string{"b"}},
		"touched, unknown":    {touch, true, []string{"b"}},
	} {
		t.Run(name, func(t *testing.T) {
			s := newSetWorld(t)
			if err := s.apply("b", "c"); err != nil {
				t.Fatal(err)
			}
			for _, set := range s.sets() {
				for ref := range set.members {
					if test.unknown {
						set.members[ref] = ""
					}
				}
			}
			s.onDelete(func() { test.between(s) })
			if err := s.apply("b"); err != nil {
				t.Error(err)
			}
			s.expect(test.want...)
		})
	}
}

// Somebody retains a child, or takes its marks away, after the decision that it goes.
func TestAChildIsDeletedAsItWasSeen(t *testing.T) {
	for name, test := range map[string]struct {
		between func(metadata map[string]any)
		stays   bool
	}{
		"retained": {func(m map[string]any) { m["annotations"].(map[string]any)[reconcile.RetainAnnotation] = "true" }, true},
		"released": {func(m map[string]any) { delete(m["labels"].(map[string]any), reconcile.ControllerLabel) }, true},
		"another parent's": {func(m map[string]any) {
			m["annotations"].(map[string]any)[reconcile.ParentUIDAnnotation] = "other"
		}, true},
		"replaced, with its marks": {func(m map[string]any) { delete(m, "uid"); delete(m, "resourceVersion") }, true},
		"touched":                  {func(m map[string]any) { m["labels"].(map[string]any)["x"] = "y" }, false},
	} {
		for _, late := range []bool{false, true} { // after the look at it, too
			s := newSetWorld(t)
			child := childOf("u1", "x", "1")
			write := func(w effect.Write) error {
				return s.writer.Write(context.Background(), "starling/web/c", effect.Write{Kind: effect.WriteChildren, Children: []effect.Write{w}})
			}
			if err := write(effect.Write{Kind: effect.WriteApply, Ref: effect.RefOf(child), Force: true, Object: child}); err != nil {
				t.Fatal(err)
			}
			seen := &effect.Unchanged{UID: uidOf(s.api.Object("v1", "ConfigMap", "a", "x"))}
			if late {
				s.onDelete(func() { s.withMeta("x", test.between) })
			} else {
				s.withMeta("x", test.between)
			}
			if err := write(effect.Write{Kind: effect.WriteDelete, Ref: effect.RefOf(child), Unchanged: seen}); err != nil {
				t.Error(err)
			}
			if is := s.api.Object("v1", "ConfigMap", "a", "x") != nil; is != test.stays {
				t.Errorf("%s, late %t: it stays: %t", name, late, is)
			}
		}
	}
}

// A Secret that somebody else has put where a record was stays.
func TestAForeignRecordStays(t *testing.T) {
	s := newSetWorld(t)
	if err := s.apply("b"); err != nil {
		t.Fatal(err)
	}
	record := s.writer.recordOf("starling/web/f").Name
	s.api.Remove("v1", "Secret", "ops", record)
	s.api.Put(map[string]any{"apiVersion": "v1", "kind": "Secret", "metadata": map[string]any{"namespace": "ops", "name": record}})
	if err := s.apply(); err != nil {
		t.Fatal(err)
	}
	if s.records() != 1 {
		t.Error("the Secret of somebody else is gone")
	}
}
