package release

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"github.com/starling-operator/starling/builtins"
	"github.com/starling-operator/starling/runtime/effect"
	"github.com/starling-operator/starling/runtime/lane"
)

var jobs = schema.GroupVersionResource{Group: "batch", Version: "v1", Resource: "jobs"}

// jobOf is a Job of a chart with annotations.
func jobOf(image, annotations string) string {
	return "apiVersion: batch/v1\nkind: Job\nmetadata: {name: run, annotations: {" + annotations + "}}\nspec: {ttlSecondsAfterFinished: 0, template: {spec: {restartPolicy: Never, containers: [{name: run, image: " + image + "}]}}}\n---\n"
}

const bad = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: bad}\ndata: {value: 1}\n---\n"

func (w *driftWorld) try(chart, fails string) {
	w.t.Helper()
	target := w.target("red")
	target.Chart = chartOf("web", chart)
	res, err := w.Reconcile(w.t.Context(), target)
	if last, failed := w.Last(w.t.Context(), w.apps, "web"); failed != nil || last == nil || res.Revision != last.Version {
		w.t.Errorf("revision %d, but it is %+v, %v", res.Revision, last, failed)
	}
	if fails == "" && err != nil || fails != "" && (err == nil || !strings.Contains(err.Error(), fails)) {
		w.t.Fatalf("%v, want %q", err, fails)
	}
}

// An error that comes before the release is looked at tells its revision, too.
func TestARevisionBesideAnEarlyError(t *testing.T) {
	w, _ := newSimulatedDrift(t)
	w.try(nearMap, "")
	target := w.target("red")
	target.Chart = chartOf("web", nearMap)
	target.Chart.Files[0].Data, target.Chart.Digest = []byte("{"), ""
	if res, err := w.Reconcile(t.Context(), target); err == nil || res.Revision != 1 {
		t.Errorf("revision %d, %v", res.Revision, err)
	}
}

// The try of an install that has failed takes over nothing that others have made since, and an uninstall leaves that.
func TestATryAgainTakesNothingOver(t *testing.T) {
	w, _ := newSimulatedDrift(t)
	w.try(bad+nearMap, "bad")
	w.remove(configMaps, w.apps, "a")
	w.create(configMaps, w.apps, "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: a}\ndata: {color: theirs}\n")
	uid := w.uid(configMaps, w.apps, "a")
	for _, chart := range []string{bad + nearMap, nearMap} {
		w.try(chart, `ConfigMap "a" in namespace apps is there already and belongs to no helm release`)
	}
	if _, err := w.Uninstall(t.Context(), w.target("red").Ref(), 0); err != nil {
		t.Fatal(err)
	}
	if !w.there(configMaps, w.apps, "a") || w.uid(configMaps, w.apps, "a") != uid {
		t.Error("somebody's object is gone")
	}
}

// A Job that becomes a hook runs anew, whatever its delete policy, and stays long enough for its end to be seen.
func TestAJobThatBecomesAHookRuns(t *testing.T) {
	for _, policy := range []string{"", ", helm.sh/hook-delete-policy: hook-failed"} {
		w, _ := newSimulatedDrift(t)
		w.o.Await = nobodyWaits // nobody runs the Job
		w.try(jobOf("one", ""), "")
		uid := w.uid(jobs, w.apps, "run")
		w.try(jobOf("two", `helm.sh/hook: "pre-install,pre-upgrade"`+policy)+nearMap, "")
		if w.uid(jobs, w.apps, "run") == uid {
			t.Error("the Job is the one from before")
		}
		live, err := w.client.Resource(jobs).Namespace(w.apps).Get(t.Context(), "run", metav1.GetOptions{})
		if err != nil {
			t.Fatal(err)
		}
		if ttl, _, _ := unstructured.NestedInt64(live.Object, "spec", "ttlSecondsAfterFinished"); ttl != seenFor {
			t.Errorf("it stays for %d s", ttl)
		}
	}
}

// A Job of a hook that an earlier try has left, which may have been killed, does not hold up the next one; that of an
// earlier revision does, as with Helm.
func TestAHookOfAnEarlierTry(t *testing.T) {
	w, _ := newSimulatedDrift(t)
	w.o.Await = nobodyWaits // nobody runs the Job
	hook := jobOf("one", `helm.sh/hook: "pre-install,pre-upgrade", helm.sh/hook-delete-policy: hook-failed`)
	w.try(hook+bad, "bad")
	uid := w.uid(jobs, w.apps, "run")
	w.try(hook+bad, "bad")
	if w.uid(jobs, w.apps, "run") != uid {
		t.Error("it has run twice")
	}
	w.try(hook+nearMap, `jobs.batch "run" already exists`)
}

