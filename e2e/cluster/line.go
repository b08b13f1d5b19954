package cluster

import (
	"io"
	"net"
	"net/url"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"k8s.io/client-go/tools/clientcmd"
)

// Line is the connection to an API server, which a test may cut.
type Line struct {
	listener net.Listener
	server   string
	// half is how long bytes take in one direction.
	half time.Duration

	mu      sync.Mutex
	moved   *sync.Cond // down or stalled is another
	down    bool
	stalled map[Way]bool
	frozen  map[net.Conn]bool // by the side of the client
	refused int               // connections since it was cut
	open    map[net.Conn]bool
}

// Way is a direction on a line.
type Way int

// Up is the way of requests, Down that of answers.
const (
	Up Way = iota
	Down
)

// NewLine makes a line to the server of a kubeconfig file, and returns it with a
// kubeconfig file that goes by it. It is cut when the test ends.
func NewLine(t testing.TB, kubeconfig string) (*Line, string) {
	t.Helper()
	return NewLongLine(t, kubeconfig, 0)
}

// NewLongLine makes a line on which a request and its answer take delay longer.
func NewLongLine(t testing.TB, kubeconfig string, delay time.Duration) (*Line, string) {
	t.Helper()
	k, err := clientcmd.LoadFromFile(kubeconfig)
	if err != nil {
		t.Fatal(err)
	}
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	l := &Line{listener: listener, half: delay / 2, open: map[net.Conn]bool{}, stalled: map[Way]bool{}, frozen: map[net.Conn]bool{}}
	l.moved = sync.NewCond(&l.mu)
	t.Cleanup(func() { l.Cut(); _ = listener.Close() })
	for _, c := range k.Clusters {
		u, err := url.Parse(c.Server)
		if err != nil {
			t.Fatal(err)
		}
		l.server = u.Host
		c.Server = "https://" + listener.Addr().String()
	}
	file := filepath.Join(t.TempDir(), "kubeconfig")
	if err := clientcmd.WriteToFile(*k, file); err != nil {
		t.Fatal(err)
	}
	go l.serve()
	return l, file
}

func (l *Line) serve() {
	for {
		conn, err := l.listener.Accept()
		if err != nil {
			return
		}
		go l.carry(conn)
	}
}

// carry copies both ways until one side, or the line, is closed.
func (l *Line) carry(conn net.Conn) {
	defer conn.Close()
	out, err := net.Dial("tcp", l.server)
	if err != nil {
		return
	}
	defer out.Close()
	l.mu.Lock()
	if l.down {
		l.refused++
		l.mu.Unlock()
		return
	}
	l.open[conn], l.open[out] = true, true
	l.mu.Unlock()
	go func() { l.copy(out, conn, Up, conn); _ = out.Close() }()
	l.copy(conn, out, Down, conn)
	l.mu.Lock()
	delete(l.open, conn)
	delete(l.open, out)
	delete(l.frozen, conn)
	l.mu.Unlock()
}

// copy copies until one side is closed.
func (l *Line) copy(to io.Writer, from io.Reader, way Way, conn net.Conn) {
	ended := make(chan struct{})
	defer close(ended)
	for p := range l.read(from, ended) {
		time.Sleep(time.Until(p.due))
		if !l.passes(way, conn) {
			continue
		}
		if _, err := to.Write(p.data); err != nil {
			return
		}
	}
}

// piece holds the bytes that came at one time.
type piece struct {
	due  time.Time
	data []byte
}

// read reads until its side is closed, or ended is. On a long line it goes on while pieces are under way.
func (l *Line) read(from io.Reader, ended <-chan struct{}) <-chan piece {
	underWay := 0
	if l.half > 0 {
		underWay = 1024
	}
	pieces := make(chan piece, underWay)
	go func() {
		defer close(pieces)
		for {
			buf := make([]byte, 32<<10)
			n, err := from.Read(buf)
			if n > 0 {
				select {
				case pieces <- piece{time.Now().Add(l.half), buf[:n]}:
				case <-ended:
					return
				}
			}
			if err != nil {
				return
			}
		}
	}()
	return pieces
}

// passes waits while the line is stalled, or the connection frozen. It returns false for bytes that wait as the line is cut.
func (l *Line) passes(way Way, conn net.Conn) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	for (l.stalled[way] || l.frozen[conn]) && !l.down {
		l.moved.Wait()
	}
	return !l.down
}

// Stall lets nothing through in one direction, and closes nothing: neither side hears of it.
func (l *Line) Stall(way Way) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.stalled[way] = true
}

// Freeze lets nothing through on the connections that are open, in either direction, and closes none, as a
// router does that has lost its table. New ones work.
func (l *Line) Freeze() {
	l.mu.Lock()
	defer l.mu.Unlock()
	for conn := range l.open {
		l.frozen[conn] = true
	}
}

// Cut closes all connections, and every new one at once. Bytes that a stall has held back are lost.
func (l *Line) Cut() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.down = true
	l.moved.Broadcast()
	for conn := range l.open {
		_ = conn.Close()
	}
}

// Mend lets connections through again, and what a stall has held back.
func (l *Line) Mend() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.down, l.refused = false, 0
	clear(l.stalled)
	clear(l.frozen)
	l.moved.Broadcast()
}

// Refused is how many connections were refused since the line was cut.
func (l *Line) Refused() int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.refused
}
