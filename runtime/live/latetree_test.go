package live

import (
	"context"
	"fmt"
	"maps"
	"net/http"
	"strings"
	"sync"
	"testing"
	"testing/fstest"
	"testing/synctest"
	"time"

	"github.com/rs/zerolog"
	coordinationv1 "k8s.io/api/coordination/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/starling-operator/starling/modules/tree"
	"github.com/starling-operator/starling/runtime/generation"
	"github.com/starling-operator/starling/runtime/script"
	"github.com/starling-operator/starling/stdlib"
)

// reload gives the driver another tree.
func (f *fixture) reload(files map[string]string) {
	f.Helper()
	f.driver.o.Load = func(ctx context.Context, read *tree.Tree, before *generation.Generation) *generation.Generation {
		return generation.Load(ctx, generation.Options{
			Tree: read, Std: stdlib.FS, Number: before.Number + 1, Log: FileLog(zerolog.Nop()),
			Governor: script.NewGovernor(script.GovernorOptions{}), Previous: before,
		})
	}
	fsys := fstest.MapFS{}
	for path, text := range files {
		fsys[path] = &fstest.MapFile{Data: []byte(text)}
	}
	read, err := tree.Read(fsys, tree.Options{})
	if err != nil {
		f.Fatal(err)
	}
	f.driver.Reload(f.Context(), read)
}

// writing is a module of this name; each kind of its writes comes as soon as it can: a release, an object of a
// hook, a set, and what is kept.
func writing(name string) map[string]string {
	return map[string]string{
		name + "/module.star":        "module(enabled = True, namespace = \"apps\", grants = [grant(\"v1\", \"ConfigMap\", [\"write\"])])\n",
		name + "/Chart.yaml":         "apiVersion: v2\nname: " + name + "\nversion: 0.1.0\n",
		name + "/templates/all.yaml": "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: " + name + "}\n",
		name + "/hooks/a.star": strings.ReplaceAll(`
def object(name):
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "NAME-" + name, "namespace": "apps"}}

def a(ctx):
    k8s.apply(object("object"))
    k8s.apply_set("set", [object("member")])
    values.set("n", 1)
    ctx.state.set("n", 1)

hook(a, on = [startup()])
`, "NAME", name),
	}
}

// Of a module tree that has just come in force nothing is written before the Lease says which one it is, however long
// that takes; nor of the first tree of a process that has just taken over.
func TestNothingIsWrittenBeforeTheLeaseSaysOfWhichTree(t *testing.T) {
	for _, fails := range []time.Duration{0, 3 * time.Second} {
		t.Run(fmt.Sprint("the Lease cannot be written for ", fails), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				one, both := writing("web"), writing("web")
				maps.Copy(both, writing("shop"))
				delete(one, "web/Chart.yaml")
				f := newFixture(t, one, func(f *fixture) { f.objects = true })
				var mu sync.Mutex
				var broken time.Time // until then
				said, early, written := "", []string{}, 0
				f.before = func(r *http.Request) int {
					mu.Lock()
					defer mu.Unlock()
					lease := strings.Contains(r.URL.Path, "/leases")
					switch {
					case r.Method == http.MethodGet:
					case lease && time.Now().Before(broken):
						return http.StatusServiceUnavailable
					case lease:
					case said != f.driver.trees.own():
						early = append(early, r.Method+" "+r.URL.Path)
					default:
						written++
					}
					return 0
				}
				f.answered = func(r *http.Request, answer *http.Response) {
					if strings.Contains(r.URL.Path, "/leases") && r.Method != http.MethodGet && answer.StatusCode < 300 && t.Context().Err() == nil {
						lease, err := f.leases().Get(t.Context(), "starling", metav1.GetOptions{})
						if err != nil {
							t.Error(err)
							return
						}
						mu.Lock()
						defer mu.Unlock()
						said = lease.Annotations[treeAnnotation]
					}
				}
				f.start()
				f.waitReady()
				time.Sleep(time.Minute)
				if mu.Lock(); written == 0 || len(early) > 0 {
					t.Fatalf("%d writes, and early ones: %q", written, early)
				}
				broken, written = time.Now().Add(fails), 0
				mu.Unlock()
				f.reload(both)
				time.Sleep(time.Minute)
				carried := f.uid("apps", "shop") != "" && f.uid("apps", "shop-member") != ""
				mu.Lock()
				defer mu.Unlock()
				if len(early) > 0 {
					t.Errorf("written before the Lease says so: %q", early)
				}
				if written == 0 || !carried {
					t.Errorf("%d writes of the new tree; it is not carried out", written)
				}
			})
		})
	}
}

