package sim

import (
	"errors"
	"fmt"
	"testing"
	"testing/fstest"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/starling-operator/starling/modules/tree"
	"github.com/starling-operator/starling/runtime/effect"
)

// Each call of a repair may fail, once, and the process may be killed then. In the end all is as
// a fresh install makes it, at the same revision.
func TestARepairInWhichOneCallFails(t *testing.T) {
	files := fstest.MapFS{
		"web/module.star": {Data: []byte("module(enabled = True)\n")},
		"web/Chart.yaml":  {Data: []byte("apiVersion: v2\nname: web\nversion: 0.1.0\n")},
	}
	ref := func(name string) effect.Ref {
		return effect.Ref{APIVersion: "v1", Kind: "ConfigMap", Namespace: "starling-system", Name: name}
	}
	for _, name := range []string{"a", "b", "c"} {
		files["web/templates/"+name+".yaml"] = &fstest.MapFile{Data: []byte("apiVersion: v1\nkind: ConfigMap\nmetadata: {name: " + name + "}\ndata: {text: ours}\n")}
	}
	others := func(w *World) error {
		return errors.Join(
			w.Patch(ref("a"), map[string]any{"data": map[string]any{"text": "theirs"}}),
			w.Delete(ref("b")),
			w.Patch(ref("c"), map[string]any{"metadata": map[string]any{"managedFields": []any{map[string]any{}}}}),
		)
	}
	life := func(t *testing.T, change func(w *World) error, kill bool) string {
		t.Helper()
		read, err := tree.Read(files, tree.Options{})
		w := world(t, read, err)
		if err := w.Start(t.Context()); err != nil {
			t.Fatal(err)
		}
		if err := errors.Join(change(w), w.Settle(t.Context())); err != nil {
			t.Fatal(err)
		}
		w.store.ClearFaults()
		if kill {
			w.Stop()
			if err := w.Start(t.Context()); err != nil {
				t.Fatal(err)
			}
		}
		if err := w.Advance(t.Context(), time.Hour); err != nil {
			t.Fatal(err)
		}
		if last, err := w.releases.Last(t.Context(), "starling-system", "web"); err != nil || last == nil || last.Version != 1 {
			t.Errorf("the release is %+v, %v", last, err)
		}
		return fmt.Sprint(w.State())
	}
	want := life(t, func(*World) error { return nil }, false)
	if got := life(t, others, false); got != want {
		t.Fatalf("there is\n%s\nafter an install\n%s", got, want)
	}
	for _, kill := range []bool{false, true} {
		for _, verb := range []string{"list", "get", "create", "patch", "apply"} {
			for after := range 5 {
				t.Run(fmt.Sprintf("%s %d, killed %v", verb, after, kill), func(t *testing.T) {
					fault := func(w *World) error {
						err := others(w)
						w.store.FailAfter(verb, "*", apierrors.NewInternalError(errors.New("injected")), after)
						return err
					}
					if got := life(t, fault, kill); got != want {
						t.Errorf("there is\n%s\nafter an install\n%s", got, want)
					}
				})
			}
		}
	}
}
