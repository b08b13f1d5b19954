package e2e

import (
	"errors"
	"fmt"
	"net/http"
	"strings"
	"testing"

	"helm.sh/helm/v3/pkg/release"
	coordinationv1 "k8s.io/api/coordination/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/starling-operator/starling/modules/status"
)

// A process that is killed leaves everything as it is, and the next one finds nothing
// to do: same bytes, no new revision.
func TestKilledAndStartedAgain(t *testing.T) {
	t.Parallel()
	f := newFixture(t, trees(mirror("web", on), mirror("shop", on), probe(), map[string]string{
		"global/module.star": "module()\n",
		"global/hooks.star": `
def found(ctx):
    values.set("global.texts", ctx.snapshots["cms"])

hook(found, on = [k8s.watch("v1", "ConfigMap", name = "cms", namespaces = ["$NS"], labels = {"e2e": "$NS"},
                            filter = lambda o: o.get("data.text", ""))])
`,
		"web/hooks/a.star": `
def copy_texts(ctx):
    values.set("text", ",".join(ctx.snapshots["cms"]))

hook(copy_texts, on = [startup(), k8s.watch("v1", "ConfigMap", name = "cms", namespaces = ["$NS"], labels = {"e2e": "$NS"},
                                            filter = lambda o: o.get("data.text", ""))])
`,
	}))
	f.touch("a", "first")
	f.configure(map[string]string{"shop": "text: from the user"})
	f.start()
	f.waitReady()
	f.touch("b", "second")
	f.waitData("web", map[string]string{"text": "first,second"})
	f.waitRevision(f.ns, "web", 2)
	f.waitData("shop", map[string]string{"text": "from the user"})
	// Digests of values that change nothing are noted a moment after the release; a
	// start that is ready has noted all.
	f.process.Kill()
	f.freeLease()
	f.start()
	f.waitReady()
	f.eventually("all has settled", f.quiet)

	before := restingPicture(t, f.ns)
	f.process.Kill()
	before.same(t, f.ns)

	f.start()
	f.waitReady() // the Lease of the dead process runs out first
	f.waitRuns("web/hooks/a.star:copy_texts", 1)
	f.waitState("web", status.ModuleReady)
	f.waitState("shop", status.ModuleReady)
	f.eventually("all has settled", f.quiet)
	before.same(t, f.ns)

	// It works still.
	f.touch("c", "third")
	f.waitData("web", map[string]string{"text": "first,second,third"})
	f.waitRevision(f.ns, "web", 3)
}

// quiet is nil when every module is ready and no hook waits or runs.
func (f *fixture) quiet() error {
	st, err := f.status()
	if err != nil {
		return err
	}
	for _, m := range st.Modules {
		if m.State != status.ModuleReady {
			return fmt.Errorf("module %s is %s: %s", m.Name, m.State, m.Reason)
		}
	}
	for _, h := range st.Hooks {
		if h.State != status.HookOK {
			return fmt.Errorf("hook %s is %s: %s", h.ID, h.State, h.LastError)
		}
	}
	return nil
}

// slow is a module whose install waits for a pod that only runs on a node with the
// label e2e=$NS.
func slow() map[string]string {
	return map[string]string{
		"slow/module.star": "module(enabled = True, wait = True, timeout = \"5m\")\n",
		"slow/Chart.yaml":  "{apiVersion: v2, name: slow, version: 0.1.0}\n",
		"slow/templates/deployment.yaml": `
apiVersion: apps/v1
kind: Deployment
metadata: {name: slow, namespace: {{ .Release.Namespace }}}
spec:
  selector: {matchLabels: {app: slow}}
  template:
    metadata: {labels: {app: slow}}
    spec:
      nodeSelector: {e2e: $NS}
      containers: [{name: pause, image: registry.k8s.io/pause:3.10}]
`,
	}
}

