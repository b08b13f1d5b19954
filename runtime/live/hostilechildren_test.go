package live

import (
	"encoding/json"
	"fmt"
	"maps"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/starling-operator/starling/runtime/sim/store"
)

// logins has a controller of ConfigMaps with the label site: each has the Secrets that it lists.
var logins = map[string]string{
	"web/module.star": "module(enabled = True)\n",
	"web/hooks/a.star": `
def login(ctx, o):
    def secret(name):
        meta = {"name": name, "namespace": o.get("data.namespace") or "sites"}
        return part({"apiVersion": "v1", "kind": "Secret", "metadata": meta, "data": {"text": base64.encode(o.get("data.text") or "x")}},
            fill = {"data.password": generate.password()}, update = o.get("data.update") or "apply")
    return [secret(name) for name in (o.get("data.secrets") or "").split()]

controller("login", k8s.watch("v1", "ConfigMap", name = "logins", labels = "site"), login, owns = [owns("v1", "Secret")])
`,
}

func secretAt(namespace, name string) store.Target {
	return store.Target{GVR: schema.GroupVersionResource{Version: "v1", Resource: "secrets"}, Namespace: namespace, Name: name}
}

// secret is what a Secret is now: its uid, its password and another value.
func (f *fixture) secret(target store.Target) (uid, password, text string) {
	f.Helper()
	obj, err := f.store.Get(target)
	if err != nil {
		f.Errorf("%s: %v", target.Name, err)
		return "", "", ""
	}
	meta, _ := obj["metadata"].(map[string]any)
	data, _ := obj["data"].(map[string]any)
	uid, _ = meta["uid"].(string)
	password, _ = data["password"].(string)
	text, _ = data["text"].(string)
	return uid, password, text
}

// same makes sure that a Secret is the one that it was, with the password that it had.
func (f *fixture) same(what string, target store.Target, change func()) {
	f.Helper()
	uid, password, text := f.secret(target)
	change()
	time.Sleep(2 * time.Minute)
	if u, p, x := f.secret(target); u != uid || p != password || x != text || password == "" {
		f.Errorf("%s: the same object: %t, the same password: %t, the same text: %t", what, u == uid, p == password, x == text)
	}
}

// Marks that people take off, change or copy have nothing deleted, and no value made anew.
func TestMarksOfChildrenAreChangedByOthers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFixture(t, logins, renewsSeldom)
		f.make("a", "site", map[string]any{"secrets": "a1"})
		f.make("b", "site", map[string]any{"secrets": "b1"})
		f.make("never", "site", map[string]any{"secrets": "n1", "update": "never"})
		f.start()
		f.waitReady()
		f.siteRuns()
		a1, b1, n1 := secretAt("sites", "a1"), secretAt("sites", "b1"), secretAt("sites", "n1")

		f.same("the label is taken off", a1, func() { f.patchTarget(a1, `{"metadata": {"labels": {"starling.dev/controller": null}}}`) })
		f.same("the label says something else", a1, func() { f.patchTarget(a1, `{"metadata": {"labels": {"starling.dev/controller": "x"}}}`) })
		f.patch("never", `{"data": {"text": "other"}}`)
		f.same("update=never", n1, func() { f.patchTarget(n1, `{"metadata": {"labels": {"starling.dev/controller": null}}}`) })

		o, err := f.store.Get(b1)
		if err != nil {
			t.Fatal(err)
		}
		of := o["metadata"].(map[string]any)["annotations"].(map[string]any)["starling.dev/parent-uid"]
		f.same("the uid of another parent", a1, func() {
			f.patchTarget(a1, fmt.Sprintf(`{"metadata": {"annotations": {"starling.dev/parent-uid": %q, "starling.dev/parent": "sites/b"}}}`, of))
		})

		// As backups do that are restored into another namespace: managedFields are copied, too.
		clone := maps.Clone(o)
		meta := maps.Clone(o["metadata"].(map[string]any))
		for _, key := range []string{"uid", "resourceVersion", "creationTimestamp"} {
			delete(meta, key)
		}
		meta["namespace"], clone["metadata"] = "staging", meta
		if _, err := f.store.Create(secretAt("staging", ""), clone, store.WriteOptions{Manager: "velero"}); err != nil {
			t.Fatal(err)
		}
		copied := secretAt("staging", "b1")
		text, err := json.Marshal(map[string]any{"metadata": map[string]any{"managedFields": meta["managedFields"]}})
		if err != nil {
			t.Fatal(err)
		}
		f.patchTarget(copied, string(text))
		f.same("a copy", copied, func() { f.patch("b", `{"data": {"text": "new"}}`) })
		f.stop()
		<-f.ended
	})
}

