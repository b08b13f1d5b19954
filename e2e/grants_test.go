package e2e

import (
	"fmt"
	"strings"
	"testing"
	"time"

	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/starling-operator/starling/modules/status"
	"github.com/starling-operator/starling/runtime/effect"
)

// widest is a role with which RBAC stops no hook in the operator's namespace.
func widest() least {
	role := mirrors
	everything := allow("*", "*", "*")
	role.HooksIn = map[string][]rbacv1.PolicyRule{"$NS": {everything}}
	return role
}

// failsWith waits until a hook has failed with this in its error.
func (f *fixture) failsWith(id, text string) {
	f.t.Helper()
	f.eventually(id+" is refused", func() error {
		h, err := f.hook(id)
		if err != nil {
			return err
		}
		if !strings.Contains(h.LastError, text) {
			return fmt.Errorf("it is %s after %d runs: %q", h.State, h.Runs, h.LastError)
		}
		return nil
	})
}

// A module that shares Starling's namespace has all verbs on its ConfigMaps, Secrets and
// Leases. The objects of Starling stay out of its reach: the user's config, which could
// switch others off, what others keep, and the key of records.
func TestGrantsDoNotReachStarling(t *testing.T) {
	t.Parallel()
	attacks := map[string]string{
		"config":  `k8s.patch("v1", "ConfigMap", "starling", merge = {"data": {"victimEnabled": "false"}})`,
		"replace": `k8s.apply({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "starling"}, "data": {"victimEnabled": "false"}})`,
		"remove":  `k8s.delete("v1", "ConfigMap", "starling")`,
		"kept":    `log.info(str(k8s.get("v1", "Secret", "starling-kept-victim").data))`,
		"key":     `log.info(reveal(k8s.secret("starling-records", "key")))`,
		"release": `log.info(str(k8s.get("v1", "Secret", "sh.helm.release.v1.victim.v1").data))`,
		"forget":  `k8s.delete("v1", "Secret", "starling-kept-victim")`,
		"lease":   `k8s.patch("coordination.k8s.io/v1", "Lease", "starling", merge = {"spec": {"holderIdentity": "thief"}})`,
		"set":     `k8s.apply_set("s", [{"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "starling-kept-victim"}}])`,
		// The token of Starling's ServiceAccount gives all rights that Starling has.
		"token":      `k8s.create({"apiVersion": "v1", "kind": "Secret", "type": "kubernetes.io/service-account-token", "metadata": {"name": "t", "annotations": {"kubernetes.io/service-account.name": "starling"}}})`,
		"tokens":     `k8s.apply_set("s", [{"apiVersion": "v1", "kind": "Secret", "type": "kubernetes.io/service-account-token", "metadata": {"name": "t"}}])`,
		"asks":       `k8s.patch("v1", "Secret", "ordinary", merge = {"metadata": {"annotations": {"kubernetes.io/service-account.name": "starling"}}})`,
		"asks-json":  `k8s.patch("v1", "Secret", "ordinary", json = [{"op": "add", "path": "/metadata/annotations", "value": {"kubernetes.io/service-account.name": "starling"}}])`,
		"reads":      `log.info(str(k8s.get("v1", "Secret", "admins").data))`,
		"reads-part": `log.info(reveal(k8s.secret("admins", "token")))`,
	}
	files := trees(mirror("victim", on), probe(), map[string]string{
		"victim/hooks/a.star": `
def keep(ctx):
    values.set("text", "hush-kept-61")

hook(keep, on = [startup()])
`,
		"thief/module.star": `
module(enabled = True, grants = [
    grant("v1", "ConfigMap", verbs = ["*"]),
    grant("v1", "Secret", verbs = ["*"]),
    grant("coordination.k8s.io/v1", "Lease", verbs = ["*"]),
])
`,
		"thief/hooks/list.star": `
def look(ctx):
    log.info("found", names = [o.metadata.name for kind in ["ConfigMap", "Secret"] for o in k8s.list("v1", kind, ["$NS"])])

hook(look, on = [schedule("* * * * * *")])
`,
	})
	for name, body := range attacks {
		files["thief/hooks/"+name+".star"] = "def attack(ctx):\n    " + body + "\n\nhook(attack, on = [startup()], retry = retry(min = \"2s\", max = \"2s\"))\n"
	}
	f := newFixture(t, files, widest())
	f.configure(map[string]string{"victim": "mode: x"})
	shared.Apply(t, "apiVersion: v1\nkind: Secret\nmetadata: {name: ordinary, namespace: "+f.ns+"}\n---\n"+
		"apiVersion: v1\nkind: ServiceAccount\nmetadata: {name: admin, namespace: "+f.ns+"}\n---\n"+
		"apiVersion: v1\nkind: Secret\ntype: kubernetes.io/service-account-token\nmetadata: {name: admins, namespace: "+f.ns+", annotations: {kubernetes.io/service-account.name: admin}}\n")
	f.start()
	f.waitRevision(f.ns, "victim", 1)
	for name := range attacks {
		f.failsWith("thief/hooks/"+name+".star:attack", "it belongs to Starling itself, and no grant covers that")
	}
	listed := func() (found []string) {
		for line := range strings.Lines(f.process.Output()) {
			if strings.Contains(line, `"message":"found"`) && strings.Contains(line, `"ordinary"`) {
				found = append(found, line)
			}
		}
		return found
	}
	before := len(listed())
	f.eventually("it lists", func() error {
		if len(listed()) < before+2 { // with all that Starling has made
			return fmt.Errorf("%d times", len(listed()))
		}
		return nil
	})
	for _, line := range listed() {
		for _, own := range []string{`"starling"`, "starling-kept", "starling-records", "starling-releases", "sh.helm.release"} {
			if strings.Contains(line, own) {
				t.Errorf("a list shows %s: %s", own, line)
			}
		}
	}
	noSecrets(t, []byte(f.said()), "hush-kept-61")
	f.waitState("victim", status.ModuleReady)
}

