package httpserver

import (
	"crypto/tls"
	"fmt"
	"net"
	"sync"
	"time"

	"github.com/starling-operator/starling/runtime/admin"
	"github.com/starling-operator/starling/runtime/bounded"
)

// rereadCerts is how often the files of a certificate are read again.
const rereadCerts = 10 * time.Second

// Listen opens the address for a [Server]. With certs, a folder that holds tls.crt and
// tls.key, as a volume of a Secret does, it speaks TLS; the files may change.
func Listen(address, certs string) (net.Listener, error) {
	if certs == "" {
		return admin.Listen(address, "--receive-address")
	}
	pair := &keyPair{dir: certs}
	if _, err := pair.get(nil); err != nil {
		return nil, err
	}
	ln, err := admin.Listen(address, "--receive-address")
	if err != nil {
		return nil, err
	}
	return tls.NewListener(ln, &tls.Config{MinVersion: tls.VersionTLS12, NextProtos: []string{"http/1.1"}, GetCertificate: pair.get}), nil
}

// keyPair is a certificate in files.
type keyPair struct {
	dir string

	mu   sync.Mutex
	cert *tls.Certificate
	read time.Time
}

// get returns the certificate; while the files are broken the last good one.
func (k *keyPair) get(*tls.ClientHelloInfo) (*tls.Certificate, error) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.cert != nil && time.Since(k.read) < rereadCerts {
		return k.cert, nil
	}
	files, err := bounded.Volume(k.dir, bounded.MaxPEM, "tls.crt", "tls.key")
	var cert tls.Certificate
	if err == nil {
		cert, err = tls.X509KeyPair(files["tls.crt"], files["tls.key"])
	}
	k.read = time.Now()
	switch {
	case err == nil:
		k.cert = &cert
	case k.cert == nil:
		return nil, fmt.Errorf("--receive-certs %s: tls.crt and tls.key cannot be read as a certificate and its key", k.dir)
	}
	return k.cert, nil
}
