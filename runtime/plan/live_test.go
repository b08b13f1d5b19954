package plan

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/rs/zerolog"
	clientrest "k8s.io/client-go/rest"

	"github.com/starling-operator/starling/runtime/cluster"
	"github.com/starling-operator/starling/runtime/sim"
	"github.com/starling-operator/starling/runtime/sim/rest"
	"github.com/starling-operator/starling/runtime/sim/store"
)

// apiServer is an API server on a socket that counts what it is asked.
type apiServer struct {
	store *store.Store
	url   string
	mu    sync.Mutex
	asked map[string]int // "GET /api/v1/pods"
	// meddle answers instead of the store; false: it does not.
	meddle func(w http.ResponseWriter, r *http.Request) bool
}

func newAPIServer(t *testing.T, objects ...map[string]any) *apiServer {
	t.Helper()
	w, err := sim.New(sim.Options{Generation: load(t, map[string]string{"a/module.star": "module()\n"}), Builtins: shared()})
	if err != nil {
		t.Fatal(err)
	}
	for _, obj := range append(objects, thing("Namespace", "", "starling-system", nil)) {
		if err := w.Apply(obj); err != nil {
			t.Fatal(err)
		}
	}
	return serve(t, w)
}

// serve shows a world to plans as a cluster.
func serve(t *testing.T, w *sim.World) *apiServer {
	t.Helper()
	a := &apiServer{store: w.Store(), asked: map[string]int{}}
	answers := rest.New(rest.Options{Store: a.store})
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		a.mu.Lock()
		a.asked[r.Method+" "+r.URL.Path]++
		meddle := a.meddle
		a.mu.Unlock()
		if meddle == nil || !meddle(w, r) {
			answers.ServeHTTP(w, r)
		}
	}))
	t.Cleanup(server.Close)
	a.url = server.URL
	return a
}

// plan makes a plan as `starling plan` does.
func (a *apiServer) plan(t *testing.T, files map[string]string) (*Plan, string, error) {
	t.Helper()
	client, err := cluster.New(cluster.Options{Config: &clientrest.Config{Host: a.url}, Log: zerolog.Nop()})
	if err != nil {
		t.Fatal(err)
	}
	defer client.Close()
	ctx, cancel := context.WithTimeout(t.Context(), 5*time.Minute)
	defer cancel()
	base, err := sim.New(sim.Options{Generation: load(t, files), Builtins: shared(), Origin: sim.Live(ctx, client)})
	if err != nil {
		return nil, "", err
	}
	w, err := base.Fork()
	if err != nil {
		return nil, "", err
	}
	p, err := Make(ctx, w)
	if err != nil {
		return nil, "", err
	}
	var b bytes.Buffer
	if err := p.Print(&b, PrintOptions{}); err != nil {
		t.Fatal(err)
	}
	return p, b.String(), nil
}

func refuse(w http.ResponseWriter, code int, reason, message string) bool {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(code)
	fmt.Fprintf(w, `{"kind":"Status","apiVersion":"v1","status":"Failure","message":%q,"reason":%q,"code":%d}`, message, reason, code)
	return true
}

