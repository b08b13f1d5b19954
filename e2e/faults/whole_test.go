package faults

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/starling-operator/starling/modules/status"
)

// settle ends all faults, and waits until all is as it should be, and nothing is written any more. It returns
// how long it took until all was so.
func (w *world) settle() time.Duration {
	w.t.Helper()
	w.inject()
	began, took := time.Now(), time.Duration(0)
	for writes := -1; writes != w.proxy.Struck("writes"); {
		writes = w.proxy.Struck("writes")
		w.eventually("all is as it should be", w.whole)
		if took == 0 {
			took = time.Since(began)
		}
		time.Sleep(time.Second)
	}
	for name, uids := range w.secrets() {
		if len(uids) > 1 {
			w.t.Errorf("the Secret of %s was made %d times", name, len(uids))
		}
	}
	return took
}

func (w *world) secrets() map[string][]string {
	w.mu.Lock()
	defer w.mu.Unlock()
	return maps.Clone(w.made)
}

// whole says what is not as it should be.
func (w *world) whole() error {
	for _, check := range w.checks {
		if err := check(); err != nil {
			return err
		}
	}
	return nil
}

// mirrored says which input is not where the hook of [tree] has to write it.
func (w *world) mirrored() error {
	if out := w.data("out"); !maps.Equal(out, w.inputs) {
		return fmt.Errorf("out holds %v, want %v", out, w.inputs)
	}
	var lines []string
	for _, name := range slices.Sorted(maps.Keys(w.inputs)) {
		lines = append(lines, name+"="+w.inputs[name])
	}
	if chart, want := w.data("chart")["text"], strings.Join(lines, ","); chart != want {
		return fmt.Errorf("the chart shows %q, want %q", chart, want)
	}
	return nil
}

// calm says which module or hook is not ready.
func (w *world) calm() error {
	st, err := w.status()
	if err != nil {
		return err
	}
	for _, m := range st.Modules {
		if m.State != status.ModuleReady {
			return fmt.Errorf("module %s is %s: %s %s", m.Name, m.State, m.Reason, m.LastError)
		}
	}
	for _, h := range st.Hooks {
		if h.State != status.HookOK {
			return fmt.Errorf("hook %s is %s: %s %s", h.ID, h.State, h.Reason, h.LastError)
		}
	}
	return nil
}

// children says which shop lacks what, or which child lacks its shop.
func (w *world) children() error {
	want, have := map[string]string{}, map[string]string{}
	for name, n := range w.shops {
		want["Secret "+name+"-key"], want["ConfigMap "+name+"-n"] = "", fmt.Sprint(n)
	}
	labelled := metav1.ListOptions{LabelSelector: "shop"}
	cms, err := w.cluster.Client.CoreV1().ConfigMaps(w.ns).List(w.t.Context(), labelled)
	if err != nil {
		return err
	}
	for _, cm := range cms.Items {
		have["ConfigMap "+cm.Name] = cm.Data["n"]
	}
	secrets, err := w.cluster.Client.CoreV1().Secrets(w.ns).List(w.t.Context(), labelled)
	if err != nil {
		return err
	}
	for _, s := range secrets.Items {
		have["Secret "+s.Name] = ""
		if len(s.Data["key"]) == 0 {
			return fmt.Errorf("Secret %s has no key", s.Name)
		}
	}
	if !maps.Equal(have, want) {
		return fmt.Errorf("the shops have %v, want %v", have, want)
	}
	shops, err := w.cluster.Dynamic.Resource(w.shop()).Namespace(w.ns).List(w.t.Context(), metav1.ListOptions{})
	if len(w.shops)+len(w.closed) == 0 && apierrors.IsNotFound(err) {
		return nil
	}
	if err != nil {
		return err
	}
	for _, s := range shops.Items {
		conditions, _, _ := unstructured.NestedSlice(s.Object, "status", "conditions")
		ready := slices.ContainsFunc(conditions, func(c any) bool {
			m, _ := c.(map[string]any)
			return m["type"] == "Ready" && m["status"] == "True"
		})
		if observed, _, _ := unstructured.NestedInt64(s.Object, "status", "observedGeneration"); !ready || observed != s.GetGeneration() {
			return fmt.Errorf("shop %s is not ready: %v", s.GetName(), s.Object["status"])
		}
	}
	if len(shops.Items) != len(w.shops) {
		return fmt.Errorf("there are %d shops, want %d", len(shops.Items), len(w.shops))
	}
	return nil
}

// releases says which revision is on its way, or whether the last one is not deployed.
func (w *world) releases() error {
	records, err := w.cluster.Client.CoreV1().Secrets(w.ns).List(w.t.Context(), metav1.ListOptions{LabelSelector: "owner=helm"})
	if err != nil {
		return err
	}
	deployed := map[string]int{} // revisions by release
	for _, r := range records.Items {
		name := r.Labels["name"]
		switch deployed[name] += 0; r.Labels["status"] {
		case "deployed":
			deployed[name]++
		case "pending-install", "pending-upgrade", "pending-rollback", "uninstalling":
			return fmt.Errorf("revision %s of %s is %s", r.Labels["version"], name, r.Labels["status"])
		}
	}
	for name, n := range deployed {
		if n != 1 {
			return fmt.Errorf("of %s %d revisions are deployed", name, n)
		}
	}
	return nil
}
