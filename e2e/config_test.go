package e2e

import (
	"slices"
	"testing"

	rbacv1 "k8s.io/api/rbac/v1"

	"github.com/starling-operator/starling/modules/status"
)

// An edit of the user's ConfigMap makes a revision; a section that does not pass is
// refused with its path while the others count; a ConfigMap that is gone changes
// nothing, across restarts too.
func TestConfigMap(t *testing.T) {
	t.Parallel()
	l := mirrors
	l.HooksIn = map[string][]rbacv1.PolicyRule{"$NS": append([]rbacv1.PolicyRule{allow("", "events", "get", "create", "patch")}, mirrors.HooksIn["$NS"]...)}
	f := newFixture(t, trees(mirror("web", on), mirror("shop", on), probe()), l)
	f.start()
	f.waitRevision(f.ns, "web", 1)
	f.waitRevision(f.ns, "shop", 1)
	f.waitConfig(status.ConfigMissing)

	f.configure(map[string]string{"web": "text: one"})
	f.waitData("web", map[string]string{"text": "one"})
	f.waitRevision(f.ns, "web", 2)
	f.waitConfig(status.ConfigOK)

	// Three kinds of a broken section, each beside a good one: when the good one
	// is in force, the broken one was judged.
	for _, broken := range []struct{ section, says, good string }{
		{"text: 7", "text", "a"},
		{"text: {", "web", "b"},
		{"txet: one", "txet", "c"},
	} {
		f.configure(map[string]string{"web": broken.section, "shop": "text: " + broken.good})
		f.waitData("shop", map[string]string{"text": broken.good})
		f.waitConfig(status.ConfigOK, "ConfigMap "+f.ns+"/starling", broken.says)
		f.waitState("web", status.ModuleReady, broken.says)
		f.waitEvent("ConfigMap", "starling", "ConfigRefused", broken.says)
		f.waitData("web", map[string]string{"text": "one"})
	}
	f.waitRevision(f.ns, "web", 2)
	f.waitRevision(f.ns, "shop", 4)

	f.deleteConfigMap("starling")
	f.waitConfig(status.ConfigHeld)
	f.eventually("all has settled", f.quiet)
	before := restingPicture(t, f.ns)
	f.probe()
	f.waitState("web", status.ModuleReady)
	before.same(t, f.ns)

	f.restart()
	f.waitReady()
	f.waitConfig(status.ConfigHeld)
	f.waitState("web", status.ModuleReady)
	f.waitState("shop", status.ModuleReady)
	f.probe()
	before.same(t, f.ns)

	// An empty one is a word of the user: back to the defaults.
	f.configure(nil)
	f.waitData("web", map[string]string{"text": "plain"})
	f.waitRevision(f.ns, "web", 3)
	f.waitRevision(f.ns, "shop", 5)
}

// The answers of enabled(): disabled() uninstalls, waiting() installs nothing and
// leaves what is there alone.
func TestEnabled(t *testing.T) {
	t.Parallel()
	f := newFixture(t, trees(probe(), mirror("web", on+`
def enabled():
    mode = values.get("mode", "wait")
    if mode == "gone":
        return disabled("nobody wants it")
    if mode == "wait":
        return waiting("no mode yet")
    if mode == "fail":
        fail("cannot tell")
    return True
`)))
	f.start()
	f.waitReady()
	f.waitState("web", status.ModuleWaiting, "no mode yet")
	f.probe()
	noRelease(t, f.ns, "web")

	f.configure(map[string]string{"web": "mode: up"})
	f.waitState("web", status.ModuleReady)
	f.waitRevision(f.ns, "web", 1)

	f.configure(map[string]string{"web": "{mode: wait, text: later}"})
	f.waitState("web", status.ModuleWaiting, "no mode yet", "its release stays as it is")
	f.waitData("web", map[string]string{"text": "plain"})
	f.waitRevision(f.ns, "web", 1)

	// An error is no answer: what is there stays.
	f.configure(map[string]string{"web": "{mode: fail, text: later}"})
	f.waitState("web", status.ModuleFailed, "web/module.star:", "cannot tell")
	f.waitRevision(f.ns, "web", 1)

	f.configure(map[string]string{"web": "{mode: up, text: later}"})
	f.waitData("web", map[string]string{"text": "later"})
	f.waitRevision(f.ns, "web", 2)

	f.configure(map[string]string{"web": "mode: gone"})
	f.waitState("web", status.ModuleOff, "nobody wants it")
	noRelease(t, f.ns, "web")
	if _, err := configMap(t, f.ns, "web"); err == nil {
		t.Error("the chart's ConfigMap is still there")
	}
}

// A ConfigMap that may not be read is not an empty one: what was accepted last stays in
// force, across restarts too, and the status names the right to give.
func TestConfigMapThatCannotBeRead(t *testing.T) {
	t.Parallel()
	f := newFixture(t, trees(mirror("web", on), probe()))
	f.configure(map[string]string{"web": "text: from the user"})
	f.start()
	f.waitData("web", map[string]string{"text": "from the user"})
	f.waitReady()
	f.stop()
	before := restingPicture(t, f.ns)

	// Another account, whose role lacks the user's ConfigMap.
	blind := *f
	access := mirrors.access(f.ns, f.name)
	access.Namespaced[f.ns] = slices.DeleteFunc(access.Namespaced[f.ns], func(r rbacv1.PolicyRule) bool {
		return slices.Contains(r.Resources, "configmaps") && slices.Contains(r.Verbs, "watch")
	})
	blind.kube = shared.ServiceAccountKubeconfig(t, f.ns, "op-blind", access)
	blind.write(map[string]string{"probe": ""}) // it watches ConfigMaps too
	blind.start()
	blind.waitConfig(status.ConfigHeld, "configmaps", "op-blind")
	blind.waitState("web", status.ModuleReady)
	blind.waitReady()
	blind.waitData("web", map[string]string{"text": "from the user"})
	blind.stop()
	before.same(t, f.ns)
}

// A paused module's hooks run and its release is left alone; when the pause is over,
// the release catches up.
func TestPause(t *testing.T) {
	t.Parallel()
	f := newFixture(t, trees(mirror("web", on), mirror("shop", on), probe()))
	f.start()
	f.waitRevision(f.ns, "web", 1)
	f.waitRevision(f.ns, "shop", 1)
	f.stop()
	f.configure(map[string]string{"web": "text: later", "shop": "text: later"})
	f.start("--pause=web")
	f.waitRevision(f.ns, "shop", 2)
	f.waitState("web", status.ModulePaused)
	f.waitReady()
	f.probe()
	f.waitRevision(f.ns, "web", 1)
	f.configure(map[string]string{"webEnabled": "false", "shop": "text: still later"})
	f.waitRevision(f.ns, "shop", 3)
	f.waitState("web", status.ModulePaused, "its release stays as it is")
	f.waitRevision(f.ns, "web", 1)

	f.configure(map[string]string{"web": "text: later", "shop": "text: still later"})
	f.restart()
	f.waitRevision(f.ns, "web", 2)
	f.waitRevision(f.ns, "shop", 3)
}
