package sim

import (
	"errors"
	"fmt"
	"testing"
	"testing/fstest"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/starling-operator/starling/modules/tree"
)

// Each call of an uninstall may fail, once. In the end nothing is left, or, with the
// module switched on again meanwhile, all is there.
func TestAnUninstallInWhichOneCallFails(t *testing.T) {
	files := fstest.MapFS{}
	for path, text := range map[string]string{
		"web/module.star":      "module(enabled = True)\n",
		"web/Chart.yaml":       "apiVersion: v2\nname: web\nversion: 0.1.0\n",
		"web/templates/a.yaml": "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: a}\n---\napiVersion: v1\nkind: ConfigMap\nmetadata: {name: b}\ndata: {size: {{ .Values.size | quote }}}\n",
		"web/values.yaml":      "size: one\n",
	} {
		files[path] = &fstest.MapFile{Data: []byte(text)}
	}
	// life is what is there after the release had two revisions, its module was
	// switched off, and on again if so.
	life := func(t *testing.T, fault func(w *World), again bool) string {
		read, err := tree.Read(files, tree.Options{})
		w := world(t, read, err)
		configure := func(data map[string]string) {
			t.Helper()
			if err := errors.Join(w.Configure(data), w.Settle(t.Context())); err != nil {
				t.Fatal(err)
			}
		}
		if err := w.Start(t.Context()); err != nil {
			t.Fatal(err)
		}
		configure(map[string]string{"web": "size: two"})
		fault(w)
		configure(map[string]string{"web": "size: two", "webEnabled": "false"})
		if again {
			configure(map[string]string{"web": "size: two"})
		}
		w.store.ClearFaults()
		if err := w.Advance(t.Context(), time.Hour); err != nil {
			t.Fatal(err)
		}
		return fmt.Sprint(w.State())
	}
	for _, again := range []bool{false, true} {
		want := life(t, func(*World) {}, again)
		t.Run(fmt.Sprintf("%v/nothing notes that it has begun", again), func(t *testing.T) {
			fault := func(w *World) {
				w.store.FailNext("update", "Secret", apierrors.NewInternalError(errors.New("injected")), 1)
				w.store.FailAfter("delete", "ConfigMap", apierrors.NewInternalError(errors.New("injected")), 1)
			}
			if got := life(t, fault, again); got != want {
				t.Errorf("there is\n%s\nwithout the faults\n%s", got, want)
			}
		})
		for _, verb := range []string{"list", "get", "update", "patch", "delete"} {
			for after := range 8 {
				t.Run(fmt.Sprintf("%v/%s %d", again, verb, after), func(t *testing.T) {
					fault := func(w *World) {
						w.store.FailAfter(verb, "*", apierrors.NewInternalError(errors.New("injected")), after)
					}
					if got := life(t, fault, again); got != want {
						t.Errorf("there is\n%s\nwithout the fault\n%s", got, want)
					}
				})
			}
		}
	}
}
