//go:build e2e

package rest_test

import (
	"encoding/json"
	"fmt"
	"testing"
	"time"
)

// TestWorkloadsReal gives the cases of testdata/workloads to the real controller manager;
// with -update it records what it does.
func TestWorkloadsReal(t *testing.T) {
	runWorkloads(t, &livingWorld{realWorld(t, "workloads")}, true, *update)
}

// livingWorld is the real one.
type livingWorld struct{ parityWorld }

// rest waits until the workloads of a namespace have not changed for some seconds.
func (w *livingWorld) rest(t *testing.T, ns string) {
	const patience = 2 * time.Minute
	last, since, end := "", time.Now(), time.Now().Add(patience)
	for time.Now().Before(end) {
		if now := w.versions(t, ns); now != last {
			last, since = now, time.Now()
		} else if time.Since(since) >= quietTime {
			return
		}
		time.Sleep(quietTime / 10)
	}
	t.Fatalf("the workloads of namespace %s still change after %s", ns, patience)
}

// versions are those of all objects that controllers change.
func (w *livingWorld) versions(t *testing.T, ns string) (out string) {
	for _, path := range []string{
		"/apis/apps/v1/namespaces/%s/deployments", "/apis/apps/v1/namespaces/%s/replicasets", "/apis/apps/v1/namespaces/%s/statefulsets",
		"/apis/apps/v1/namespaces/%s/daemonsets", "/apis/batch/v1/namespaces/%s/jobs", "/api/v1/namespaces/%s/pods",
		"/apis/batch/v1/namespaces/%s/cronjobs", "/api/v1/namespaces/%s/persistentvolumeclaims", "/apis/discovery.k8s.io/v1/namespaces/%s/endpointslices",
	} {
		_, _, body := w.do(t, "GET", fmt.Sprintf(path, ns), "application/json", nil)
		var list struct {
			Items []struct {
				Metadata struct{ UID, ResourceVersion string } `json:"metadata"`
			} `json:"items"`
		}
		if err := json.Unmarshal(body, &list); err != nil {
			t.Fatal(err)
		}
		for _, o := range list.Items {
			out += o.Metadata.UID + " " + o.Metadata.ResourceVersion + "\n"
		}
	}
	return out
}
