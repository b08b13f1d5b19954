// Package sets knows which hooks of one module may have sets of objects in the cluster, by their
// field managers. Sets go with the hook that has applied them, and with its module. It does no
// I/O.
package sets

import (
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/starling-operator/starling/runtime/lane"
)

// Sets are those of one module.
type Sets struct {
	applied map[string]uint64 // by manager: the last action that may have applied one
	strays  lane.Task         // the end of sets of hooks that are gone
}

// New returns those that an earlier process has found, by their managers.
func New(managers ...string) *Sets {
	s := &Sets{applied: map[string]uint64{}}
	for _, manager := range managers {
		s.applied[manager] = 0
	}
	return s
}

// Applies notes that an action may apply some.
func (s *Sets) Applies(manager string, op uint64) { s.applied[manager] = op }

// Any says whether there may be some.
func (s *Sets) Any() bool { return len(s.applied) > 0 }

// Managers are those of all that there may be, sorted.
func (s *Sets) Managers() []string { return slices.Sorted(maps.Keys(s.applied)) }

// Due says whether some may be looked at for [Sets.Strays].
func (s *Sets) Due(now time.Time) bool { return s.Any() && s.strays.Due(now) }

// Strays begins the end of sets whose managers are none of these, and returns their managers;
// [Sets.Removed] ends it. Without any there is nothing to end.
func (s *Sets) Strays(managers map[string]bool) []string {
	gone := slices.DeleteFunc(s.Managers(), func(manager string) bool { return managers[manager] })
	if len(gone) == 0 {
		s.strays.Again()
	} else {
		s.strays.Running = true
	}
	return gone
}

// Removing says that strays are being removed.
func (s *Sets) Removing() bool { return s.strays.Running }

// Removed takes in the end of the removal of some sets. It says whether they were strays.
func (s *Sets) Removed(managers []string, op uint64, now time.Time, err error, jitter func() float64) (strays bool) {
	for _, manager := range managers {
		if err == nil && s.applied[manager] < op { // applied before
			delete(s.applied, manager)
		}
	}
	if !s.Removing() {
		return false
	}
	s.strays.Ended(now, err, jitter)
	return true
}

// Trouble says why strays are still there, or "".
func (s *Sets) Trouble() string {
	if s.strays.Err == "" {
		return ""
	}
	return "sets of hooks that are gone: " + strings.ReplaceAll(s.strays.Err, "\n", "; ")
}

// Soon has a removal that has failed tried again by that time.
func (s *Sets) Soon(at time.Time) { s.strays.Soon(at) }

// Next is when a removal that has failed is tried again; zero without one.
func (s *Sets) Next() time.Time { return s.strays.At }
