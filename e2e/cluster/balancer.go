package cluster

import (
	"io"
	"net"
	"net/http"
	"sync"
	"testing"
	"time"
)

// Balancer is what a Service is to the API server, and to senders of requests: one address that leads to those
// that it is told to, a connection to each in turn. Connections that are there stay where they are.
type Balancer struct {
	listener net.Listener
	conns    sync.WaitGroup

	mu   sync.Mutex
	to   []string
	next int
}

// Balance listens until the test ends. It leads nowhere at first.
func Balance(t testing.TB) *Balancer {
	t.Helper()
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	b := &Balancer{listener: ln}
	b.conns.Go(func() {
		for {
			conn, err := ln.Accept()
			if err != nil {
				return
			}
			go b.serve(conn) // it ends with either side
		}
	})
	t.Cleanup(func() {
		_ = ln.Close()
		b.conns.Wait()
	})
	return b
}

// Address is where it listens, HOST:PORT.
func (b *Balancer) Address() string { return b.listener.Addr().String() }

// Lead says where connections go from now on.
func (b *Balancer) Lead(to ...string) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.to = to
}

// turn is where the next connection goes, "" for nowhere.
func (b *Balancer) turn() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	if len(b.to) == 0 {
		return ""
	}
	b.next++
	return b.to[b.next%len(b.to)]
}

// Serves asks a page for the readiness, as a kubelet does.
func Serves(page string) bool {
	client := http.Client{Timeout: time.Second}
	answer, err := client.Get(page)
	if err != nil {
		return false
	}
	return answer.Body.Close() == nil && answer.StatusCode == http.StatusOK
}

func (b *Balancer) serve(conn net.Conn) {
	defer conn.Close()
	there, err := net.Dial("tcp", b.turn())
	if err != nil {
		return
	}
	defer there.Close()
	go func() {
		_, _ = io.Copy(there, conn)
		_ = there.(*net.TCPConn).CloseWrite() // it may have ended
	}()
	_, _ = io.Copy(conn, there)
}
