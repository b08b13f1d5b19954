package cluster

import (
	"context"
	"net/http"
	"testing"
	"time"

	discoveryv1 "k8s.io/api/discovery/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/starling-operator/starling/e2e/balancer"
)

// Balance starts a balancer that ends with the test.
func Balance(t testing.TB) *balancer.Balancer {
	t.Helper()
	b, err := balancer.Start()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(b.Close)
	return b
}

// Serve has a balancer lead to a port of a Service until the test ends, as a kube-proxy does.
func (p *Pods) Serve(b *balancer.Balancer, ns, service, port string) {
	p.busy.Go(func() {
		p.each(500*time.Millisecond, func(ctx context.Context) error {
			slices, err := p.c.Client.DiscoveryV1().EndpointSlices(ns).List(ctx, metav1.ListOptions{LabelSelector: discoveryv1.LabelServiceName + "=" + service})
			if err != nil {
				return err
			}
			var to []string
			for i := range slices.Items {
				for _, of := range slices.Items[i].Ports {
					for _, e := range slices.Items[i].Endpoints {
						if of.Name != nil && *of.Name == port && *e.Conditions.Ready {
							to = append(to, p.Address(e.Addresses[0], *of.Port))
						}
					}
				}
			}
			b.Lead(to...)
			return nil
		})
	})
}

// serves asks a page for the readiness, as a kubelet does.
func serves(page string) bool {
	client := http.Client{Timeout: time.Second}
	answer, err := client.Get(page)
	if err != nil {
		return false
	}
	return answer.Body.Close() == nil && answer.StatusCode == http.StatusOK
}
