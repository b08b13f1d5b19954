package webhook

import (
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"

	"github.com/starling-operator/starling/runtime/sim/apitest"
)

// A registration stays while its kind cannot be looked up, at a take-over as later: an error of discovery is no wish of
// the tree. Those that nobody names go meanwhile.
func TestAnErrorOfDiscoveryDeletesNothing(t *testing.T) {
	const hooks = `
def f(ctx):
    pass

hook(f, on = [
    k8s.validate("apps/v1", "Deployment", failure_policy = "fail", name = "one"),
    k8s.mutate("apps/v1", "Deployment", failure_policy = "fail", name = "two"),
])
`
	names := []string{"ns.starling.web.a.f.one", "ns.starling.web.a.f.two"}
	for name, fault := range map[string]func(*apitest.Server) func(){
		"503": denied(http.StatusServiceUnavailable), "429": denied(http.StatusTooManyRequests), "500": denied(http.StatusInternalServerError),
		"forbidden": denied(http.StatusForbidden), "the group is not served": denied(http.StatusNotFound),
		"the kind is not served": func(api *apitest.Server) func() {
			k := apitest.Kind{APIVersion: "apps/v1", Kind: "Deployment", Resource: "deployments", Namespaced: true}
			api.Unserve(k)
			return func() { api.Serve(k) }
		},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, map[string]string{"web/hooks/a.star": hooks})
			w.run()
			w.serve("web", true)
			w.eventually("registered", w.hasNames(names...))
			w.stop()

			for i := range 20 { // so one pass that takes too much is seen
				putStale(w, fmt.Sprintf("gone-%d", i), "gone")
			}
			secret := w.api.Object("v1", "Secret", "ns", "starling-webhooks")
			over := fault(w.api)
			fresh := newWorldOn(w)
			fresh.run()
			fresh.serve("web", true)
			fresh.eventually("it has looked", func() error {
				if slices.ContainsFunc(fresh.names(), func(name string) bool { return strings.HasPrefix(name, "gone") }) {
					return fmt.Errorf("what nobody names is there")
				}
				return nil
			})
			if got := fresh.names(); !slices.Equal(got, names) {
				t.Fatalf("there are %q, want %q", got, names)
			}
			if now := w.api.Object("v1", "Secret", "ns", "starling-webhooks"); fmt.Sprint(now) != fmt.Sprint(secret) {
				t.Error("the certificates have changed")
			}
			over()
			fresh.serve("web", false)
			fresh.eventually("off, they go", fresh.hasNames())
		})
	}
}

// denied has discovery of apps/v1 answered with a code until the function is called that it returns.
func denied(code int) func(*apitest.Server) func() {
	return func(api *apitest.Server) func() {
		api.Deny("discover apps/v1", code)
		return func() { api.Deny("discover apps/v1", 0) }
	}
}