// Whatever modules do, the cluster is only read.
func TestAPlanOnlyReads(t *testing.T) {
	a := newAPIServer(t, thing("Node", "", "a", nil), thing("ConfigMap", "web", "victim", nil), thing("Pod", "web", "p", nil))
	files := web(map[string]string{
		"web/module.star": `module(enabled = True, namespace = "fresh", wait = True, installs = [grant("example.com/v1", "Thing")], lookup = [grant("v1", "Node")], http = ["chat.example.com"], grants = [
    grant("v1", "ConfigMap", verbs = ["*"], namespaces = ["*"]), grant("v1", "Pod", verbs = ["*"], namespaces = ["*"]),
    grant("v1", "Event", verbs = ["*"], namespaces = ["*"]), grant("v1", "Node", verbs = ["*", "finalize"]), grant("v1", "Pod", verbs = ["*"], namespaces = ["*"])])
`,
		"web/hooks/b.star": `
def f(ctx):
    k8s.apply({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "x", "namespace": "web"}, "data": {"a": "b"}})
    k8s.delete("v1", "ConfigMap", "victim", "web")
    k8s.patch("v1", "Node", "a", merge = {"metadata": {"labels": {"seen": "yes"}}})
    k8s.status("v1", "Node", "a", status = {"phase": "Running"})
    k8s.event("v1", "Node", "a", reason = "Seen", message = "hello")
    k8s.evict("v1", "Pod", "p", "web")
    k8s.apply_set("these", [{"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "y", "namespace": "web"}}])
    http.send("POST", "https://chat.example.com/hook", json = {})
    ctx.state.set("seen", True)

hook(f, on = [startup()])

def each(ctx):
    pass

def gone(ctx):
    pass

hook(each, name = "each", for_each = "nodes", cleanup = gone, on = [k8s.watch("v1", "Node", name = "nodes")])

def look(req):
    return None

hook(look, name = "look", on = [k8s.validate("v1", "ConfigMap", failure_policy = "Ignore")])
`,
		"web/crds/things.yaml": `apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: things.example.com}
spec:
  group: example.com
  scope: Namespaced
  names: {plural: things, singular: thing, kind: Thing}
  versions: [{name: v1, served: true, storage: true, schema: {openAPIV3Schema: {type: object, x-kubernetes-preserve-unknown-fields: true}}}]
`,
		"web/templates/more.yaml": `apiVersion: example.com/v1
kind: Thing
metadata: {name: a}
spec: {nodes: {{ len (lookup "v1" "Node" "" "").items }}}
---
apiVersion: batch/v1
kind: Job
metadata: {name: before, annotations: {"helm.sh/hook": "pre-install,pre-upgrade", "helm.sh/hook-delete-policy": "before-hook-creation,hook-succeeded"}}
spec: {template: {spec: {restartPolicy: Never, containers: [{name: a, image: "a:1"}]}}}
---
apiVersion: apps/v1
kind: Deployment
metadata: {name: web}
spec:
  selector: {matchLabels: {app: web}}
  template: {metadata: {labels: {app: web}}, spec: {containers: [{name: web, image: "web:1"}]}}
`,
	})
	before := a.store.Version()
	p, text, err := a.plan(t, files)
	if err != nil || p.Failed() {
		t.Fatalf("%v\n%s", err, text)
	}
	for _, want := range []string{
		"+ v1 ConfigMap web/x ", "- v1 ConfigMap web/victim ", "- v1 Pod web/p ", `metadata.labels.seen: "yes"`, "+ v1 ConfigMap web/y ", "+ example.com/v1 Thing fresh/a ",
		"+ POST https://chat.example.com/hook", "install release web in fresh",
	} {
		if !strings.Contains(text, want) {
			t.Errorf("%q is not in\n%s", want, text)
		}
	}
	for what := range a.asked {
		if !strings.HasPrefix(what, "GET ") {
			t.Errorf("it has sent %s", what)
		}
	}
	if a.store.Version() != before {
		t.Error("the cluster has changed")
	}
}

const twoWatches = `
def things(ctx):
    pass

hook(things, on = [k8s.watch("example.com/v1", "Thing", name = "things")])

def pods(ctx):
    values.set("internal.pods", len(ctx.snapshots["pods"]))

hook(pods, on = [k8s.watch("v1", "Pod", name = "pods")])
`

// A request that the API server refuses is named, and made once; the others go on.
func TestRefusals(t *testing.T) {
	files := web(map[string]string{
		"other/module.star":  "module(enabled = True)\n",
		"other/hooks/a.star": twoWatches,
	})
	for _, tt := range []struct {
		name, path string
		code       int
		reason     string
		want       []string
	}{
		{"a kind", "/api/v1/pods", 403, "Forbidden", []string{"module other fails: hook hooks/a.star:pods: watch pods: cannot list Pod: pods is forbidden", "+ v1 ConfigMap web/nodes"}},
		{"a kind, by a fault", "/api/v1/pods", 500, "InternalError", []string{"module other fails: hook hooks/a.star:pods: ", "+ v1 ConfigMap web/nodes"}},
		{"the user's config", "/api/v1/namespaces/starling-system/configmaps/starling", 403, "Forbidden", []string{"! ConfigMap starling-system/starling cannot be read: "}},
		{"a custom resource definition", "/apis/apiextensions.k8s.io/v1/customresourcedefinitions/things.example.com", 403, "Forbidden", []string{"+ v1 ConfigMap web/nodes"}},
		{"namespaces", "/api/v1/namespaces/web", 403, "Forbidden", nil},
	} {
		t.Run(tt.name, func(t *testing.T) {
			a := newAPIServer(t, thing("Node", "", "a", nil))
			a.store.Serve(store.Kind{Group: "example.com", Version: "v1", Kind: "Thing", Plural: "things", Namespaced: true})
			a.meddle = func(w http.ResponseWriter, r *http.Request) bool {
				return r.URL.Path == tt.path && refuse(w, tt.code, tt.reason, "pods is forbidden")
			}
			p, text, err := a.plan(t, files)
			if err != nil {
				t.Fatal(err)
			}
			for _, want := range tt.want {
				if !strings.Contains(text, want) {
					t.Errorf("%q is not in\n%s", want, text)
				}
			}
			if named := len(tt.want) > 1 || strings.Contains(tt.name, "config"); named && tt.name != "a custom resource definition" && !p.Failed() {
				t.Errorf("it is not said that something fails:\n%s", text)
			}
			if n := a.asked["GET "+tt.path]; n != 1 {
				t.Errorf("asked %d times", n)
			}
		})
	}
}

