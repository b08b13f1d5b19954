package live

import (
	"encoding/json"
	"maps"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"github.com/starling-operator/starling/runtime/sim/store"
)

// forge has somebody who may patch an object apply the marks of another one to it, under the field manager of those.
func (f *fixture) forge(from, to store.Target, data map[string]any) {
	f.Helper()
	obj, err := f.store.Get(from)
	if err != nil {
		f.Fatal(err)
	}
	f.forgeOf(obj, to, data)
}

func (f *fixture) forgeOf(obj map[string]any, to store.Target, data map[string]any) {
	f.Helper()
	meta := obj["metadata"].(map[string]any)
	marks, _ := json.Marshal(meta["annotations"])
	as := strings.NewReplacer(meta["namespace"].(string)+"/"+meta["name"].(string), to.Namespace+"/"+to.Name)
	var annotations map[string]any
	if err := json.Unmarshal([]byte(as.Replace(string(marks))), &annotations); err != nil {
		f.Fatal(err)
	}
	forged := map[string]any{"apiVersion": "v1", "kind": obj["kind"], "metadata": map[string]any{
		"namespace": to.Namespace, "name": to.Name, "labels": meta["labels"], "annotations": annotations,
	}}
	if data != nil {
		forged["data"] = data
	}
	f.applyAs(managerOf(obj), to, forged)
	time.Sleep(time.Second)
}

// managerOf is the field manager that has applied an object.
func managerOf(obj map[string]any) string {
	entries, _ := obj["metadata"].(map[string]any)["managedFields"].([]any)
	for _, e := range entries {
		if entry := e.(map[string]any); entry["operation"] == "Apply" {
			return entry["manager"].(string)
		}
	}
	return ""
}

func (f *fixture) applyAs(manager string, to store.Target, obj map[string]any) {
	f.Helper()
	text, err := json.Marshal(obj)
	if err != nil {
		f.Fatal(err)
	}
	if _, err := f.store.Patch(to, types.ApplyPatchType, text, store.WriteOptions{Manager: manager, Force: true}); err != nil {
		f.Fatal(err)
	}
}

// create has somebody make a Secret.
func (f *fixture) create(to store.Target, data map[string]any) {
	f.Helper()
	obj := map[string]any{"apiVersion": "v1", "kind": "Secret", "metadata": map[string]any{"namespace": to.Namespace, "name": to.Name}, "data": data}
	f.applyAs("kubectl", to, obj)
	time.Sleep(time.Second) // until the watch has shown it
}

// Marks of children that somebody applies under the name of the controller are believed of no object: nothing is deleted,
// taken over or filled in.
func TestForgedMarksOfChildren(t *testing.T) {
	known := map[string]any{"password": "a25vd24=", "text": "b3duLg=="}
	for _, adopt := range []bool{false, true} {
		files := maps.Clone(logins)
		if adopt {
			files["web/hooks/a.star"] = strings.Replace(files["web/hooks/a.star"], `owns("v1", "Secret")]`, `owns("v1", "Secret")], adopt = True`, 1)
		}
		synctest.Test(t, func(t *testing.T) {
			f := newFixture(t, files, renewsSeldom)
			f.make("a", "site", map[string]any{"secrets": "a1 gone"})
			older, newer, early, gone, a1 := secretAt("kube-system", "older"), secretAt("kube-system", "newer"), secretAt("sites", "early"), secretAt("sites", "gone"), secretAt("sites", "a1")
			f.create(older, known)
			f.start()
			f.waitReady()
			f.siteRuns()
			f.same("an object that is older than Starling", older, func() { f.forge(a1, older, nil); f.patch("a", `{"data": {"text": "1"}}`) })
			f.create(newer, known)
			f.same("an object of another namespace", newer, func() { f.forge(a1, newer, nil); f.patch("a", `{"data": {"text": "2"}}`) })
			f.create(early, known)
			f.forge(a1, early, known)
			f.same("a Secret that is made early", early, func() { f.patch("a", `{"data": {"secrets": "a1 gone early"}}`) })

			former, err := f.store.Get(gone)
			if err != nil {
				t.Fatal(err)
			}
			f.patch("a", `{"data": {"secrets": "a1"}}`)
			time.Sleep(11 * time.Minute)
			if f.is(gone) {
				t.Error("what is not wanted any more is still there")
			}
			f.create(gone, known)
			f.same("the marks of a child that has gone", gone, func() { f.forgeOf(former, gone, nil); f.patch("a", `{"data": {"text": "3"}}`) })
			f.same("the end of the parent", newer, func() {
				if _, err := f.store.Delete(siteConfigMap("a"), store.DeleteOptions{}); err != nil {
					t.Fatal(err)
				}
			})
			if f.is(siteConfigMap("a")) || f.is(a1) {
				t.Errorf("the parent is there: %t, its child: %t", f.is(siteConfigMap("a")), f.is(a1))
			}
			f.stop()
			<-f.ended
		})
	}
}

