//go:build e2e

package rest_test

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	e2e "github.com/starling-operator/starling/e2e/cluster"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	clientrest "k8s.io/client-go/rest"
)

var shared *e2e.Cluster

func TestMain(m *testing.M) {
	flag.Parse()
	if err := flag.Set("test.parallel", "12"); err != nil { // cases of workloads wait most of the time
		panic(err)
	}
	os.Exit(e2e.Main(m, &shared))
}

// TestDiscoveryReal compares the list of what Kubernetes serves by itself with the real
// server's discovery; with -update it writes the list.
func TestDiscoveryReal(t *testing.T) {
	w := realWorld(t, "parity")
	var services struct {
		Items []struct {
			Spec struct{ Group, Version string } `json:"spec"`
		} `json:"items"`
	}
	fetch(t, w, "/apis/apiregistration.k8s.io/v1/apiservices?labelSelector=kube-aggregator.kubernetes.io/automanaged%3Donstart", &services)
	versions := []string{"apiregistration.k8s.io/v1"} // those of other tests' CustomResourceDefinitions are not among them
	for _, s := range services.Items {
		versions = append(versions, metav1.GroupVersion{Group: s.Spec.Group, Version: s.Spec.Version}.String())
	}
	got := discovered(t, w, versions)
	if *update {
		if err := os.WriteFile(discoveryFile, []byte(strings.Join(got, "\n")+"\n"), 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	text, err := os.ReadFile(discoveryFile)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(strings.Split(strings.TrimSpace(string(text)), "\n"), got); diff != "" {
		t.Errorf("(-recorded +real server)\n%s", diff)
	}
}

// TestParityReal gives the cases of testdata/parity to the real API server; with
// -update it records its answers.
func TestParityReal(t *testing.T) { runParity(t, realWorld(t, "parity"), *update) }

// spaces counts namespaces: one of an earlier world may still be in deletion.
var spaces int

// realWorld is the API server; its namespaces have a prefix.
func realWorld(t *testing.T, prefix string) parityWorld {
	transport, err := clientrest.TransportFor(shared.Config)
	if err != nil {
		t.Fatal(err)
	}
	return &transportWorld{
		transport: transport, host: shared.Config.Host, patience: 2 * time.Minute, converts: serveConversions(t),
		spaces: func(t *testing.T) string {
			spaces++
			name := fmt.Sprintf("%s-%d-zz", prefix, spaces)
			client := shared.Client.CoreV1().Namespaces()
			if _, err := client.Create(t.Context(), &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: name}}, metav1.CreateOptions{FieldManager: "parity"}); err != nil {
				t.Fatal(err)
			}
			t.Cleanup(func() { _ = client.Delete(context.Background(), name, metav1.DeleteOptions{}) })
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
	}
}
