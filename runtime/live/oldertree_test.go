package live

import (
	"maps"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"

	"github.com/starling-operator/starling/runtime/effect"
	"github.com/starling-operator/starling/runtime/modules"
)

// leadAs renews the Lease as another process does, which has a tree with this digest.
func (f *fixture) leadAs(holder, tree string) {
	f.Helper()
	f.renewAs(holder)
	lease, err := f.leases().Get(f.Context(), "starling", metav1.GetOptions{})
	if err == nil {
		metav1.SetMetaDataAnnotation(&lease.ObjectMeta, treeAnnotation, tree)
		_, err = f.leases().Update(f.Context(), lease, metav1.UpdateOptions{})
	}
	if err != nil {
		f.Fatal(err)
	}
}

// A process takes over that lacks a module of which something is kept. That goes in a moment, unless the tree of the
// process before may be newer: it has changed while this one stood by, or there are pods of another template.
func TestAProcessThatTakesOverMayHaveAnOlderTree(t *testing.T) {
	one := map[string]string{"web/module.star": "module(enabled = True)\n", "web/hooks/a.star": "def a(ctx):\n    pass\n\nhook(a, on = [startup()])\n"}
	both := maps.Clone(one)
	both["shop/module.star"] = "module(enabled = True)\n"
	both["shop/hooks/a.star"] = "def a(ctx):\n    values.set(\"n\", 1)\n\nhook(a, on = [startup()])\n"
	const own, moment = "own", time.Minute
	rollout := func(status appsv1.DeploymentStatus) *appsv1.Deployment {
		labels := map[string]string{"app": "starling"}
		d := &appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{Name: "starling"}, Status: status}
		d.Spec.Selector, d.Spec.Template.Labels = &metav1.LabelSelector{MatchLabels: labels}, labels
		d.Spec.Template.Spec.Containers = []corev1.Container{{Name: "starling", Image: "starling"}}
		return d
	}
	none := rollout(appsv1.DeploymentStatus{ObservedGeneration: 1, Replicas: 2, UpdatedReplicas: 2})
	edited := rollout(appsv1.DeploymentStatus{ObservedGeneration: 1, Replicas: 2})
	edited.Spec.Paused = true
	paused := rollout(appsv1.DeploymentStatus{ObservedGeneration: 1, Replicas: 3, UpdatedReplicas: 1})
	paused.Spec.Paused = true
	halfway := rollout(appsv1.DeploymentStatus{ObservedGeneration: 1, Replicas: 3, UpdatedReplicas: 1})
	for name, tt := range map[string]struct {
		trees     []string // of the process that leads, in turn; own: that of this process
		rollout   *appsv1.Deployment
		forbidden bool
		late      bool // the first read of it fails
		blind     bool // the Lease cannot be watched
		says      string
		lasts     time.Duration // 0: it goes in a moment
	}{
		"the same all the time":                              {trees: []string{"a", "a"}},
		"it says no tree":                                    {trees: []string{"", ""}},
		"it has changed":                                     {trees: []string{"a", "b"}, says: "00:", lasts: treeArrives},
		"it has changed before":                              {trees: []string{"a", "b", "b"}, says: "a newer module tree, which may still arrive here", lasts: treeArrives},
		"it has changed, unwatched":                          {trees: []string{"a", "b"}, blind: true, says: "a newer module tree", lasts: treeArrives},
		"it has become this one, unwatched":                  {trees: []string{"a", own}, blind: true},
		"it has become this one":                             {trees: []string{"a", own}},
		"it was this one once":                               {trees: []string{own, "b"}, says: "a newer module tree", lasts: treeArrives},
		"this one came later":                                {trees: []string{"a", "b", own, own}},
		"no rollout":                                         {trees: []string{"a"}, rollout: none},
		"no rollout, which is not known at first":            {trees: []string{"a"}, rollout: none, late: true},
		"no rollout, not known at first, and it has changed": {trees: []string{"a", "b"}, rollout: none, late: true, says: "a newer module tree, which may still arrive here", lasts: treeArrives},
		"a rollout that is not known at first":               {trees: []string{"a"}, rollout: halfway, late: true, says: "the rollout of Deployment starling", lasts: time.Hour},
		"a rollout that is paused":                           {trees: []string{"a"}, rollout: paused, says: "the rollout of Deployment starling", lasts: time.Hour},
		"an edit that is paused":                             {trees: []string{"a"}, rollout: edited},
		"a rollout":                                          {trees: []string{"a"}, rollout: halfway, says: "the rollout of Deployment starling is done, or undone: pods of two templates are there", lasts: time.Hour},
		"a rollout that has changed it":                      {trees: []string{"a", "b"}, rollout: halfway, says: "the rollout of Deployment starling", lasts: 2 * moment},
		"a rollout that is not seen":                         {trees: []string{"a"}, rollout: halfway, forbidden: true},
	} {
		t.Run(name, func(t *testing.T) {
			if tt.rollout != nil {
				t.Setenv(podName, "starling-6d4b75cb6d-aaaaa")
			}
			synctest.Test(t, func(t *testing.T) {
				f := newFixture(t, both, func(f *fixture) { f.objects = true })
				f.start()
				f.waitReady()
				time.Sleep(moment)
				f.stop()
				if err := <-f.ended; err != nil {
					t.Fatal(err)
				}
				client := kubernetes.NewForConfigOrDie(f.config)
				object := func() bool {
					obj, err := f.driver.o.Client.Get(t.Context(), effect.Ref{APIVersion: modules.APIVersion, Kind: modules.Kind, Name: "shop"})
					if err != nil {
						t.Fatal(err)
					}
					return obj != nil
				}
				there := func() bool {
					_, err := client.CoreV1().Secrets("ops").Get(t.Context(), "starling-kept-shop", metav1.GetOptions{})
					if err != nil && !apierrors.IsNotFound(err) {
						t.Fatal(err)
					}
					return err == nil
				}
				if !there() {
					t.Fatal("nothing is kept of shop")
				}
				if tt.rollout != nil {
					d, err := client.AppsV1().Deployments("ops").Create(t.Context(), tt.rollout, metav1.CreateOptions{})
					if err != nil {
						t.Fatal(err)
					}
					d.Status = tt.rollout.Status
					if _, err := client.AppsV1().Deployments("ops").UpdateStatus(t.Context(), d, metav1.UpdateOptions{}); err != nil {
						t.Fatal(err)
					}
				}
				g := f.beside(one)
				var reads atomic.Int32
				g.answered = func(r *http.Request, answer *http.Response) {
					switch ours := strings.HasSuffix(r.URL.Path, "/deployments/starling"); {
					case ours && tt.forbidden:
						answer.StatusCode = http.StatusForbidden
					case ours && tt.late && reads.Add(1) == 1:
						answer.StatusCode = http.StatusInternalServerError
					case tt.blind && r.Method == http.MethodGet && strings.HasSuffix(r.URL.Path, "/leases"):
						answer.StatusCode = http.StatusForbidden
					}
				}
				lead := func(tree string) {
					if tree == own {
						tree = g.driver.trees.own()
					}
					f.leadAs("other", tree)
				}
				lead(tt.trees[0])
				g.start()
				time.Sleep(times.Retry)
				for _, tree := range tt.trees {
					lead(tree)
					time.Sleep(times.Retry)
				}
				g.waitReady()
				for !g.leads() {
					time.Sleep(time.Second)
				}
				time.Sleep(moment)
				if there() != (tt.lasts > 0) || object() != there() {
					t.Fatalf("a moment after the take-over it is there: %v; its object: %v", there(), object())
				}
				if tt.lasts == 0 {
					return
				}
				if says := g.driver.stays(time.Now())(); !strings.Contains(says, tt.says) {
					t.Errorf("it says %q", says)
				}
				time.Sleep(tt.lasts - 2*moment)
				if !there() {
					t.Error("it is gone too early")
				}
				if tt.rollout == halfway || tt.rollout == paused {
					d, err := client.AppsV1().Deployments("ops").Get(t.Context(), "starling", metav1.GetOptions{})
					if err != nil {
						t.Fatal(err)
					}
					d.Status.Replicas = 1
					if _, err := client.AppsV1().Deployments("ops").UpdateStatus(t.Context(), d, metav1.UpdateOptions{}); err != nil {
						t.Fatal(err)
					}
				}
				time.Sleep(2 * moment)
				if there() || object() {
					t.Error("it is there for ever, or its object is")
				}
			})
		})
	}
}
