package e2e

import (
	"fmt"
	"io"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/starling-operator/starling/e2e/cluster"
)

// examples/primary promises: the Pod that takes writes has the label, with the rights that `starling rbac` prints.
// A server in the place of a kubelet answers for the Pods.
func TestPrimary(t *testing.T) {
	t.Parallel()
	ownNamespaces(t, "postgres")
	f := example(t, "primary")
	var primary atomic.Value
	primary.Store("db-0")
	node := f.ns + "-kubelet"
	shared.Kubelet(t, node, func(w http.ResponseWriter, r *http.Request) {
		switch at := strings.Split(r.URL.Path, "/"); at[1] {
		case "exec":
			p := cluster.OpenSocket(w, r)
			defer p.Close()
			switch {
			case at[3] == "db-2":
				p.Say(2, "no space left")
				p.End(2)
			case at[3] == primary.Load():
				p.Say(1, "f\n")
				p.End(0)
			default:
				p.Say(1, "t\n")
				p.End(0)
			}
		case "containerLogs":
			_, _ = io.WriteString(w, "the disk is full\n")
		}
	})
	pods := shared.Client.CoreV1().Pods("postgres")
	ready := []byte(`{"status":{"phase":"Running","conditions":[{"type":"Ready","status":"True"}]}}`)
	for _, name := range []string{"db-0", "db-1", "db-2"} {
		pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: name, Labels: map[string]string{"app": "postgres"}}, Spec: corev1.PodSpec{
			NodeName: node, Containers: []corev1.Container{{Name: "postgres", Image: "postgres"}},
		}}
		cluster.Eventually(t, soon, "Pod "+name, func() error { // its ServiceAccount comes
			if _, err := pods.Create(t.Context(), pod, metav1.CreateOptions{}); err != nil && !apierrors.IsAlreadyExists(err) {
				return err
			}
			_, err := pods.Patch(t.Context(), name, types.MergePatchType, ready, metav1.PatchOptions{}, "status")
			return err
		})
	}
	f.start()
	f.waitReady()
	roles := func(want string) {
		t.Helper()
		f.eventually("the roles are "+want, func() error {
			list, err := pods.List(t.Context(), metav1.ListOptions{LabelSelector: "app=postgres"})
			if err != nil {
				return err
			}
			var got []string
			for _, pod := range list.Items {
				got = append(got, pod.Labels["role"])
			}
			if fmt.Sprint(got) != want {
				return fmt.Errorf("they are %v", got)
			}
			return nil
		})
	}
	roles("[primary replica ]")
	if out := f.process.Output(); !strings.Contains(out, "the disk is full") || !strings.Contains(out, "no space left") {
		t.Errorf("the log does not say why db-2 has no role:\n%s", out)
	}
	primary.Store("db-1")
	// Its label goes, so that nobody waits for the schedule.
	if _, err := pods.Patch(t.Context(), "db-0", types.MergePatchType, []byte(`{"metadata":{"labels":{"role":null}}}`), metav1.PatchOptions{}); err != nil {
		t.Fatal(err)
	}
	roles("[replica primary ]")
}
