package live

import (
	"bytes"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/rs/zerolog"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"

	"github.com/starling-operator/starling/runtime/replicas"
)

// The one that leads labels its pod, and takes the label from a pod of the same Deployment that has led before. Without
// the right to do so it leads all the same, and says so once.
func TestThePodThatLeadsHasALabel(t *testing.T) {
	t.Setenv(podName, "starling-6d4b75cb6d-aaaaa")
	for name, allowed := range map[string]bool{"allowed": true, "forbidden": false} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				f := newFixture(t, emptyTree)
				patches := 0
				f.answered = func(r *http.Request, answer *http.Response) {
					if r.Method == http.MethodPatch && strings.Contains(r.URL.Path, "/pods/") {
						if patches++; !allowed {
							answer.StatusCode = http.StatusForbidden
						}
					}
				}
				pods := kubernetes.NewForConfigOrDie(f.config).CoreV1().Pods(f.namespace)
				for pod, role := range map[string]string{
					"starling-6d4b75cb6d-aaaaa": replicas.Standby, "starling-6d4b75cb6d-bbbbb": replicas.Leader, "starling-77777-ccccc": replicas.Standby, "other-6d4b75cb6d-ddddd": replicas.Leader,
				} {
					_, err := pods.Create(t.Context(), &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: pod, Labels: map[string]string{replicas.RoleLabel: role}}}, metav1.CreateOptions{})
					if err != nil {
						t.Fatal(err)
					}
				}
				var log bytes.Buffer
				f.driver.o.Log = zerolog.New(zerolog.SyncWriter(&log))
				f.start()
				f.waitReady()
				time.Sleep(10 * time.Minute)
				f.stop()
				if err := <-f.ended; err != nil {
					t.Error(err)
				}
				want := map[string]string{
					"starling-6d4b75cb6d-aaaaa": replicas.Leader, "starling-6d4b75cb6d-bbbbb": replicas.Standby, "starling-77777-ccccc": replicas.Standby, "other-6d4b75cb6d-ddddd": replicas.Leader,
				}
				list, err := pods.List(t.Context(), metav1.ListOptions{})
				if err != nil {
					t.Fatal(err)
				}
				for _, pod := range list.Items {
					if got := pod.Labels[replicas.RoleLabel]; allowed && got != want[pod.Name] {
						t.Errorf("pod %s has the label %q, want %q", pod.Name, got, want[pod.Name])
					}
				}
				if said := strings.Count(log.String(), replicas.RoleLabel); patches != 2 && allowed || !allowed && (patches != 1 || said != 1) {
					t.Errorf("%d patches, and it is told %d times", patches, said)
				}
			})
		})
	}
}
