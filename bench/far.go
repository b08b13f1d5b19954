package main

import (
	"errors"
	"net"
	"sync"
	"time"
)

// far stands between clients and the API server as a long way does: it passes the bytes of
// each connection on, each half of the delay after it came. TLS, HTTP/2 and watches pass
// through it as they are.
type far struct {
	target string
	half   time.Duration
	ln     net.Listener

	mu     sync.Mutex
	conns  map[net.Conn]bool
	closed bool
	busy   sync.WaitGroup
}

// startFar listens on 127.0.0.1 for connections to target. A request and its answer take
// delay longer through it.
func startFar(target string, delay time.Duration) (*far, error) {
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, err
	}
	f := &far{target: target, half: delay / 2, ln: ln, conns: map[net.Conn]bool{}}
	f.busy.Go(func() {
		for {
			near, err := ln.Accept()
			if err != nil {
				return // closed
			}
			f.busy.Go(func() { f.connect(near) })
		}
	})
	return f, nil
}

// connect passes the bytes of one connection on, until both sides have ended or close is
// called.
func (f *far) connect(near net.Conn) {
	defer near.Close()
	there, err := net.Dial("tcp", f.target)
	if err != nil {
		return
	}
	defer there.Close()
	if !f.note(near, there) {
		return
	}
	defer f.drop(near, there)
	var ways sync.WaitGroup
	ways.Go(func() { f.pass(there, near) })
	ways.Go(func() { f.pass(near, there) })
	ways.Wait()
}

func (f *far) note(conns ...net.Conn) bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	for _, c := range conns {
		f.conns[c] = true
	}
	return !f.closed
}

func (f *far) drop(conns ...net.Conn) {
	f.mu.Lock()
	defer f.mu.Unlock()
	for _, c := range conns {
		delete(f.conns, c)
	}
}

// piece is what came at one time.
type piece struct {
	due  time.Time
	data []byte
}

// pass writes what it reads, in order, each piece when it is due. Its end is passed on too.
func (f *far) pass(to, from net.Conn) {
	pieces := make(chan piece, 1024)
	var reading sync.WaitGroup
	reading.Go(func() {
		defer close(pieces)
		for {
			buf := make([]byte, 16<<10)
			n, err := from.Read(buf)
			if n > 0 {
				pieces <- piece{time.Now().Add(f.half), buf[:n]}
			}
			if err != nil {
				return
			}
		}
	})
	for p := range pieces {
		time.Sleep(time.Until(p.due))
		if _, err := to.Write(p.data); err != nil {
			from.Close() // nobody takes what comes
			for range pieces {
			}
		}
	}
	reading.Wait()
	if half, ok := to.(interface{ CloseWrite() error }); ok {
		_ = half.CloseWrite() // it may be closed already
	}
}

// close ends all connections.
func (f *far) close() error {
	f.mu.Lock()
	f.closed = true
	errs := []error{f.ln.Close()}
	for c := range f.conns {
		_ = c.Close() // the other side may have closed it
	}
	f.mu.Unlock()
	f.busy.Wait()
	return errors.Join(errs...)
}
