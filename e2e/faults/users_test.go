package faults

import (
	"fmt"
	"maps"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// input makes or changes an input; "" deletes it.
func (w *world) input(name, text string) {
	w.t.Helper()
	cms := w.cluster.Client.CoreV1().ConfigMaps(w.ns)
	_, there := w.inputs[name]
	var err error
	cm := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: name, Labels: map[string]string{"input": w.ns}}, Data: map[string]string{"text": text}}
	switch {
	case text == "" && !there:
		return
	case text == "":
		err = cms.Delete(w.t.Context(), name, metav1.DeleteOptions{})
		delete(w.inputs, name)
	case there:
		_, err = cms.Update(w.t.Context(), cm, metav1.UpdateOptions{})
		w.inputs[name] = text
	default:
		_, err = cms.Create(w.t.Context(), cm, metav1.CreateOptions{})
		w.inputs[name] = text
	}
	w.done(err)
}

// shop is the client of Shops.
func (w *world) shop() schema.GroupVersionResource {
	return schema.GroupVersionResource{Group: w.ns + ".example.net", Version: "v1", Resource: "shops"}
}

// open makes a new shop, or changes one.
func (w *world) open(name string, n int) {
	w.t.Helper()
	w.shops[name] = n
	w.cluster.Apply(w.t, fmt.Sprintf("{apiVersion: %s.example.net/v1, kind: Shop, metadata: {name: %s, namespace: %s}, spec: {\"n\": %d}}", w.ns, name, w.ns, n))
}

// shut deletes a shop.
func (w *world) shut(name string) {
	w.t.Helper()
	delete(w.shops, name)
	w.closed[name] = true
	w.done(w.cluster.Dynamic.Resource(w.shop()).Namespace(w.ns).Delete(w.t.Context(), name, metav1.DeleteOptions{}))
}

// change does what a user may do.
func (w *world) change() {
	w.t.Helper()
	open := slices.Sorted(maps.Keys(w.shops))
	switch n := w.dice.IntN(10); {
	case n < 5:
		w.input(fmt.Sprint("i", w.dice.IntN(6)), fmt.Sprint("t", w.dice.IntN(1000)))
	case n < 7:
		w.input(fmt.Sprint("i", w.dice.IntN(6)), "")
	case n < 8 && len(open) < 5:
		w.open(fmt.Sprint("s", len(w.shops)+len(w.closed)), w.dice.IntN(9))
	case n < 9 && len(open) > 0:
		w.open(open[w.dice.IntN(len(open))], w.dice.IntN(9))
	case len(open) > 1:
		w.shut(open[w.dice.IntN(len(open))])
	}
}

// changes makes n changes, with a pause of up to 200 ms after each, and does what a kubelet does meanwhile.
func (w *world) changes(n int) {
	w.t.Helper()
	for range n {
		w.change()
		w.revive()
		w.rest(200 * time.Millisecond)
	}
}

// rest lets up to so much time pass.
func (w *world) rest(most time.Duration) { time.Sleep(time.Duration(w.dice.Int64N(int64(most)))) }

// stamp changes an input, and says how long it took until the hook had written that.
func (w *world) stamp() time.Duration {
	w.t.Helper()
	w.stamps++
	text, began := fmt.Sprint("stamp", w.stamps), time.Now()
	w.input("stamp", text)
	w.eventually("a change is seen", func() error {
		if out := w.data("out"); out["stamp"] != text {
			return fmt.Errorf("%v is seen", out)
		}
		return nil
	})
	return time.Since(began)
}

// data is what a ConfigMap holds.
func (w *world) data(name string) map[string]string {
	cm, err := w.cluster.Client.CoreV1().ConfigMaps(w.ns).Get(w.t.Context(), name, metav1.GetOptions{})
	if err != nil {
		return map[string]string{"error": err.Error()}
	}
	return cm.Data
}

// begin starts the process and has it do some work without faults.
func (w *world) begin() {
	w.t.Helper()
	w.start()
	w.input("i0", "first")
	for i := range 3 {
		w.open(fmt.Sprint("s", i), i)
	}
	w.settle()
}
