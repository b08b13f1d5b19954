package release

import (
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/rs/zerolog"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/rest"

	"github.com/starling-operator/starling/modules/chart"
	"github.com/starling-operator/starling/runtime/cluster"
	simrest "github.com/starling-operator/starling/runtime/sim/rest"
	"github.com/starling-operator/starling/runtime/sim/store"
)

// manyFixture has many releases in a simulated cluster, and counts the requests that read
// them.
type manyFixture struct {
	*Manager
	t      *testing.T
	store  *store.Store
	server http.RoundTripper

	mu       sync.Mutex
	requests int
	lists    []string // by namespace
	writes   []string // to Secrets
}

func newManyFixture(t *testing.T) *manyFixture {
	f := &manyFixture{t: t, store: store.New(store.Options{Builtins: store.NewBuiltins(), MakeNamespaces: true})}
	f.server = simrest.New(simrest.Options{Store: f.store})
	f.Manager = f.manager()
	return f
}

func (f *manyFixture) RoundTrip(r *http.Request) (*http.Response, error) {
	f.mu.Lock()
	f.requests++
	f.mu.Unlock()
	if path, ok := strings.CutSuffix(r.URL.Path, "/secrets"); ok && r.Method == http.MethodGet && !strings.Contains(r.URL.RawQuery, "releases") {
		f.mu.Lock()
		f.lists = append(f.lists, strings.TrimPrefix(strings.TrimPrefix(path, "/api/v1"), "/namespaces/"))
		f.mu.Unlock()
	}
	if strings.Contains(r.URL.Path, "/secrets") && !strings.Contains(r.URL.Path, "-releases-") && r.Method != http.MethodGet {
		f.mu.Lock()
		f.writes = append(f.writes, r.Method)
		f.mu.Unlock()
	}
	return f.server.RoundTrip(r)
}

// manager is that of another process.
func (f *manyFixture) manager() *Manager {
	f.t.Helper()
	client, err := cluster.New(cluster.Options{Config: &rest.Config{Host: "http://sim", Transport: f}, Log: zerolog.Nop()})
	if err != nil {
		f.t.Fatal(err)
	}
	config := rest.CopyConfig(client.Config())
	config.ContentType, config.AcceptContentTypes = "application/json", "application/json"
	m, err := New(Options{
		Client: client, Config: config, Discovery: client.Discovery(), Mapper: client.Mapper(),
		Instance: "ops.starling", Namespace: "ops", Name: "starling", Log: zerolog.Nop(),
	})
	if err != nil {
		f.t.Fatal(err)
	}
	return m
}

// target is release i; namespaces are taken in turn.
func (f *manyFixture) target(i int, value string, namespaces ...string) Target {
	name := fmt.Sprintf("m%02d", i)
	return Target{
		Input: chart.Input{
			Module: name, Name: name, Namespace: namespaces[i%len(namespaces)], Values: map[string]any{"n": value},
			Chart: &chart.Chart{Name: name, Digest: name, Files: []chart.File{
				{Path: "Chart.yaml", Data: []byte("apiVersion: v2\nname: web\nversion: 1.0.0\n")},
				{Path: "templates/all.yaml", Data: []byte("apiVersion: v1\nkind: ConfigMap\nmetadata: {name: " + name + "}\ndata: {n: \"{{ .Values.n }}\"}\n")},
			}},
		},
	}
}

// all reconciles n releases, four at a time, and returns how many lists that has taken.
func (f *manyFixture) all(n int, action string, namespaces ...string) int {
	f.t.Helper()
	f.mu.Lock()
	f.lists = nil
	f.mu.Unlock()
	var wg sync.WaitGroup
	for worker := range 4 {
		wg.Go(func() {
			for i := worker; i < n; i += 4 {
				f.want(i, "1", action, namespaces...)
			}
		})
	}
	wg.Wait()
	return len(f.lists)
}

func (f *manyFixture) want(i int, value, action string, namespaces ...string) Result {
	f.t.Helper()
	res, err := f.Reconcile(f.t.Context(), f.target(i, value, namespaces...))
	if err != nil || res.Action != action {
		f.t.Errorf("release %d: %s, %v, want %s", i, res.Action, err, action)
	}
	return res
}

