// Package finalizers knows which finalizers the hooks of one module may have put on objects,
// and which have to be taken off. One that nobody takes off keeps its object for ever, so
// what was put where is kept before the first one is. It does no I/O.
package finalizers

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/starling-operator/starling/runtime/effect"
	"github.com/starling-operator/starling/runtime/lane"
)

const (
	// Prefix begins every finalizer of Starling.
	Prefix = "starling.dev/"
	// Key begins the keys under which they are kept.
	Key = "cleanup."
)

// Finalizer is that of the cleanup of one hook, as it is kept.
type Finalizer struct {
	Hook       string `json:"hook"`
	APIVersion string `json:"apiVersion"`
	Kind       string `json:"kind"`
	Name       string `json:"finalizer"`
	// Owns are the kinds of which the hook, a controller, may have made children, as [JoinKinds] writes them.
	Owns string `json:"owns,omitempty"`
}

// JoinKinds writes kinds such as "apps/v1/Deployment", sorted, each once; "" for none.
func JoinKinds(kinds []string) string {
	return strings.Join(slices.Compact(slices.Sorted(slices.Values(kinds))), ",")
}

// Kinds is the reverse of [JoinKinds].
func (f Finalizer) Kinds() []string {
	if f.Owns == "" {
		return nil
	}
	return strings.Split(f.Owns, ",")
}

// Name names the finalizer of a hook. It holds the module's name for people, and tells
// instances and hooks apart.
func Name(namespace, instance, module, hook string) string {
	sum := sha256.Sum256([]byte(namespace + "/" + instance + "/" + hook))
	module = module[:min(len(module), 40)]
	return Prefix + strings.TrimRight(module, "-") + "-" + hex.EncodeToString(sum[:5])
}

// Encode is what is kept of a finalizer.
func (f Finalizer) Encode() []byte {
	data, _ := json.Marshal(f) // texts
	return data
}

// Decode is the reverse of Encode.
func Decode(data []byte) (f Finalizer, err error) {
	if err := json.Unmarshal(data, &f); err != nil {
		return f, err
	}
	if !strings.HasPrefix(f.Name, Prefix) {
		return f, fmt.Errorf("%q is no finalizer of Starling", f.Name)
	}
	return f, nil
}

// Read returns those of a module from all that was kept for it, by key.
func Read(kept map[string][]byte) []Finalizer {
	var out []Finalizer
	for _, key := range slices.Sorted(maps.Keys(kept)) {
		if f, err := Decode(kept[key]); strings.HasPrefix(key, Key) && err == nil {
			out = append(out, f)
		}
	}
	return out
}

// sameKind says whether two are on objects of one kind, in any version.
func (f Finalizer) sameKind(other Finalizer) bool {
	return f.Kind == other.Kind && effect.GroupOf(f.APIVersion) == effect.GroupOf(other.APIVersion)
}

// Set holds the finalizers of one module, one per hook.
type Set struct{ hooks map[string]*state }

type state struct {
	Finalizer
	swept sweeping
	under Reason // of the sweep under way
	retry lane.Retry
}

// sweeping is how far it has come that objects which the hook does not watch any more are without its finalizer.
type sweeping int

const (
	unswept sweeping = iota // the hook has come up, and may watch others than before
	sweeps
	swept
)

// New returns a set without any.
func New() *Set { return &Set{hooks: map[string]*state{}} }

// Reason says why finalizers are taken off objects.
type Reason int

const (
	// None: they stay where they are.
	None Reason = iota
	// Unwatched: only objects that the hook does not watch any more lose it.
	Unwatched
	// Useless: nobody cleans up any more, so that all objects lose it.
	Useless
)

// Adopt adds one that was kept, unless its hook has one.
func (s *Set) Adopt(f Finalizer) {
	if s.hooks[f.Hook] == nil {
		s.hooks[f.Hook] = &state{Finalizer: f}
	}
}

// Want adds the one that a hook is about to use, beside the kinds that it owned before. It says whether
// that has to be kept first. One that is being taken off all objects, or is on those of another kind, goes first.
func (s *Set) Want(want Finalizer) bool {
	f := s.hooks[want.Hook]
	if f == nil {
		s.hooks[want.Hook] = &state{Finalizer: want}
		return true
	}
	f.swept = unswept
	// Children may be of the kinds that it had before, too.
	want.Owns = JoinKinds(append(f.Kinds(), want.Kinds()...))
	if f.Finalizer == want || f.under == Useless || f.Name == want.Name && !f.sameKind(want) {
		return false
	}
	f.Finalizer, f.retry = want, lane.Retry{}
	return true
}

// Unswept notes that objects may have the finalizer of a hook that it does not watch any more.
func (s *Set) Unswept(hook string) {
	if f := s.hooks[hook]; f != nil {
		f.swept = unswept
	}
}

// Of returns that of a hook, if there is one.
func (s *Set) Of(hook string) (Finalizer, bool) {
	if f := s.hooks[hook]; f != nil {
		return f.Finalizer, true
	}
	return Finalizer{}, false
}

// Usable says whether a hook may put its finalizer on objects: the set has it, and it is
// not being taken off.
func (s *Set) Usable(want Finalizer) bool {
	f := s.hooks[want.Hook]
	return f != nil && f.under != Useless && f.sameKind(want)
}

// Empty says whether no object may have any.
func (s *Set) Empty() bool { return len(s.hooks) == 0 }

// Sweeping says whether some are being taken off.
func (s *Set) Sweeping() bool {
	for _, f := range s.hooks {
		if f.under != None {
			return true
		}
	}
	return false
}

// Sweep has one finalizer taken off.
type Sweep struct {
	Finalizer
	Reason Reason
}

// Begin returns the sweeps that begin now; why says of each finalizer for what reason it
// may be taken off. End ends each.
func (s *Set) Begin(now time.Time, why func(Finalizer) Reason) []Sweep {
	var out []Sweep
	for _, hook := range slices.Sorted(maps.Keys(s.hooks)) {
		f := s.hooks[hook]
		if f.under != None || f.retry.Waits(now) {
			continue
		}
		if f.under = why(f.Finalizer); f.under == Unwatched && f.swept == swept {
			f.under = None
		}
		if f.under != None {
			f.swept = sweeps
			out = append(out, Sweep{f.Finalizer, f.under})
		}
	}
	return out
}

// End ends the sweep of the finalizer of a hook. It says how often that has failed in a row, and whether the finalizer
// is gone. Jitter returns numbers in [0,1).
func (s *Set) End(now time.Time, hook string, err error, jitter func() float64) (failed int, gone bool) {
	f := s.hooks[hook]
	under := f.under
	f.under = None
	switch {
	case err != nil:
		f.retry.Failed(now, err, lane.Long, jitter())
		return f.retry.Attempt, false
	case under == Unwatched:
		if f.retry = (lane.Retry{}); f.swept == sweeps {
			f.swept = swept
		}
		return 0, false
	}
	delete(s.hooks, hook)
	return 0, true
}

// Soon has sweeps that have failed tried again by that time.
func (s *Set) Soon(at time.Time) {
	for _, f := range s.hooks {
		f.retry.Soon(at)
	}
}

// Next returns when a sweep that has failed is tried again; zero without one.
func (s *Set) Next(now time.Time) (at time.Time) {
	for _, f := range s.hooks {
		if f.retry.Waits(now) && (at.IsZero() || f.retry.At.Before(at)) {
			at = f.retry.At
		}
	}
	return at
}
