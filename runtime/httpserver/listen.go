package httpserver

import (
	"crypto/tls"
	"net"

	"github.com/starling-operator/starling/runtime/admin"
	"github.com/starling-operator/starling/runtime/tlsfiles"
)

// Listener is where requests come in.
type Listener struct {
	net.Listener
	pair *tlsfiles.Pair // nil: plain HTTP
}

// Listen opens the address for a [Server]. With certs, a folder that holds tls.crt and
// tls.key, as a volume of a Secret does, it speaks TLS; the files may change.
func Listen(address, certs string) (*Listener, error) {
	var pair *tlsfiles.Pair
	if certs != "" {
		var err error
		if pair, err = tlsfiles.OpenPair(certs, "--receive-certs"); err != nil {
			return nil, err
		}
	}
	ln, err := admin.Listen(address, "--receive-address")
	if err != nil {
		return nil, err
	}
	if pair != nil {
		ln = tls.NewListener(ln, pair.Config())
	}
	return &Listener{ln, pair}, nil
}
