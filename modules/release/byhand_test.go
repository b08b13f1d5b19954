package release

import (
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/starling-operator/starling/modules/helm"
)

// byHand makes a revision as helm rollback and helm upgrade do: with the labels and the manifest of an earlier one.
func (w *driftWorld) byHand(of, as int, status helm.Status) {
	w.t.Helper()
	all, err := w.revisions(w.t.Context(), w.target("").Ref())
	if err != nil {
		w.t.Fatal(err)
	}
	for _, r := range all {
		if r.Status == helm.StatusDeployed {
			if err := w.mark(w.t.Context(), w.target("").Ref(), r.Number, helm.StatusSuperseded, "Superseded"); err != nil {
				w.t.Fatal(err)
			}
		}
	}
	rel, _, err := w.store(w.apps).Get(w.t.Context(), "web", of)
	if err != nil {
		w.t.Fatal(err)
	}
	rel.Version = as
	rel.SetStatus(status, "by hand")
	if _, err := w.store(w.apps).Create(w.t.Context(), rel); err != nil {
		w.t.Fatal(err)
	}
}

func (w *driftWorld) color(want string) {
	w.t.Helper()
	u, err := w.client.Resource(configMaps).Namespace(w.apps).Get(w.t.Context(), "web", metav1.GetOptions{})
	if err != nil || u.Object["data"].(map[string]any)["color"] != want {
		w.t.Errorf("%v, %v, want %s", u.Object["data"], err, want)
	}
}

// A release that somebody rolls back with helm comes back as the module has it, also where the revision was made before
// the release was adopted; one that somebody upgrades stays so.
func TestARollbackByHandIsUndone(t *testing.T) {
	for name, adopted := range map[string]bool{"of Starling": false, "of helm": true} {
		t.Run(name, func(t *testing.T) {
			w, _ := newSimulatedDrift(t)
			target := w.target("red")
			target.Adopt = adopted
			act := func(color, action string) {
				t.Helper()
				target.Values = map[string]any{"color": color}
				if res, err := w.Reconcile(t.Context(), target); err != nil || res.Action != action {
					t.Fatalf("%+v, %v", res, err)
				}
			}
			act("red", ActionInstalled)
			if adopted {
				w.disown(1)
			}
			act("blue", ActionUpgraded)
			key := Key{APIVersion: "v1", Kind: "ConfigMap", Namespace: w.apps, Name: "web"}

			w.byHand(1, 3, helm.StatusDeployed)
			(&others{w, configMaps}).merge(`{"data": {"color": "red"}}`)
			out, err := w.Repair(t.Context(), RepairTarget{Target: target, Only: []Key{key}})
			if err != nil || !out.Lost {
				t.Fatalf("%+v, %v", out, err)
			}
			act("blue", ActionUpgraded)
			w.color("blue")

			w.byHand(4, 5, helm.StatusDeployed)
			if out := w.repair(key); out.Lost || len(out.Written) > 0 {
				t.Errorf("%+v", out)
			}
		})
	}
}

// A rollback by hand that only adds an object changes nothing that is watched: the next repair sees it, and the next
// start, and the object goes.
func TestARollbackByHandThatOnlyAdds(t *testing.T) {
	w, f := newSimulatedDrift(t)
	target := w.target("red")
	plain, more := target.Chart, with(target.Chart, "templates/more.yaml", strings.Replace(nearMap, "name: a", "name: more", 1))
	target.Chart = more
	act := func(action string) {
		t.Helper()
		if res, err := w.Reconcile(t.Context(), target); err != nil || res.Action != action || w.there(configMaps, w.apps, "more") != (action == ActionInstalled) {
			t.Fatalf("%+v, %v", res, err)
		}
	}
	act(ActionInstalled)
	target.Chart = plain
	act(ActionUpgraded)

	w.byHand(1, 3, helm.StatusDeployed)
	w.create(configMaps, w.apps, strings.Replace(nearMap, "name: a", "name: more, annotations: {meta.helm.sh/release-name: web, meta.helm.sh/release-namespace: apps}", 1))
	key := Key{APIVersion: "v1", Kind: "ConfigMap", Namespace: w.apps, Name: "web"}
	if out, err := w.Repair(t.Context(), RepairTarget{Target: target, Only: []Key{key}}); err != nil || !out.Lost {
		t.Errorf("%+v, %v", out, err)
	}
	w.Manager = f.manager()
	act(ActionUpgraded)
}

// disown takes all labels of Starling off a revision: helm has made it.
func (w *driftWorld) disown(number int) {
	w.t.Helper()
	patch := []byte(`{"metadata": {"labels": {"app.kubernetes.io/managed-by": null, "starling.dev/instance": null, "starling.dev/module": null, "starling.dev/inputs": null}}}`)
	if _, err := w.core.Secrets(w.apps).Patch(w.t.Context(), helm.Key("web", number), types.MergePatchType, patch, metav1.PatchOptions{}); err != nil {
		w.t.Fatal(err)
	}
}

// A revision that holds more than the module allows by now is not brought back, and the error says why the other one
// has failed.
func TestARollbackToWhatIsNotAllowed(t *testing.T) {
	w, _ := newSimulatedDrift(t)
	target := w.target("red")
	if _, err := w.Reconcile(t.Context(), target); err != nil {
		t.Fatal(err)
	}
	target.Chart, target.Installs, target.Rollback = chartOf("web", bad+nearMap), nil, true
	for _, want := range []string{"ConfigMap bad", `revision 2 is not rolled back to revision 1, as the chart holds more than everyday kinds in its namespace; if that is right, ` +
		`add to module(installs = […]) of module.star: grant("drift.example.com/v1", "Gadget"); it failed: `} {
		if _, err := w.Reconcile(t.Context(), target); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v, want %s", err, want)
		}
	}
}

// A release that a helm has left which was killed is adopted after an hour, and before that when somebody asks for it.
func TestAPendingReleaseIsAdopted(t *testing.T) {
	for name, take := range map[string]func(w *driftWorld){
		"asked for": func(w *driftWorld) { w.Again("web", false) },
		"an hour later": func(w *driftWorld) {
			now := w.o.Now
			w.o.Now = func() time.Time { return now().Add(mostHelm) }
		},
	} {
		for _, status := range []helm.Status{helm.StatusPendingInstall, helm.StatusPendingUpgrade, helm.StatusPendingRollback} {
			t.Run(name+" "+string(status), func(t *testing.T) {
				w, _ := newSimulatedDrift(t)
				target := w.target("red")
				if _, err := w.Reconcile(t.Context(), target); err != nil {
					t.Fatal(err)
				}
				uid, number := w.uid(configMaps, w.apps, "web"), 1
				if status == helm.StatusPendingInstall {
					if err := w.mark(t.Context(), target.Ref(), 1, status, "by hand"); err != nil {
						t.Fatal(err)
					}
				} else {
					w.byHand(1, 2, status)
					number = 2
					w.disown(2)
				}
				w.disown(1)
				target.Adopt, target.Values = true, map[string]any{"color": "blue"}
				if _, err := w.Reconcile(t.Context(), target); err == nil || !strings.Contains(err.Error(), "is "+string(status)+": helm works on") {
					t.Fatal(err)
				}
				take(w)
				if res, err := w.Reconcile(t.Context(), target); err != nil || res.Revision != number+1 {
					t.Fatalf("%+v, %v", res, err)
				}
				w.color("blue")
				if w.uid(configMaps, w.apps, "web") != uid {
					t.Error("it is another object")
				}
			})
		}
	}
}
