package webhook

import "github.com/starling-operator/starling/runtime/tlsfiles"

// clientsFlag names the file of authorities of clients in errors.
const clientsFlag = "--webhook-client-ca"

// require asks clients for a certificate; whether one is there at all is seen with the path.
func (s *server) require(clients *tlsfiles.Authorities) {
	s.clients = clients
	s.http.TLSConfig = clients.Ask(s.http.TLSConfig, "h2", "http/1.1")
}
