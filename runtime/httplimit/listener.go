package httplimit

import (
	"net"
	"slices"
	"sync"
)

// MostConnections is how many connections a server of ours has open at once. Each takes some 40 KiB with TLS, before
// anything is asked.
const MostConnections = 2048

// listener bounds the connections that are open.
type listener struct {
	net.Listener
	most int

	mu   sync.Mutex
	n    int
	open map[string][]*conn // by client address, the oldest first
}

// conn is one of them.
type conn struct {
	net.Conn
	of   *listener
	from string
	end  sync.Once
}

// Listener bounds how many connections of a listener are open at once. Past that a new one takes the place of the
// oldest of the client address that has most, or is closed where that is its address: a client that opens many keeps
// nobody else out.
func Listener(ln net.Listener, most int) net.Listener {
	return &listener{Listener: ln, most: most, open: map[string][]*conn{}}
}

// Accept waits for the next connection.
func (l *listener) Accept() (net.Conn, error) {
	for {
		c, err := l.Listener.Accept()
		if err != nil {
			return nil, err
		}
		from, _, err := net.SplitHostPort(c.RemoteAddr().String())
		if err != nil {
			from = c.RemoteAddr().String()
		}
		next := &conn{Conn: c, of: l, from: from}
		goes := l.add(next)
		if goes != nil {
			_ = goes.Close()
		}
		if goes != next {
			return next, nil
		}
	}
}

// add counts a connection, and returns the one that must go for it.
func (l *listener) add(c *conn) (goes *conn) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.open[c.from] = append(l.open[c.from], c)
	if l.n++; l.n <= l.most {
		return nil
	}
	goes, most := c, len(l.open[c.from])
	for _, all := range l.open {
		if len(all) > most {
			goes, most = all[0], len(all)
		}
	}
	return goes
}

func (c *conn) Close() error {
	c.end.Do(func() {
		l := c.of
		l.mu.Lock()
		defer l.mu.Unlock()
		l.n--
		rest := slices.DeleteFunc(l.open[c.from], func(other *conn) bool { return other == c })
		if l.open[c.from] = rest; len(rest) == 0 {
			delete(l.open, c.from)
		}
	})
	return c.Conn.Close()
}
