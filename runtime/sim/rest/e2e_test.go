//go:build e2e

package rest_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"testing"
	"time"

	e2e "github.com/starling-operator/starling/e2e/cluster"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	clientrest "k8s.io/client-go/rest"
)

var shared *e2e.Cluster

func TestMain(m *testing.M) { os.Exit(e2e.Main(m, &shared)) }

// TestParityReal gives the cases of testdata/parity to the real API server; with
// -update it records its answers.
func TestParityReal(t *testing.T) {
	transport, err := clientrest.TransportFor(shared.Config)
	if err != nil {
		t.Fatal(err)
	}
	n := 0
	runParity(t, &transportWorld{
		transport: transport, host: shared.Config.Host, patience: 2 * time.Minute,
		spaces: func(t *testing.T) string {
			n++
			name := fmt.Sprintf("parity-%d-zz", n)
			spaces := shared.Client.CoreV1().Namespaces()
			if _, err := spaces.Create(t.Context(), &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: name}}, metav1.CreateOptions{FieldManager: "parity"}); err != nil {
				t.Fatal(err)
			}
			t.Cleanup(func() { _ = spaces.Delete(context.Background(), name, metav1.DeleteOptions{}) })
			return name
		},
		wait: func(t *testing.T, look func() bool) {
			e2e.Eventually(t, 3*time.Minute, "the controllers have done their work", func() error {
				if look() {
					return nil
				}
				return errors.New("not yet")
			})
		},
	}, *update)
}