// Two instances have a module of the same name, which may only touch what it has made.
// An object that one instance made does not belong to the other.
func TestOwnedObjectsKnowTheirInstance(t *testing.T) {
	t.Parallel()
	twin := func(text, more string) map[string]string {
		return map[string]string{
			"twin/module.star": `module(enabled = True, grants = [grant("v1", "ConfigMap", verbs = ["get", "write"], owned = True)])`,
			"twin/hooks/a.star": `
def make(ctx):
    k8s.apply({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "shared"}, "data": {"text": "` + text + `"}})

hook(make, on = [startup()], retry = retry(min = "1s", max = "1s"))
` + more,
		}
	}
	a := newFixture(t, trees(twin("a", ""), probe()), widest())
	shared.Apply(t, "apiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: shared\n  namespace: "+a.ns+
		"\n  annotations: {starling.dev/made-by: twin}\ndata: {text: old}\n") // as versions before this one marked it
	shared.Apply(t, "apiVersion: v1\nkind: Secret\nmetadata:\n  name: starling-marks\n  namespace: "+a.ns+
		"\n  labels: {starling.dev/instance: "+a.ns+".starling, starling.dev/marks: key}\n  annotations: {starling.dev/unsigned-until: '"+
		time.Now().Add(time.Hour).UTC().Format(time.RFC3339)+"'}\ndata: {key: "+strings.Repeat("a", 43)+"=}\n")
	a.start()
	a.waitRuns("twin/hooks/a.star:make", 1)

	b := a.beside("b", trees(probe(), twin("b", `
def remove(ctx):
    k8s.delete("v1", "ConfigMap", "shared")

hook(remove, on = [startup()], retry = retry(min = "1s", max = "1s"))
`)), widest())
	b.start()
	b.failsWith("twin/hooks/a.star:make", "which is not as its grants ask (made by this module)")
	b.failsWith("twin/hooks/a.star:remove", "which is not as its grants ask (made by this module)")
	cm, err := shared.Client.CoreV1().ConfigMaps(a.ns).Get(t.Context(), "shared", metav1.GetOptions{})
	if err != nil || cm.Data["text"] != "a" || cm.Annotations[effect.MadeByAnnotation] != a.ns+"/starling/twin" {
		t.Errorf("the object is %v, marked %v, %v", cm.Data, cm.Annotations, err)
	}
}
