package builtins

import "testing"

// Each builtin is in one group of the reference, and has an example.
func TestEachBuiltinHasAGroupAndAnExample(t *testing.T) {
	times := map[string]int{}
	for _, g := range grouped(Table()) {
		for _, s := range g.specs {
			times[s.Name]++
		}
	}
	for _, s := range Table() {
		if times[s.Name] != 1 {
			t.Errorf("%s is in %d groups of the reference", s.Name, times[s.Name])
		}
		if Example(s.Name) == "" {
			t.Errorf("%s has no example; add one to examples.txt", s.Name)
		}
	}
}
