//go:build e2e

package watch

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/rs/zerolog"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/watch"

	e2e "github.com/starling-operator/starling/e2e/cluster"
	"github.com/starling-operator/starling/runtime/cluster"
	"github.com/starling-operator/starling/runtime/lane"
)

// calm is a recorder that errors on the way do not concern.
type calm struct{ *recorder }

func (calm) Failed(string, error, bool) {}

// outage is a watch of ConfigMaps by a line that can be cut, to a control plane that can
// be restarted.
type outage struct {
	*fixture
	cluster *e2e.Cluster
	line    *e2e.Line
}

func newOutage(t *testing.T, c *e2e.Cluster) *outage {
	line, file := e2e.NewLine(t, c.Kubeconfig)
	cfg, _, err := cluster.LoadConfig(file, "")
	if err != nil {
		t.Fatal(err)
	}
	client, err := cluster.New(cluster.Options{Config: cfg, Log: zerolog.Nop()})
	if err != nil {
		t.Fatal(err)
	}
	f := &fixture{recorder: &recorder{t: t, more: make(chan struct{})}, client: client}
	f.manager = New(Options{Client: client, Sink: calm{f.recorder},
		Backoff: lane.Backoff{Min: 50 * time.Millisecond, Max: time.Second, Factor: 1.5}})
	t.Cleanup(func() { f.manager.Shutdown(); client.Close() })
	return &outage{f, c, line}
}

func (o *outage) put(ns, name, data string) {
	o.t.Helper()
	o.cluster.Apply(o.t, fmt.Sprintf("{apiVersion: v1, kind: ConfigMap, metadata: {name: %q, namespace: %s}, data: {d: %q}}", name, ns, data))
}

func (o *outage) remove(ns, name string) {
	o.t.Helper()
	if err := o.cluster.Client.CoreV1().ConfigMaps(ns).Delete(o.t.Context(), name, metav1.DeleteOptions{}); err != nil {
		o.t.Fatal(err)
	}
}

// noticed waits until a cut has been noticed.
func (o *outage) noticed() {
	o.t.Helper()
	e2e.Eventually(o.t, 3*time.Minute, "the cut is noticed", func() error {
		if o.line.Refused() < 2 {
			return fmt.Errorf("%d connections were refused", o.line.Refused())
		}
		return nil
	})
}

// TestRealStreamsThatAreCut cuts the connections of a watch, over and over: what
// happened meanwhile is seen once, and nothing else.
func TestRealStreamsThatAreCut(t *testing.T) {
	ns := shared.Namespace(t)
	o := newOutage(t, shared)
	spec := configMaps("w")
	spec.Namespaces, spec.Names = []string{ns}, []string{"x", "y"}
	o.put(ns, "x", "0")
	o.manager.Start(spec)
	o.await("w synced served=true")
	for n := range 3 {
		o.line.Cut()
		o.put(ns, "x", fmt.Sprint(n, " unseen"))
		o.put(ns, "x", fmt.Sprint(n+1))
		o.noticed()
		o.line.Mend()
		o.settle(ns, "x", fmt.Sprint(n+1))

		o.put(ns, "y", "there")
		o.await(fmt.Sprintf(`w added %s/y "there"`, ns))
		o.line.Cut()
		o.noticed()
		o.remove(ns, "y")
		o.line.Mend()
		o.await(fmt.Sprintf(`w deleted %s/y "there"`, ns))
		o.snapshot("w", fmt.Sprintf("[%q]", fmt.Sprint(n+1)))
	}
	o.nothing()
}

// settle awaits the state that an object has ended in. A stream that goes on where it
// was cut tells what was in between, a new list does not.
func (o *outage) settle(ns, name, data string) {
	o.t.Helper()
	last := fmt.Sprintf("w modified %s/%s %q", ns, name, data)
	e2e.Eventually(o.t, 3*time.Minute, last, func() error {
		o.mu.Lock()
		defer o.mu.Unlock()
		for i, line := range o.lines {
			if line == last {
				o.lines = o.lines[i+1:]
				return nil
			}
			if !strings.HasPrefix(line, fmt.Sprintf("w modified %s/%s ", ns, name)) {
				o.t.Fatalf("the sink was told %q", o.lines)
			}
		}
		return fmt.Errorf("the sink was told %q", o.lines)
	})
}

// told awaits these lines, which are sorted, in any order: a new list has none.
func (o *outage) told(want ...string) {
	o.t.Helper()
	e2e.Eventually(o.t, 3*time.Minute, fmt.Sprint(want), func() error {
		o.mu.Lock()
		defer o.mu.Unlock()
		if len(o.lines) < len(want) {
			return fmt.Errorf("the sink was told %q", o.lines)
		}
		if got := slices.Sorted(slices.Values(o.lines)); !slices.Equal(got, want) {
			o.t.Fatalf("the sink was told %q, want %q", got, want)
		}
		o.lines = nil
		return nil
	})
}

// TestRealRestartAndCompaction restarts the API server below a watch, and then compacts
// etcd, so that the place where the watch was is gone: 410.
func TestRealRestartAndCompaction(t *testing.T) {
	own, err := e2e.Start()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := own.Stop(); err != nil {
			t.Error(err)
		}
	})
	const ns = "default"
	o := newOutage(t, own)
	spec := configMaps("w")
	spec.Namespaces, spec.Names = []string{ns}, []string{"a", "b", "c"}
	o.put(ns, "a", "1")
	o.put(ns, "b", "1")
	o.manager.Start(spec)
	o.await("w synced served=true")

	own.Restart(t)
	o.put(ns, "a", "2")
	o.settle(ns, "a", "2")
	o.nothing()

	// Now the watch misses what happens, and cannot make up for it by going on.
	o.line.Cut()
	before, err := own.Client.CoreV1().ConfigMaps(ns).List(t.Context(), metav1.ListOptions{})
	if err != nil {
		t.Fatal(err)
	}
	o.put(ns, "a", "3")
	o.put(ns, "a", "4")
	o.remove(ns, "b")
	o.put(ns, "c", "1")
	own.Compact(t)
	own.Restart(t)
	gone(t, own, ns, before.ResourceVersion)
	o.noticed()
	o.line.Mend()
	o.told(`w added default/c "1"`, `w deleted default/b "1"`, `w modified default/a "4"`)
	o.snapshot("w", `["4" "1"]`)
	o.put(ns, "c", "2")
	o.settle(ns, "c", "2")
	o.nothing()
}

// gone makes sure that the server answers a watch from this version on with 410.
func gone(t *testing.T, c *e2e.Cluster, ns, version string) {
	t.Helper()
	w, err := c.Client.CoreV1().ConfigMaps(ns).Watch(t.Context(), metav1.ListOptions{ResourceVersion: version})
	if err == nil {
		defer w.Stop()
		event := <-w.ResultChan()
		if event.Type != watch.Error {
			t.Fatalf("a watch from version %s on begins with %v", version, event)
		}
		err = apierrors.FromObject(event.Object)
	}
	if !apierrors.IsResourceExpired(err) && !apierrors.IsGone(err) {
		t.Fatalf("a watch from version %s on: %v, want 410", version, err)
	}
}
