package release

import (
	"fmt"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/json"
	"k8s.io/apimachinery/pkg/watch"

	"github.com/starling-operator/starling/modules/helm"
)

// Tests of a chart decide whether a revision is good. They run with each try, whatever their delete policy, and at no
// other time.
func TestTestsOfCharts(t *testing.T) {
	w, _ := newSimulatedDrift(t)
	of := w.client.Resource(jobs).Namespace(w.apps)
	events, err := of.Watch(t.Context(), metav1.ListOptions{})
	if err != nil {
		t.Fatal(err)
	}
	defer events.Stop()
	target := w.target("red")
	const isTest = "helm.sh/hook: test-success, helm.sh/hook-delete-policy: hook-succeeded"
	target.Chart = chartOf("web", nearMap+jobOf("one", isTest))
	// try reconciles, has the Job, once it is made, come to an end, and gives the record.
	try := func(end, fails string) *helm.Release {
		t.Helper()
		done := make(chan error)
		go func() {
			_, err := w.Reconcile(t.Context(), target)
			done <- err
		}()
		made := 0
		for {
			select {
			case ev := <-events.ResultChan():
				live, is := ev.Object.(*unstructured.Unstructured)
				if !is || ev.Type != watch.Added {
					continue
				}
				if made++; end == "" {
					_ = of.Delete(t.Context(), live.GetName(), metav1.DeleteOptions{})
					continue
				}
				status := `{"status": {"conditions": [{"type": "` + end + `", "status": "True", "reason": "Told"}]}}`
				_, _ = of.Patch(t.Context(), live.GetName(), types.MergePatchType, []byte(status), metav1.PatchOptions{}, "status")
				continue
			case err = <-done:
			}
			break
		}
		if fails == "" && err != nil || fails != "" && (err == nil || !strings.Contains(err.Error(), fails)) {
			t.Fatalf("%v, want %q", err, fails)
		}
		if want := end != "none"; want != (made == 1) {
			t.Errorf("%s: its test ran %d times", end, made)
		}
		rel, err := w.Last(t.Context(), w.apps, "web")
		if err != nil || rel == nil {
			t.Fatalf("%v, %v", rel, err)
		}
		return rel
	}
	if rel := try("none", ""); rel.Info.Status != helm.StatusDeployed || !rel.Hooks[0].LastRun.StartedAt.IsZero() {
		t.Errorf("without test = True: %+v, %+v", rel.Info, rel.Hooks[0].LastRun)
	}
	target.Test = true
	try("none", "") // the revision is there
	target.Chart = chartOf("web", nearMap+jobOf("two", isTest))
	failed := try("Failed", "failed test: web/templates/0.yaml: job run failed: Told")
	if failed.Info.Status != helm.StatusFailed || failed.Version != 2 || failed.Hooks[0].LastRun.Phase != helm.HookPhaseFailed ||
		!strings.Contains(failed.Info.Description, "job run failed") {
		t.Errorf("%+v, %+v", failed.Info, failed.Hooks[0].LastRun)
	}
	try("", "job run was deleted before it had ended")
	if rel := try("Complete", ""); rel.Info.Status != helm.StatusDeployed || rel.Version != 2 || rel.Hooks[0].LastRun.Phase != helm.HookPhaseSucceeded {
		t.Errorf("%+v, %+v", rel.Info, rel.Hooks[0].LastRun)
	}
	if w.there(jobs, w.apps, "run") {
		t.Error("the Job of the test is there, though its policy says hook-succeeded")
	}
	try("none", "")
}

// A Pod that has failed says why, as far as it knows.
func TestWhyAPodHasFailed(t *testing.T) {
	const ended = `[{"name": "a", "state": {"terminated": {"exitCode": 0}}}, {"name": "b", "state": {"terminated": {"exitCode": 7}}}, 1]`
	for status, want := range map[string]string{
		`{"phase": "Running"}`: "<nil>",
		`{"phase": "Failed"}`:  "pod p failed: it has failed",
		`{"phase": "Failed", "containerStatuses": ` + ended + `}`:                      "pod p failed: container b has ended with exit code 7",
		`{"phase": "Failed", "reason": "Evicted", "containerStatuses": ` + ended + `}`: "pod p failed: Evicted",
	} {
		var of map[string]any
		if err := json.Unmarshal([]byte(status), &of); err != nil {
			t.Fatal(err)
		}
		pod := &unstructured.Unstructured{Object: map[string]any{"apiVersion": "v1", "kind": "Pod", "metadata": map[string]any{"name": "p"}, "status": of}}
		if _, failed := result(pod); fmt.Sprint(failed) != want {
			t.Errorf("%s: %v, want %s", status, failed, want)
		}
	}
}