// A parent stays, and nothing is deleted, while nobody knows which children there are.
func TestNothingGoesWhileChildrenAreUnknown(t *testing.T) {
	for _, status := range []int{http.StatusServiceUnavailable, http.StatusForbidden, http.StatusNotFound} {
		synctest.Test(t, func(t *testing.T) {
			f := newFixture(t, logins, renewsSeldom)
			f.make("a", "site", map[string]any{"secrets": "a1", "namespace": "other"})
			f.start()
			f.waitReady()
			f.siteRuns()
			f.stop()
			<-f.ended
			var refused atomic.Bool
			refused.Store(true)
			f.answered = func(r *http.Request, resp *http.Response) {
				if refused.Load() && r.Method == http.MethodGet && r.URL.Path == "/api/v1/secrets" {
					resp.StatusCode, resp.Body = status, http.NoBody
				}
			}
			f.driver = f.newDriver(logins)
			f.start()
			time.Sleep(time.Minute)
			if _, err := f.store.Delete(siteConfigMap("a"), store.DeleteOptions{}); err != nil {
				t.Fatal(err)
			}
			time.Sleep(10 * time.Minute)
			if child := secretAt("other", "a1"); !f.is(siteConfigMap("a")) || !f.is(child) {
				t.Errorf("%d: the parent is there: %t, its child: %t", status, f.is(siteConfigMap("a")), f.is(child))
			}
			refused.Store(false)
			time.Sleep(10 * time.Minute)
			if child := secretAt("other", "a1"); f.is(siteConfigMap("a")) || f.is(child) {
				t.Errorf("%d: then the parent is there: %t, its child: %t", status, f.is(siteConfigMap("a")), f.is(child))
			}
			f.stop()
			<-f.ended
		})
	}
}

// A parent that is made again under its name, while a child of the one before cannot go, leaves that
// one alone, and has a child once it is gone.
func TestAParentIsMadeAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFixture(t, logins, renewsSeldom)
		f.make("a", "site", map[string]any{"secrets": "a1"})
		f.start()
		f.waitReady()
		f.siteRuns()
		a1 := secretAt("sites", "a1")
		f.same("a finalizer of somebody else", a1, func() {
			f.patchTarget(a1, `{"metadata": {"finalizers": ["example.org/hold"]}}`)
			if _, err := f.store.Delete(siteConfigMap("a"), store.DeleteOptions{}); err != nil {
				t.Fatal(err)
			}
			time.Sleep(time.Minute)
			if !f.is(siteConfigMap("a")) {
				t.Error("the parent went before its child")
			}
			f.patch("a", `{"metadata": {"finalizers": null}}`)
			f.make("a", "site", map[string]any{"secrets": "a1", "text": "new"})
		})
		old, _, _ := f.secret(a1)
		f.patchTarget(a1, `{"metadata": {"finalizers": null}}`)
		time.Sleep(15 * time.Minute)
		if uid, _, text := f.secret(a1); uid == old || text == "" {
			t.Error("the parent has no child")
		}
		f.stop()
		<-f.ended
	})
}

// Under another name a controller leaves the children of before alone, and its parents go.
func TestAControllerIsRenamed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFixture(t, logins, renewsSeldom)
		f.make("a", "site", map[string]any{"secrets": "a1"})
		f.start()
		f.waitReady()
		f.siteRuns()
		renamed := maps.Clone(logins)
		renamed["web/hooks/a.star"] = strings.Replace(logins["web/hooks/a.star"], `controller("login"`, `controller("other"`, 1)
		f.same("renamed", secretAt("sites", "a1"), func() {
			f.stop()
			<-f.ended
			f.driver = f.newDriver(renamed)
			f.start()
			f.waitReady()
			f.patch("a", `{"data": {"text": "new"}}`)
		})
		if _, err := f.store.Delete(siteConfigMap("a"), store.DeleteOptions{}); err != nil {
			t.Fatal(err)
		}
		time.Sleep(15 * time.Minute)
		if f.is(siteConfigMap("a")) {
			t.Error("the parent cannot go")
		}
		f.stop()
		<-f.ended
	})
}
