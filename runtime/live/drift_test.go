package live

import (
	"errors"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"github.com/starling-operator/starling/modules/release"
	"github.com/starling-operator/starling/runtime/effect"
	"github.com/starling-operator/starling/runtime/sim/store"
)

var driftTree = map[string]string{
	"web/module.star":      "module(enabled = True, namespace = \"shop\")\n",
	"web/Chart.yaml":       "apiVersion: v2\nname: web\nversion: 0.1.0\n",
	"web/templates/a.yaml": "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: a}\ndata: {text: ours}\n",
	"web/templates/b.yaml": "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: b}\ndata: {text: ours}\n",
}

func configMapOf(name string) store.Target {
	return store.Target{GVR: schema.GroupVersionResource{Version: "v1", Resource: "configmaps"}, Namespace: "shop", Name: name}
}

// text is that of a ConfigMap of the release, "" when it is not there.
func (f *fixture) text(name string) string {
	f.Helper()
	obj, err := f.driver.o.Client.Get(f.Context(), effect.Ref{APIVersion: "v1", Kind: "ConfigMap", Namespace: "shop", Name: name})
	if err != nil {
		f.Fatal(err)
	}
	data, _ := obj["data"].(map[string]any)
	text, _ := data["text"].(string)
	return text
}

// edit has somebody change a ConfigMap of the release.
func (f *fixture) edit(name, text string) {
	f.Helper()
	if _, err := f.store.Patch(configMapOf(name), types.MergePatchType, []byte(`{"data": {"text": "`+text+`"}}`), store.WriteOptions{Manager: "kubectl-edit"}); err != nil {
		f.Fatal(err)
	}
}

func (f *fixture) remove(name string) {
	f.Helper()
	if _, err := f.store.Delete(configMapOf(name), store.DeleteOptions{}); err != nil {
		f.Fatal(err)
	}
}

// A deleted object is back, and an edited field is as it was, within a second. There is no new
// revision; after a restart, too.
func TestReleasesHealThemselves(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFixture(t, driftTree)
		f.start()
		f.waitReady()
		time.Sleep(time.Second)
		heals := func() {
			t.Helper()
			f.edit("a", "theirs")
			f.remove("b")
			time.Sleep(time.Second)
			if a, b := f.text("a"), f.text("b"); a != "ours" || b != "ours" {
				t.Errorf("a has %q, b has %q", a, b)
			}
		}
		heals()
		f.stop()
		if err := <-f.ended; err != nil {
			t.Fatal(err)
		}
		f.edit("a", "theirs, while nobody looks")
		f.driver = f.newDriver(driftTree)
		f.start()
		f.waitReady()
		time.Sleep(5 * time.Second)
		if a := f.text("a"); a != "ours" {
			t.Errorf("after a restart a has %q", a)
		}
		heals()
		last, err := f.driver.releases.Last(t.Context(), "shop", "web")
		if err != nil || last == nil || last.Version != 1 {
			t.Errorf("%v: revision %+v", err, last)
		}
		installed, err := f.driver.releases.Installed(t.Context())
		if err != nil || len(installed) != 1 || installed[0] != (release.Ref{Module: "web", Name: "web", Namespace: "shop"}) {
			t.Errorf("%v: %v", err, installed)
		}
		f.stop()
		if err := <-f.ended; err != nil {
			t.Error(err)
		}
	})
}