// Nor does another object of a hook, which a try that was cut off has not deleted.
func TestAHookObjectOfAnEarlierTry(t *testing.T) {
	w, _ := newSimulatedDrift(t)
	hook := strings.Replace(nearMap, "name: a", `name: early, annotations: {helm.sh/hook: "pre-install,pre-upgrade", helm.sh/hook-delete-policy: hook-failed}`, 1)
	w.try(hook+bad, "bad")
	uid := w.uid(configMaps, w.apps, "early")
	w.try(hook+bad, "bad")
	if w.uid(configMaps, w.apps, "early") != uid {
		t.Error("it was made anew")
	}
	w.remove(configMaps, w.apps, "early")
	w.create(configMaps, w.apps, "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: early}\ndata: {color: theirs}\n")
	w.try(hook+bad, `configmaps "early" already exists`)
}

// Nor is the Job of one event taken for that of another one of the same try.
func TestAHookOfTwoEvents(t *testing.T) {
	w, _ := newSimulatedDrift(t)
	w.o.Await = nobodyWaits // nobody runs the Job
	for range 3 {
		w.try(jobOf("one", `helm.sh/hook: "pre-install,post-install,pre-upgrade,post-upgrade", helm.sh/hook-delete-policy: hook-failed`)+nearMap,
			`jobs.batch "run" already exists: delete it, or have each release delete it with the annotation helm.sh/hook-delete-policy: before-hook-creation`)
	}
}

// An upgrade puts right what its own hook has changed, though the watch does not show that yet.
func TestAHookThatTheWatchLagsBehind(t *testing.T) {
	w, f := newSimulatedDrift(t)
	w.o.Await = nobodyWaits // nobody runs the Job
	target := w.target("red")
	target.Chart = chartOf("web", driftChart, jobOf("one", `helm.sh/hook: pre-upgrade`))
	first, err := w.Reconcile(t.Context(), target)
	if err != nil {
		t.Fatal(err)
	}
	whole := f.server
	f.server = answers(func(r *http.Request) (*http.Response, error) {
		if r.Method == http.MethodPost && strings.HasSuffix(r.URL.Path, "/jobs") { // what it does
			(&others{w, deployments}).merge(`{"spec": {"replicas": 0}}`)
		}
		return whole.RoundTrip(r)
	})
	target.Standing = func() Objects { return first.Objects }
	target.Chart = chartOf("web", driftChart, jobOf("two", `helm.sh/hook: pre-upgrade`), nearMap)
	if _, err := w.Reconcile(t.Context(), target); err != nil {
		t.Fatal(err)
	}
	live := (&others{w, deployments}).get()
	if replicas, _, _ := unstructured.NestedInt64(live.Object, "spec", "replicas"); replicas == 0 {
		t.Errorf("it has %d replicas", replicas)
	}
}

// A definition that is a hook stays from one revision to the next, and is taken from nobody.
func TestADefinitionThatIsAHook(t *testing.T) {
	w, _ := newSimulatedDrift(t)
	target := w.target("red")
	target.Installs = []builtins.Grant{{APIVersion: "apiextensions.k8s.io/v1", Kind: "CustomResourceDefinition"}}
	definition := func(group, short string) string {
		text := strings.Replace(replaceGroup(gadgetCRD, group), `"metadata": {`, `"metadata": {"annotations": {"helm.sh/hook": "pre-install,pre-upgrade"}, `, 1)
		return strings.Replace(text, `"singular"`, `"shortNames": ["`+short+`"], "singular"`, 1) + "\n---\n"
	}
	for i, chart := range []string{definition("hook.example.com", "one"), definition("hook.example.com", "two")} {
		target.Chart = chartOf("web", chart, nearMap)
		if res, err := w.Reconcile(t.Context(), target); err != nil || res.Revision != i+1 {
			t.Fatalf("%+v, %v", res, err)
		}
	}
	live, err := w.client.Resource(schema.GroupVersionResource{Group: "apiextensions.k8s.io", Version: "v1", Resource: "customresourcedefinitions"}).Get(t.Context(), "gadgets.hook.example.com", metav1.GetOptions{})
	if names, _, _ := unstructured.NestedStringSlice(live.Object, "spec", "names", "shortNames"); err != nil || !slices.Equal(names, []string{"two"}) {
		t.Error(names, err)
	}
	target.Chart = chartOf("web", definition(w.group, "three"), nearMap)
	if _, err := w.Reconcile(t.Context(), target); err == nil || !strings.Contains(err.Error(), "is there already and belongs to no helm release: delete or rename one of the two, or have the release take it over with module(adopt = True)") {
		t.Error(err)
	}
	target.Adopt = true
	if _, err := w.Reconcile(t.Context(), target); err != nil {
		t.Error(err)
	}
}

