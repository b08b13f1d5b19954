package persist

import (
	"bytes"
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

var (
	errNo  = errors.New("no")
	one    = []byte("1")
	two    = []byte("2")
	origin = time.Unix(0, 0)
)

func TestWhatIsTheSameIsNotWritten(t *testing.T) {
	s := New(map[string][]byte{"a": one})
	s.Put("a", []byte("1"))
	s.Put("b", nil)
	if s.Due(origin, false) || !s.Clean() || !s.Stands("a") {
		t.Error("there is something to write")
	}
	s.Put("a", two)
	if !s.Due(origin, false) || s.Clean() || s.Stands("a") {
		t.Error("there is nothing to write")
	}
}

func TestOneWriteAtATime(t *testing.T) {
	s := New(nil)
	s.Put("a", one)
	if data := s.Begin(); string(data["a"]) != "1" || s.Due(origin, false) || s.Stands("a") {
		t.Fatalf("written %v", data)
	}
	s.Put("b", one)
	s.Join(7, 1, origin)
	if s.Due(origin, false) {
		t.Error("two writes at once")
	}
	if s.End(origin, nil, noJitter); !s.Due(origin, false) || !s.Stands("a") || s.Stands("b") {
		t.Error("the second write does not begin")
	}
}

func TestAWriteWaitsForMoreRunsWhileThereIsRoomAndTime(t *testing.T) {
	s := New(nil)
	late := origin.Add(time.Second)
	s.Join(1, 1, late)
	if !s.Due(origin, false) || s.Due(origin, true) || !s.Due(late, true) || !s.Until().Equal(late) {
		t.Error("it does not wait for others as long as it may")
	}
	if s.Join(2, 1, origin); !s.Due(origin, true) {
		t.Error("one that waits for nobody waits")
	}
	if s.Take(); s.Due(late, true) || !s.Until().IsZero() {
		t.Error("there is something to write")
	}
	s.Join(3, maxJoinedBytes, late)
	if !s.Full() || !s.Due(origin, true) {
		t.Error("there is no room, and it waits for more")
	}
	s.Take()
	for run := range uint64(maxJoined) {
		s.Join(run, 1, late)
	}
	if !s.Full() || !s.Due(origin, true) {
		t.Error("there is no room, and it waits for more")
	}
	s.Take()
	s.Join(4, 1, late)
	if s.Put("a", one); !s.Due(origin, true) {
		t.Error("something else waits for runs")
	}
}

func TestAFailedWriteIsTriedAgainLater(t *testing.T) {
	s := New(nil)
	s.Put("a", one)
	for i, want := range []time.Duration{time.Second, 2 * time.Second} {
		s.Begin()
		if failed := s.End(origin, errNo, noJitter); failed != i+1 || !s.Next().Equal(origin.Add(want)) {
			t.Errorf("failed %d times, next at %s", failed, s.Next())
		}
	}
	if s.Due(origin.Add(time.Second), false) || !s.Due(origin.Add(2*time.Second), false) {
		t.Error("it does not wait for its time")
	}
	if s.Join(7, 1, origin); !s.Due(origin, false) {
		t.Error("a run waits for that time")
	}
}

func TestClearTakesAllAway(t *testing.T) {
	s := New(map[string][]byte{"a": one, "b": two})
	s.Clear()
	if data := s.Begin(); data != nil {
		t.Errorf("written %v", data)
	}
	if s.End(origin, nil, noJitter); !s.Clean() || s.Has("a") {
		t.Error("something is left")
	}
}

// Whatever changes meanwhile, and whichever writes fail, carried out or not: once there is
// nothing to be written, what counts stands in the Secrets.
func TestWhatCountsStandsInTheEnd(t *testing.T) {
	for seed := range uint64(2000) {
		r := rand.New(rand.NewPCG(seed, 0))
		stands := map[string][]byte{"a": one}
		s := New(stands)
		counts := maps.Clone(stands)
		runs := map[uint64]Change{}
		now := origin
		for step := uint64(0); step < 40 || !s.Clean(); step++ {
			now = now.Add(time.Minute)
			key, data := string("abc"[r.IntN(3)]), [][]byte{nil, one, two}[r.IntN(3)]
			switch r.IntN(3) {
			case 0:
				if step < 40 {
					s.Put(key, data)
					put(counts, key, data)
				}
			case 1:
				if step < 40 {
					runs[step] = Change{key: data}
					s.Join(step, 1, now.Add(time.Duration(r.IntN(3))*time.Minute))
				}
			default:
				if !s.Due(now, r.IntN(2) == 0) {
					continue
				}
				joined := s.Take()
				var changes []Change
				for _, id := range joined {
					changes = append(changes, runs[id])
				}
				next := s.Begin(changes...)
				if key, data := "abc"[r.IntN(3):][:1], one; r.IntN(2) == 0 && step < 40 { // while it is under way
					s.Put(key, data)
					put(counts, key, data)
				}
				var err error
				if step < 40 && r.IntN(3) == 0 {
					err = errNo
				}
				if err == nil || r.IntN(2) == 0 {
					stands = maps.Clone(next)
				}
				s.End(now, err, noJitter)
				for _, id := range joined {
					if err != nil || r.IntN(4) == 0 { // failed, or its subject is gone
						s.Doubt(runs[id])
						continue
					}
					s.Count(runs[id])
					for key, data := range runs[id] {
						put(counts, key, data)
					}
				}
			}
			for key := range s.All() {
				if s.Stands(key) && !bytes.Equal(stands[key], counts[key]) {
					t.Fatalf("seed %d: %s is said to stand: %s, and %s counts", seed, key, stands[key], counts[key])
				}
			}
		}
		for what, got := range map[string]map[string][]byte{"counts": s.Data(), "stands": stands} {
			if diff := cmp.Diff(fmt.Sprint(counts), fmt.Sprint(maps.Clone(got))); diff != "" {
				t.Fatalf("seed %d: what %s (-want +got):\n%s", seed, what, diff)
			}
		}
	}
}

func noJitter() float64 { return 0 }

func put(m map[string][]byte, key string, data []byte) {
	if data == nil {
		delete(m, key)
	} else {
		m[key] = data
	}
}
