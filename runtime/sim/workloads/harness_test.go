package workloads_test

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/yaml"

	"github.com/starling-operator/starling/runtime/sim/store"
	"github.com/starling-operator/starling/runtime/sim/workloads"
)

var builtins = store.NewBuiltins()

// cluster is a store in which workloads move by a clock.
type cluster struct {
	t     *testing.T
	now   time.Time
	in    string // the namespace
	store *store.Store
	mover *workloads.Mover
}

func newCluster(t *testing.T, o workloads.Options) *cluster {
	c := &cluster{t: t, in: "default", now: time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)}
	now := func() time.Time { return c.now }
	c.store = store.New(store.Options{Builtins: builtins, Now: now, MakeNamespaces: true})
	c.mover = &workloads.Mover{Store: c.store, Now: now, Options: o, Warn: func(text string) { t.Error(text) }}
	return c
}

// target is where an object of a kind is, as "apps/v1 Deployment".
func (c *cluster) target(kind, name string) store.Target {
	c.t.Helper()
	apiVersion, of, _ := strings.Cut(kind, " ")
	k, ok := c.store.KindOf(schema.FromAPIVersionAndKind(apiVersion, of))
	if !ok {
		c.t.Fatalf("%s is not served", kind)
	}
	t := store.Target{GVR: k.GVR(), Name: name}
	if k.Namespaced {
		t.Namespace = c.in
	}
	return t
}

// apply applies objects, between them "---", and settles.
func (c *cluster) apply(text string) {
	c.t.Helper()
	for _, one := range strings.Split(text, "\n---\n") {
		var obj map[string]any
		if err := yaml.Unmarshal([]byte(one), &obj); err != nil {
			c.t.Fatal(err)
		}
		meta := obj["metadata"].(map[string]any)
		data, err := json.Marshal(obj)
		if err != nil {
			c.t.Fatal(err)
		}
		t := c.target(fmt.Sprint(obj["apiVersion"], " ", obj["kind"]), fmt.Sprint(meta["name"]))
		if _, err := c.store.Patch(t, types.ApplyPatchType, data, store.WriteOptions{Manager: "test", Force: true}); err != nil {
			c.t.Fatal(err)
		}
	}
	c.settle()
}

// patch merges JSON or YAML into an object, or into its status, and settles.
func (c *cluster) patch(kind, name, merge string) {
	c.t.Helper()
	data, err := yaml.YAMLToJSON([]byte(merge))
	if err != nil {
		c.t.Fatal(err)
	}
	t := c.target(kind, name)
	if strings.Contains(merge, "status:") {
		t.Subresource = "status"
	}
	if _, err := c.store.Patch(t, types.MergePatchType, data, store.WriteOptions{Manager: "test"}); err != nil {
		c.t.Fatal(err)
	}
	c.settle()
}

func (c *cluster) delete(kind, name string) {
	c.t.Helper()
	if _, err := c.store.Delete(c.target(kind, name), store.DeleteOptions{Propagation: metav1.DeletePropagationBackground}); err != nil {
		c.t.Fatal(err)
	}
	c.settle()
}

func (c *cluster) settle() {
	c.t.Helper()
	for range 5000 {
		if !c.store.Settle() && !c.mover.Move() {
			return
		}
	}
	c.t.Fatal("it does not settle")
}

func (c *cluster) advance(d time.Duration) {
	c.t.Helper()
	end := c.now.Add(d)
	for n := 0; ; n++ {
		next := c.mover.Next()
		if next.IsZero() || next.After(end) {
			break
		}
		if n > 5000 {
			c.t.Fatalf("it looks again and again at %s", next)
		}
		if next.After(c.now) {
			c.now = next
		}
		c.settle()
	}
	c.now = end
	c.settle()
}

// list returns all objects of a kind.
func list[T any](c *cluster, kind string) []*T {
	c.t.Helper()
	t := c.target(kind, "")
	t.Namespace = ""
	found, err := c.store.List(t, store.ListOptions{})
	if err != nil {
		c.t.Fatal(err)
	}
	out := make([]*T, len(found.Items))
	for i, obj := range found.Items {
		out[i] = new(T)
		if err := runtime.DefaultUnstructuredConverter.FromUnstructured(obj, out[i]); err != nil {
			c.t.Fatal(err)
		}
	}
	return out
}

// only returns the one object of a kind.
func only[T any](c *cluster, kind string) *T {
	c.t.Helper()
	all := list[T](c, kind)
	if len(all) != 1 {
		c.t.Fatalf("%d objects of %s, want 1", len(all), kind)
	}
	return all[0]
}

// expect compares lines.
func (c *cluster) expect(step, want string, got ...string) {
	c.t.Helper()
	lines := func(text string) []string {
		return slices.DeleteFunc(strings.Split(strings.ReplaceAll(text, "\t", ""), "\n"), func(s string) bool { return s == "" })
	}
	if w, g := strings.Join(lines(want), "\n"), strings.Join(lines(strings.Join(got, "\n")), "\n"); w != g {
		c.t.Errorf("%s:\ngot\n%s\nwant\n%s", step, g, w)
	}
}
