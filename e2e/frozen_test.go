package e2e

import (
	"fmt"
	"syscall"
	"testing"

	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// beating is a tree whose hook writes an object each second, and says whose tree it is.
func beating(whose string) map[string]string {
	return map[string]string{
		"beat/module.star": "module(enabled = True, grants = [grant(\"v1\", \"ConfigMap\", verbs = [\"apply\"])])\n",
		"beat/hooks/a.star": fmt.Sprintf(`
def beat(ctx):
    n = ctx.state.get("n", 0) + 1
    ctx.state.set("n", n)
    k8s.apply({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "beat"}, "data": {"by": %q, "n": str(n)}})

hook(beat, on = [startup(), schedule("* * * * * *")])
`, whose),
	}
}

// A process that is stopped in the midst of its work, and goes on once another one has the Lease, writes
// nothing any more: not with its first request, and not to what is kept. It stands by.
func TestAFrozenLeaderWritesNothing(t *testing.T) {
	t.Parallel()
	f := newFixture(t, beating("first"), least{HooksIn: map[string][]rbacv1.PolicyRule{"$NS": {allow("", "configmaps", "get", "create", "patch")}}}).alone("the other one has another tree")
	f.start()
	f.waitReady()
	second := *f
	second.process, second.modules = nil, t.TempDir()
	second.write(beating("second"))
	second.start()
	second.eventually("the second waits", func() error {
		return holds(second.process.Output(), []string{"another process holds the lease"})
	})
	writes, err := shared.Client.CoreV1().ConfigMaps(f.ns).Watch(t.Context(), metav1.ListOptions{FieldSelector: "metadata.name=beat"})
	if err != nil {
		t.Fatal(err)
	}
	defer writes.Stop()
	by := func() string {
		for ev := range writes.ResultChan() {
			if cm, is := ev.Object.(*corev1.ConfigMap); is {
				return cm.Data["by"]
			}
		}
		t.Fatal("the watch has ended")
		return ""
	}
	if got := by(); got != "first" {
		t.Fatalf("written by the %s", got)
	}

	signal := func(s syscall.Signal) {
		if err := syscall.Kill(f.process.PID(), s); err != nil {
			t.Error(err)
		}
	}
	t.Cleanup(func() {
		if f.process.Alive() {
			_ = syscall.Kill(f.process.PID(), syscall.SIGCONT)
		}
	})
	first := f.holder()
	signal(syscall.SIGSTOP)
	second.eventually("the second takes over", func() error {
		if h := f.holder(); h == first {
			return fmt.Errorf("held by %s", h)
		}
		return nil
	})
	for by() != "second" {
	}
	signal(syscall.SIGCONT)
	for range 5 {
		if got := by(); got != "second" {
			t.Errorf("written by the %s", got)
		}
	}
	f.waitReadyAs(false)
	if st, err := second.status(); err != nil || !st.Leader {
		t.Errorf("status of the second: %+v, %v", st, err)
	}
}
