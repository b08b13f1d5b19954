package subjects

import (
	"fmt"

	"github.com/starling-operator/starling/runtime/message"
)

// FirstRun is how far a subject has come since its module came up.
type FirstRun int

const (
	// Untried: no run has ended.
	Untried FirstRun = iota
	// HasFailed: none has succeeded.
	HasFailed
	// HasSucceeded: one has, which goes on to count when others fail.
	HasSucceeded
	// Renewed: one has succeeded with other code, and none has ended since.
	Renewed
)

// Tried says that there was a run with the code as it is.
func (f FirstRun) Tried() bool { return f == HasFailed || f == HasSucceeded }

// Passed says that a run has succeeded, with whichever code.
func (f FirstRun) Passed() bool { return f == HasSucceeded || f == Renewed }

func (f FirstRun) failed() FirstRun {
	if f.Passed() {
		return HasSucceeded
	}
	return HasFailed
}

func (f FirstRun) renewed() FirstRun {
	if f.Passed() {
		return Renewed
	}
	return Untried
}

// First is how far the hook has come. With for_each its first run has succeeded once all
// objects of the first snapshot were tried: one that fails does not hold up what waits for the
// hook, for it is one of many.
func (t *Set) First() FirstRun { return t.own.first }

// Begin notes which objects the first snapshot has: those of which something waits have their
// first run still to come. It says whether that was not taken note of yet.
func (t *Set) Begin(waits func(*Subject) bool) (begins bool) {
	if !t.each() || t.awaited != nil {
		return false
	}
	t.awaited = map[*Subject]bool{}
	for _, s := range t.objects {
		if !s.first.Tried() && waits(s) {
			t.awaited[s] = true
		}
	}
	t.allTried()
	return true
}

// Unknown notes that nobody knows the objects for a while: their first runs are not waited for.
func (t *Set) Unknown() {
	if t.awaited != nil {
		clear(t.awaited)
		t.allTried()
	}
}

// tried notes that the first run of an object is not waited for any more.
func (t *Set) tried(s *Subject) {
	if t.awaited[s] {
		delete(t.awaited, s)
		t.allTried()
	}
}

func (t *Set) allTried() {
	if len(t.awaited) == 0 {
		t.own.first = HasSucceeded
	}
}

// Renew notes that the code is another one. Begin is called again.
func (t *Set) Renew() {
	t.awaited, t.failing = nil, nil
	for _, s := range append(t.All(), t.own) { // twice is as good as once
		s.first, s.why, s.outcome.Observed = s.first.renewed(), "", nil
	}
}

// Succeed notes that the last run about a subject has succeeded. It says whether the one
// before had failed.
func (t *Set) Succeed(s *Subject) (again bool) {
	s.first = HasSucceeded
	t.tried(s)
	return t.Answer(s, "")
}

// Fail notes why the last run about a subject has failed; allowed says that others wait no
// longer for it than for one that succeeds.
func (t *Set) Fail(s *Subject, why string, allowed bool) {
	if s.first = s.first.failed(); allowed {
		s.first = HasSucceeded
	}
	t.tried(s)
	t.Answer(s, why)
}

// Answer notes why a run has failed that somebody has asked for, or "" when it has not: the
// first run may still be to come. It says whether that is another reason than before.
func (t *Set) Answer(s *Subject, why string) (other bool) {
	other = why != s.why
	if s.why = why; why == "" {
		t.failing.drop(s.Key)
	} else {
		t.failing.put(s)
	}
	return other
}

// Failing are the subjects whose last run failed, by key. Only read.
func (t *Set) Failing() []*Subject { return t.failing }

// Why says why the last run about the subject failed, or "".
func (s *Subject) Why() string { return s.why }

// Failure names the first subject whose run failed, and how many there are; or "".
func (t *Set) Failure() string {
	if len(t.failing) == 0 {
		return ""
	}
	text := t.failing[0].Said(t.failing[0].why)
	switch n := len(t.failing) - 1; n {
	case 0:
	case 1:
		text += " (and 1 other object fails)"
	default:
		text += fmt.Sprintf(" (and %d other objects fail)", n)
	}
	return text
}

// Waiting names the first subject of which not all is done, and how many there are; or "".
func (t *Set) Waiting() (text string) {
	more := 0
	for _, s := range t.objects {
		switch {
		case s.outcome.Waits == "":
		case text == "":
			text = s.Said(s.outcome.Waits)
		default:
			more++
		}
	}
	return text + message.More(more)
}