// Many releases that are as they should be are read with a list, wherever they are.
func TestManyReleasesAreListed(t *testing.T) {
	const n = 40
	spread := make([]string, n)
	for i := range spread {
		spread[i] = fmt.Sprintf("ns-%d", i)
	}
	for name, test := range map[string]struct {
		namespaces []string
		most       int
	}{
		"one namespace":  {[]string{"apps"}, glanceBurst + 1},
		"two namespaces": {[]string{"apps", "more"}, 2 * (glanceBurst + 1)},
		"one each":       {spread, glanceBurst + 1},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) { // windows are of its clock
				f := newManyFixture(t)
				if lists := f.all(n, ActionInstalled, test.namespaces...); lists > n+test.most {
					t.Errorf("%d lists for %d releases that are new, want at most one each, and %d", lists, n, test.most)
				}
				f.Manager = f.manager()
				if lists := f.all(n, ActionUnchanged, test.namespaces...); lists > test.most {
					t.Errorf("%d lists for %d releases, want at most %d", lists, n, test.most)
				}
			})
		})
	}
}

// Releases that are expected are listed ahead, once, and need no request then.
func TestReleasesAreExpected(t *testing.T) {
	const n = 40
	spread := make([]string, n)
	for i := range spread {
		spread[i] = fmt.Sprintf("ns-%d", i)
	}
	for name, test := range map[string]struct {
		namespaces, lists []string
	}{
		"one namespace": {[]string{"apps"}, []string{"apps"}},
		"one each":      {spread, []string{""}},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) { // windows are of its clock
				f := newManyFixture(t)
				f.all(n, ActionInstalled, test.namespaces...)
				f.Manager = f.manager()
				var refs []Ref
				for i := range n {
					at := f.target(i, "1", test.namespaces...)
					refs = append(refs, Ref{Module: at.Module, Namespace: at.Namespace, Name: at.Name})
				}
				f.lists = nil
				f.Expect(t.Context(), refs)
				if !slices.Equal(f.lists, test.lists) {
					t.Errorf("lists of %q, want %q", f.lists, test.lists)
				}
				before := f.requests
				if f.all(n, ActionUnchanged, test.namespaces...); f.requests != before {
					t.Errorf("%d requests once the releases were expected", f.requests-before)
				}
				f.lists = nil
				f.Manager = f.manager()
				if f.Expect(t.Context(), refs[:glanceBurst]); len(f.lists) > 0 {
					t.Errorf("lists of %q for few releases", f.lists)
				}
			})
		})
	}
}

// Where all namespaces may not be listed, each release of another one is read.
func TestReleasesWithoutTheRightToListAll(t *testing.T) {
	synctest.Test(t, func(t *testing.T) { // windows are of its clock
		f := newManyFixture(t)
		var spread []string
		for i := range 20 {
			spread = append(spread, fmt.Sprintf("ns-%d", i))
		}
		f.all(20, ActionInstalled, spread...)
		f.Manager = f.manager()
		f.want(0, "1", ActionUnchanged, spread...)
		for i := range glanceBurst - 1 {
			f.want(i+1, "1", ActionUnchanged, spread...)
		}
		f.store.FailNext("list", "Secret", apierrors.NewForbidden(schema.GroupResource{Resource: "secrets"}, "", errors.New("no")), 1)
		f.lists = nil
		for i := range 10 {
			f.want(i+10, "1", ActionUnchanged, spread...)
		}
		if len(f.lists) != 11 || f.lists[0] != "" {
			t.Errorf("listed are %q", f.lists)
		}
	})
}

