package hostile

import (
	"fmt"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/starling-operator/starling/e2e/cluster"
)

// watches are modules that watch too much, or look at each object for too long.
var watches = []attack{
	{name: "filter-jq", objects: "{apiVersion: v1, kind: ConfigMap, metadata: {name: spaces, namespace: $NS}, data: {x: \"" + strings.Repeat("x ", 735_000/2) + "\"}}\n",
		files: map[string]string{"hooks/a.star": watchAll(`filter = r'(.data.x // "")|gsub("\\s+";" ")'`)}},
	{name: "filter-slow", objects: small(40), files: map[string]string{
		"hooks/a.star": watchAll("filter = lambda o: [hash.sha256(\"x\" * (1 << 24)) for i in range(20)]")}},
	{name: "many-names", files: map[string]string{"hooks/a.star": watchIn("[\"one\", \"two\", \"three\", \"four\", \"five\"]",
		"object_names = [\"n%d\" % i for i in range(3000)]")}},
}

func watchIn(namespaces, more string) string {
	return "hook(lambda ctx: None, name = \"x\", on = [k8s.watch(\"v1\", \"ConfigMap\", namespaces = " + namespaces + ", " + more + ")])\n"
}

// watchAll is a hook that watches all ConfigMaps where the healthy module watches.
func watchAll(more string) string { return watchIn("[\"$NS\"]", more) }

// small are so many ConfigMaps.
func small(n int) string {
	var all strings.Builder
	for i := range n {
		fmt.Fprintf(&all, "---\n{apiVersion: v1, kind: ConfigMap, metadata: {name: small-%d, namespace: $NS}, data: {x: a}}\n", i)
	}
	return all.String()
}

// Objects with many keys take many times their size in a watch without a filter: it is
// stopped before they take the process with them. With for_each those that have no room fail alone.
func TestLargeSnapshots(t *testing.T) {
	data := map[string]string{}
	for i := range 45_000 {
		data[fmt.Sprintf("k%06d", i)] = "v"
	}
	a := newArena(t)
	for i := range 33 { // one after the other: the API server takes long over each
		object := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: fmt.Sprintf("large-%d", i)}, Data: data}
		cluster.Eventually(t, 2*time.Minute, "the API server takes "+object.Name, func() error {
			_, err := shared.Client.CoreV1().ConfigMaps(a.ns).Create(t.Context(), object, metav1.CreateOptions{})
			if apierrors.IsAlreadyExists(err) { // an answer came too late
				return nil
			}
			return err
		})
	}
	a.start()
	beats := a.beat(a.waitBeat())
	says := "stopped: its objects take more than the "
	if a.memory != nil {
		says += "180 MiB that one watch may hold" // a fifth of 88 % of the cgroup's
	}
	by := attack{name: "large-snapshot", says: []string{says}, files: map[string]string{"hooks/a.star": watchAll("labels = {}")}}
	each := attack{name: "large-each", says: []string{"more than a quarter of the "}, files: map[string]string{
		"module.star": "module(enabled = True, grants = [grant(\"v1\", \"ConfigMap\", verbs = [\"apply\"])])\n",
		"hooks/a.star": "def run(ctx):\n    o = ctx.object\n    k8s.apply({\"apiVersion\": \"v1\", \"kind\": \"ConfigMap\", \"metadata\": {\"name\": \"seen-\" + o.metadata.name}, \"data\": {\"by\": o.data[\"by\"]}})\n\n" +
			"hook(run, for_each = \"all\", on = [k8s.watch(\"v1\", \"ConfigMap\", name = \"all\", namespaces = [\"$NS\"], object_names = [\"large-%d\" % i for i in range(33)] + [\"small\"])])\n"}}
	a.write(by.tree())
	a.waitSays(by)
	a.write(each.tree())
	a.waitSays(each)
	seen := func(by string) {
		shared.Apply(t, fmt.Sprintf("{apiVersion: v1, kind: ConfigMap, metadata: {name: small, namespace: %s}, data: {by: %s}}\n", a.ns, by))
		a.eventually("a small object has its run", func() error {
			cm, err := shared.Client.CoreV1().ConfigMaps(a.ns).Get(t.Context(), "seen-small", metav1.GetOptions{})
			if err == nil && cm.Data["by"] != by {
				err = fmt.Errorf("it is seen by %s", cm.Data["by"])
			}
			return err
		})
	}
	seen("one")
	beats.end()
	a.stop()
	a.start()
	a.waitBeat()
	a.waitSays(by)
	a.waitSays(each)
	seen("another")
	a.stop()
}
