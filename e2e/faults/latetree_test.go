package faults

import (
	"cmp"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/starling-operator/starling/e2e/cluster"
	"github.com/starling-operator/starling/e2e/proxy"
	"github.com/starling-operator/starling/modules/status"
)

// longer is for how long a module is looked at that an older tree would have uninstalled by then: after ten seconds.
const longer = 20 * time.Second

// late is a module of this name, whose release is a ConfigMap.
func late(name string) map[string]string {
	return map[string]string{
		name + "/module.star":        "module(enabled = True)\n",
		name + "/Chart.yaml":         "{apiVersion: v2, name: " + name + ", version: 0.1.0}\n",
		name + "/templates/all.yaml": "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: " + name + "}\n",
	}
}

// latecomers are processes, each with its own tree. The one that leads is the first to get a change of the tree.
type latecomers struct {
	*world
	killer *proxy.Killer
}

func newLatecomers(t *testing.T, n int) *latecomers {
	t.Helper()
	l := &latecomers{world: newWorld(t, setting{replicas: n, tree: late("web")}), killer: &proxy.Killer{
		Counts: func(path string) bool { return strings.HasSuffix(path, "/configmaps/extra") },
	}}
	first := l.replicas[0]
	l.proxy.Inject(l.killer.Fault(func() { first.Kill() }))
	first.start()
	l.lead(first)
	for _, r := range l.replicas[1:] {
		r.kube, r.modules = l.direct, t.TempDir()
		l.done(l.writeInto(r.modules, late("web")))
		r.start()
		l.wait("it stands by", func() error {
			st, err := r.status()
			if err == nil && (st.Leader || st.Generation == 0) {
				err = fmt.Errorf("it does not: %+v", st)
			}
			return err
		})
	}
	return l
}

// wait waits, and starts no process again.
func (l *latecomers) wait(what string, check func() error) {
	l.t.Helper()
	cluster.Eventually(l.t, soon, what, check)
}

// lead waits until a process leads, and is ready.
func (l *latecomers) lead(r *replica) {
	l.t.Helper()
	l.wait("it leads", func() error {
		st, err := r.status()
		if err == nil && !(st.Leader && st.Ready) {
			err = errors.New("it does not")
		}
		return err
	})
}

// has is the uid of what a module has installed, "" for nothing.
func (l *latecomers) has(name string) types.UID {
	l.t.Helper()
	list, err := l.cluster.Client.CoreV1().ConfigMaps(l.ns).List(l.t.Context(), metav1.ListOptions{FieldSelector: "metadata.name=" + name})
	l.done(err)
	for _, cm := range list.Items {
		return cm.UID
	}
	return ""
}

// Row 6: of a new tree nothing is written before the Lease says which one it is. The process is killed while it cannot
// say so.
func TestKilledBeforeTheLeaseSaysWhichTree(t *testing.T) {
	t.Parallel()
	l := newLatecomers(t, 1)
	l.proxy.Inject(proxy.Fault{Name: "cut", On: func(r *http.Request) bool { return proxy.Writes(r) && proxy.Leases(r) }, Strike: proxy.Abort})
	both := late("web")
	maps.Copy(both, late("extra"))
	l.write(both)
	first := l.replicas[0]
	l.wait("the tree is in force", func() error {
		st, err := first.status()
		if err == nil && st.Generation < 2 {
			err = fmt.Errorf("generation %d is in force", st.Generation)
		}
		return err
	})
	for began := time.Now(); time.Since(began) < 2*time.Second && first.Alive(); time.Sleep(50 * time.Millisecond) {
		if l.has("extra") != "" {
			t.Fatal("it is installed, and the Lease does not name its tree")
		}
	}
	first.Kill()
}

// Row 6: the process that has a new tree first is killed as it installs what came with it. Two follow one after
// the other that do not have it: neither takes it away.
func TestKilledAsANewTreeIsInstalled(t *testing.T) {
	t.Parallel()
	l := newLatecomers(t, 3)
	both, before := l.killed()
	second, _ := l.next(l.replicas[1:]...)
	second.Kill()
	rest := []*replica{l.replicas[1]}
	if second == l.replicas[1] {
		rest = []*replica{l.replicas[2]}
	}
	third, st := l.next(rest...)
	for began := time.Now(); time.Since(began) < longer; time.Sleep(100 * time.Millisecond) {
		if after := l.has("extra"); after != before {
			t.Fatalf("extra was %s, and is %q after two late trees: %+v", before, after, st)
		}
	}
	l.goesOn(third, both, before)
}

// Row 6: the Lease says which tree is older before anything of the newer one is written. The process is killed as it
// installs what came with that; the next one begins with the older tree, and has seen no other one.
func TestKilledOnceTheLeaseSaysWhichTreeIsOlder(t *testing.T) {
	t.Parallel()
	l := newLatecomers(t, 1)
	both, before := l.killed()
	l.write(map[string]string{"extra": ""}) // in its volume the tree is as before
	_, err := l.cluster.Client.CoordinationV1().Leases(l.ns).Patch(t.Context(), "starling", types.MergePatchType,
		[]byte(`{"spec": {"holderIdentity": null}}`), metav1.PatchOptions{}) // as once it has run out
	l.done(err)
	next := l.replicas[0]
	next.start()
	l.wait("it knows that its tree is older", func() error {
		if after := l.has("extra"); after != before {
			t.Fatalf("extra was %s, and is %q", before, after)
		}
		st, err := next.status()
		for _, m := range st.Modules {
			if m.Name == "extra" && m.State == status.ModulePaused && strings.Contains(m.Reason, "a newer module tree") {
				return err
			}
		}
		return fmt.Errorf("the status is %+v, %w", st, err)
	})
	l.goesOn(next, both, before)
}

// killed has the first process get a new tree, and be killed as it installs extra, which came with that.
func (l *latecomers) killed() (both map[string]string, extra types.UID) {
	l.t.Helper()
	both = late("web")
	maps.Copy(both, late("extra"))
	l.killer.KillAt(1, true, func() { l.write(both) })
	l.wait("the first process is killed", func() error {
		if l.killer.Killed() == 0 {
			return errors.New("it is not")
		}
		return nil
	})
	if extra = l.has("extra"); extra == "" {
		l.t.Fatalf("it was killed at %q, and extra is not there", l.killer.At())
	}
	return both, extra
}

// goesOn says that a process goes on with the extra that is there once the new tree is here.
func (l *latecomers) goesOn(r *replica, both map[string]string, before types.UID) {
	l.t.Helper()
	l.done(l.writeInto(cmp.Or(r.modules, l.modules), both))
	l.state("extra", status.ModuleReady)
	if after := l.has("extra"); after != before {
		l.t.Errorf("it was made anew: %s, then %s", before, after)
	}
}

// next waits until one of these processes leads.
func (l *latecomers) next(of ...*replica) (leads *replica, st status.Status) {
	l.t.Helper()
	l.wait("another process leads", func() (err error) {
		for _, r := range of {
			if st, err = r.status(); err == nil && st.Leader && len(st.Modules) > 0 {
				leads = r
				return nil
			}
		}
		return fmt.Errorf("none does: %+v, %w", st, err)
	})
	return leads, st
}
