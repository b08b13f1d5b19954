// Package persist knows what stands in the Secrets of one module, and what of that has to be
// written anew. There is one write at a time; whatever changes meanwhile goes with the next
// one. It does no I/O.
package persist

import (
	"bytes"
	"iter"
	"maps"
	"slices"
	"time"

	"github.com/starling-operator/starling/runtime/lane"
)

// Change is what one run changes, by key; nil for a key that goes.
type Change map[string][]byte

// Retry spaces out writes that fail. Once one has succeeded, all that has failed is tried again: so they find out soon
// that the API server is there again.
var Retry = lane.Backoff{Min: time.Second, Max: 15 * time.Second, Factor: 2}

// Store is what counts of one module, by key, and how far that is written.
type Store struct {
	data    map[string][]byte
	unsaved map[string]bool // keys at which something else may stand in the Secrets; nil: another process keeps them
	writing map[string]bool // those of the write under way; nil: there is none
	joined  []uint64        // runs whose changes go with the next write
	size    int             // of these changes, about, in bytes
	until   time.Time       // the next write may wait until then for more of them
	retry   lane.Retry      // of what is unsaved, after a write that has failed
}

// New returns a store of what stands in the Secrets.
func New(stands map[string][]byte) *Store {
	s := &Store{data: maps.Clone(stands), unsaved: map[string]bool{}}
	if s.data == nil {
		s.data = map[string][]byte{}
	}
	return s
}

// Follow returns a store of what another process keeps: what changes in it is written nowhere, and counts as kept.
func Follow(stands map[string][]byte) *Store {
	s := New(stands)
	s.unsaved = nil
	return s
}

// All is what counts, sorted by key. The store may be changed meanwhile.
func (s *Store) All() iter.Seq2[string, []byte] {
	return func(yield func(string, []byte) bool) {
		for _, key := range slices.Sorted(maps.Keys(s.data)) {
			if data, there := s.data[key]; there && !yield(key, data) {
				return
			}
		}
	}
}

// Data is what counts, by key. Only read.
func (s *Store) Data() map[string][]byte { return s.data }

// Has says whether there is something at a key.
func (s *Store) Has(key string) bool { return s.data[key] != nil }

// Put makes data count from now on, and has it written; nil data takes the key away. The same data costs nothing.
func (s *Store) Put(key string, data []byte) {
	old, there := s.data[key]
	if there == (data != nil) && bytes.Equal(old, data) {
		return
	}
	s.set(key, data)
	if s.unsaved != nil {
		s.unsaved[key] = true
	}
}

func (s *Store) set(key string, data []byte) {
	if data == nil {
		delete(s.data, key)
	} else {
		s.data[key] = data
	}
}

// Clear takes all keys away.
func (s *Store) Clear() {
	for key := range s.data {
		s.Put(key, nil)
	}
}

// Stands says whether what counts at a key is sure to stand in the Secrets.
func (s *Store) Stands(key string) bool { return s.Has(key) && s.Written(key) }

// Written says whether what counts at a key, or that nothing does, is sure to be so in the Secrets.
func (s *Store) Written(key string) bool { return !s.unsaved[key] && !s.writing[key] }

// Kept says whether all that counts at such keys is sure to stand in the Secrets, and nothing else.
func (s *Store) Kept(such func(key string) bool) bool {
	for _, keys := range []map[string]bool{s.unsaved, s.writing} {
		for key := range keys {
			if such(key) {
				return false
			}
		}
	}
	return true
}

// Writing says whether a write is under way.
func (s *Store) Writing() bool { return s.writing != nil }

// Clean says whether all that counts is sure to stand in the Secrets, and nothing else.
func (s *Store) Clean() bool { return !s.Writing() && len(s.unsaved)+len(s.joined) == 0 }

// These bound the runs that wait for one write: a process that is killed repeats them.
const (
	maxJoined      = 64
	maxJoinedBytes = 1 << 20
)

// Join has a run wait for the next write, which changes about so many bytes, and may wait for others until then.
func (s *Store) Join(run uint64, size int, until time.Time) {
	if len(s.joined) == 0 || until.Before(s.until) {
		s.until = until
	}
	s.joined, s.size = append(s.joined, run), s.size+size
}

// Full says that no more runs should join.
func (s *Store) Full() bool { return len(s.joined) >= maxJoined || s.size >= maxJoinedBytes }

// Until is the time until which the next write may wait for more runs; zero when none has joined.
func (s *Store) Until() time.Time { return s.until }

// Due says whether the next write may begin, and there is something to be written; more says that other runs may join
// soon. No run waits for the time after which a failed write is tried again: it may fail itself.
func (s *Store) Due(now time.Time, more bool) bool {
	gathers := more && !s.Full() && s.until.After(now)
	return !s.Writing() && (len(s.joined) > 0 && !gathers || len(s.unsaved) > 0 && !s.retry.Waits(now))
}

// Next is the time after which a write that has failed is tried again; zero without one.
func (s *Store) Next() time.Time { return s.retry.At }

// Take takes out the runs that have joined, in order.
func (s *Store) Take() []uint64 {
	runs := s.joined
	s.joined, s.size, s.until = nil, 0, time.Time{}
	return runs
}

// Begin begins a write: it returns all that is then to stand in the Secrets, with the
// changes of runs in their order; nil without any. End ends it.
func (s *Store) Begin(changes ...Change) map[string][]byte {
	s.writing, s.unsaved = s.unsaved, map[string]bool{}
	next := Store{data: maps.Clone(s.data)}
	for _, change := range changes {
		for key, data := range change {
			next.set(key, data)
		}
	}
	if len(next.data) == 0 {
		return nil
	}
	return next.data
}

// End ends a write. One that has failed may have been carried out all the same. It returns
// how many have failed in a row. Jitter returns numbers in [0,1).
func (s *Store) End(now time.Time, err error, jitter func() float64) (failed int) {
	written := s.writing
	s.writing = nil
	if err == nil {
		s.retry = lane.Retry{}
		return 0
	}
	maps.Copy(s.unsaved, written)
	s.retry.Failed(now, err, Retry, jitter())
	return s.retry.Attempt
}

// AwayAfter is how many writes must have failed, one after the other, for the API server to have been away: with the
// waits between them that is ten seconds and more.
const AwayAfter = 4

// Away says that the API server takes nothing, and has not for a while.
func (s *Store) Away() bool { return s.retry.Attempt >= AwayAfter }

// Back says that it takes what is written again: what has failed is due at once.
func (s *Store) Back() { s.retry = lane.Retry{} }

// Count makes the change of a run count, which the write that has just ended has written.
func (s *Store) Count(change Change) {
	for key, data := range change {
		s.set(key, data)
	}
}

// Doubt notes that the change of a run does not count, and may have been written.
func (s *Store) Doubt(change Change) {
	for key := range change {
		s.unsaved[key] = true
	}
}
