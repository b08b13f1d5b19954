package webhook

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"syscall"
	"time"
)

// A process that stands by listens before there is a certificate: the first one is made as the first hook of the
// instance is registered, and the API server may ask before this process has seen either.

const (
	// certificateWithin is how long a client waits for the first certificate.
	certificateWithin = 5 * time.Second
	// lookSoon is how often one that stands by looks for it meanwhile.
	lookSoon = 100 * time.Millisecond
)

func (m *Manager) listen() (net.Listener, error) {
	ln, err := net.Listen("tcp", m.o.Address)
	if errors.Is(err, syscall.EADDRINUSE) {
		err = errors.New("port in use")
	}
	if err != nil {
		return nil, fmt.Errorf("cannot listen on %s: %w; choose another address with --webhook-address", m.o.Address, err)
	}
	return ln, nil
}

// open listens, with a certificate or without.
func (m *Manager) open() error {
	if m.listens {
		return nil
	}
	ln, err := m.listen()
	if err != nil {
		return err
	}
	m.listens = true
	m.server.start(ln)
	return nil
}

// serve sees to certificates and to the server.
func (m *Manager) serve(ctx context.Context, now time.Time) error {
	if m.certs.served == nil || !now.Before(m.certs.next) {
		got, err := m.look(ctx, now)
		if got.served == nil {
			return err
		}
		if f := m.server.forwarder; f != nil {
			f.trust(got.bundle)
		}
		if m.tell("certificates", err); !m.certs.served.same(got.served) {
			m.server.show(got.served)
			m.o.Expires(got.served.ends())
		}
		m.certs = got
	}
	if m.running {
		return nil
	}
	if err := m.open(); err != nil {
		return err
	}
	m.running = true
	if m.o.Serving != nil {
		m.o.Serving()
	}
	m.o.Log.Info().Any("address", m.server.address.Load()).Msg("webhooks: answers the API server")
	return nil
}

// show has clients get a certificate from now on, those that wait for the first one, too.
func (s *server) show(c *served) {
	s.cert.Store(c)
	s.first.Do(func() { close(s.shown) })
}

// certificate is the one that a client gets.
func (s *server) certificate(hello *tls.ClientHelloInfo) (*tls.Certificate, error) {
	if c := s.cert.Load(); c != nil {
		return c.cert, nil
	}
	if s.waiting.Add(1) == 1 { // the look that follows is for all who wait
		s.lacks()
	}
	defer s.waiting.Add(-1)
	late := time.NewTimer(s.patience)
	defer late.Stop()
	select {
	case <-s.shown:
		return s.cert.Load().cert, nil
	case <-s.end.Begun:
	case <-hello.Context().Done():
	case <-late.C:
	}
	return nil, errors.New("there is no certificate yet")
}
