package plan

import (
	"strings"
	"testing"

	"github.com/starling-operator/starling/runtime/sim"
)

const family = `
def child(kind, name, **fields):
    return dict({"apiVersion": "v1", "kind": kind, "metadata": {"name": name}}, **fields)

def two(ctx, o):
    if o.metadata.name == "waits":
        return waiting("a host")
    return [
        part(child("ConfigMap", "first", data = {"k": "1"}), name = "first", ready = lambda c: False),
        part(child("Secret", "second", data = {"k": base64.encode("hush-hush")}), name = "second", after = ["first"]),
        part(child("ConfigMap", "third", data = {"k": "1"}), name = "third"),
    ]

controller("two", k8s.watch("v1", "ServiceAccount"), two, owns = [owns("v1", "ConfigMap"), owns("v1", "Secret")])
`

// A plan says of each parent in the cluster what is done about its children, and why the rest is not.
func TestAPlanTellsOfControllers(t *testing.T) {
	files := func(hook string) map[string]string {
		return map[string]string{"web/module.star": "module(enabled = True)\n", "web/hooks/two.star": hook}
	}
	p, text := planned(t, running(t, files("")), files(family), func(w *sim.World) {
		for _, name := range []string{"blog", "waits"} {
			if err := w.Apply(thing("ServiceAccount", "shop", name, nil)); err != nil {
				t.Fatal(err)
			}
		}
	})
	contains(t, text, `  controller web/two, shop/blog:
    + create ConfigMap shop/first  # it is not there
    + create ConfigMap shop/third  # it is not there
      wait Secret shop/second  # it waits: first is not ready: ready= of its part says so
  controller web/two, shop/waits: it waits: a host
`)
	if len(p.Controllers) != 2 || len(p.Objects) < 2 {
		t.Errorf("%d parents, %d objects", len(p.Controllers), len(p.Objects))
	}

	w := running(t, files(family), thing("ServiceAccount", "shop", "blog", nil))
	if p, text := planned(t, w, nil, nil); p.Changes() || strings.Contains(text, "create") || !strings.Contains(text, "wait Secret shop/second") {
		t.Errorf("nothing changes: %s", text)
	}
	other := strings.NewReplacer(`data = {"k": "1"}), name = "first"`, `data = {"k": "hush-hush"}), name = "first"`, "lambda c: False", "lambda c: True", `"third"`, `"fourth"`).Replace(family)
	p, text = planned(t, w, files(other), nil)
	contains(t, text, `  controller web/two, shop/blog:
    ~ apply ConfigMap shop/first  # it is wanted in another state
    + create ConfigMap shop/fourth  # it is not there
    + create Secret shop/second  # it is not there
    - delete ConfigMap shop/third  # no part wants it
`)
	if !p.Changes() || strings.Contains(text, "hush-hush") {
		t.Errorf("%s", text)
	}
}

func contains(t *testing.T, text, want string) {
	t.Helper()
	if !strings.Contains(text, want) {
		t.Errorf("got\n%s\nwant\n%s", text, want)
	}
}

// A parent that is stalled fails a plan, also when it was stalled before.
func TestAStalledParentFailsAPlan(t *testing.T) {
	hook := "def f(ctx, o):\n    return stalled(\"no host\")\n\ncontroller(\"f\", k8s.watch(\"v1\", \"ServiceAccount\"), f, owns = [owns(\"v1\", \"ConfigMap\")])\n"
	w := running(t, map[string]string{"web/module.star": "module(enabled = True)\n", "web/hooks/f.star": hook}, thing("ServiceAccount", "shop", "blog", nil))
	p, text := planned(t, w, nil, nil)
	contains(t, text, "shop/blog: no host")
	if p.Changes() || !p.Failed() {
		t.Errorf("changes %v, failed %v", p.Changes(), p.Failed())
	}
}
