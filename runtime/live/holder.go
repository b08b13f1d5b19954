package live

import (
	"cmp"
	"net"
	"net/netip"
	"os"
	"strings"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/util/uuid"
	clientrest "k8s.io/client-go/rest"
)

// identity is the name of a process in the Lease: its host, a part that no other process has, and where other
// processes of the instance hand requests of the API server and those for http.receive to it. Both addresses may be
// empty.
func identity(webhooks, receive string) string {
	host, err := os.Hostname()
	if err != nil {
		host = "starling"
	}
	return strings.Join([]string{host, string(uuid.NewUUID()), webhooks, receive}, "_")
}

// hostOf is the host of the process of that name.
func hostOf(name string) string {
	host, _, _ := strings.Cut(name, "_")
	return host
}

// takesNone ends the name of a process that takes no requests for http.receive.
const takesNone = "none"

// addressesOf is where the process of that name answers the API server, and takes requests for http.receive; "" where
// it does not say so.
func addressesOf(name string) (webhooks, receive string) {
	parts := strings.Split(name, "_")
	if len(parts) < 4 {
		return "", ""
	}
	address := func(at string) string {
		if _, err := netip.ParseAddrPort(at); err != nil {
			return ""
		}
		return at
	}
	return address(parts[len(parts)-2]), address(parts[len(parts)-1])
}

// reached is where other machines reach what listens at an address, "IP:PORT" or ":PORT". On all addresses it is
// reached under that from which this machine reaches the API server: nothing is sent for it. It is "" when there is
// none.
func reached(address string, config *clientrest.Config) string {
	host, port, err := net.SplitHostPort(address)
	if err != nil || port == "0" {
		return ""
	}
	ip, err := netip.ParseAddr(cmp.Or(host, "::"))
	switch {
	case err != nil:
		return ""
	case !ip.IsUnspecified():
		return address
	}
	server, _, err := clientrest.DefaultServerUrlFor(config)
	if err != nil {
		return ""
	}
	conn, err := net.DialTimeout("udp", net.JoinHostPort(server.Hostname(), cmp.Or(server.Port(), "443")), time.Second)
	if err != nil {
		return ""
	}
	defer conn.Close()
	from, err := netip.ParseAddrPort(conn.LocalAddr().String())
	if err != nil || from.Addr().IsLoopback() {
		return ""
	}
	return net.JoinHostPort(from.Addr().String(), port)
}

// findAddresses says where others reach this process.
func (d *Driver) findAddresses() {
	config := d.o.Client.UnfencedConfig()
	if w := d.o.Webhooks; w.Unreachable == "" {
		d.webhooksAt = reached(w.Address, config)
	}
	if d.o.Receive != nil {
		d.receiveAt = reached(d.o.Receive.Addr().String(), config)
	}
	d.identity = identity(d.webhooksAt, d.receiveAt)
	if d.o.Receive == nil {
		d.identity += takesNone
	}
}

// role is what this process is.
type role int

const (
	begins    role = iota // it has not seen the Lease yet
	waits                 // it stands by
	takesOver             // it holds the Lease; not all modules have begun
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
	// forged: the key of the instance has not signed the name. Anybody may have written it.
	forged bool
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

// stands says that this process stands by.
func (h *holder) stands() bool {
	is, _ := h.now()
	return is.role == waits
}

// becomes notes what this process is from now on.
func (h *holder) becomes(r role) { h.move(func(is *holding) { is.role = r }) }

// sees notes who holds the Lease.
func (h *holder) sees(name string, signed bool) {
	h.move(func(is *holding) { is.seen, is.name, is.forged = true, name, name != "" && !signed })
}
