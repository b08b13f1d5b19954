// Package tlsfiles reads certificates and authorities from files that may change while they
// are used, as those of a mounted Secret do.
package tlsfiles

import (
	"bytes"
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"sync"
	"time"

	"github.com/starling-operator/starling/runtime/bounded"
)

// reread is how often files are read again.
const reread = 10 * time.Second

// Pair is a certificate with its key, in the files tls.crt and tls.key of a folder. It is safe
// for concurrent use.
type Pair struct {
	kept[tls.Certificate]
	flag string
}

// OpenPair reads the files of a folder once. Errors name the flag that the folder comes from.
func OpenPair(dir, flag string) (*Pair, error) {
	p := &Pair{flag: flag}
	p.load = func() (*tls.Certificate, error) {
		files, err := bounded.Volume(dir, bounded.MaxPEM, "tls.crt", "tls.key")
		if err == nil {
			var cert tls.Certificate
			if cert, err = tls.X509KeyPair(files["tls.crt"], files["tls.key"]); err == nil {
				return &cert, nil
			}
		}
		return nil, fmt.Errorf("%s %s: tls.crt and tls.key cannot be read as a certificate and its key", flag, dir)
	}
	_, err := p.get()
	return p, err
}

// Config returns what a server shows the certificate with: TLS 1.2 or newer, HTTP/1.1.
func (p *Pair) Config() *tls.Config {
	return &tls.Config{
		MinVersion: tls.VersionTLS12, NextProtos: []string{"http/1.1"},
		GetCertificate: func(*tls.ClientHelloInfo) (*tls.Certificate, error) { return p.get() },
	}
}

// Peer returns what a client goes by that reaches a server with this certificate, and no other one. Names,
// authorities and times say nothing: who has the key is meant.
func (p *Pair) Peer() *tls.Config {
	return &tls.Config{
		MinVersion: tls.VersionTLS12, NextProtos: []string{"http/1.1"}, InsecureSkipVerify: true,
		VerifyConnection: func(state tls.ConnectionState) error {
			own, err := p.get()
			if err != nil {
				return err
			}
			if !bytes.Equal(state.PeerCertificates[0].Raw, own.Certificate[0]) {
				return fmt.Errorf("the other process has another certificate than that of %s", p.flag)
			}
			return nil
		},
	}
}

// Authorities are those of which clients show a certificate, in a file. They are safe for
// concurrent use.
type Authorities struct{ kept[x509.CertPool] }

// OpenAuthorities reads a file in PEM once. Errors name the flag that the file comes from.
func OpenAuthorities(file, flag string) (*Authorities, error) {
	a := &Authorities{}
	a.load = func() (*x509.CertPool, error) {
		data, err := bounded.File(file, bounded.MaxPEM)
		if err != nil {
			return nil, fmt.Errorf("%s %s: %w", flag, file, err)
		}
		pool := x509.NewCertPool()
		if !pool.AppendCertsFromPEM(data) {
			return nil, fmt.Errorf("%s %s holds no certificate in PEM", flag, file)
		}
		return pool, nil
	}
	_, err := a.get()
	return a, err
}

// Ask has a server that goes by base ask clients for a certificate. One of another authority is
// refused before anything is read; whether there is one at all is for [Known] to say. protos are
// those of base.
func (a *Authorities) Ask(base *tls.Config, protos ...string) *tls.Config {
	out := base.Clone()
	out.GetConfigForClient = func(*tls.ClientHelloInfo) (*tls.Config, error) {
		pool, err := a.get()
		if err != nil {
			return nil, err
		}
		config := base.Clone()
		config.NextProtos = protos
		config.ClientAuth, config.ClientCAs = tls.VerifyClientCertIfGiven, pool
		return config, nil
	}
	return out
}

// Known says whether the client of a connection has shown a certificate of the authorities.
func Known(conn *tls.ConnectionState) bool { return conn != nil && len(conn.VerifiedChains) > 0 }

// kept is what files hold, which are read again from time to time.
type kept[T any] struct {
	load func() (*T, error)

	mu   sync.Mutex
	last *T
	read time.Time
}

// get returns what the files hold; while they are broken the last good one.
func (k *kept[T]) get() (*T, error) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.last != nil && time.Since(k.read) < reread {
		return k.last, nil
	}
	k.read = time.Now()
	now, err := k.load()
	if err == nil {
		k.last = now
	} else if k.last == nil {
		return nil, err
	}
	return k.last, nil
}