// An object of the release that becomes a hook stays when another hook fails.
func TestAHookThatFailsDeletesNoMember(t *testing.T) {
	w, _ := newSimulatedDrift(t)
	w.try(nearMap, "")
	uid := w.uid(configMaps, w.apps, "a")
	of := w.client.Resource(jobs).Namespace(w.apps)
	watch, err := of.Watch(t.Context(), metav1.ListOptions{})
	if err != nil {
		t.Fatal(err)
	}
	defer watch.Stop()
	go func() { // the Job fails
		for ev := range watch.ResultChan() {
			if live, is := ev.Object.(*unstructured.Unstructured); is && ev.Type == "ADDED" {
				_, _ = of.Patch(t.Context(), live.GetName(), types.MergePatchType, []byte(`{"status": {"conditions": [{"type": "Failed", "status": "True"}]}}`), metav1.PatchOptions{}, "status")
			}
		}
	}()
	w.try(strings.Replace(nearMap, "name: a", `name: a, annotations: {helm.sh/hook: pre-upgrade, helm.sh/hook-delete-policy: "before-hook-creation,hook-succeeded"}`, 1)+
		jobOf("one", `helm.sh/hook: pre-upgrade, helm.sh/hook-weight: "1"`), "job run failed")
	if !w.there(configMaps, w.apps, "a") || w.uid(configMaps, w.apps, "a") != uid {
		t.Error("an object of the revision that is deployed is gone")
	}
}

// A list within a list is one more list, as with Helm.
func TestAListWithinAList(t *testing.T) {
	w, _ := newSimulatedDrift(t)
	for kind, metadata := range map[string]string{"List": "", "ConfigMapList": "{name: x}"} {
		w.try("apiVersion: v1\nkind: "+kind+"\nitems:\n- apiVersion: v1\n  kind: List\n  metadata: "+metadata+"\n  items:\n  - {apiVersion: v1, kind: ConfigMap, metadata: {name: "+strings.ToLower(kind)+"}}\n", "")
		if !w.there(configMaps, w.apps, strings.ToLower(kind)) {
			t.Errorf("%s: an object is missing", kind)
		}
	}
}

// A byte order mark in the midst of a template, where files were put together, is no part of an object.
func TestMarksBetweenObjects(t *testing.T) {
	w, _ := newSimulatedDrift(t)
	w.try(nearMap+"\ufeff"+strings.Replace(nearMap, "name: a", "name: b", 1), "")
	if !w.there(configMaps, w.apps, "b") {
		t.Error("an object is missing")
	}
}

// A hook whose time is over is deleted as its policy has it, and so are those that have succeeded before it.
func TestAHookWhoseTimeIsOver(t *testing.T) {
	w, _ := newSimulatedDrift(t)
	target := w.target("red")
	target.Timeout = 500 * time.Millisecond // nobody runs the Job
	early := strings.Replace(nearMap, "name: a", `name: early, annotations: {helm.sh/hook: pre-install, helm.sh/hook-weight: "-1", helm.sh/hook-delete-policy: hook-succeeded}`, 1)
	target.Chart = chartOf("web", early, jobOf("one", `helm.sh/hook: pre-install, helm.sh/hook-delete-policy: hook-failed`))
	if _, err := w.Reconcile(t.Context(), target); err == nil || !strings.Contains(err.Error(), "timed out") {
		t.Fatal(err)
	}
	if w.there(jobs, w.apps, "run") {
		t.Error("the Job runs on")
	}
	if w.there(configMaps, w.apps, "early") {
		t.Error("the hook that has succeeded stays")
	}
}