// A list is good for what it has shown unchanged, once: everything else is read then.
func TestListsAreNotActedUpon(t *testing.T) {
	synctest.Test(t, func(t *testing.T) { // windows are of its clock
		const n = 20
		f := newManyFixture(t)
		f.all(n, ActionInstalled, "apps")
		f.Manager = f.manager()
		for i := range glanceBurst + 1 {
			f.want(i, "1", ActionUnchanged, "apps")
		}
		if list := f.glances.lists["apps"]; list == nil || len(list.found) != n-1 {
			t.Fatal("there is no list")
		}
		// Somebody else makes a revision meanwhile.
		other := f.manager()
		theirs := func(i int) {
			t.Helper()
			if _, err := other.Reconcile(t.Context(), f.target(i, "2", "apps")); err != nil {
				t.Fatal(err)
			}
		}
		theirs(10)
		if res := f.want(10, "3", ActionUpgraded, "apps"); res.Revision != 3 {
			t.Errorf("made is revision %d, want 3", res.Revision)
		}
		// After its own writes.
		f.want(10, "1", ActionUpgraded, "apps")
		f.want(10, "3", ActionUpgraded, "apps")
		if _, err := f.Uninstall(t.Context(), f.target(11, "1", "apps").Ref(), 0); err != nil {
			t.Fatal(err)
		}
		f.want(11, "1", ActionInstalled, "apps")
		// It is used once.
		f.want(12, "1", ActionUnchanged, "apps")
		theirs(12)
		f.want(12, "1", ActionUpgraded, "apps")
		f.want(n, "1", ActionInstalled, "apps")
	})
}

// Definitions that others bring count for charts as soon as anybody has seen their kinds served, and not only for the
// next process: a release does not hang on when its process began.
func TestCapabilitiesFollowKindsOfOthers(t *testing.T) {
	f := newManyFixture(t)
	kind := schema.GroupKind{Group: "example.com", Kind: "Gadget"}
	has := func() bool {
		t.Helper()
		caps, err := f.capabilities()
		if err != nil {
			t.Fatal(err)
		}
		return caps.APIVersions.Has("example.com/v1/Gadget")
	}
	if _, err := f.o.Mapper.RESTMapping(kind, "v1"); err == nil || has() {
		t.Fatalf("it is there already: %v", err)
	}
	before := f.requests
	if has(); f.requests != before {
		t.Errorf("%d requests for what is known", f.requests-before)
	}
	crd := &unstructured.Unstructured{}
	if err := crd.UnmarshalJSON([]byte(replaceGroup(gadgetCRD, "example.com"))); err != nil {
		t.Fatal(err)
	}
	resource := schema.GroupVersionResource{Group: "apiextensions.k8s.io", Version: "v1", Resource: "customresourcedefinitions"}
	if _, err := f.dynamic.Resource(resource).Create(t.Context(), crd, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	if _, err := f.o.Mapper.RESTMapping(kind, "v1"); err != nil {
		t.Fatal(err)
	}
	if !has() {
		t.Error("charts do not see the kind")
	}
}

// A list that takes long holds up nobody but those who ask for it.
func TestASlowListHoldsUpNobody(t *testing.T) {
	f := newManyFixture(t)
	f.want(0, "1", ActionInstalled, "slow")
	server, begun, hold := f.server, make(chan struct{}), make(chan struct{})
	f.server = roundTrip(func(r *http.Request) (*http.Response, error) {
		if strings.HasSuffix(r.URL.Path, "/namespaces/slow/secrets") {
			close(begun)
			<-hold
		}
		return server.RoundTrip(r)
	})
	listed := make(chan *listed)
	go func() { listed <- f.listOnce(t.Context(), "slow") }()
	<-begun
	f.want(1, "1", ActionInstalled, "apps")
	f.glances.forget(Ref{Namespace: "slow", Name: "m00"}) // as after a write
	close(hold)
	if l := <-listed; len(l.found) != 0 {
		t.Errorf("the list tells of a release that was written meanwhile: %v", l.found)
	}
}

// Those who ask for a list wait for a moment, then they read by themselves.
func TestASlowListIsWaitedForBriefly(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		start := time.Now()
		if (&listed{done: make(chan struct{})}).wait(t.Context()) || time.Since(start) != glanceWait {
			t.Errorf("waited for %s", time.Since(start))
		}
	})
}

type roundTrip func(*http.Request) (*http.Response, error)

func (f roundTrip) RoundTrip(r *http.Request) (*http.Response, error) { return f(r) }