// leaseOf is a Lease with these annotations.
func leaseOf(annotations map[string]string) *coordinationv1.Lease {
	return &coordinationv1.Lease{ObjectMeta: metav1.ObjectMeta{Annotations: maps.Clone(annotations)}}
}

// A process with a late tree takes over, and another one with a late tree from it: each knows of the newer tree, also
// one that has begun meanwhile. So does a process that was restarted before its tree is here. Once the late tree
// counts, it is the newest one.
func TestLateTreesTellOfTheNewerOne(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		type process struct {
			*trees
			digest string
		}
		begin := func(digest string) *process {
			p := &process{digest: digest}
			p.trees = &trees{own: func() string { return p.digest }}
			return p
		}
		lease := leaseOf(nil)
		leads := func(p *process, takesOver bool) {
			lease = leaseOf(lease.Annotations)
			p.tell(p.mark(lease, takesOver), lease.Annotations[treeAnnotation])
		}
		first, second, third := begin("a"), begin("a"), begin("a")
		see := func(all ...*process) {
			for _, p := range all {
				p.compares(lease)
			}
		}
		leads(first, true)
		see(second, third)
		first.digest = "b"
		leads(first, false)
		fresh := begin("a")
		if see(second, third, fresh); !second.arrives() || !third.arrives() || !fresh.arrives() {
			t.Errorf("the newer tree is not known: %+v", lease.Annotations)
		}
		leads(second, true)
		leads(second, false)
		another := begin("a")
		if see(third, fresh, another); !second.arrives() || !third.arrives() || !fresh.arrives() || !another.arrives() {
			t.Errorf("the newer tree is not known after a take-over by a late one: %+v", lease.Annotations)
		}
		newest := begin("b")
		if see(newest); newest.arrives() {
			t.Error("the newest one waits for itself")
		}
		leads(another, true)
		if see(newest); lease.Annotations[treeAnnotation] != "b" || newest.arrives() {
			t.Errorf("the third one says %+v", lease.Annotations)
		}
		another.digest = "b" // it is here
		if leads(another, false); another.arrives() || lease.Annotations[treeAnnotation] != "b" {
			t.Error("it waits on for what is here")
		}

		leads(second, true)
		time.Sleep(treeArrives)
		if later := begin("a"); true {
			if see(later); later.arrives() {
				t.Error("a process that begins later, and has another tree, waits")
			}
		}
		second.settle()
		leads(second, false)
		if see(third); lease.Annotations[treeAnnotation] != "a" || third.arrives() {
			t.Errorf("the tree that counts is %+v", lease.Annotations)
		}
		for _, broken := range []string{"x", "[]", "null", `{"a":1}`, `{"a":"x"}`} {
			lease.Annotations[olderAnnotation] = broken
			see(begin("a"))
			if leads(second, false); lease.Annotations[olderAnnotation] != "" {
				t.Errorf("%s is carried on: %+v", broken, lease.Annotations)
			}
		}
		for i := range 1000 {
			second.digest = fmt.Sprint("t", i)
			leads(second, false)
		}
		if size := len(lease.Annotations[olderAnnotation]); size > 4<<10 {
			t.Errorf("the Lease carries %d bytes", size)
		}
	})
}