// An action whose time ends while an API server is away is tried again, and not rolled back.
func TestAnOutageIsNotFinal(t *testing.T) {
	ctx, cancel := context.WithTimeoutCause(t.Context(), 0, errTimeout(time.Second))
	defer cancel()
	l := &life{ctx: ctx}
	if !l.final(errors.New("Deployment web is not ready")) {
		t.Error("a time that is over is not final")
	}
	if l.final(fmt.Errorf("wait: %w", &lane.Passing{Err: errors.New("no answer")})) {
		t.Error("an outage is final")
	}
}

// A try again is the same revision also if a chart makes other random values, and what only earlier tries have made
// goes.
func TestRandomValuesOfAReleaseThatFails(t *testing.T) {
	w, _ := newSimulatedDrift(t)
	random := strings.Replace(nearMap, "name: a", `name: a-{{ randAlphaNum 8 | lower }}`, 1)
	for range 3 {
		w.try(random+bad, "bad")
	}
	if all, err := w.revisions(t.Context(), w.target("red").Ref()); err != nil || len(all) != 1 {
		t.Errorf("%d revisions, %v", len(all), err)
	}
	w.try(random, "")
	if list, err := w.client.Resource(configMaps).Namespace(w.apps).List(t.Context(), metav1.ListOptions{LabelSelector: effect.ReleasedByLabel}); err != nil || len(list.Items) != 1 {
		t.Errorf("%d objects, %v", len(list.Items), err)
	}
}

// A pre-delete hook that has succeeded does not run again because an object is not deleted at once. The error quotes no
// secret. One that ran in the revision has to run once more.
func TestAnUninstallThatIsTriedAgain(t *testing.T) {
	w, f := newSimulatedDrift(t)
	w.o.Await = nobodyWaits // nobody runs the Job
	w.try(nearMap+"apiVersion: v1\nkind: Secret\nmetadata: {name: s}\nstringData: {password: correct-horse}\n---\n"+
		jobOf("one", `helm.sh/hook: "pre-install,pre-delete", helm.sh/hook-delete-policy: before-hook-creation`), "")
	whole, ran := f.server, 0
	f.server = answers(func(r *http.Request) (*http.Response, error) {
		if r.Method == http.MethodPost && strings.HasSuffix(r.URL.Path, "/jobs") {
			ran++
		}
		if r.Method == http.MethodDelete && strings.HasSuffix(r.URL.Path, "/configmaps/a") {
			body := `{"kind": "Status", "apiVersion": "v1", "status": "Failure", "message": "no: correct-horse", "reason": "Forbidden", "code": 403}`
			return &http.Response{StatusCode: 403, Header: http.Header{"Content-Type": {"application/json"}}, Body: io.NopCloser(strings.NewReader(body)), Request: r}, nil
		}
		return whole.RoundTrip(r)
	})
	for range 2 {
		_, err := w.Uninstall(t.Context(), w.target("red").Ref(), 0)
		if err == nil || !strings.HasPrefix(err.Error(), "uninstalling web in namespace apps: ConfigMap") || strings.Contains(err.Error(), "horse") {
			t.Fatal(err)
		}
	}
	if ran != 1 {
		t.Errorf("the hook ran %d times", ran)
	}
	f.server = whole
	if done, err := w.Uninstall(t.Context(), w.target("red").Ref(), 0); err != nil || !done {
		t.Error(done, err)
	}
}

// A post-delete hook that cannot succeed is named, with what ends it.
func TestAPostDeleteHookThatCannotSucceed(t *testing.T) {
	w, _ := newSimulatedDrift(t)
	w.o.Await = nobodyWaits // nobody runs the Job
	w.try(nearMap+strings.ReplaceAll(bad, "name: bad", "name: bad, annotations: {helm.sh/hook: post-delete}"), "")
	for range 2 {
		_, err := w.Uninstall(t.Context(), w.target("red").Ref(), 0)
		if err == nil || !strings.Contains(err.Error(), "by a post-delete hook of its chart") || !strings.Contains(err.Error(), "starling.dev/reconcile=uninstall-without-hooks") {
			t.Fatal(err)
		}
	}
	w.Again("web", true)
	if done, err := w.Uninstall(t.Context(), w.target("red").Ref(), 0); err != nil || !done {
		t.Error(done, err)
	}
}
