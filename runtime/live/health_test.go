package live

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/starling-operator/starling/builtins"
	"github.com/starling-operator/starling/runtime/engine"
	"github.com/starling-operator/starling/runtime/sim/store"
)

// Each binding whose hook fails is in the condition and the message of its Module object, and one Event, however many
// requests fail. A global hook, which has no such object, has its Event about the instance.
func TestHooksThatFailAreShownInTheCluster(t *testing.T) {
	const fails = "def f(%s):\n    fail(\"broken as asked\")\n\n"
	asked := &builtins.Review{UID: "1", Operation: "CREATE", Object: map[string]any{"kind": "Pod"}, APIVersion: "v1", Kind: "Pod"}
	for name, c := range map[string]struct {
		path, text string
		ask        func(binding string) *builtins.Request
	}{
		"validate": {"web/hooks/a.star", fmt.Sprintf(fails, "ctx") + `hook(f, on = [k8s.validate("v1", "Pod", failure_policy = "fail")])`, asked.Request},
		"mutate":   {"web/hooks/a.star", fmt.Sprintf(fails, "ctx") + `hook(f, on = [k8s.mutate("v1", "Pod", failure_policy = "fail")])`, asked.Request},
		"convert": {"web/hooks/a.star", fmt.Sprintf(fails, "o") + `hook(name = "f", on = [k8s.convert("lamps.example.com", {("v1", "v2"): f, ("v2", "v1"): f})])`,
			func(binding string) *builtins.Request {
				return &builtins.Request{Binding: binding, To: "example.com/v2", Objects: []map[string]any{{"apiVersion": "example.com/v1", "kind": "Lamp", "metadata": map[string]any{"name": "a"}}}}
			}},
		"schedule":       {"web/hooks/a.star", fmt.Sprintf(fails, "ctx") + `hook(f, on = [schedule("* * * * *")])`, nil},
		"startup":        {"web/hooks/a.star", fmt.Sprintf(fails, "ctx") + `hook(f, on = [startup()], allow_failure = True)`, nil},
		"watch":          {"web/hooks/a.star", fmt.Sprintf(fails, "ctx") + `hook(f, on = [k8s.watch("v1", "ConfigMap", name = "all", gate = False)])`, nil},
		"for_each":       {"web/hooks/a.star", fmt.Sprintf(fails, "ctx") + `hook(f, on = [k8s.watch("v1", "ConfigMap", name = "all")], for_each = "all")`, nil},
		"after_helm":     {"web/hooks/a.star", fmt.Sprintf(fails, "ctx") + `hook(f, on = [after_helm()])`, nil},
		"not registered": {"web/hooks/a.star", fmt.Sprintf(fails, "ctx") + `hook(f, on = [k8s.validate("v1", "Pod", failure_policy = "fail")])`, nil},
		"a global hook":  {"global/hooks/a.star", fmt.Sprintf(fails, "ctx") + `hook(f, on = [schedule("* * * * *")])`, nil},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				files := map[string]string{"web/module.star": "module(enabled = True, grants = [grant(\"v1\", \"Pod\", verbs = [\"mutate\"]), " +
					"grant(\"apiextensions.k8s.io/v1\", \"CustomResourceDefinition\", verbs = [\"convert\"])])\n", c.path: c.text}
				if name == "after_helm" {
					files["web/Chart.yaml"] = "apiVersion: v2\nname: web\nversion: 1.0.0\n"
				}
				f := newFixture(t, files, renewsSeldom, func(f *fixture) { f.objects = true })
				f.putConfigMap(map[string]any{"apiVersion": "v1", "kind": "ConfigMap", "metadata": map[string]any{"name": "one", "namespace": "ops"}})
				f.start()
				time.Sleep(2 * time.Minute)
				synctest.Wait()
				id := strings.TrimSuffix(strings.Replace(c.path, "/hooks/", "/", 1), ".star")
				hooks := f.driver.generation.Load().Modules["web"].Hooks
				if name == "not registered" {
					f.driver.registered(hooks[0].ID, errors.New("broken as asked"))
				}
				if c.ask != nil {
					h := hooks[0]
					ask := func(n int) {
						for range n {
							if _, err := f.driver.answer(t.Context(), h.ID, c.ask(h.Bindings[0].Name)); err == nil {
								t.Error("it has not failed")
							}
						}
					}
					ask(1000)
					time.Sleep(5 * time.Second)
					ask(1)
				}
				time.Sleep(3 * time.Minute)
				synctest.Wait()
				if events := f.hookEvents(); len(events) != 1 || !strings.Contains(events[0], "broken as asked") {
					t.Errorf("Events of %s: %q", id, events)
				}
				message, healthy, ready := f.shown("web")
				if global := hooks == nil; strings.Contains(message, "broken as asked") == global || strings.Contains(ready, "broken as asked") == global || (healthy == "False") == global {
					t.Errorf("HooksHealthy is %s, %q; Ready says %q", healthy, message, ready)
				}
				f.stop()
				if err := <-f.ended; err != nil {
					t.Error(err)
				}
			})
		})
	}
}