// unsign makes an object as an earlier version has left it.
func (f *fixture) unsign(target store.Target, signature string) {
	f.Helper()
	obj, err := f.store.Get(target)
	if err != nil {
		f.Fatal(err)
	}
	meta := obj["metadata"].(map[string]any)
	annotations := maps.Clone(meta["annotations"].(map[string]any))
	if annotations[signature] == nil {
		f.Errorf("%s carries no signature", target.Name)
	}
	delete(annotations, signature)
	own := map[string]any{"apiVersion": "v1", "kind": obj["kind"], "data": obj["data"], "metadata": map[string]any{
		"namespace": target.Namespace, "name": target.Name, "labels": meta["labels"], "annotations": annotations,
	}}
	if owners, has := meta["ownerReferences"]; has {
		own["metadata"].(map[string]any)["ownerReferences"] = owners
	}
	f.applyAs(managerOf(obj), target, own)
}

func (f *fixture) signature(target store.Target) string {
	obj, err := f.store.Get(target)
	if err != nil {
		f.Error(err)
		return ""
	}
	annotations, _ := obj["metadata"].(map[string]any)["annotations"].(map[string]any)
	text, _ := annotations["starling.dev/child-signature"].(string)
	return text
}

// Children that an earlier version has made, and those of a key that is lost, are signed once: none is lost, made anew or
// left behind.
func TestChildrenThatAreNotSigned(t *testing.T) {
	for _, lost := range []bool{false, true} {
		synctest.Test(t, func(t *testing.T) {
			f := newFixture(t, logins)
			f.make("a", "site", map[string]any{"secrets": "a1 a2"})
			f.make("never", "site", map[string]any{"secrets": "n1", "update": "never"})
			f.make("goes", "site", map[string]any{"secrets": "g1", "namespace": "other"})
			f.start()
			f.waitReady()
			f.siteRuns()
			f.stop()
			<-f.ended
			a1, a2, n1, g1 := secretAt("sites", "a1"), secretAt("sites", "a2"), secretAt("sites", "n1"), secretAt("other", "g1")
			if !lost {
				for _, s := range []store.Target{a1, a2, n1, g1} {
					f.unsign(s, "starling.dev/child-signature")
				}
			}
			if _, err := f.store.Delete(secretAt("ops", "starling-marks"), store.DeleteOptions{}); err != nil {
				t.Fatal(err)
			}
			before := map[store.Target]string{a1: f.signature(a1), n1: f.signature(n1)}
			f.patch("a", `{"data": {"secrets": "a1"}}`)
			if _, err := f.store.Delete(siteConfigMap("goes"), store.DeleteOptions{}); err != nil {
				t.Fatal(err)
			}
			f.driver = f.newDriver(logins)
			for _, s := range []store.Target{a1, n1} {
				change := func() {}
				if s == a1 {
					change = func() { f.start(); f.waitReady() }
				}
				f.same("an upgrade", s, change)
				if f.signature(s) == before[s] {
					t.Errorf("%s is not signed: %q", s.Name, before[s])
				}
			}
			if f.is(a2) || f.is(g1) || f.is(siteConfigMap("goes")) {
				t.Errorf("what is not wanted is there: %t, what goes with its parent: %t, the parent: %t", f.is(a2), f.is(g1), f.is(siteConfigMap("goes")))
			}
			f.stop()
			<-f.ended
			f.patchTarget(secretAt("ops", "starling-marks"), `{"metadata": {"annotations": {"starling.dev/unsigned-until": null}}}`) // the time is over
			f.driver = f.newDriver(logins)
			f.start()
			f.waitReady()
			f.patch("a", `{"data": {"secrets": ""}}`)
			f.patch("never", `{"data": {"secrets": ""}}`)
			time.Sleep(time.Minute)
			if f.is(a1) || f.is(n1) {
				t.Errorf("after the day they are still children: %t, %t", !f.is(a1), !f.is(n1))
			}
			f.stop()
			<-f.ended
		})
	}
}