var slowRole = least{Releases: map[string][]rbacv1.PolicyRule{"$NS": {
	renders("apps", "deployments"), renders("", "configmaps"), allow("", "pods", "list"),
}}}

// waitPending waits until the release hangs in its first install.
func (f *fixture) waitPending(name string, revision int, want release.Status) {
	f.t.Helper()
	f.eventually(fmt.Sprintf("revision %d of %s is %s", revision, name, want), func() error {
		all, err := history(f.ns, name)
		if err != nil {
			return err
		}
		if last := all[len(all)-1]; last.Version != revision || last.Info.Status != want {
			return fmt.Errorf("revision %d is %s: %s", last.Version, last.Info.Status, last.Info.Description)
		}
		return nil
	})
}

// A process that is killed in the middle of an install leaves it pending; the next
// one takes it over and finishes.
func TestKilledInTheMiddleOfAnInstall(t *testing.T) {
	t.Parallel()
	f := newFixture(t, trees(slow(), mirror("web", on)), slowRole)
	f.start()
	f.waitPending("slow", 1, release.StatusPendingInstall)
	f.waitRevision(f.ns, "web", 1) // an install that waits holds up no other module
	f.process.Kill()

	f.start()
	f.waitPending("slow", 1, release.StatusPendingUpgrade) // the same try, once more
	shared.AddNode(t, f.ns, map[string]string{"e2e": f.ns})
	f.waitRevision(f.ns, "slow", 1)
	f.waitState("slow", status.ModuleReady)
	f.waitRevision(f.ns, "web", 1)
}

// SIGTERM in the middle of an install ends the process in good order: the release is
// failed, not pending, the Lease is free, and the next start finishes at once.
func TestStoppedInTheMiddleOfAnInstall(t *testing.T) {
	t.Parallel()
	f := newFixture(t, slow(), slowRole).alone("nobody takes the Lease that it leaves")
	f.start()
	f.waitPending("slow", 1, release.StatusPendingInstall)
	if code := f.process.Stop(); code != 0 {
		t.Errorf("exit code %d", code)
	}
	f.waitPending("slow", 1, release.StatusFailed)
	if h := f.holder(); h != "" {
		t.Errorf("the Lease is still held by %s", h)
	}
	shared.AddNode(t, f.ns, map[string]string{"e2e": f.ns})
	f.start()
	f.waitRevision(f.ns, "slow", 1)
	f.waitState("slow", status.ModuleReady)
}

// Two processes of one instance: the second stands by, is ready, and writes nothing until the
// first has stopped; then it goes on where that was.
func TestOneWriter(t *testing.T) {
	t.Parallel()
	f := newFixture(t, trees(mirror("web", on), probe()))
	f.start()
	f.waitReady()
	f.waitRevision(f.ns, "web", 1)

	second := f.other()
	second.eventually("the second waits", func() error {
		return holds(second.process.Output(), []string{"another process holds the lease"})
	})
	second.waitReadyAs(false)
	if code, _, err := second.http("/healthz"); err != nil || code != http.StatusOK {
		t.Errorf("/healthz of the second: %d, %v", code, err)
	}
	if st, err := second.status(); err != nil || st.Leader || !st.Ready {
		t.Errorf("status of the second: %+v, %v", st, err)
	}
	second.waitState("web", status.ModuleWaiting)
	f.eventually("all has settled", f.quiet)
	before := restingPicture(t, f.ns)
	f.probe()
	before.same(t, f.ns)
	if strings.Contains(second.process.Output(), "probed") {
		t.Error("the second ran a hook")
	}

	first := f.holder()
	if code := f.process.Stop(); code != 0 {
		t.Errorf("the first ends with exit code %d", code)
	}
	if f.holder() == first {
		t.Error("the first has not given the Lease back")
	}
	second.waitReady()
	second.waitState("web", status.ModuleReady)
	before.same(t, f.ns)
	second.configure(map[string]string{"web": "text: second"})
	second.waitData("web", map[string]string{"text": "second"})
}