// A kind of the chart that somebody has deleted is there again, and then its objects.
func TestADeletedKindComesBack(t *testing.T) {
	for _, crds := range []string{"web/crds/gadgets.yaml", "web/chart/crds/gadgets.yaml"} {
		synctest.Test(t, func(t *testing.T) {
			f := newFixture(t, map[string]string{
				"web/module.star":            "module(enabled = True, namespace = \"shop\", installs = [grant(\"x.example.com/v1\", \"Gadget\")])\n",
				"web/chart/Chart.yaml":       "apiVersion: v2\nname: web\nversion: 0.1.0\n",
				"web/chart/templates/a.yaml": "apiVersion: x.example.com/v1\nkind: Gadget\nmetadata: {name: a}\nspec: {count: 1}\n",
				crds: "apiVersion: apiextensions.k8s.io/v1\nkind: CustomResourceDefinition\nmetadata: {name: gadgets.x.example.com}\nspec: {group: x.example.com, scope: Namespaced, " +
					"names: {kind: Gadget, plural: gadgets}, versions: [{name: v1, served: true, storage: true, schema: {openAPIV3Schema: {type: object, x-kubernetes-preserve-unknown-fields: true}}}]}\n",
			})
			f.start()
			f.waitReady()
			time.Sleep(time.Second)
			uid := func() string {
				obj, err := f.driver.o.Client.Get(t.Context(), effect.Ref{APIVersion: "x.example.com/v1", Kind: "Gadget", Namespace: "shop", Name: "a"})
				if err != nil {
					t.Fatalf("%s: %v", crds, err)
				}
				return obj["metadata"].(map[string]any)["uid"].(string)
			}
			before := uid()
			definition := store.Target{GVR: schema.GroupVersionResource{Group: "apiextensions.k8s.io", Version: "v1", Resource: "customresourcedefinitions"}, Name: "gadgets.x.example.com"}
			if _, err := f.store.Delete(definition, store.DeleteOptions{}); err != nil {
				t.Fatal(err)
			}
			f.store.Settle()
			time.Sleep(10 * time.Second)
			if uid() == before {
				t.Errorf("%s: it was not deleted", crds)
			}
			f.stop()
			if err := <-f.ended; err != nil {
				t.Error(err)
			}
		})
	}
}

// Somebody who changes the same field again and again is named, and the repair waits longer each time.
func TestAContestIsShown(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFixture(t, driftTree)
		f.start()
		f.waitReady()
		time.Sleep(time.Second)
		for range 4 {
			f.edit("a", "theirs")
			time.Sleep(300 * time.Millisecond)
		}
		if a := f.text("a"); a != "theirs" {
			t.Errorf("it is put right at once: %q", a)
		}
		st, err := f.driver.Status(t.Context())
		if err != nil || len(st.Modules) != 1 || len(st.Modules[0].Drifted) != 1 {
			t.Fatalf("%v: %+v", err, st.Modules)
		}
		if d := st.Modules[0].Drifted[0]; d.Object != "ConfigMap shop/a" || !d.Contested || len(d.By) == 0 || d.By[0] != "kubectl-edit" || !slices.Equal(d.Fields, []string{"data.text"}) {
			t.Errorf("%+v", d)
		}
		time.Sleep(2 * time.Second)
		if a := f.text("a"); a != "ours" {
			t.Errorf("it is not put right any more: %q", a)
		}
		f.stop()
		if err := <-f.ended; err != nil {
			t.Error(err)
		}
	})
}

// Without the right to watch, people are told, and the API server is asked now and then.
func TestDriftThatMayNotBeWatched(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFixture(t, map[string]string{
			"web/module.star":      "module(enabled = True, namespace = \"shop\")\n",
			"web/Chart.yaml":       "apiVersion: v2\nname: web\nversion: 0.1.0\n",
			"web/templates/a.yaml": "apiVersion: v1\nkind: Service\nmetadata: {name: a}\nspec: {ports: [{port: 80}]}\n",
		})
		refused := apierrors.NewForbidden(schema.GroupResource{Resource: "services"}, "", errors.New("no role"))
		for _, verb := range []string{"list", "watch"} {
			f.store.FailNext(verb, "Service", refused, 1e6)
		}
		f.start()
		f.waitReady()
		time.Sleep(time.Minute)
		problems := func() []string {
			st, err := f.driver.Status(t.Context())
			if err != nil || len(st.Modules) != 1 {
				t.Fatalf("%v: %+v", err, st.Modules)
			}
			if m := st.Modules[0]; !slices.Equal(m.Unseen, m.Problems) {
				t.Errorf("unseen: %q", m.Unseen)
			}
			return st.Modules[0].Problems
		}
		if p := problems(); len(p) != 1 || !strings.Contains(p[0], "changes of others are not seen: 1 of kind Service: cannot list Service in namespace shop") {
			t.Errorf("problems: %q", p)
		}
		f.store.ClearFaults()
		time.Sleep(30 * time.Second)
		if p := problems(); len(p) > 0 {
			t.Errorf("problems: %q", p)
		}
		f.stop()
		if err := <-f.ended; err != nil {
			t.Error(err)
		}
	})
}
