package live

import (
	"context"
	"errors"
	"net"
	"net/http"
	"net/http/httptest"
	"sync/atomic"
	"testing"
	"time"

	"github.com/rs/zerolog"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	clientrest "k8s.io/client-go/rest"
	"k8s.io/client-go/tools/leaderelection/resourcelock"

	"github.com/starling-operator/starling/runtime/cluster"
)

// deadEnd is a connection whose other side hears no more once it is dead, and of which nobody is told.
type deadEnd struct {
	net.Conn
	dead *atomic.Bool
}

// Write swallows what is written to the dead.
func (c deadEnd) Write(p []byte) (int, error) {
	if c.dead.Load() {
		return len(p), nil
	}
	return c.Conn.Write(p)
}

// Each request of the Lease ends before the Lease is lost, whatever the connection does.
func TestARequestOfTheLeaseHasABound(t *testing.T) {
	silent, err := net.Listen("tcp", "127.0.0.1:0") // connections are taken up, and nobody shakes hands
	if err != nil {
		t.Fatal(err)
	}
	defer silent.Close()
	serve := func(h http.HandlerFunc) string {
		server := httptest.NewUnstartedServer(h)
		server.EnableHTTP2 = true
		server.StartTLS()
		t.Cleanup(func() { server.CloseClientConnections(); server.Close() })
		return server.URL
	}
	var dead atomic.Bool
	for _, c := range []struct{ name, host string }{
		{"nobody shakes hands", "https://" + silent.Addr().String()},
		{"no answer", serve(func(_ http.ResponseWriter, r *http.Request) { <-r.Context().Done() })},
		{"half an answer", serve(func(w http.ResponseWriter, r *http.Request) {
			w.Header().Set("Content-Type", "application/json")
			_, _ = w.Write([]byte(`{"kind":`))
			w.(http.Flusher).Flush()
			<-r.Context().Done()
		})},
		{"a connection that has died", serve(http.NotFound)},
	} {
		t.Run(c.name, func(t *testing.T) {
			config := &clientrest.Config{Host: c.host, TLSClientConfig: clientrest.TLSClientConfig{Insecure: true}}
			config.Dial = func(ctx context.Context, network, address string) (net.Conn, error) {
				conn, err := new(net.Dialer).DialContext(ctx, network, address)
				return deadEnd{conn, &dead}, err
			}
			client, err := cluster.New(cluster.Options{Config: config, Log: zerolog.Nop()})
			if err != nil {
				t.Fatal(err)
			}
			brief := LeaseTimes{Duration: 3 * time.Second, Renew: 600 * time.Millisecond, Retry: 100 * time.Millisecond}
			d := &Driver{o: Options{Client: client, Namespace: "ops", Name: "starling", Lease: brief}, marks: &Marks{}, sight: &leaseSight{free: func() {}}, trees: &trees{own: func() string { return "" }}, identity: "a"}
			lock, err := d.leaseLock()
			if err != nil {
				t.Fatal(err)
			}
			bounded := &watchedLock{Interface: lock, turn: make(chan struct{}, 1), within: brief.request(), end: func(error) {}, until: func(time.Time) {}}
			get := func(l resourcelock.Interface) error { _, _, err := l.Get(t.Context()); return err }
			if c.name == "a connection that has died" {
				if err := get(lock); !apierrors.IsNotFound(err) {
					t.Fatal(err)
				}
				dead.Store(true)
				defer dead.Store(false)
			}
			for verb, ask := range map[string]func() error{
				"get": func() error { return get(bounded) },
				"create": func() error {
					return bounded.Create(t.Context(), resourcelock.LeaderElectionRecord{HolderIdentity: "a"})
				},
			} {
				answer := make(chan error, 1)
				go func() { answer <- ask() }()
				select {
				case err := <-answer:
					if !errors.Is(err, context.DeadlineExceeded) {
						t.Errorf("%s: %v", verb, err)
					}
				case <-time.After(time.Minute):
					t.Errorf("%s has no bound", verb)
				}
			}
		})
	}
}
