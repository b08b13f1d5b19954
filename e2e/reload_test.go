package e2e

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"helm.sh/helm/v3/pkg/storage/driver"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/starling-operator/starling/modules/status"
)

// seen is a hook that puts into the values how many ConfigMaps of fixture.touch there
// are, with a word before it.
func seen(word string) string {
	return `
def seen(ctx):
    values.set("text", "` + word + ` %d" % len(ctx.snapshots["cms"]))

hook(seen, on = [k8s.watch("v1", "ConfigMap", name = "cms", namespaces = ["$NS"], labels = {"e2e": "$NS"}, filter = ["data"])])
`
}

// The swap of a mounted ConfigMap and that of git-sync: an edit is live, and only what
// was edited runs; nothing is listed or watched again.
func TestReloadOfVolumes(t *testing.T) {
	for name, link := range map[string]string{"kubelet": "..data", "git-sync": "current"} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f := newFixture(t, nil)
			v := newVolume(f, link, trees(mirror("web", on), map[string]string{"web/hooks/a.star": seen("first")}, mirror("shop", on), probe(),
				map[string]string{"plain/module.star": on, "plain/hooks/a.star": seen("plain")}))
			f.start()
			f.waitReady()
			f.waitData("web", map[string]string{"text": "first 0"})
			f.waitRevision(f.ns, "shop", 1)
			f.probe()
			f.waitData("web", map[string]string{"text": "first 1"})
			plain := f.waitRuns("plain/hooks/a.star:seen", 1)
			_, watches := f.requests()

			v.swap(map[string]string{"web/hooks/a.star": seen("second")})
			f.waitData("web", map[string]string{"text": "second 1"})
			f.waitGeneration(2)
			f.waitState("web", status.ModuleReady)

			// A hook of a module without a chart: not one request.
			settled := f.settledRequests()
			v.swap(map[string]string{"plain/hooks/a.star": seen("other")})
			f.waitGeneration(3)
			f.waitRuns("plain/hooks/a.star:seen", plain+1)
			if gets, _ := f.requests(); gets != settled {
				t.Errorf("%v lists or reads more", gets-settled)
			}

			// A template alone.
			v.swap(map[string]string{"web/templates/cm.yaml": strings.Replace(mirror("web", on)["web/templates/cm.yaml"], "\ndata:", "\ndata:\n  more: x", 1)})
			f.waitData("web", map[string]string{"text": "second 1", "more": "x"})
			f.probe()
			if _, now := f.requests(); now != watches {
				t.Errorf("%v watches more", now-watches)
			}
			f.waitRevision(f.ns, "shop", 1)
			if h, err := f.hook("web/hooks/a.star:seen"); err != nil || h.Runs > 5 {
				t.Errorf("%+v, %v", h, err)
			}
		})
	}
}

// settledRequests waits until no reads are under way, and returns how many there were.
func (f *fixture) settledRequests() (gets float64) {
	f.t.Helper()
	last, since := -1.0, time.Now()
	f.eventually("no requests", func() error {
		if gets, _ = f.requests(); gets != last {
			last, since = gets, time.Now()
		}
		if time.Since(since) < 2*time.Second {
			return fmt.Errorf("%v requests so far", gets)
		}
		return nil
	})
	return gets
}

