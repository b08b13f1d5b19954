package sim

import (
	"errors"
	"maps"
	"slices"
	"strconv"
	"strings"
	"testing"
	"testing/fstest"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/starling-operator/starling/modules/tree"
	"github.com/starling-operator/starling/runtime/effect"
)

const setsModule = `module(enabled = True, namespace = "web", grants = [grant("v1", "ConfigMap", verbs = ["write"])])
`

const setsHook = `
def object(name, **data):
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name}, "data": data}

def a(ctx):
    k8s.apply_set("goes", [object("goes-" + n) for n in ["x", "y"]])
    k8s.apply_set("stays", [object("stays")], keep = True)

hook(a, on = [startup(), k8s.watch("v1", "ConfigMap", namespaces = ["web"], filter = "{name: .metadata.name}")])

def bye(ctx):
    names = sorted([o["name"] for o in ctx.snapshots["mine"]])
    if [e for e in ctx.events if e.type == "delete"]:
        k8s.apply(object("said", names = ",".join(names)))

hook(bye, on = [before_delete(), k8s.watch("v1", "ConfigMap", name = "mine", namespaces = ["web"], filter = "{name: .metadata.name}")])
`

// The objects of sets go with their module, or their hook, whichever way it goes, also
// when deleting one of them fails at first; before_delete hooks see them still. Those that
// must be kept stay.
func TestSetsGoAndStay(t *testing.T) {
	files := map[string]string{
		"web/module.star": setsModule, "web/hooks/a.star": setsHook, "shop/module.star": "module(enabled = True)\n",
	}
	without := func(gone ...string) map[string]string {
		rest := maps.Clone(files)
		for _, path := range gone {
			rest[path] = ""
		}
		return rest
	}
	for way, leave := range map[string]func(t *testing.T, w *World) error{
		"switched off": func(t *testing.T, w *World) error { return w.Configure(map[string]string{"webEnabled": "false"}) },
		"not in the tree": func(t *testing.T, w *World) error {
			return w.Reload(t.Context(), edited(t, w, without("web/module.star", "web/hooks/a.star")))
		},
		"not in the tree of another process": func(t *testing.T, w *World) error {
			w.Stop()
			w.Use(edited(t, w, without("web/module.star", "web/hooks/a.star")))
			return w.Start(t.Context())
		},
		"without the hook": func(t *testing.T, w *World) error {
			return w.Reload(t.Context(), edited(t, w, without("web/hooks/a.star")))
		},
	} {
		for _, fails := range []bool{false, true} {
			t.Run(way, func(t *testing.T) {
				mapped := fstest.MapFS{}
				for path, text := range files {
					mapped[path] = &fstest.MapFile{Data: []byte(text)}
				}
				read, err := tree.Read(mapped, tree.Options{})
				w := world(t, read, err)
				if err := w.Start(t.Context()); err != nil {
					t.Fatal(err)
				}
				if got := names(t, w, "ConfigMap", "web"); !slices.Equal(got, []string{"goes-x", "goes-y", "stays"}) {
					t.Fatalf("there are %v", got)
				}
				if fails {
					w.store.FailNext("delete", "ConfigMap", apierrors.NewInternalError(errors.New("injected")), 1)
				}
				if err := errors.Join(leave(t, w), w.Settle(t.Context()), w.Advance(t.Context(), time.Hour)); err != nil {
					t.Fatal(err)
				}
				want := []string{"stays"}
				if way == "switched off" || way == "not in the tree" { // whose hooks run as it goes
					want = []string{"said", "stays"}
					said, _ := w.Get(effect.Ref{APIVersion: "v1", Kind: "ConfigMap", Namespace: "web", Name: "said"})
					if data, _ := said["data"].(map[string]any); data["names"] != "goes-x,goes-y,stays" {
						t.Errorf("before_delete has seen %v", data)
					}
				}
				if got := names(t, w, "ConfigMap", "web"); !slices.Equal(got, want) {
					t.Errorf("there are %v, want %v; %+v", got, want, w.Status().Modules)
				}
				left := slices.DeleteFunc(names(t, w, "Secret", "starling-system"), func(name string) bool { return name == "starling-kept-global" })
				if len(left) != 1 || !strings.HasPrefix(left[0], "starling-set-") {
					t.Errorf("there are the Secrets %v, want one record of a set", left)
				}
			})
		}
	}
}

