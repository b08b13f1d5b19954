package cluster

import (
	"context"
	"fmt"
	"net"
	"net/http"
	"os"
	"sync/atomic"
	"testing"
	"time"

	discoveryv1 "k8s.io/api/discovery/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/starling-operator/starling/e2e/balancer"
)

var given atomic.Uint32 // addresses, so far

// Address returns an address of this machine, HOST:PORT, at which nobody listens, and which it returns once. The system
// gives its port to nobody who asks for any, nor to an end of a connection: it stays free until a process listens there,
// and while that one is started again. Two test binaries that run at a time begin at different ports.
func Address() string {
	for {
		address := fmt.Sprint("127.0.0.1:", 10000+(uint32(os.Getpid())*997+given.Add(1))%22000)
		if ln, err := net.Listen("tcp", address); err == nil {
			_ = ln.Close()
			return address
		}
	}
}

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
			var to, ips []string
			for i := range slices.Items {
				for _, of := range slices.Items[i].Ports {
					for _, e := range slices.Items[i].Endpoints {
						if of.Name != nil && *of.Name == port && *e.Conditions.Ready {
							to, ips = append(to, p.Address(e.Addresses[0], *of.Port)), append(ips, e.Addresses[0])
						}
					}
				}
			}
			b.Lead(to...)
			p.mu.Lock()
			defer p.mu.Unlock()
			p.led[b] = ips
			return nil
		})
	})
}

// serves asks a page for the readiness, as a kubelet does.
func serves(page string) bool {
	answer, err := (&http.Client{Timeout: time.Second}).Get(page)
	if err != nil {
		return false
	}
	return answer.Body.Close() == nil && answer.StatusCode == http.StatusOK
}