// Edits while objects come and go: the last state of both is what is there in the end,
// and the hooks of other modules have seen none of it.
func TestReloadUnderLoad(t *testing.T) {
	t.Parallel()
	f := newFixture(t, nil)
	v := newVolume(f, "current", trees(mirror("web", on), map[string]string{"web/hooks/a.star": seen("0")}, mirror("shop", on), probe(),
		map[string]string{"calm/module.star": on, "calm/hooks/a.star": "def a(ctx):\n    pass\nhook(a, on = [startup()])\n"}))
	f.start()
	f.waitReady()
	f.probe()
	_, watches := f.requests()

	ctx, cancel := context.WithCancel(t.Context())
	load := make(chan struct{})
	go func() {
		defer close(load)
		for i := 0; ctx.Err() == nil; i++ {
			cm := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: fmt.Sprintf("load-%d", i%10), Labels: map[string]string{"e2e": f.ns}}}
			api := shared.Client.CoreV1().ConfigMaps(f.ns)
			if _, err := api.Create(ctx, cm, metav1.CreateOptions{}); err != nil {
				_ = api.Delete(ctx, cm.Name, metav1.DeleteOptions{})
			}
		}
	}()
	const edits = 40
	for i := 1; i <= edits; i++ {
		v.swap(map[string]string{"web/hooks/a.star": seen(fmt.Sprint(i))})
		if i%10 == 0 {
			f.waitGeneration(i/10 + 1)
		}
	}
	cancel()
	<-load
	list, err := shared.Client.CoreV1().ConfigMaps(f.ns).List(t.Context(), metav1.ListOptions{LabelSelector: "e2e=" + f.ns})
	if err != nil {
		t.Fatal(err)
	}
	f.waitData("web", map[string]string{"text": fmt.Sprintf("%d %d", edits, len(list.Items))})
	f.waitState("web", status.ModuleReady)
	if _, now := f.requests(); now != watches {
		t.Errorf("%v watches more", now-watches)
	}
	if h, err := f.hook("calm/hooks/a.star:a"); err != nil || h.Runs != 1 {
		t.Errorf("%+v, %v", h, err)
	}
	f.waitRevision(f.ns, "shop", 1)
}

// A module that breaks stays as it was, and the good half of the edit is in force; the reason is
// where people look. Mended, all of it is in force.
func TestReloadOfABrokenModule(t *testing.T) {
	t.Parallel()
	l := mirrors
	l.HooksIn = map[string][]rbacv1.PolicyRule{"$NS": append([]rbacv1.PolicyRule{allow("", "events", "get", "create", "patch"), allow("apps", "deployments", "get")}, mirrors.HooksIn["$NS"]...)}
	f := newFixture(t, nil, l)
	v := newVolume(f, "..data", trees(mirror("web", on), map[string]string{"web/hooks/a.star": seen("good")}, mirror("shop", on), probe()))
	d := deployment(t, f.ns)
	f.env = []string{"POD_NAME=" + d.Name + "-6d4b75cb6d-hwt4s"}
	f.start()
	f.waitReady()
	f.probe()
	f.waitData("web", map[string]string{"text": "good 1"})

	v.swap(map[string]string{"web/hooks/a.star": "def seen(ctx)\n", "shop/values.yaml": "text: other\n"})
	f.waitReloadFailed("module web: web/hooks/a.star:1:14")
	out, err := f.process.Command(t.Context(), "get", "modules")
	if err != nil || !strings.Contains(out, "note: the module tree has changed and does not load as it is now, so generation 2 stays in force: module web: web/hooks/a.star:1:14") {
		t.Errorf("starling get modules says\n%s%v", out, err)
	}
	f.waitEvent("Deployment", d.Name, "ReloadFailed", "web/hooks/a.star:1:14")
	f.touch("another", "x")
	f.waitData("web", map[string]string{"text": "good 2"})
	f.waitData("shop", map[string]string{"text": "other"})
	f.waitState("web", status.ModuleReady)

	// Another reason, and one module more that is broken.
	v.swap(map[string]string{"web/hooks/a.star": seen("mended"), "shop/module.star": "modul()\n", "web/module.star": "module(requires = [\"nobody\"])\n"})
	f.waitReloadFailed("module shop: ", "modul", "module web: ", "nobody")

	v.swap(map[string]string{"web/module.star": on, "shop/module.star": on})
	f.waitGeneration(4)
	f.waitData("web", map[string]string{"text": "mended 2"})
	f.waitData("shop", map[string]string{"text": "other"})
	f.waitEvent("Deployment", d.Name, "Reloaded", "generation 4")
	if n := f.metric(`starling_reload_failed`); n != 0 {
		t.Errorf("starling_reload_failed is %v", n)
	}
	if held := f.metric("starling_reloads_total", `result="held"`); held != 2 {
		t.Errorf("%v reloads held modules", held)
	}
}