func names(t *testing.T, w *World, kind, namespace string) []string {
	t.Helper()
	list, err := w.List("v1", kind, []string{namespace}, "", "")
	if err != nil {
		t.Fatal(err)
	}
	var out []string
	for _, obj := range list {
		out = append(out, effect.RefOf(obj).Name)
	}
	slices.Sort(out)
	return out
}

// A set that its hook does not apply any more stays, for the hook may apply it in some runs
// only; applied once more with an empty list, it goes.
func TestASetWithAnotherName(t *testing.T) {
	hook := func(calls string) map[string]string {
		return map[string]string{"web/module.star": setsModule, "web/hooks/a.star": `
def a(ctx):
    objects = [{"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "x-" + str(ctx.now.unix)}}]
    ` + calls + `

hook(a, on = [startup()])
`}
	}
	files := fstest.MapFS{}
	for path, text := range hook(`k8s.apply_set("old", objects)`) {
		files[path] = &fstest.MapFile{Data: []byte(text)}
	}
	read, err := tree.Read(files, tree.Options{})
	w := world(t, read, err)
	there := func() int {
		list, err := w.List("v1", "ConfigMap", []string{"web"}, "", "")
		if err != nil {
			t.Fatal(err)
		}
		return len(list)
	}
	if err := w.Start(t.Context()); err != nil {
		t.Fatal(err)
	}
	for _, step := range []struct {
		calls string
		want  int
	}{{`k8s.apply_set("new", objects)`, 2}, {`k8s.apply_set("old", []); k8s.apply_set("new", objects)`, 1}} {
		if err := w.Advance(t.Context(), time.Minute); err != nil {
			t.Fatal(err)
		}
		if err := w.Reload(t.Context(), edited(t, w, hook(step.calls))); err != nil {
			t.Fatal(err)
		}
		if err := w.Settle(t.Context()); err != nil {
			t.Fatal(err)
		}
		if n := there(); n != step.want {
			t.Errorf("%d objects after %s, want %d", n, step.calls, step.want)
		}
	}
}

// Kinds come in Helm's order here, too, and the members of one in that of the call.
func TestSetsHaveTheirOrder(t *testing.T) {
	read, err := tree.Read(fstest.MapFS{
		"web/module.star": {Data: []byte(`module(enabled = True, namespace = "x", grants = [
    grant("v1", kind, verbs = ["write"]) for kind in ["ConfigMap", "Secret", "ServiceAccount"]
])
`)},
		"web/hooks/a.star": {Data: []byte(`
def a(ctx):
    k8s.apply_set("all", [{"apiVersion": "v1", "kind": kind, "metadata": {"name": name}} for kind, name in [
        ("ConfigMap", "b"), ("Secret", "x"), ("ConfigMap", "a"), ("ServiceAccount", "x"),
    ]])

hook(a, on = [startup()])
`)},
	}, tree.Options{})
	w := world(t, read, err)
	if err := w.Start(t.Context()); err != nil {
		t.Fatal(err)
	}
	last := 0
	for _, of := range []string{"ServiceAccount x", "Secret x", "ConfigMap b", "ConfigMap a"} {
		kind, name, _ := strings.Cut(of, " ")
		obj, err := w.Get(effect.Ref{APIVersion: "v1", Kind: kind, Namespace: "x", Name: name})
		if err != nil || obj == nil {
			t.Fatalf("%s: %v, %v", of, obj, err)
		}
		version, err := strconv.Atoi(obj["metadata"].(map[string]any)["resourceVersion"].(string))
		if err != nil || version <= last {
			t.Errorf("%s has version %d, the one before it %d: %v", of, version, last, err)
		}
		last = version
	}
}
