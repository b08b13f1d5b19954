package main

import (
	"context"
	"io"
	"net"
	"sync"
)

// balancer is what a Service is to the API server: one address that leads to those that it is told to, one
// connection after the other. Connections that are there stay where they are.
type balancer struct {
	ln   net.Listener
	mu   sync.Mutex
	to   []string
	next int
}

// startBalancer listens until ctx ends.
func startBalancer(ctx context.Context) (*balancer, error) {
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, err
	}
	l := &balancer{ln: ln}
	context.AfterFunc(ctx, func() { _ = ln.Close() })
	go func() {
		for {
			conn, err := ln.Accept()
			if err != nil {
				return
			}
			go l.serve(conn)
		}
	}()
	return l, nil
}

func (l *balancer) address() string { return l.ln.Addr().String() }

// leads says where connections go from now on.
func (l *balancer) leads(to ...string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.to = to
}

// turn is where the next connection goes, "" for nowhere.
func (l *balancer) turn() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	if len(l.to) == 0 {
		return ""
	}
	l.next++
	return l.to[l.next%len(l.to)]
}

func (l *balancer) serve(conn net.Conn) {
	defer conn.Close()
	there, err := net.Dial("tcp", l.turn())
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
