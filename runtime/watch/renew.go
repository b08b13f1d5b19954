package watch

import "context"

// Renew has all streams list again, the newest state. A watch that starts from now on is complete once they have:
// it never shows what was older than this call, though it shares streams that may lag behind. Watches that there
// are go on meanwhile, and are told of what differs.
func (m *Manager) Renew() {
	m.mu.Lock()
	defer m.mu.Unlock()
	for _, s := range m.streams {
		s.renew()
	}
}

func (s *stream) renew() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.renewals++
	if s.cut != nil {
		s.cut()
	}
}

// asks notes that the next list follows all renewals until now.
func (s *source) asks() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.renewal = s.renewals
}

// outdated says whether a list was asked for since the last one.
func (s *source) outdated() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.renewal != s.renewals
}

// cuts has the next renewal end a watch; one that came before has ended it.
func (s *source) cuts(cancel context.CancelFunc) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.cut = cancel
	if s.renewal != s.renewals {
		cancel()
	}
}
