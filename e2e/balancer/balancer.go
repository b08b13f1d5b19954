// Package balancer is what a Service is to the API server, and to senders of requests: one address that leads to those
// that it is told to.
package balancer

import (
	"io"
	"net"
	"sync"
)

// Balancer takes connections, and leads each in turn to one of the addresses. Connections that are there stay where
// they are.
type Balancer struct {
	listener net.Listener
	taken    sync.WaitGroup

	mu   sync.Mutex
	to   []string
	next int
}

// Start listens on this machine until [Balancer.Close]. It leads nowhere at first.
func Start() (*Balancer, error) {
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, err
	}
	b := &Balancer{listener: ln}
	b.taken.Go(func() {
		for {
			conn, err := ln.Accept()
			if err != nil {
				return
			}
			go b.serve(conn) // it ends with either side
		}
	})
	return b, nil
}

// Close takes no more connections.
func (b *Balancer) Close() {
	_ = b.listener.Close()
	b.taken.Wait()
}

// Address is where it listens, HOST:PORT.
func (b *Balancer) Address() string { return b.listener.Addr().String() }

// Lead replaces the addresses, each HOST:PORT, that new connections go to in turn; with none they are closed.
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
