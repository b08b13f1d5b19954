package live

import (
	"fmt"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/starling-operator/starling/runtime/sim/store"
)

// Eight modules behind a slow webhook, as many as Helm works on at a time, hold up no other one: neither with their
// installs nor with repairs, upgrades and uninstalls.
func TestSlowAnswersHoldUpNoOtherModule(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		files := map[string]string{
			"web/module.star":      "module(namespace = \"shop\")\n",
			"web/Chart.yaml":       "apiVersion: v2\nname: web\nversion: 0.1.0\n",
			"web/templates/a.yaml": "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: a}\ndata: {text: ours}\n",
		}
		config := map[string]string{}
		for i := range maxReleases {
			name := fmt.Sprint("slow", i)
			files[name+"/module.star"] = "module(enabled = True, namespace = \"slow\")\n"
			files[name+"/Chart.yaml"] = "apiVersion: v2\nname: " + name + "\nversion: 0.1.0\n"
			files[name+"/values.yaml"] = "text: ours\n"
			files[name+"/templates/a.yaml"] = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: " + name + "}\ndata: {text: {{ .Values.text }}}\n"
		}
		var slow atomic.Int64
		f := newFixture(t, files, renewsSeldom, func(f *fixture) {
			f.before = func(r *http.Request) int {
				if r.Method != http.MethodGet && strings.Contains(r.URL.Path, "/namespaces/slow/configmaps") {
					slow.Add(1)
					defer slow.Add(-1)
					time.Sleep(25 * time.Second)
				}
				return 0
			}
		})
		set := func(key, value string) {
			for i := range maxReleases {
				config[fmt.Sprint("slow", i, key)] = value
			}
			f.configure(config)
		}
		heals := func(what string) {
			t.Helper()
			time.Sleep(3 * time.Second)
			if n := slow.Load(); n != maxReleases {
				t.Errorf("%s: %d requests are slow", what, n)
			}
			f.edit("a", "theirs")
			time.Sleep(time.Second)
			if got := f.text("a"); got != "ours" {
				t.Errorf("while the others are behind their webhook, %s: the object has %q", what, got)
			}
			time.Sleep(5 * time.Minute)
			if n := slow.Load(); n != 0 {
				t.Errorf("%s: %d requests are slow in the end", what, n)
			}
		}
		f.start()
		time.Sleep(3 * time.Second)
		config["webEnabled"] = "true"
		f.configure(config)
		time.Sleep(3 * time.Second)
		if got := f.text("a"); got != "ours" {
			t.Errorf("while the others are behind their webhook, installed: the object has %q", got)
		}
		time.Sleep(5 * time.Minute)

		for i := range maxReleases {
			target := store.Target{GVR: configMapOf("").GVR, Namespace: "slow", Name: fmt.Sprint("slow", i)}
			if _, err := f.store.Patch(target, types.MergePatchType, []byte(`{"data": {"text": "theirs"}}`), store.WriteOptions{Manager: "kubectl-edit"}); err != nil {
				t.Fatal(err)
			}
		}
		heals("repaired")
		set("", "text: new\n")
		heals("upgraded")
		set("Enabled", "false")
		heals("uninstalled")
	})
}