// A ServiceAccount may lose a namespace, or the Role there: the plan tells of the other
// modules, and says what it could not read.
func TestARoleThatIsGone(t *testing.T) {
	other := func(color string) map[string]string {
		files := web(nil)
		for name, text := range files {
			files[strings.Replace(name, "web/", "other/", 1)] = strings.ReplaceAll(text, `namespace = "web"`, `namespace = "other"`)
		}
		files["other/Chart.yaml"] = "apiVersion: v2\nname: other\nversion: 1.0.0\n"
		files["other/values.yaml"] = "color: " + color + "\n"
		return files
	}
	for _, tt := range []struct {
		name   string
		module string // its module.star; "": the module is gone
		refuse string
		want   []string
	}{
		{"its releases", webModule, "GET /api/v1/namespaces/web/secrets", []string{"! module web fails: "}},
		{"all of the namespace", webModule, "GET /api/v1/namespaces/web", []string{"! module web fails: "}},
		{"its releases, and the module", "", "GET /api/v1/namespaces/web/secrets", []string{"! module web fails: "}},
		{"its releases, and the module waits", webModule + "def enabled():\n    return waiting('a while')\n", "GET /api/v1/namespaces/web/secrets", []string{"! release web in namespace web cannot be read: "}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			files := other("green")
			a := serve(t, running(t, other("red"), thing("Node", "", "a", nil)))
			files["web/module.star"] = tt.module
			if tt.module == "" {
				for name := range files {
					if strings.HasPrefix(name, "web/") {
						delete(files, name)
					}
				}
			}
			a.meddle = func(w http.ResponseWriter, r *http.Request) bool {
				return strings.HasPrefix(r.Method+" "+r.URL.Path, tt.refuse) && refuse(w, 403, "Forbidden", `secrets is forbidden: User "reader" cannot list resource "secrets" in API group "" in the namespace "web"`)
			}
			p, text, err := a.plan(t, files)
			if err != nil {
				t.Fatal(err)
			}
			if !p.Failed() {
				t.Error("it is not said that the plan is not the whole one")
			}
			for _, want := range append(tt.want, `secrets is forbidden: User "reader"`, "~ module other: upgrade release other in other", `~ values.color: "red" -> "green"`, "~ v1 ConfigMap other/nodes") {
				if !strings.Contains(text, want) {
					t.Errorf("%q is not in\n%s", want, text)
				}
			}
		})
	}
}

// A kind of an aggregated API whose server is down is not one that is not served.
func TestAnAggregatedAPIThatIsDown(t *testing.T) {
	a := newAPIServer(t, thing("Node", "", "a", nil))
	a.store.Serve(store.Kind{Group: "metrics.example.com", Version: "v1", Kind: "Sample", Plural: "samples", Namespaced: true})
	a.meddle = func(w http.ResponseWriter, r *http.Request) bool {
		switch r.URL.Path {
		case "/api", "/apis": // as an API server from before aggregated discovery
			r.Header.Set("Accept", "application/json")
		case "/apis/metrics.example.com/v1":
			return refuse(w, 503, "ServiceUnavailable", "the server is currently unable to handle the request")
		}
		return false
	}
	p, text, err := a.plan(t, web(map[string]string{
		"web/hooks/b.star": `
def f(ctx):
    pass

hook(f, on = [k8s.watch("metrics.example.com/v1", "Sample", name = "samples")])
`,
		"other/module.star":  "module(enabled = True)\n",
		"other/hooks/a.star": twoWatches,
	}))
	if err != nil || !p.Failed() || !strings.Contains(text, "metrics.example.com/v1") || strings.Contains(text, "install release web") {
		t.Errorf("%v\n%s", err, text)
	}
}

