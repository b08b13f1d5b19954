package plan

import (
	"maps"
	"net/http"
	"strings"
	"testing"

	helmrelease "helm.sh/helm/v3/pkg/release"
	"helm.sh/helm/v3/pkg/storage/driver"
	"k8s.io/client-go/kubernetes"
	clientrest "k8s.io/client-go/rest"

	"github.com/starling-operator/starling/modules/status"
	"github.com/starling-operator/starling/modules/tree"
	"github.com/starling-operator/starling/runtime/effect"
	"github.com/starling-operator/starling/runtime/sim"
)

// A plan shows changes of releases, whatever their modules did before.
func TestReleases(t *testing.T) {
	moved := strings.Replace(webModule, `namespace = "web"`, `namespace = "other"`, 1)
	helmOnly := func(w *sim.World) { // as if helm had installed it: nothing says that Starling did
		list, err := w.List("v1", "Secret", []string{"web"}, "owner=helm", "")
		if err != nil || len(list) != 1 {
			t.Fatal(list, err)
		}
		meta := list[0]["metadata"].(map[string]any)
		labels := map[string]any{}
		for key := range meta["labels"].(map[string]any) {
			if strings.HasPrefix(key, "starling.dev/") {
				labels[key] = nil
			}
		}
		if err := w.Patch(refOf(list[0]), map[string]any{"metadata": map[string]any{"labels": labels}}); err != nil {
			t.Fatal(err)
		}
		for _, kind := range []string{"ConfigMap", "Secret"} {
			own, err := w.List("v1", kind, []string{"starling-system"}, "starling.dev/instance", "")
			if err != nil {
				t.Fatal(err)
			}
			for _, obj := range own {
				if err := w.Delete(refOf(obj)); err != nil {
					t.Fatal(err)
				}
			}
		}
	}
	for _, tt := range []struct {
		name   string
		before func(*sim.World)
		files  map[string]string
		change func(*sim.World)
		want   []string
		failed bool
	}{
		{
			name: "moved to another namespace", files: web(map[string]string{"web/module.star": moved}),
			want: []string{"+ module web: install release web in other", "- module web: uninstall release web in web", "+ v1 ConfigMap other/nodes", "- v1 ConfigMap web/nodes", "1 to install, 0 to upgrade, 1 to uninstall."},
		},
		{
			name: "gone from the tree", files: map[string]string{"else/module.star": "module()\n"},
			want: []string{"- module web: uninstall release web in web  # no longer in the tree", "- v1 ConfigMap web/nodes"},
		},
		{
			name: "of another instance now",
			change: func(w *sim.World) {
				g := load(t, map[string]string{"else/module.star": "module()\n"})
				g.Tree.Selector, _ = tree.ParseSelector("name=else")
				g.Elsewhere = map[string]bool{"web": true}
				w.Use(g)
			},
			want: []string{"! warning: module web is not one of --modules-selector name=else, so another instance has it: its release web in web is given back, and stays as it is", "No changes"},
		},
		{
			name: "taken over from helm", before: helmOnly, files: web(map[string]string{"web/module.star": strings.Replace(webModule, "module(", "module(adopt = True, ", 1), "web/values.yaml": "color: green\n"}),
			want: []string{"~ module web: upgrade release web in web", `~ values.color: "red" -> "green"`, "0 to install, 1 to upgrade, 0 to uninstall."},
		},
		{
			name: "of helm, and not to be taken over", before: helmOnly, files: web(map[string]string{"web/values.yaml": "color: green\n"}),
			want: []string{"! module web fails: ", "belongs to", "No changes"}, failed: true,
		},
		{
			name: "left pending by a crash",
			before: func(w *sim.World) {
				list, err := w.List("v1", "Secret", []string{"web"}, "owner=helm", "")
				if err == nil {
					err = w.Patch(refOf(list[0]), map[string]any{"metadata": map[string]any{"labels": map[string]any{"status": "pending-upgrade"}}})
				}
				if err != nil {
					t.Fatal(err)
				}
			},
			files: web(map[string]string{"web/values.yaml": "color: green\n"}), want: []string{"upgrade release web in web"},
		},
		{
			name: "a key that is there twice", files: web(map[string]string{"web/templates/dup.yaml": "apiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: dup\n  labels: {a: b}\n  labels: {a: c}\n"}),
			want: []string{"+ v1 ConfigMap web/dup", "+     a: c"},
		},
		{
			name: "waits", files: web(map[string]string{"web/module.star": webModule + "\ndef enabled():\n    return waiting(\"no domain yet\")\n", "web/values.yaml": "color: green\n"}),
			want: []string{"No changes"},
		},
		{
			name: "its requirement is not there", files: web(map[string]string{"web/module.star": strings.Replace(webModule, "module(", `module(requires = ["db"], `, 1), "db/module.star": "module()\n", "web/values.yaml": "color: green\n"}),
			want: []string{"No changes"},
		},
		{
			name: "no chart any more", files: web(map[string]string{"web/Chart.yaml": "", "web/templates/cm.yaml": "", "web/values.yaml": ""}),
			want: []string{"! warning: module web: release web/web stays as it is: the module has no chart any more", "No changes"},
		},
		{
			name: "a hook that is gone takes its values along", files: web(map[string]string{"web/hooks/a.star": "", "web/templates/cm.yaml": strings.Replace(webTemplate, "{{ .Values.internal.nodes | toJson | quote }}", "none", 1)}),
			want: []string{`- values.internal.nodes: ["a"]`, `~ data.nodes: "[\"a\"]" -> "none"`},
		},
	} {
		t.Run(tt.name, func(t *testing.T) {
			w := running(t, web(nil), thing("Node", "", "a", nil))
			w.Stop()
			if tt.before != nil {
				tt.before(w)
			}
			p, text := planned(t, w, tt.files, tt.change)
			for _, want := range tt.want {
				if !strings.Contains(text, want) {
					t.Errorf("%q is not in\n%s", want, text)
				}
			}
			if p.Failed() != tt.failed {
				t.Errorf("failed is %v", p.Failed())
			}
			if again, second := planned(t, w, tt.files, tt.change); second != text || len(again.Modules) != len(p.Modules) {
				t.Errorf("another time it is\n%s\nand not\n%s", second, text)
			}
		})
	}
}

