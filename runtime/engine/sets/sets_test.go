package sets

import (
	"errors"
	"slices"
	"testing"
	"time"
)

var (
	now = time.Date(2026, 1, 2, 0, 0, 0, 0, time.UTC)
)

func jitter() float64 { return 0 }

func TestAllSetsGo(t *testing.T) {
	s := New("web-b", "web-a")
	s.Applies("web-b", 7)
	if got := s.Managers(); !slices.Equal(got, []string{"web-a", "web-b"}) || !s.Any() {
		t.Errorf("managers %v", got)
	}
	if s.Removed(s.Managers(), 6, now, errors.New("no"), jitter) || len(s.Managers()) != 2 {
		t.Error("what could not be removed is gone, or counts as a stray")
	}
	s.Removed(s.Managers(), 6, now, nil, jitter)
	if got := s.Managers(); !slices.Equal(got, []string{"web-b"}) {
		t.Errorf("left are %v: one that was applied meanwhile stays", got)
	}
	if s.Removed(s.Managers(), 8, now, nil, jitter); s.Any() || s.Due(now) {
		t.Error("some are left")
	}
}

func TestStrays(t *testing.T) {
	s := New("web-a", "web-b")
	if !s.Due(now) || len(s.Strays(map[string]bool{"web-a": true, "web-b": true})) > 0 || s.Removing() {
		t.Error("sets of hooks that are there are no strays")
	}
	now, no := now, errors.New("no,\nnever")
	for i, err := range []error{no, no, nil} {
		gone := s.Strays(map[string]bool{"web-a": true})
		if !slices.Equal(gone, []string{"web-b"}) || !s.Removing() || s.Due(now) {
			t.Fatalf("try %d: strays %v", i, gone)
		}
		if !s.Removed(gone, 3, now, err, jitter) || s.Removing() {
			t.Errorf("try %d: its end was not noted", i)
		}
		if want := map[bool]string{true: "sets of hooks that are gone: no,; never"}[err != nil]; s.Trouble() != want {
			t.Errorf("trouble %q, want %q", s.Trouble(), want)
		}
		wait := []time.Duration{time.Second, 2 * time.Second, 0}[i]
		if wait > 0 && (s.Due(now) || s.Next().Sub(now) != wait) || wait == 0 && !s.Next().IsZero() {
			t.Errorf("try %d: due %v, next %v", i, s.Due(now), s.Next())
		}
		now = s.Next()
	}
	if got := s.Managers(); !slices.Equal(got, []string{"web-a"}) {
		t.Errorf("left are %v", got)
	}
}

// Strays that are none any more, for their hook is back, are no trouble.
func TestAStrayWhoseHookComesBack(t *testing.T) {
	s := New("web-a")
	s.Removed(s.Strays(nil), 1, now, errors.New("no"), jitter)
	if s.Strays(map[string]bool{"web-a": true}); s.Trouble() != "" || !s.Next().IsZero() {
		t.Errorf("trouble %q, next %v", s.Trouble(), s.Next())
	}
}
