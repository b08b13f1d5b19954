package e2e

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/starling-operator/starling/e2e/cluster"
)

// While the trees of two processes differ, hooks that only the one that leads has answer, whichever of the two the API
// server asks.
func TestAWebhookThatOnlyTheLeaderHas(t *testing.T) {
	t.Parallel()
	f := newFixture(t, map[string]string{"web/module.star": on, "web/hooks/guard.star": guard}, webhookRole(mirrors)).alone("the other one has another tree")
	ns := f.labelled()
	asked, led := webhookArgs(t), webhookArgs(t) // the API server knows the address of the second process alone
	f.start(led[0], asked[1])
	f.waitReady()
	f.waitConfigurations(3)
	second := (&fixture{t: t, ns: f.ns, name: f.name, modules: t.TempDir(), kube: f.kube}).alone("it is one of two")
	second.write(map[string]string{"web/module.star": on})
	second.start(asked...)
	second.waitReadyAs(false)
	denied := newConfigMap("bad", map[string]string{"deny": "yes"})
	f.refused(ns, denied, `admission webhook "validate.guard.check.web.starling.dev" denied the request: CREATE of bad by `)
	second.write(map[string]string{"web/hooks/guard.star": guard})
	f.refused(ns, newConfigMap("broken", map[string]string{"broken": "yes"}), "the hook is broken")
}

// When the first hook of an instance is registered there is a certificate since a moment ago. A review that comes to
// the process that stands by waits for it: nobody is told that there is no answer.
func TestTheFirstReviewsComeToAStandby(t *testing.T) {
	t.Parallel()
	f := newFixture(t, map[string]string{"web/module.star": on, "web/hooks/guard.star": guard}, webhookRole(mirrors)).alone("the API server asks the other one")
	ns := f.labelled()
	f.configure(map[string]string{"webEnabled": "false"})
	asked, led := webhookArgs(t), webhookArgs(t) // the API server knows the address of the second process alone
	f.start(led[0], asked[1])
	f.waitReady()
	second := (&fixture{t: t, ns: f.ns, name: f.name, modules: f.modules, kube: f.kube}).alone("it is one of two")
	second.start(asked...)
	second.waitReadyAs(false)
	f.configure(map[string]string{"webEnabled": "true"})
	denied := newConfigMap("bad", map[string]string{"deny": "yes"})
	f.eventually("the hook denies it", func() error {
		_, err := shared.Client.CoreV1().ConfigMaps(ns).Create(t.Context(), denied, metav1.CreateOptions{DryRun: []string{metav1.DryRunAll}})
		if err == nil {
			return errors.New("it is not reviewed yet")
		}
		if !strings.Contains(err.Error(), "CREATE of bad by ") {
			t.Fatal(err)
		}
		return nil
	})
}

// A hook that fails in the process that stands by, which alone is asked, is in the status of its Module object, and one
// Event. Once it succeeds there, the object says so.
func TestAWebhookThatFailsInAStandby(t *testing.T) {
	t.Parallel()
	ns := shared.Namespace(t)
	module := "guard-" + ns[len(ns)-5:] // its Event is not that of an earlier run
	f := withObjects(t, ns, "starling", map[string]string{module + "/module.star": on, module + "/hooks/guard.star": guard}).alone("the API server asks the other one")
	reviewed := f.labelled()
	asked, led := webhookArgs(t), webhookArgs(t) // the API server knows the address of the second process alone
	f.start(led[0], asked[1])
	f.waitReady()
	f.waitConfigurations(4)
	second := (&fixture{t: t, ns: f.ns, name: f.name, modules: f.modules, kube: f.kube, objects: true}).alone("it is one of two")
	second.start(asked...)
	second.waitReadyAs(false)
	for range 20 {
		f.refused(reviewed, newConfigMap("broken", map[string]string{"broken": "yes"}), "the hook is broken")
	}
	f.waitCondition(module, "HooksHealthy", "False", "the hook is broken")
	f.waitCondition(module, "Ready", "True", "the hook is broken")
	cluster.Eventually(t, soon, "one Event tells of it", func() error {
		events, err := shared.Client.CoreV1().Events("default").List(t.Context(), metav1.ListOptions{FieldSelector: "involvedObject.kind=Module,reason=HookFailed,involvedObject.name=" + module})
		if err != nil {
			return err
		}
		of := slices.DeleteFunc(events.Items, func(e corev1.Event) bool { // the other hook that fails may be seen before, or later
			return !strings.Contains(e.Message, "the hook is broken")
		})
		if len(of) != 1 {
			return fmt.Errorf("Events: %v", of)
		}
		return nil
	})
}
