package lsp

import "time"

const (
	// quick is how long a check may take so that the next one does not wait.
	quick = 50 * time.Millisecond
	// maxPause bounds for how long a check waits.
	maxPause = 500 * time.Millisecond
)

// pace says when the next check begins. Checks take half of the time at most while somebody writes, and a change that
// comes after a while is looked at without delay.
type pace struct {
	took time.Duration // by the last check
	// stopped is how many checks until now had no result, since a change came: the next change may come as soon.
	stopped int
}

// maxStopped is how many checks in a row a change stops. People make a pause before that; a build that writes files all
// the time would keep the tree from being looked at.
const maxStopped = 5

// wait is for how long the next check waits, that long after the last one.
func (p pace) wait(since time.Duration) time.Duration {
	if p.took < quick {
		return 0
	}
	pause := min(p.took, maxPause)
	if p.stopped > 0 {
		return pause
	}
	return max(0, pause-since)
}
