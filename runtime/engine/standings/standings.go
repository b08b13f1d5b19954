// Package standings knows how far each module has come, as far as others go by it: modules
// that depend on it, hooks of before_all and after_all, and people. It does no I/O.
package standings

import (
	"math/bits"
	"slices"
	"time"
)

// Standing is how far a module has come. It can be compared.
type Standing uint

// These can be true of a module.
const (
	Off     Standing = 1 << iota
	On               // which is not known of one that is not decided
	Settled          // it is at rest, or something is wrong with it
	Ready
	There  // something of it is in the cluster
	Going  // it is taken away, now or after others
	AtWork // of the tree: it has not come to rest
	Coming // of the tree: it was never released, is not off, and nothing is wrong

	// dependents go by these.
	dependents = Off | On | Settled | Ready | There | Going
)

// Standings are those of all modules.
type Standings struct {
	of     map[string]*module
	atWork int  // how many are
	next   int  // in the order, where [Standings.Coming] looks on
	ready  bool // once no module was coming
	begun  bool // hooks of before_all were queued
	busy   bool // some module was at work since hooks of after_all ran last
	rounds int  // how often they ran since something came from outside
}

type module struct {
	standing Standing
	waiting  []string // modules that look when it changes
	said     string   // to people
	since    time.Time
}

// New returns the standings of no module.
func New() *Standings { return &Standings{of: map[string]*module{}} }

func (s *Standings) at(name string) *module {
	if s.of[name] == nil {
		s.of[name] = &module{}
	}
	return s.of[name]
}

// Await has a module look at the next change of another one that dependents go by.
func (s *Standings) Await(name, other string) {
	if m := s.at(other); name != other && !slices.Contains(m.waiting, name) {
		m.waiting = append(m.waiting, name)
	}
}

// Note notes how far a module has come. It says whether dependents must look, and which ones
// wait for that. They wait no more: those that still do say so as they look.
func (s *Standings) Note(name string, now Standing) (waiting []string, moved bool) {
	m := s.at(name)
	before := m.standing
	m.standing = now
	s.atWork += count(now&AtWork) - count(before&AtWork)
	if (before^now)&dependents == 0 {
		return nil, false
	}
	waiting, m.waiting = m.waiting, nil
	return waiting, true
}

func count(standing Standing) int { return bits.OnesCount(uint(standing)) }

// Of is how far a module has come, as it was noted.
func (s *Standings) Of(name string) Standing { return s.at(name).standing }

// Len is how many modules there are.
func (s *Standings) Len() int { return len(s.of) }

// Forget drops a module.
func (s *Standings) Forget(name string) {
	if s.of[name] != nil {
		s.Note(name, 0)
		delete(s.of, name)
	}
}

// Show says whether people have not been told what is shown of a module now, and whether it is
// the first that they hear of it.
func (s *Standings) Show(name, what string, now time.Time) (news, first bool) {
	m := s.at(name)
	if what == m.said {
		return false, false
	}
	first = m.said == ""
	m.said, m.since = what, now
	return true, first
}

// Since is when that changed last.
func (s *Standings) Since(name string) time.Time { return s.at(name).since }

// AllReady says whether there was a time without any module of the order that is coming. A later change, such
// as a module that is switched on, changes it no more: an upgrade is no reason to be taken out
// of service.
func (s *Standings) AllReady(order []string) bool {
	s.ready = s.ready || s.Coming(order) == ""
	return s.ready
}

// Coming names a module of the order that is coming; "" without any. It goes on where it stood
// last: it is asked after each input.
func (s *Standings) Coming(order []string) string {
	for range order {
		if s.next >= len(order) {
			s.next = 0
		}
		if m := s.of[order[s.next]]; m != nil && m.standing&Coming != 0 {
			return order[s.next]
		}
		s.next++
	}
	return ""
}

// AtRest says that no module is at work.
func (s *Standings) AtRest() bool { return s.atWork == 0 }

// Begin notes that hooks of before_all were queued.
func (s *Standings) Begin() { s.begun = true }

// Begun says whether they were.
func (s *Standings) Begun() bool { return s.begun }

// Stir has hooks of after_all run as after the work of a module.
func (s *Standings) Stir() { s.busy = true }

// Outside notes that something has come from outside: what modules do then is not what hooks of
// after_all have set them to.
func (s *Standings) Outside() { s.rounds = 0 }

// Rest says in which round in a row all modules have come to rest just now; 0 when they have not.
func (s *Standings) Rest() (round int) {
	switch {
	case s.atWork > 0:
		s.busy = true
		return 0
	case !s.busy:
		return 0
	}
	s.busy = false
	s.rounds++
	return s.rounds
}