// Releases that are paused are left alone in the plan as well; hooks run.
func TestPaused(t *testing.T) {
	for _, o := range []sim.Options{{PauseAll: true}, {Paused: []string{"web"}}} {
		o.Generation, o.Builtins = load(t, web(nil)), shared()
		base, err := sim.New(o)
		if err != nil {
			t.Fatal(err)
		}
		if err := base.Apply(thing("Namespace", "", "starling-system", nil)); err != nil {
			t.Fatal(err)
		}
		p, text := planned(t, base, nil, nil)
		if p.Changes() || p.Failed() || p.Modules[0].State != status.ModulePaused {
			t.Errorf("%+v\n%s", p.Modules, text)
		}
	}
}

func refOf(obj map[string]any) effect.Ref {
	meta := obj["metadata"].(map[string]any)
	ref := effect.Ref{APIVersion: obj["apiVersion"].(string), Kind: obj["kind"].(string), Name: meta["name"].(string)}
	ref.Namespace, _ = meta["namespace"].(string)
	return ref
}

// Another process works on a release while it is planned, or has begun to: the plan says so, and is whole.
func TestReleaseUnderWay(t *testing.T) {
	for _, begun := range []bool{true, false} {
		base := running(t, web(nil), thing("Node", "", "a", nil))
		base.Stop()
		a := serve(t, base)
		clients, err := kubernetes.NewForConfig(&clientrest.Config{Host: a.url})
		if err != nil {
			t.Fatal(err)
		}
		helm := driver.NewSecrets(clients.CoreV1().Secrets("web"))
		rel, err := helm.Get("sh.helm.release.v1.web.v1")
		if err != nil {
			t.Fatal(err)
		}
		want := "! warning: module web: release web/web is under way: revision 2 has come since the plan began, and is not in it: plan again once it has ended"
		if begun {
			rel.SetStatus(helmrelease.StatusPendingUpgrade, "")
			if err := helm.Update("sh.helm.release.v1.web.v1", rel); err != nil {
				t.Fatal(err)
			}
			want = "! warning: module web: release web/web is under way: revision 1 is pending-upgrade; the plan says what is left to do now: plan again once it has ended"
		} else {
			a.meddle = func(_ http.ResponseWriter, r *http.Request) bool {
				if r.Method == "GET" && strings.HasSuffix(r.URL.Path, "/secrets/sh.helm.release.v1.web.v2") && rel.Version == 1 {
					rel.Version = 2
					if err := helm.Create("sh.helm.release.v1.web.v2", rel); err != nil {
						t.Error(err)
					}
				}
				return false
			}
		}
		p, text, err := a.plan(t, web(map[string]string{"web/values.yaml": "color: green\n", "late/module.star": "module(enabled = True)\n", "late/Chart.yaml": "apiVersion: v2\nname: late\nversion: 1.0.0\n", "late/templates/cm.yaml": "apiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: late\n"}))
		if err != nil {
			t.Fatal(err)
		}
		if p.Failed() || !strings.Contains(text, want) || !strings.Contains(text, "upgrade release web in web") || !strings.Contains(text, "install release late") {
			t.Errorf("failed: %v, want %s\n%s", p.Failed(), want, text)
		}
	}
}

// A kind that another module brings is there for a release before long, though nothing orders the two: by run, and so by
// a plan.
func TestAKindThatAnotherModuleBrings(t *testing.T) {
	const definition = "apiVersion: apiextensions.k8s.io/v1\nkind: CustomResourceDefinition\nmetadata: {name: widgets.example.com}\n" +
		"spec: {group: example.com, scope: Namespaced, names: {kind: Widget, plural: widgets, singular: widget, listKind: WidgetList}, " +
		"versions: [{name: v1, served: true, storage: true, schema: {openAPIV3Schema: {type: object}}}]}\n"
	for name, brings := range map[string]map[string]string{
		"crds/":      {"010-defs/module.star": "module(enabled = True)\n", "010-defs/crds/widget.yaml": definition},
		"a template": {"010-defs/module.star": "module(enabled = True, installs = [grant(\"apiextensions.k8s.io/v1\", \"CustomResourceDefinition\")])\n", "010-defs/templates/widget.yaml": definition},
	} {
		files := map[string]string{
			"web/module.star":      "module(enabled = True, namespace = \"web\", installs = [grant(\"example.com/v1\", \"Widget\")])\n",
			"web/templates/a.yaml": "apiVersion: example.com/v1\nkind: Widget\nmetadata: {name: a}\n",
		}
		maps.Copy(files, brings)
		p, text := planned(t, running(t, map[string]string{"other/module.star": "module()\n"}), files, nil)
		if p.Failed() || !strings.Contains(text, "Widget") {
			t.Errorf("%s: got\n%s", name, text)
		}
	}
}
