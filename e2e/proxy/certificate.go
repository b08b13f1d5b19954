package proxy

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
	"math/big"
	"net"
	"time"
)

// Certificate makes a certificate of a new authority for servers at 127.0.0.1, and returns the authority as PEM, too.
func Certificate() (cert tls.Certificate, authority []byte, err error) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return cert, nil, err
	}
	c := &x509.Certificate{
		SerialNumber: big.NewInt(time.Now().UnixNano()), NotAfter: time.Now().Add(24 * time.Hour), IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)},
		IsCA: true, BasicConstraintsValid: true,
	}
	der, err := x509.CreateCertificate(rand.Reader, c, c, key.Public(), key)
	if err != nil {
		return cert, nil, err
	}
	cert = tls.Certificate{Certificate: [][]byte{der}, PrivateKey: key}
	return cert, pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der}), nil
}

// Rotate has the proxy show a certificate of a new authority, which it returns as PEM, and cuts all connections,
// as a server that is started anew.
func (p *Proxy) Rotate() (authority []byte, err error) {
	cert, authority, err := Certificate()
	if err != nil {
		return nil, err
	}
	p.certificate.Store(&cert)
	p.Cut(nil)
	p.server.CloseClientConnections()
	return authority, nil
}

// shown is with which certificate a client is met.
func (p *Proxy) shown(*tls.ClientHelloInfo) (*tls.Config, error) {
	c := p.certificate.Load()
	if c == nil {
		return nil, nil
	}
	return &tls.Config{Certificates: []tls.Certificate{*c}, NextProtos: []string{"h2", "http/1.1"}}, nil
}
