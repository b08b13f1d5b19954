package engine

import (
	"fmt"
	"slices"
	"testing"
	"time"
)

// lines are the queues as texts.
func (w *world) lines() (out []string) {
	for _, l := range w.e.Lines() {
		text := l.Module + " " + l.Queue + ":"
		for _, id := range l.Taken {
			text += " runs " + id.Group
		}
		for _, one := range l.Waiting {
			text += fmt.Sprintf(" [%s %d: %s %s]", one.ID.Group, one.Failures, one.Why, max(0, one.Next.Sub(w.now)).Round(time.Second))
		}
		out = append(out, text)
	}
	return out
}

func TestLinesSayWhyRunsWait(t *testing.T) {
	slow := hk("slow", onStartup(1), onWatch("nodes"))
	slow.MinInterval, slow.Burst, slow.Queue = time.Minute, 1, "slow"
	w := newWorld(t, mod("web", isOn(), hk("a", onStartup(1)), hk("b", onStartup(2)), slow))
	w.hold = "web/a"
	w.start()
	if got, want := w.lines(), []string{
		"web : runs web/a [web/b 0: the run of a has not ended 0s]", "web slow:",
	}; !slices.Equal(got, want) {
		t.Errorf("got %q, want %q", got, want)
	}
	w.changed("web/slow#nodes")
	if got, want := w.lines()[1], "web slow: [web/slow 0: min_interval= of the hook 1m0s]"; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
	// So the age of its queue does not count it, while it does b's, which the run of a holds up.
	for _, l := range w.e.Load().Lanes {
		for _, waits := range l.Waiting {
			if waits.Held != (l.Queue == "slow") {
				t.Errorf("of queue %q %v is held: %v", l.Queue, waits.ID, waits.Held)
			}
		}
	}
}