// Marks of sets and of made objects are believed as little.
func TestForgedMarksOfSets(t *testing.T) {
	config := func(namespace, name string) store.Target {
		return store.Target{GVR: schema.GroupVersionResource{Version: "v1", Resource: "configmaps"}, Namespace: namespace, Name: name}
	}
	files := map[string]string{
		"web/module.star": `module(enabled = True, grants = [
    grant("v1", "ConfigMap", ["write"], namespaces = ["apps"]),
    grant("v1", "ConfigMap", ["write"], namespaces = ["made"], owned = True),
])
`,
		"web/hooks/a.star": `
def sites(ctx):
    names = [o.metadata.name for o in ctx.snapshots["sites"]]
    k8s.apply_set("s", [{"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "of-" + n, "namespace": "apps"}, "data": {"n": n}} for n in names])
    k8s.apply({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "ours", "namespace": "made"}, "data": {"n": str(len(names))}})

def drop(ctx):
    for o in ctx.snapshots["drops"]:
        k8s.delete("v1", "ConfigMap", o.metadata.name, namespace = "made")

hook(sites, on = [k8s.watch("v1", "ConfigMap", name = "sites", labels = "site")])
hook(drop, on = [k8s.watch("v1", "ConfigMap", name = "drops", labels = "drop")], allow_failure = True)
`,
	}
	synctest.Test(t, func(t *testing.T) {
		f := newFixture(t, files)
		f.make("a", "site", nil)
		data := map[string]any{"n": "theirs"}
		victim, early, made := config("apps", "victim"), config("apps", "of-b"), config("made", "theirs")
		for _, v := range []store.Target{victim, early, made} {
			f.applyAs("kubectl", v, map[string]any{"apiVersion": "v1", "kind": "ConfigMap", "metadata": map[string]any{"namespace": v.Namespace, "name": v.Name}, "data": data})
		}
		f.start()
		f.waitReady()
		f.siteRuns()
		for _, v := range []store.Target{victim, early} {
			f.forge(config("apps", "of-a"), v, nil)
		}
		f.forge(config("made", "ours"), made, nil)
		f.make("theirs", "drop", nil)
		theirs := func(what string) {
			t.Helper()
			time.Sleep(2 * time.Minute)
			for _, v := range []store.Target{victim, early, made} {
				obj, err := f.store.Get(v)
				if err != nil {
					t.Errorf("%s: %v", what, err)
				} else if got, _ := obj["data"].(map[string]any); got["n"] != "theirs" {
					t.Errorf("%s: %s is %v", what, v.Name, got)
				}
			}
		}
		theirs("forged marks")
		f.stop()
		<-f.ended
		f.driver = f.newDriver(files) // it looks for members of earlier processes
		f.start()
		f.waitReady()
		f.make("b", "site", nil)
		theirs("the next process")
		if _, err := f.store.Delete(siteConfigMap("a"), store.DeleteOptions{}); err != nil {
			t.Fatal(err)
		}
		if _, err := f.store.Delete(siteConfigMap("b"), store.DeleteOptions{}); err != nil {
			t.Fatal(err)
		}
		theirs("an empty set")
		if f.is(config("apps", "of-a")) {
			t.Error("a member that is listed no more is there")
		}
		f.make("ours", "drop", nil)
		time.Sleep(2 * time.Minute)
		if _, err := f.store.Get(config("made", "ours")); err == nil {
			obj, _ := f.store.Get(config("made", "ours"))
			t.Logf("%v", obj["metadata"])
			t.Error("what the hook has made is not deleted")
		}
		f.stop()
		<-f.ended
	})
}
