package webhook

import (
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"os"
	"sync"
	"time"
)

// rereadClients is how often the file of authorities is read again.
const rereadClients = 10 * time.Second

// authorities are those of which clients show a certificate, in a file that may change.
type authorities struct {
	file string

	mu   sync.Mutex
	pool *x509.CertPool
	read time.Time
}

func openAuthorities(file string) (*authorities, error) {
	a := &authorities{file: file}
	_, err := a.get()
	return a, err
}

// get returns the authorities; while the file is broken the last good ones.
func (a *authorities) get() (*x509.CertPool, error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.pool != nil && time.Since(a.read) < rereadClients {
		return a.pool, nil
	}
	a.read = time.Now()
	data, err := os.ReadFile(a.file)
	pool := x509.NewCertPool()
	switch {
	case err == nil && pool.AppendCertsFromPEM(data):
		a.pool = pool
	case a.pool == nil && err != nil:
		return nil, fmt.Errorf("--webhook-client-ca %s cannot be read", a.file)
	case a.pool == nil:
		return nil, fmt.Errorf("--webhook-client-ca %s holds no certificate in PEM", a.file)
	}
	return a.pool, nil
}

// require asks clients for a certificate. One of another authority is refused before
// anything is read; whether one is there at all is seen with the path.
func (s *server) require(clients *authorities) {
	s.clients = clients
	base := s.http.TLSConfig
	s.http.TLSConfig = base.Clone()
	s.http.TLSConfig.GetConfigForClient = func(*tls.ClientHelloInfo) (*tls.Config, error) {
		pool, err := clients.get()
		if err != nil {
			return nil, err
		}
		config := base.Clone()
		config.NextProtos = []string{"h2", "http/1.1"}
		config.ClientAuth, config.ClientCAs = tls.VerifyClientCertIfGiven, pool
		return config, nil
	}
}
