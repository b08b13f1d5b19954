//go:build e2e

package release

import (
	"context"
	"fmt"
	"net/http"
	"os"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/rs/zerolog"
	helmrelease "helm.sh/helm/v3/pkg/release"
	"helm.sh/helm/v3/pkg/storage"
	"helm.sh/helm/v3/pkg/storage/driver"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/discovery/cached/memory"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/restmapper"

	"github.com/starling-operator/starling/builtins"
	"github.com/starling-operator/starling/e2e/cluster"
	"github.com/starling-operator/starling/modules/chart"
	starling "github.com/starling-operator/starling/runtime/cluster"
)

// shared is the control plane of this test binary.
var shared *cluster.Cluster

func TestMain(m *testing.M) { os.Exit(cluster.Main(m, &shared)) }

// fixture is a Manager on a real control plane, with a separate namespace.
type fixture struct {
	*Manager
	t      testing.TB
	kube   kubernetes.Interface
	config *rest.Config
	// ns is the operator's namespace, apps the release's; apps is not made.
	ns, apps string
	writes   *atomic.Int64
	requests *atomic.Int64
}

func setup(t testing.TB) *fixture {
	t.Helper()
	f := &fixture{
		t: t, kube: shared.Client, config: rest.CopyConfig(shared.Config),
		ns: shared.Namespace(t), writes: new(atomic.Int64), requests: new(atomic.Int64),
	}
	f.config.QPS = -1
	f.apps = f.ns + "-apps"
	f.Manager = f.manager()
	t.Cleanup(func() {
		_ = f.kube.CoreV1().Namespaces().Delete(context.Background(), f.apps, metav1.DeleteOptions{})
	})
	return f
}

// manager is a fresh Manager, as after a restart.
func (f *fixture) manager() *Manager {
	f.t.Helper()
	counted := rest.CopyConfig(f.config)
	counted.Wrap(func(next http.RoundTripper) http.RoundTripper {
		return roundTripper(func(r *http.Request) (*http.Response, error) {
			f.requests.Add(1)
			if r.Method != http.MethodGet {
				f.writes.Add(1)
			}
			return next.RoundTrip(r)
		})
	})
	cached := memory.NewMemCacheClient(discovery.NewDiscoveryClientForConfigOrDie(counted))
	client, err := starling.New(starling.Options{Config: counted, QPS: -1, Log: zerolog.Nop()})
	if err != nil {
		f.t.Fatal(err)
	}
	m, err := New(Options{
		Client: client, Config: counted, Discovery: cached, Mapper: restmapper.NewDeferredDiscoveryRESTMapper(cached),
		Instance: f.ns + ".starling", Namespace: f.ns, Name: "starling",
		Log: zerolog.New(zerolog.NewTestWriter(f.t)).Level(zerolog.WarnLevel),
	})
	if err != nil {
		f.t.Fatal(err)
	}
	return m
}

// store is Helm's storage in the namespace of the releases.
func (f *fixture) store() *storage.Storage {
	return storage.Init(driver.NewSecrets(f.kube.CoreV1().Secrets(f.apps)))
}

// reconcile must succeed.
func (f *fixture) reconcile(target Target) Result {
	f.t.Helper()
	res, err := f.Reconcile(f.t.Context(), target)
	if err != nil {
		f.t.Fatalf("reconcile: %v", err)
	}
	return res
}

// refused must fail with an error that holds all of want.
func (f *fixture) refused(target Target, want ...string) {
	f.t.Helper()
	_, err := f.Reconcile(f.t.Context(), target)
	wantError(f.t, err, want...)
}

func wantError(t testing.TB, err error, want ...string) {
	t.Helper()
	if err == nil {
		t.Fatal("no error")
	}
	for _, w := range want {
		if !strings.Contains(err.Error(), w) {
			t.Errorf("error %q does not say %q", err, w)
		}
	}
}

