package live

import (
	"net"
	"os"
	"strings"
	"sync"

	"k8s.io/apimachinery/pkg/util/uuid"
	clientrest "k8s.io/client-go/rest"

	"github.com/starling-operator/starling/runtime/httpserver"
)

// identity is the name of this process in the Lease: its host, a part that no other process has, and where
// other processes of the instance hand requests for http.receive to it, if they can.
func identity(ln *httpserver.Listener, config *clientrest.Config) string {
	host, err := os.Hostname()
	if err != nil {
		host = "starling"
	}
	name := host + "_" + string(uuid.NewUUID())
	if ln == nil {
		return name
	}
	server, _, err := clientrest.DefaultServerUrlFor(config)
	if err != nil {
		return name
	}
	at := server.Host
	if server.Port() == "" {
		at = net.JoinHostPort(server.Hostname(), "443")
	}
	if address := ln.Reached(at); address != "" {
		name += "_" + address
	}
	return name
}

// addressOf is where the process of that name takes requests for http.receive, or "".
func addressOf(name string) string {
	at := name[strings.LastIndex(name, "_")+1:]
	if host, _, err := net.SplitHostPort(at); err != nil || net.ParseIP(strings.Split(host, "%")[0]) == nil {
		return ""
	}
	return at
}

// role is what this process is.
type role int

const (
	begins    role = iota // it has not seen the Lease yet
	waits                 // it stands by
	takesOver             // it stood by, and holds the Lease; not all modules have begun
	works
)

// holder is what is known of the process that holds the Lease. Servers ask it at any time.
type holder struct {
	mu    sync.Mutex
	is    holding
	moved chan struct{} // closed as soon as it is another one
}

// holding is one state of a [holder].
type holding struct {
	role role
	seen bool   // the Lease was
	name string // of the process that holds it; "": nobody does
}

func newHolder() *holder { return &holder{moved: make(chan struct{})} }

// now returns the state, and what is closed when it is another one.
func (h *holder) now() (holding, <-chan struct{}) {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.is, h.moved
}

func (h *holder) move(to func(*holding)) {
	h.mu.Lock()
	defer h.mu.Unlock()
	before := h.is
	if to(&h.is); h.is != before {
		close(h.moved)
		h.moved = make(chan struct{})
	}
}

// becomes notes what this process is from now on.
func (h *holder) becomes(r role) { h.move(func(is *holding) { is.role = r }) }

// sees notes who holds the Lease.
func (h *holder) sees(name string) { h.move(func(is *holding) { is.seen, is.name = true, name }) }
