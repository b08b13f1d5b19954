package cluster

import (
	"context"
	"errors"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/rs/zerolog"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	utilnet "k8s.io/apimachinery/pkg/util/net"
	"k8s.io/client-go/rest"
)

// Watches that start at once share the connections that they need.
func TestManyWatchesConnectOnce(t *testing.T) {
	const watches, perConnection = 300, 100
	var connections atomic.Int32
	release := make(chan struct{})
	server := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		w.WriteHeader(http.StatusOK)
		w.(http.Flusher).Flush()
		<-release
	}))
	server.EnableHTTP2 = true
	server.Config.HTTP2 = &http.HTTP2Config{MaxConcurrentStreams: perConnection}
	server.Config.ConnState = func(_ net.Conn, state http.ConnState) {
		if state == http.StateNew {
			connections.Add(1)
		}
	}
	server.StartTLS()
	defer server.Close()
	defer close(release)
	c, err := New(Options{Config: &rest.Config{Host: server.URL, TLSClientConfig: rest.TLSClientConfig{Insecure: true, NextProtos: []string{"h2"}}}, Log: zerolog.Nop()})
	if err != nil {
		t.Fatal(err)
	}
	shared := c.rest.Client.Transport
	for ; ; shared = shared.(utilnet.RoundTripperWrapper).WrappedRoundTripper() {
		if s, is := shared.(*sharedConnect); is {
			s.patience = time.Hour // however long this machine takes to connect
			break
		}
	}
	maps := Mapping{GVR: schema.GroupVersionResource{Version: "v1", Resource: "configmaps"}, Namespaced: true}
	var opened sync.WaitGroup
	bodies := make(chan io.Closer, watches)
	for range watches {
		opened.Go(func() {
			body, err := c.Watch(t.Context(), maps, "web", metav1.ListOptions{})
			if err != nil {
				t.Error(err)
				return
			}
			bodies <- body
		})
	}
	opened.Wait()
	close(bodies)
	for body := range bodies {
		_ = body.Close()
	}
	// Those that come right after a connection is full may open one more.
	if n := connections.Load(); n > 2*watches/perConnection {
		t.Errorf("%d watches opened %d connections", watches, n)
	}
}

// A connection that hangs does not hold the others for long, and they do not all connect at once.
func TestAConnectionThatHangs(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		began := time.Now()
		var mu sync.Mutex
		var sent []time.Duration
		s := &sharedConnect{turn: make(chan struct{}, 1), patience: connectPatience, next: roundTripper(func(r *http.Request) (*http.Response, error) {
			mu.Lock()
			sent = append(sent, time.Since(began).Round(connectPatience))
			mu.Unlock()
			<-r.Context().Done()
			return nil, r.Context().Err()
		})}
		ctx, cancel := context.WithTimeout(t.Context(), 3*connectPatience+connectPatience/2)
		defer cancel()
		var all sync.WaitGroup
		for range 10 {
			all.Go(func() {
				r, err := http.NewRequestWithContext(ctx, http.MethodGet, "https://far", nil)
				if err != nil {
					t.Error(err)
					return
				}
				if _, err := s.RoundTrip(r); !errors.Is(err, context.DeadlineExceeded) {
					t.Error(err)
				}
			})
		}
		all.Wait()
		if want := []time.Duration{0, connectPatience, 2 * connectPatience, 3 * connectPatience}; !slices.Equal(sent, want) {
			t.Errorf("sent after %v, want %v", sent, want)
		}
	})
}

// A connection on which nothing arrives any more is closed before the Lease is lost, and so a watch on it ends. It
// takes some 5 seconds; with client-go's times it took 45.
func TestAConnectionThatHasDied(t *testing.T) {
	t.Parallel()
	server := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		w.WriteHeader(http.StatusOK)
		w.(http.Flusher).Flush()
		<-r.Context().Done()
	}))
	server.EnableHTTP2 = true
	mute := &muteListener{Listener: server.Listener, quiet: make(chan struct{})}
	server.Listener = mute
	server.StartTLS()
	defer server.Close()
	defer server.CloseClientConnections()
	c, err := New(Options{Config: &rest.Config{Host: server.URL, TLSClientConfig: rest.TLSClientConfig{Insecure: true, NextProtos: []string{"h2"}}}, Log: zerolog.Nop()})
	if err != nil {
		t.Fatal(err)
	}
	body, err := c.Watch(t.Context(), Mapping{GVR: schema.GroupVersionResource{Version: "v1", Resource: "configmaps"}, Namespaced: true}, "web", metav1.ListOptions{})
	if err != nil {
		t.Fatal(err)
	}
	defer body.Close()
	close(mute.quiet)
	began := time.Now()
	if _, err := body.Read(make([]byte, 1)); err == nil || time.Since(began) > 30*time.Second {
		t.Errorf("the watch has ended after %s: %v", time.Since(began), err)
	}
}

// muteListener has connections that write nothing any more once quiet is closed.
type muteListener struct {
	net.Listener
	quiet chan struct{}
}

func (l *muteListener) Accept() (net.Conn, error) {
	conn, err := l.Listener.Accept()
	return &muteConn{conn, l}, err
}

type muteConn struct {
	net.Conn
	of *muteListener
}

func (c *muteConn) Write(b []byte) (int, error) {
	select {
	case <-c.of.quiet:
		return len(b), nil
	default:
		return c.Conn.Write(b)
	}
}

type roundTripper func(*http.Request) (*http.Response, error)

func (f roundTripper) RoundTrip(r *http.Request) (*http.Response, error) { return f(r) }
