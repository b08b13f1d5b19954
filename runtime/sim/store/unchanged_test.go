package store

import (
	"errors"
	"testing"
)

// A patch that has changed nothing changes nothing again, until somebody else changes the object, or deletes it.
func TestPatchesThatChangeNothing(t *testing.T) {
	s := New(Options{Builtins: NewBuiltins(), MakeNamespaces: true})
	at := Target{GVR: configMaps, Namespace: "default", Name: "x"}
	apply := func(o WriteOptions, value string) (Result, error) {
		text := `{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"x"},"data":{"a":"` + value + `"}}`
		return s.Patch(at, "application/apply-patch+yaml", []byte(text), o)
	}
	patch := func(o WriteOptions, value string) Result {
		t.Helper()
		res, err := apply(o, value)
		if err != nil {
			t.Fatal(err)
		}
		return res
	}
	ours, others := WriteOptions{Manager: "ours", Force: true}, WriteOptions{Manager: "others", Force: true}
	first := versionOf(patch(ours, "1").Object)
	for range 3 {
		if res := patch(ours, "1"); versionOf(res.Object) != first || res.Created {
			t.Errorf("the same patch again: %v", res)
		}
	}
	if res := patch(others, "1"); versionOf(res.Object) == first {
		t.Error("another manager does not come to own what it applies")
	}
	patch(others, "2")
	if res := patch(ours, "1"); nested(res.Object, "data", "a") != "1" {
		t.Errorf("after a change of others: %v", res.Object)
	}
	patch(ours, "1")
	refused := errors.New("refused")
	s.FailNext("apply", "ConfigMap", refused, 1)
	if _, err := apply(ours, "1"); !errors.Is(err, refused) {
		t.Errorf("an injected error: %v", err)
	}
	if _, err := s.Delete(at, DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	if res := patch(ours, "1"); !res.Created {
		t.Error("what was deleted is not made anew")
	}
}
