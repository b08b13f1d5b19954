package proxy

import (
	"crypto/tls"
	"crypto/x509"
	"net"
	"time"

	"github.com/starling-operator/starling/runtime/pki"
)

// Certificate makes a certificate for servers at 127.0.0.1 that is its own authority.
func Certificate() (*tls.Certificate, error) {
	return pki.Issue(&x509.Certificate{
		NotAfter: time.Now().Add(24 * time.Hour), IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)}, IsCA: true, BasicConstraintsValid: true,
	}, nil)
}

// Rotate has the proxy show a certificate of a new authority, which it returns as PEM, and cuts all connections,
// as a server that is started anew.
func (p *Proxy) Rotate() (authority []byte, err error) {
	cert, err := Certificate()
	if err != nil {
		return nil, err
	}
	p.certificate.Store(cert)
	p.Cut(nil)
	p.server.CloseClientConnections()
	return pki.CertificatesPEM(cert.Leaf), nil
}

// shown is with which certificate a client is met.
func (p *Proxy) shown(*tls.ClientHelloInfo) (*tls.Config, error) {
	c := p.certificate.Load()
	if c == nil {
		return nil, nil
	}
	return &tls.Config{Certificates: []tls.Certificate{*c}, NextProtos: []string{"h2", "http/1.1"}}, nil
}