// A hook is well again once a request succeeds. One that fails for some objects among others fails all the time, and
// other code is another hook.
func TestAHookThatAnswersAgainIsWell(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		tree := map[string]string{"web/module.star": "module(enabled = True)\n", "web/hooks/a.star": guardTree}
		f := newFixture(t, tree, renewsSeldom, func(f *fixture) { f.objects = true })
		h := f.driver.generation.Load().Modules["web"].Hooks[0]
		f.start()
		time.Sleep(time.Minute)
		synctest.Wait()
		review := func(broken bool) {
			r := &builtins.Review{UID: "1", Operation: "CREATE", Object: map[string]any{"broken": broken}, APIVersion: "v1", Kind: "Pod"}
			_, _ = f.driver.answer(t.Context(), h.ID, r.Request(h.Bindings[0].Name))
			time.Sleep(3 * time.Second)
			synctest.Wait()
		}
		expect := func(what, want string) {
			t.Helper()
			if _, healthy, _ := f.shown("web"); healthy != want {
				t.Errorf("%s: HooksHealthy is %s, want %s", what, healthy, want)
			}
		}
		expect("nobody has asked", "True")
		review(true)
		expect("it fails", "False")
		review(false)
		expect("it succeeds", "True")
		for range 20 {
			review(true)
			expect("every other request fails", "False")
			review(false)
			expect("every other request fails", "False")
		}
		time.Sleep(mendsAfter)
		synctest.Wait()
		expect("none fails any more", "True")
		review(true)
		expect("it fails", "False")
		files := maps.Clone(tree)
		files["web/hooks/a.star"] += "\n# mended\n"
		before := f.driver.generation.Load()
		next := loadTree(t, files)
		if _, err := ask(t.Context(), f.driver, func(*engine.Engine) bool { f.driver.follow(before, next); return true }); err != nil {
			t.Fatal(err)
		}
		time.Sleep(5 * time.Second)
		synctest.Wait()
		expect("the code is another one", "True")
		if events := f.hookEvents(); len(events) > 3 {
			t.Errorf("Events: %q", events)
		}
		f.stop()
		if err := <-f.ended; err != nil {
			t.Error(err)
		}
	})
}

func (f *fixture) putConfigMap(obj map[string]any) {
	f.Helper()
	if _, err := f.store.Create(store.Target{GVR: schema.GroupVersionResource{Version: "v1", Resource: "configmaps"}, Namespace: "ops"}, obj, store.WriteOptions{}); err != nil {
		f.Fatal(err)
	}
}

// hookEvents are the messages of all Events about hooks that fail.
func (f *fixture) hookEvents() (out []string) {
	f.Helper()
	list, err := f.store.List(store.Target{GVR: schema.GroupVersionResource{Version: "v1", Resource: "events"}}, store.ListOptions{})
	if err != nil {
		f.Fatal(err)
	}
	for _, e := range list.Items {
		if e["reason"] == "HookFailed" || e["reason"] == "Failed" {
			out = append(out, fmt.Sprint(e["message"]))
		}
	}
	slices.Sort(out)
	return out
}

var moduleObjects = schema.GroupVersionResource{Group: "starling.dev", Version: "v1alpha1", Resource: "modules"}

// shown is what the Module object says: message and status of HooksHealthy, and the message of Ready.
func (f *fixture) shown(module string) (message, healthy, ready string) {
	f.Helper()
	obj, err := f.store.Get(store.Target{GVR: moduleObjects, Name: module})
	if err != nil {
		f.Fatal(err)
	}
	is, _ := obj["status"].(map[string]any)
	conditions, _ := is["conditions"].([]any)
	for _, c := range conditions {
		c := c.(map[string]any)
		switch text, _ := c["message"].(string); c["type"] {
		case "HooksHealthy":
			message, healthy = text, c["status"].(string)
		case "Ready":
			ready = text
		}
	}
	return message, healthy, ready
}