// deployment makes a Deployment that has no pods.
func deployment(t *testing.T, ns string) *appsv1.Deployment {
	t.Helper()
	labels := map[string]string{"app": "x"}
	d, err := shared.Client.AppsV1().Deployments(ns).Create(t.Context(), &appsv1.Deployment{
		ObjectMeta: metav1.ObjectMeta{Name: "operator"},
		Spec: appsv1.DeploymentSpec{Replicas: new(int32), Selector: &metav1.LabelSelector{MatchLabels: labels},
			Template: corev1.PodTemplateSpec{ObjectMeta: metav1.ObjectMeta{Labels: labels},
				Spec: corev1.PodSpec{Containers: []corev1.Container{{Name: "x", Image: "x"}}}}},
	}, metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	return d
}

// waitEvent waits for an Event about an object.
func (f *fixture) waitEvent(kind, name, reason, text string) {
	f.t.Helper()
	f.eventually("an Event "+reason, func() error {
		list, err := shared.Client.CoreV1().Events(f.ns).List(f.t.Context(), metav1.ListOptions{})
		if err != nil {
			return err
		}
		for _, ev := range list.Items {
			if o := ev.InvolvedObject; o.Kind == kind && o.Name == name && ev.Reason == reason && strings.Contains(ev.Message, text) {
				return nil
			}
		}
		return fmt.Errorf("there are %d others", len(list.Items))
	})
}

// New, removed, renamed and moved modules; and a tree that is not there for a while,
// which uninstalls nothing.
func TestReloadOfWholeModules(t *testing.T) {
	t.Parallel()
	f := newFixture(t, trees(mirror("web", on), mirror("shop", on), probe()))
	f.start()
	f.waitReady()
	f.waitRevision(f.ns, "web", 1)
	f.waitRevision(f.ns, "shop", 1)
	f.probe()

	// It lies behind a link, so that another folder can take its place in one step.
	there, link := fixture{t: t, ns: f.ns, modules: filepath.Join(f.modules, ".there")}, filepath.Join(f.modules, "new")
	there.write(mirror("new", on))
	if err := os.Mkdir(filepath.Join(there.modules, "empty"), 0o755); err != nil {
		t.Fatal(err)
	}
	lead := func(to string) error {
		tmp := filepath.Join(there.modules, "link")
		return errors.Join(os.Symlink(to, tmp), os.Rename(tmp, link))
	}
	if err := lead(".there/new"); err != nil {
		t.Fatal(err)
	}
	f.waitRevision(f.ns, "new", 1)
	f.waitState("new", status.ModuleReady)

	// The number before the name is an order, no other module.
	if err := os.Rename(filepath.Join(f.modules, "web"), filepath.Join(f.modules, "020-web")); err != nil {
		t.Fatal(err)
	}
	f.waitGeneration(3)
	f.write(map[string]string{"020-web/values.yaml": "text: moved\n"})
	f.waitData("web", map[string]string{"text": "moved"})
	f.waitRevision(f.ns, "web", 2)

	// Another name is another module: its objects come, those of the old one go.
	if err := os.Rename(filepath.Join(f.modules, "shop"), filepath.Join(f.modules, "store")); err != nil {
		t.Fatal(err)
	}
	f.waitRevision(f.ns, "store", 1)
	f.waitUninstalled("shop")

	// No step of these shows a tree from which only some modules are gone: that is a wish.
	away := filepath.Join(t.TempDir(), "away")
	f.eventually("all has settled", f.quiet)
	before := restingPicture(t, f.ns)
	for _, gone := range []struct {
		says       string
		take, give func() error
	}{
		{"cannot read the modules folder", func() error { return os.Rename(f.modules, away) }, func() error { return os.Rename(away, f.modules) }},
		{"is empty", func() error { return errors.Join(os.Rename(f.modules, away), os.Mkdir(f.modules, 0o755)) },
			func() error { return errors.Join(os.Remove(f.modules), os.Rename(away, f.modules)) }},
		{"its folder holds nothing of a module", func() error { return lead(".there/empty") }, func() error { return lead(".there/new") }},
	} {
		if err := gone.take(); err != nil {
			t.Fatal(err)
		}
		f.waitReloadFailed(gone.says)
		f.waitState("new", status.ModuleReady)
		f.waitState("store", status.ModuleReady)
		if err := gone.give(); err != nil {
			t.Fatal(err)
		}
		f.waitGeneration(1)
	}
	before.same(t, f.ns)

	f.write(map[string]string{"new": ""})
	f.waitUninstalled("new")
	f.waitState("web", status.ModuleReady)
	f.probe()
}

func (f *fixture) waitUninstalled(module string) {
	f.t.Helper()
	f.eventually(module+" is uninstalled", func() error {
		h, err := history(f.ns, module)
		if errors.Is(err, driver.ErrReleaseNotFound) {
			return nil
		}
		return fmt.Errorf("%d revisions, %w", len(h), err)
	})
}

// Webhooks come, change and go with their hooks, in a process that had none at its start.
func TestReloadOfWebhooks(t *testing.T) {
	t.Parallel()
	f := newFixture(t, trees(probe(), map[string]string{"web/module.star": on, "web/hooks/guard.star": "hook(lambda ctx: None, name = \"none\", on = [startup()])\n"}), webhookRole(mirrors))
	f.start(webhookArgs(t)...)
	f.waitReady()
	f.waitConfigurations(0)
	ns := f.labelled()
	f.write(map[string]string{"web/hooks/guard.star": guard})
	f.waitConfigurations(3)
	denied := newConfigMap("a", map[string]string{"deny": "x"})
	f.refused(ns, denied, "no")
	f.write(map[string]string{"web/hooks/guard.star": strings.Replace(guard, "by %s: no", "by %s: never", 1)})
	f.refused(ns, denied, "never")
	f.write(map[string]string{"web": ""})
	f.waitConfigurations(0)
	f.eventually("nobody is asked any more", func() error {
		_, err := shared.Client.CoreV1().ConfigMaps(ns).Create(t.Context(), denied, metav1.CreateOptions{DryRun: []string{metav1.DryRunAll}})
		return err
	})
	if n := f.metric("starling_webhook_requests_total"); n != 0 {
		t.Errorf("metrics of a module that is gone: %v requests", n)
	}
	f.probe()
}

// A process that waits for the lease follows the tree as well: it begins with the tree as
// it is then.
func TestReloadWhileStandingBy(t *testing.T) {
	t.Parallel()
	f := newFixture(t, nil)
	v := newVolume(f, "current", trees(mirror("web", on), probe()))
	f.start()
	f.waitReady()
	second := f.other()
	second.eventually("it stands by", func() error {
		if st, err := second.status(); err != nil || st.Leader {
			return fmt.Errorf("%+v, %w", st, err)
		}
		return nil
	})

	v.swap(map[string]string{"web/module.star": "modul()\n"})
	f.waitReloadFailed("module web: ")
	second.waitReloadFailed("module web: ")
	v.swap(map[string]string{"web/module.star": on, "web/values.yaml": "text: later\n"})
	f.waitData("web", map[string]string{"text": "later"})
	second.eventually("the tree is in order", func() error {
		if st, err := second.status(); err != nil || st.ReloadFailed != nil {
			return fmt.Errorf("%+v, %w", st.ReloadFailed, err)
		}
		return nil
	})
	if code := f.process.Stop(); code != 0 {
		t.Fatalf("exit code %d", code)
	}
	second.waitReady()
	second.waitGeneration(2)
	second.probe()
	f.waitRevision(f.ns, "web", 2)
}

// With --reload=false the tree is what it was at the start.
func TestReloadSwitchedOff(t *testing.T) {
	t.Parallel()
	f := newFixture(t, trees(mirror("web", on), probe()))
	f.start("--reload=false")
	f.waitReady()
	f.write(map[string]string{"web/values.yaml": "text: later\n"})
	f.probe()
	if st, err := f.status(); err != nil || st.Generation != 1 {
		t.Errorf("generation %d, %v", st.Generation, err)
	}
	f.waitData("web", map[string]string{"text": "plain"})
	f.restart()
	f.waitData("web", map[string]string{"text": "later"})
}
