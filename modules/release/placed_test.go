package release

import (
	"io"
	"net/http"
	"path"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/starling-operator/starling/builtins"
	"github.com/starling-operator/starling/modules/chart"
)

const rbacVersion = "rbac.authorization.k8s.io/v1"

var clusterRoles = schema.GroupVersionResource{Group: "rbac.authorization.k8s.io", Version: "v1", Resource: "clusterroles"}

// role is a ClusterRole to which the chart gives a namespace, as many do: the API server knows none.
func role(namespace string) string {
	return "apiVersion: " + rbacVersion + "\nkind: ClusterRole\nmetadata: {name: r, namespace: \"" + namespace + "\"}\nrules: []\n"
}

func roleTarget(module string, templates ...string) Target {
	return Target{Input: chart.Input{Module: module, Name: module, Namespace: "apps", Chart: chartOf(module, templates...),
		Installs: []builtins.Grant{{APIVersion: rbacVersion, Kind: "ClusterRole", Namespaces: []string{"*"}}}}}
}

// uncreated answers the creation of objects of one kind with 403.
type uncreated struct {
	next http.RoundTripper
	path string
}

func (r *uncreated) RoundTrip(req *http.Request) (*http.Response, error) {
	if req.Method == http.MethodPatch && strings.HasSuffix(path.Dir(req.URL.Path), r.path) {
		return refusal(req, "no"), nil
	}
	return r.next.RoundTrip(req)
}

// An object in no namespace is one object, whatever namespaces the revisions of a chart give it: what failed
// revisions have left takes nothing from the one that is deployed.
func TestANamespaceOfAnObjectThatHasNone(t *testing.T) {
	for _, namespaces := range [][3]string{{"a", "a", ""}, {"", "a", ""}, {"a", "b", "c"}, {"apps", "a", "apps"}} {
		t.Run(strings.Join(namespaces[:], ","), func(t *testing.T) {
			w, f := newSimulatedDrift(t)
			web := roleTarget("web", role(namespaces[0]))
			if _, err := w.Reconcile(t.Context(), web); err != nil {
				t.Fatal(err)
			}
			uid, server := w.uid(clusterRoles, "", "r"), f.server
			f.server = &uncreated{server, "/configmaps"}
			web = roleTarget("web", role(namespaces[1])+"---\napiVersion: v1\nkind: ConfigMap\nmetadata: {name: bad}\n")
			if _, err := w.Reconcile(t.Context(), web); err == nil {
				t.Fatal("the revision has not failed")
			}
			f.server = server
			web = roleTarget("web", role(namespaces[2]))
			if _, err := w.Reconcile(t.Context(), web); err != nil {
				t.Fatal(err)
			}
			if !w.there(clusterRoles, "", "r") || w.uid(clusterRoles, "", "r") != uid {
				t.Error("the upgrade has deleted an object that it holds")
			}
		})
	}
	t.Run("adopt", func(t *testing.T) {
		w, _ := newSimulatedDrift(t)
		old, renamed := roleTarget("old", role("a")), roleTarget("renamed", role("b"))
		if _, err := w.Reconcile(t.Context(), old); err != nil {
			t.Fatal(err)
		}
		uid := w.uid(clusterRoles, "", "r")
		renamed.Adopt = true
		if _, err := w.Reconcile(t.Context(), renamed); err == nil || !strings.Contains(err.Error(), "it is of release old") {
			t.Fatal(err)
		}
		if done, err := w.Uninstall(t.Context(), old.Ref(), 0); !done || err != nil {
			t.Fatal(done, err)
		}
		if !w.there(clusterRoles, "", "r") || w.uid(clusterRoles, "", "r") != uid {
			t.Error("the uninstall has deleted an object for which another module waits")
		}
	})
}

// An object for which a module has waited goes with its release once nobody waits any more: the module takes nothing
// over now, or is not tried any more, or another term has begun.
func TestAWaitForAnObjectEnds(t *testing.T) {
	for name, end := range map[string]func(w *driftWorld, waits Target){
		"adopt is taken out": func(w *driftWorld, waits Target) {
			waits.Adopt = false
			if _, err := w.Reconcile(w.t.Context(), waits); err == nil {
				w.t.Error("it is taken over")
			}
		},
		"the chart lacks it": func(w *driftWorld, waits Target) {
			waits.Chart = chartOf("waits", "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: b}\n")
			if _, err := w.Reconcile(w.t.Context(), waits); err != nil {
				w.t.Error(err)
			}
		},
		"it is switched off": func(*driftWorld, Target) { time.Sleep(waitsFor + time.Second) },
		"another term": func(w *driftWorld, _ Target) {
			if err := w.Fence(w.t.Context()); err != nil {
				w.t.Fatal(err)
			}
			w.Begin()
		},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				w, _ := newSimulatedDrift(t)
				cm := "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: a}\n"
				has := Target{Input: chart.Input{Module: "has", Name: "has", Namespace: "apps", Chart: chartOf("has", cm)}}
				if _, err := w.Reconcile(t.Context(), has); err != nil {
					t.Fatal(err)
				}
				waits := Target{Input: chart.Input{Module: "waits", Name: "waits", Namespace: "apps", Chart: chartOf("waits", cm)}, Adopt: true}
				if _, err := w.Reconcile(t.Context(), waits); err == nil {
					t.Fatal("it is taken over")
				}
				end(w, waits)
				if done, err := w.Uninstall(t.Context(), has.Ref(), 0); !done || err != nil {
					t.Fatal(done, err)
				}
				if w.there(configMaps, "apps", "a") {
					t.Error("it is left to nobody")
				}
			})
		})
	}
}

// refusal is the answer 403 of an API server.
func refusal(req *http.Request, why string) *http.Response {
	body := `{"kind": "Status", "apiVersion": "v1", "status": "Failure", "reason": "Forbidden", "code": 403, "message": "` + why + `"}`
	return &http.Response{StatusCode: http.StatusForbidden, Header: http.Header{"Content-Type": {"application/json"}}, Body: io.NopCloser(strings.NewReader(body)), Request: req}
}
