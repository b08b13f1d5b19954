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
		s := &sharedConnect{turn: make(chan struct{}, 1), next: roundTripper(func(r *http.Request) (*http.Response, error) {
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

type roundTripper func(*http.Request) (*http.Response, error)

func (f roundTripper) RoundTrip(r *http.Request) (*http.Response, error) { return f(r) }