// An API server that goes away, or answers nobody any more, ends the plan at once.
func TestTheAPIServerGoesAway(t *testing.T) {
	for _, tt := range []struct {
		name string
		at   string
		how  func(w http.ResponseWriter, r *http.Request) bool
	}{
		{"in the middle", "/api/v1/nodes", func(http.ResponseWriter, *http.Request) bool { panic(http.ErrAbortHandler) }},
		{"at the user's config", "/api/v1/namespaces/starling-system/configmaps/starling", func(w http.ResponseWriter, _ *http.Request) bool {
			return refuse(w, 401, "Unauthorized", "Unauthorized")
		}},
		{"credentials run out", "/api/v1/nodes", func(w http.ResponseWriter, _ *http.Request) bool {
			return refuse(w, 401, "Unauthorized", "Unauthorized")
		}},
		{"nonsense", "/api/v1/nodes", func(w http.ResponseWriter, _ *http.Request) bool { _, _ = w.Write([]byte("<html>")); return true }},
	} {
		t.Run(tt.name, func(t *testing.T) {
			a := newAPIServer(t, thing("Node", "", "a", nil))
			gone := false
			a.meddle = func(w http.ResponseWriter, r *http.Request) bool {
				a.mu.Lock()
				gone = gone || r.URL.Path == tt.at
				now := gone
				a.mu.Unlock()
				return now && tt.how(w, r)
			}
			_, text, err := a.plan(t, web(nil))
			var lost *store.Lost
			if !errors.As(err, &lost) || strings.Contains(err.Error(), "\n") {
				t.Fatalf("%v\n%s", err, text)
			}
		})
	}
}

// Only what hooks look at is read.
func TestAPlanReadsWhatHooksLookAt(t *testing.T) {
	a := newAPIServer(t, thing("Node", "", "a", nil), thing("ConfigMap", "web", "seen", nil), thing("ConfigMap", "web", "other", nil))
	var queries []string
	a.meddle = func(_ http.ResponseWriter, r *http.Request) bool {
		if r.URL.Path == "/api/v1/configmaps" {
			a.mu.Lock()
			queries = append(queries, r.URL.Query().Get("fieldSelector"))
			a.mu.Unlock()
		}
		return false
	}
	p, text, err := a.plan(t, web(map[string]string{"web/hooks/b.star": `
def f(ctx):
    values.set("internal.seen", [o.metadata.name for o in ctx.snapshots["some"]])

hook(f, on = [k8s.watch("v1", "ConfigMap", name = "some", object_names = ["seen", "later"])])
`}))
	if err != nil || p.Failed() || !strings.Contains(text, `values.internal.seen: ["seen"]`) {
		t.Errorf("%v\n%s", err, text)
	}
	if got := strings.Join(queries, " "); got != "metadata.name=later metadata.name=seen" {
		t.Errorf("asked for %q", got)
	}
	for _, path := range []string{"pods", "namespaces", "services"} {
		if n := a.asked["GET /api/v1/"+path]; n > 0 {
			t.Errorf("asked %d times for %s", n, path)
		}
	}
}

// A plan reads releases and their objects side by side: the cluster may be far away.
func TestAPlanReadsSideBySide(t *testing.T) {
	const modules, beside = 16, 8
	files := map[string]string{}
	for i := range modules {
		name := fmt.Sprintf("app%d", i)
		files[name+"/module.star"] = `module(enabled = True, namespace = "web")` + "\n"
		files[name+"/Chart.yaml"] = "apiVersion: v2\nname: " + name + "\nversion: 1.0.0\n"
		files[name+"/templates/cm.yaml"] = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: " + name + "}\n"
	}
	a := serve(t, running(t, files))
	full := map[string]chan struct{}{} // closed when as many are under way
	under := map[string]int{}
	a.meddle = func(_ http.ResponseWriter, r *http.Request) bool {
		what := ""
		switch {
		case strings.HasPrefix(r.URL.Path, "/api/v1/namespaces/web/configmaps/"):
			what = "object"
		case strings.Contains(r.URL.Query().Get("labelSelector"), "name=app"):
			what = "release"
		default:
			return false
		}
		a.mu.Lock()
		if under[what]++; under[what]%beside == 1 {
			full[what] = make(chan struct{})
		}
		wait := full[what]
		if under[what]%beside == 0 {
			close(wait)
		}
		a.mu.Unlock()
		select {
		case <-wait:
		case <-time.After(time.Minute):
			t.Errorf("one %s is read after the other", what)
		}
		return false
	}
	p, _, err := a.plan(t, files)
	if err != nil || p.Changes() || p.Failed() {
		t.Fatalf("%+v, %v", p, err)
	}
	if under["object"] != modules || under["release"] != modules {
		t.Errorf("read are %v, want %d of each", under, modules)
	}
}
