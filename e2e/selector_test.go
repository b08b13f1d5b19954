package e2e

import (
	"fmt"
	"strings"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/starling-operator/starling/modules/release"
	"github.com/starling-operator/starling/modules/status"
)

// Two instances share one tree, each with some of its modules. Each module is released once. One instance
// that ends leaves the modules of the other alone. A module goes over from one to the other when both have
// other selectors: nothing is uninstalled, in whichever order they start. Another tree is read by none.
func TestInstancesShareATree(t *testing.T) {
	t.Parallel()
	hello := "\ndef hello(ctx):\n    values.set(\"global.greeting\", \"hello\")\n\nhook(hello, on = [startup()])\n"
	tree := func() map[string]string {
		all := trees(mirror("web", edge), mirror("moves", edge), mirror("store", on), map[string]string{"global/hello.star": hello})
		for _, name := range []string{"web", "moves", "store"} {
			all[name+"/templates/cm.yaml"] = strings.Replace(all[name+"/templates/cm.yaml"], "data:\n", "data:\n  greeting: {{ .Values.global.greeting }}\n", 1)
		}
		return all
	}
	a := newFixture(t, tree())
	b := a.beside("b", tree())
	uids := map[string]string{}
	same := func() { // all objects are those that there were at first
		t.Helper()
		for name, uid := range uids {
			cm, err := shared.Client.CoreV1().ConfigMaps(a.ns).Get(t.Context(), name, metav1.GetOptions{})
			if err != nil || string(cm.UID) != uid || cm.Data["greeting"] != "hello" {
				t.Errorf("the ConfigMap of module %s is not as it was: %v", name, err)
			}
		}
	}
	a.start("--modules-selector", "tier=edge")
	b.start("--modules-selector", "tier!=edge")
	for _, name := range []string{"web", "moves", "store"} {
		a.waitRevision(a.ns, name, 1)
		cm, err := shared.Client.CoreV1().ConfigMaps(a.ns).Get(t.Context(), name, metav1.GetOptions{})
		if err != nil {
			t.Fatal(err)
		}
		uids[name] = string(cm.UID)
	}
	a.waitState("web", status.ModuleReady)
	b.waitState("store", status.ModuleReady)
	a.waitReady()
	b.waitReady()
	a.lacks("store")
	b.lacks("web")

	// The smaller selector comes first: the release has no instance until the other one has the module.
	a.restartWith([]string{"--modules-selector", "tier=edge,name!=moves"})
	a.eventually("the release is given back", func() error { return instanceOf(t, a.ns, "moves", "") })
	a.waitReady()
	a.lacks("moves")
	same()
	b.restartWith([]string{"--modules-selector", "name in (store, moves)"})
	b.waitRevision(b.ns, "moves", 2)
	b.waitState("moves", status.ModuleReady)
	b.waitRevision(b.ns, "store", 1)
	same()

	// The larger one comes first: it waits until the other one gives the release back.
	a.restartWith([]string{"--modules-selector", "tier=edge"})
	a.waitState("moves", status.ModuleFailed, "belongs to the starling instance "+a.ns+".b")
	b.restartWith([]string{"--modules-selector", "name=store"})
	a.eventually("the module has gone over", func() error { return instanceOf(t, a.ns, "moves", a.ns+".starling") })
	a.waitState("moves", status.ModuleReady)
	same()

	// A folder that goes is the end of its module in the instance that has it. The other one, which had it
	// once, has no part in that, and none in what is left.
	a.write(map[string]string{"moves": ""})
	a.eventually("the module is uninstalled", func() error {
		_, err := configMap(t, a.ns, "moves")
		if apierrors.IsNotFound(err) {
			return nil
		}
		return fmt.Errorf("its ConfigMap is there: %v", err)
	})
	delete(uids, "moves")
	b.write(map[string]string{"web": "", "moves": ""})
	a.stop()
	b.restartWith([]string{"--modules-selector", "name=store"})
	b.waitState("store", status.ModuleReady)
	b.waitReady()
	same()
	a.waitRevision(a.ns, "web", 1)
	b.waitRevision(b.ns, "store", 1)
}

// edge is a module of instances whose selector has tier=edge.
const edge = "module(enabled = True, labels = {\"tier\": \"edge\"})\n"

// lacks waits until an instance knows nothing of a module.
func (f *fixture) lacks(name string) {
	f.t.Helper()
	f.eventually("instance "+f.name+" knows nothing of module "+name, func() error {
		st, err := f.status()
		for _, m := range st.Modules {
			if m.Name == name {
				err = fmt.Errorf("its status has %+v", m)
			}
		}
		return err
	})
}

// instanceOf says whether the newest revision of a release is of an instance.
func instanceOf(t *testing.T, namespace, name, want string) error {
	list, err := shared.Client.CoreV1().Secrets(namespace).List(t.Context(), metav1.ListOptions{
		LabelSelector: release.RevisionsOf(release.Ref{Namespace: namespace, Name: name}) + ",status=deployed"})
	if err != nil {
		return err
	}
	if len(list.Items) != 1 || list.Items[0].Labels["starling.dev/instance"] != want {
		var got []string
		for _, s := range list.Items {
			got = append(got, s.Name+" of "+s.Labels["starling.dev/instance"])
		}
		return fmt.Errorf("revisions: %q", got)
	}
	return nil
}