// holder is who has the Lease, "" for nobody.
func (f *fixture) holder() string {
	f.t.Helper()
	if h := f.lease().Spec.HolderIdentity; h != nil {
		return *h
	}
	return ""
}

func (f *fixture) lease() *coordinationv1.Lease {
	f.t.Helper()
	lease, err := shared.Client.CoordinationV1().Leases(f.ns).Get(f.t.Context(), f.name, metav1.GetOptions{})
	if err != nil {
		f.t.Fatal(err)
	}
	return lease
}

// freeLease does what time does after a crash: nobody holds the Lease any more.
func (f *fixture) freeLease() {
	f.t.Helper()
	f.succeed()
	if err := shared.Client.CoordinationV1().Leases(f.ns).Delete(f.t.Context(), f.name, metav1.DeleteOptions{}); err != nil && !apierrors.IsNotFound(err) {
		f.t.Fatal(err)
	}
}

// A process is killed wherever it is, again and again; the one that is left alone ends
// with what an undisturbed one has, and leaves nothing pending.
func TestKilledAnywhere(t *testing.T) {
	t.Parallel()
	f := newFixture(t, trees(mirror("one", on), mirror("two", `module(enabled = True, requires = ["one"])`), mirror("three", on), mirror("old", on), probe(), map[string]string{
		"two/hooks/a.star": `
def count(ctx):
    values.set("text", ",".join(ctx.snapshots["cms"]))

hook(count, on = [before_helm(), k8s.watch("v1", "ConfigMap", name = "cms", namespaces = ["$NS"], labels = {"e2e": "$NS"},
                                           filter = lambda o: o.get("data.text", ""))])
`}))
	want := func(texts, text string) {
		t.Helper()
		f.waitReady()
		f.eventually("all has settled", f.quiet)
		f.waitData("two", map[string]string{"text": texts})
		f.waitData("three", map[string]string{"text": text})
		for _, name := range []string{"one", "two", "three"} {
			all, err := history(f.ns, name)
			if err != nil {
				t.Fatal(err)
			}
			for _, r := range all {
				if r.Info.Status.IsPending() {
					t.Errorf("revision %d of %s is %s", r.Version, name, r.Info.Status)
				}
			}
			if last := all[len(all)-1]; last.Info.Status != release.StatusDeployed {
				t.Errorf("%s is %s", name, last.Info.Status)
			}
		}
	}
	// Each text is printed a moment after a step was begun or done. One that is not, because
	// the process before came so far, is waited for until all is done: "" is just that.
	kill := func(after string) {
		t.Helper()
		f.start()
		f.eventually("it says "+after, func() error {
			if after != "" && holds(f.process.Output(), []string{after}) == nil {
				return nil
			}
			code, body, err := f.http("/readyz/modules")
			if err == nil && code != http.StatusOK {
				err = fmt.Errorf("%d: %s", code, body)
			}
			return err
		})
		f.process.Kill()
		f.freeLease()
	}
	kill("starts")
	kill(`"probed"`)
	kill(`"installed"`)
	f.touch("a", "a")
	kill("starts")
	f.configure(map[string]string{"three": "text: x"})
	kill("")
	f.start()
	want("a", "x")
	f.process.Kill()
	f.freeLease()

	before := restingPicture(t, f.ns)
	kill("")
	before.same(t, f.ns)
	f.write(map[string]string{"old": ""})
	kill("no longer in the module tree")
	f.touch("b", "b")
	f.start()
	want("a,b", "x")
	f.eventually("the uninstall is done", func() error {
		if all, err := history(f.ns, "old"); err == nil {
			return fmt.Errorf("revision %d is %s", len(all), all[len(all)-1].Info.Status)
		}
		_, err := configMap(t, f.ns, "old")
		if err == nil {
			return errors.New("its ConfigMap is there")
		}
		return nil
	})
}
