package store

import (
	"slices"
)

// fault is an error that is to happen.
type fault struct {
	verb, kind string
	err        error
	times      int
	after      int  // calls that succeed before
	seeded     bool // see [Store.SpareSeeded]
}

// FailNext makes the next times calls fail with err. The verb is one of RBAC's, or
// apply (server-side apply), write (all that change something), or "*"; kind is as
// in the objects ("ConfigMap"), or "*". Spared calls neither fail nor count. Faults
// for the same call are used up in the order they were given.
func (s *Store) FailNext(verb, kind string, err error, times int) {
	s.mu.Lock()
	defer s.unlock()
	if times > 0 {
		s.faults = append(s.faults, &fault{verb: verb, kind: kind, err: err, times: times})
	}
}

// FailAfter makes one call fail with err, as [Store.FailNext] does, once that many have
// succeeded: a commit that fails in its middle.
func (s *Store) FailAfter(verb, kind string, err error, after int) {
	s.mu.Lock()
	defer s.unlock()
	s.faults = append(s.faults, &fault{verb: verb, kind: kind, err: err, times: 1, after: after, seeded: true})
}

// SpareSeeded has calls pass, as long as it is on, that [Store.FailAfter] would have fail.
func (s *Store) SpareSeeded(on bool) {
	s.mu.Lock()
	defer s.unlock()
	s.spareSeeded = on
}

// ClearFaults forgets the errors that were to happen.
func (s *Store) ClearFaults() {
	s.mu.Lock()
	defer s.unlock()
	s.faults = nil
}

// fail returns the error that is due for a call.
func (s *Store) fail(t Target, k *kind, verb string) error {
	if t.Spared {
		return nil
	}
	for i, f := range s.faults {
		if f.seeded && s.spareSeeded || f.kind != "*" && f.kind != k.Kind.Kind || !f.hits(verb) {
			continue
		}
		if f.after > 0 {
			f.after--
			continue
		}
		if f.times--; f.times == 0 {
			s.faults = slices.Delete(s.faults, i, i+1)
		}
		return f.err
	}
	return nil
}

func (f *fault) hits(verb string) bool {
	switch f.verb {
	case "*", verb:
		return true
	case "patch":
		return verb == "apply"
	case "write":
		return verb != "get" && verb != "list" && verb != "watch"
	}
	return false
}
