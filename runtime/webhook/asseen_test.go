package webhook

import (
	"net/http"
	"testing"

	"github.com/starling-operator/starling/runtime/effect"
	"github.com/starling-operator/starling/runtime/object"
)

// Somebody takes a configuration over between the look at it and its deletion.
func TestAConfigurationIsDeletedAsItWasSeen(t *testing.T) {
	for name, test := range map[string]struct {
		change map[string]any // of labels
		stays  bool
	}{
		"taken over by another instance": {map[string]any{effect.InstanceLabel: "other.starling"}, true},
		"taken away":                     {map[string]any{effect.InstanceLabel: nil}, true},
		"touched":                        {map[string]any{"x": "y"}, false},
	} {
		asked := make(chan struct{}, 2) // both below
		setup := func(t *testing.T) *world {
			w := newWorld(t, map[string]string{"web/hooks/a.star": "def f(ctx):\n    pass\nhook(f, on = [startup])\n"})
			putStale(w, "gone", "gone")
			w.api.OnRequest(func(r *http.Request) {
				if r.Method != http.MethodDelete {
					return
				}
				w.api.OnRequest(nil)
				obj := object.CopyPlain(w.api.Object(registration, kindValidating, "", "gone")).(map[string]any)
				labels := obj["metadata"].(map[string]any)["labels"].(map[string]any)
				for key, v := range test.change {
					if labels[key] = v; v == nil {
						delete(labels, key)
					}
				}
				w.api.Put(obj)
				asked <- struct{}{}
			})
			return w
		}
		want := []string{}
		if test.stays {
			want = append(want, "gone")
		}
		t.Run(name, func(t *testing.T) {
			w := setup(t)
			w.run()
			<-asked
			if test.stays {
				w.stop()
			} else {
				defer w.stop()
			}
			w.eventually("what is left", w.hasNames(want...))
		})
		t.Run("detach, "+name, func(t *testing.T) {
			w := setup(t)
			told := 0
			if err := Detach(t.Context(), w.client, "ns.starling", func(Detached) { told++ }); err != nil {
				t.Fatal(err)
			}
			if err := w.hasNames(want...)(); err != nil || told != 1-len(want) {
				t.Error(err, told)
			}
		})
	}
}