// status is that of the newest revision, as Helm reads it.
func (f *fixture) status(name string) (int, helmrelease.Status) {
	f.t.Helper()
	rel, err := f.store().Last(name)
	if err != nil {
		f.t.Fatal(err)
	}
	return rel.Version, rel.Info.Status
}

func (f *fixture) wantStatus(name string, revision int, status helmrelease.Status) {
	f.t.Helper()
	if n, s := f.status(name); n != revision || s != status {
		f.t.Errorf("release %s: revision %d is %s, want %d %s", name, n, s, revision, status)
	}
}

// configMap is the data of a ConfigMap that a chart made.
func (f *fixture) configMap(name string) map[string]string {
	f.t.Helper()
	cm, err := f.kube.CoreV1().ConfigMaps(f.apps).Get(f.t.Context(), name, metav1.GetOptions{})
	if err != nil {
		f.t.Fatal(err)
	}
	return cm.Data
}

// target is a chart of the given templates, as module and release "web".
func (f *fixture) target(values map[string]any, templates ...string) Target {
	return Target{
		Input: chart.Input{
			Module: "web", Name: "web", Namespace: f.apps, Chart: chartOf("web", templates...), Values: values,
			Installs: []builtins.Grant{
				{APIVersion: f.ns + ".example/v1", Kind: "Thing"}, {APIVersion: "x.example/v1", Kind: "Thing"},
				{APIVersion: f.ns + ".chart.example/v1", Kind: "Thing"}, {APIVersion: f.ns + ".template.example/v1", Kind: "Thing"},
				{APIVersion: "apiextensions.k8s.io/v1", Kind: "CustomResourceDefinition"},
			},
			Lookup: []builtins.Grant{{APIVersion: "v1", Kind: "ConfigMap", Verbs: []string{"get", "list"}, Namespaces: []string{"*"}}},
		},
		Timeout: 5 * time.Minute,
	}
}

const configMapTemplate = `apiVersion: v1
kind: ConfigMap
metadata: {name: {{ .Release.Name }}}
data: {color: "{{ .Values.color }}"}
`

// fourObjects is a chart as the benchmark wants it.
const fourObjects = configMapTemplate + `---
apiVersion: v1
kind: ServiceAccount
metadata: {name: {{ .Release.Name }}}
---
apiVersion: v1
kind: Service
metadata: {name: {{ .Release.Name }}}
spec: {selector: {app: {{ .Release.Name }}}, ports: [{port: 80}]}
` + deploymentTemplate

const deploymentTemplate = `---
apiVersion: apps/v1
kind: Deployment
metadata: {name: {{ .Release.Name }}}
spec:
  replicas: {{ .Values.replicas | default 0 }}
  selector: {matchLabels: {app: {{ .Release.Name }}}}
  template:
    metadata: {labels: {app: {{ .Release.Name }}}}
    spec:
      nodeSelector: {there-is-no: such-node}
      containers: [{name: web, image: nginx}]
`

// eventually polls the cluster.
func eventually(t testing.TB, what string, ok func() bool) {
	t.Helper()
	deadline := time.Now().Add(3 * time.Minute)
	for !ok() {
		if time.Now().After(deadline) {
			t.Fatal("in 3 minutes not: " + what)
		}
		time.Sleep(20 * time.Millisecond)
	}
}

func name(prefix string, i int) string { return fmt.Sprintf("%s-%03d", prefix, i) }

// lookedUp says whether it is known what the release's chart has looked up.
func (f *fixture) lookedUp() bool {
	f.t.Helper()
	ref := Ref{Module: "web", Name: "web", Namespace: f.apps}
	last, err := f.latest(f.t.Context(), ref)
	if err == nil {
		last, err = f.noted(f.t.Context(), ref, last)
	}
	if err != nil {
		f.t.Fatal(err)
	}
	return strings.HasPrefix(last.Labels[LabelInputs], inputsLookup+".")
}
