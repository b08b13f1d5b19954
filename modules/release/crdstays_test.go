package release

import (
	"context"
	"errors"
	"strings"
	"testing"

	"github.com/starling-operator/starling/modules/chart"
	"github.com/starling-operator/starling/modules/tree"
)

// A definition that a module of this instance has applied stays while the module has one of that name, whatever the
// names of the modules, after a start, too; the other module is told.
func TestAnInstalledDefinitionStays(t *testing.T) {
	const z, a = "zone", "attic"
	files := func(texts ...string) (out []chart.File) {
		for _, text := range texts {
			out = append(out, chart.File{Path: "crds/a.yaml", Data: []byte(text)})
		}
		return out
	}
	red, blue := thing("red"), thing("blue")
	tests := []struct {
		name string
		// folders are those of the tree after the start, and after says what comes before the other module.
		zone   *tree.Module
		before func(w *driftWorld) error
		adopt  bool
		stays  bool
	}{
		{"as it is", &tree.Module{CRDs: files(red)}, nil, false, true},
		{"with adopt", &tree.Module{CRDs: files(red)}, nil, true, true},
		{"with another version of it", &tree.Module{CRDs: files(thing("white"))}, nil, false, true},
		{"among others", &tree.Module{CRDs: files(other, red)}, nil, false, true},
		{"broken", &tree.Module{Err: errors.New("module.star: no")}, nil, false, true},
		{"a broken file", &tree.Module{CRDs: files("{")}, nil, false, true},
		{"perhaps in the chart", &tree.Module{Chart: &tree.Chart{}}, nil, false, true},
		{"not in the tree", nil, nil, false, false},
		{"without it", &tree.Module{CRDs: files(other)}, nil, false, false},
		{"without any", &tree.Module{}, nil, false, false},
		{"asked already", &tree.Module{CRDs: files(red)}, func(w *driftWorld) error { return w.bring(w.Manager, z, false, red) }, false, true},
		{"asked, and its try failed", &tree.Module{CRDs: files(red)}, func(w *driftWorld) error {
			ended, end := context.WithCancel(t.Context())
			end()
			if _, err := w.ApplyCRDs(ended, Ref{Module: z, Name: z}, CRDOptions{}, files(red)); err == nil {
				return errors.New("it has not failed")
			}
			return nil
		}, false, true},
		{"the same copied first", &tree.Module{CRDs: files(red)}, func(w *driftWorld) error { return w.bring(w.Manager, a, false, red) }, false, true},
		{"dropped", &tree.Module{CRDs: files(red)}, func(w *driftWorld) error {
			return errors.Join(w.bring(w.Manager, z, false, red), w.bring(w.Manager, z, false, other))
		}, false, false},
		{"gone", &tree.Module{CRDs: files(red)}, func(w *driftWorld) error {
			return errors.Join(w.bring(w.Manager, z, false, red), w.ForgetCRDs(t.Context(), z))
		}, false, false},
		{"left to who copied it", nil, func(w *driftWorld) error {
			return errors.Join(w.bring(w.Manager, z, false, red), w.bring(w.Manager, "zz", false, red), w.ForgetCRDs(t.Context(), z))
		}, false, true},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			w, f := newSimulatedDrift(t)
			if err := w.bring(w.Manager, z, false, red); err != nil {
				t.Fatal(err)
			}
			w.Manager = f.manager()
			w.o.Folders = func() []*tree.Module {
				all := []*tree.Module{{Name: a}, {Name: "zz"}}
				if tt.zone != nil {
					zone := *tt.zone
					zone.Name = z
					all = append(all, &zone)
				}
				return all
			}
			if tt.before != nil {
				if err := tt.before(w); err != nil {
					t.Fatal(err)
				}
			}
			for range 2 {
				if err := w.bring(w.Manager, a, tt.adopt, blue); err != nil {
					t.Fatal(err)
				}
			}
			if got := w.fields(); got != map[bool]string{true: "red", false: "blue"}[tt.stays] {
				t.Errorf("the definition has %s", got)
			}
			if told := strings.Join(w.Left(a), "; "); tt.stays != strings.Contains(told, "things.own.example is there, differs, and is that of module z") {
				t.Errorf("told: %q", told)
			}
			if err := w.ForgetCRDs(t.Context(), z); err != nil {
				t.Fatal(err)
			}
			if err := w.ForgetCRDs(t.Context(), "zz"); err != nil {
				t.Fatal(err)
			}
			if got := w.fields(); got != "blue" || len(w.Left(a)) > 0 {
				t.Errorf("when it is gone the definition has %s, told: %v", got, w.Left(a))
			}
		})
	}
}

// The crds/ of a module come before those of its chart, whichever is there.
func TestOwnDefinitionsComeBeforeThoseOfTheChart(t *testing.T) {
	w, f := newSimulatedDrift(t)
	bring := func(whose, text string) {
		t.Helper()
		if _, err := w.applyCRDs(t.Context(), crdOwner{whose: whose, release: Ref{Module: "web", Name: "web"}}, []chart.File{{Path: "crds/a.yaml", Data: []byte(text)}}); err != nil {
			t.Fatal(err)
		}
	}
	bring(ofChart("web"), thing("red"))
	w.Manager = f.manager()
	bring("web", thing("blue"))
	bring(ofChart("web"), thing("red"))
	if got := w.fields(); got != "blue" || len(w.Left("web")) != 1 {
		t.Errorf("the definition has %s, told: %v", got, w.Left("web"))
	}
}
