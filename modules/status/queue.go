package status

import (
	"fmt"
	"io"
	"time"
)

// Queue is a line of hooks of one module, which run one after the other.
type Queue struct {
	// Module is "global" for global hooks; Queue is "main" or queue= of the hooks.
	Module string `json:"module"`
	Queue  string `json:"queue"`
	// Running are the hooks of which a run is under way, with the object of those with for_each.
	Running []string `json:"running,omitempty"`
	// Length is how many wait, Waiting the first hundred of them, the next one first.
	Length  int      `json:"length"`
	Waiting []Queued `json:"waiting,omitempty"`
}

// Queued is a run that waits.
type Queued struct {
	Hook string `json:"hook"`
	// Key is the object that the run is about, with for_each.
	Key string `json:"key,omitempty"`
	// Request: somebody waits for the answer, and it goes before others.
	Request bool `json:"request,omitempty"`
	// Since is when it came or was last tried, to the second.
	Since time.Time `json:"since,omitzero"`
	// Failures counts those in a row.
	Failures int `json:"failures,omitempty"`
	// Reason says why it waits, Next until when, where that is known.
	Reason string     `json:"reason"`
	Next   *time.Time `json:"next,omitempty"`
}

// PrintQueues writes a table of queues: MODULE QUEUE LENGTH OLDEST RUNNING HEAD REASON. HEAD is
// the run that is next, OLDEST how long the one has waited that waits longest.
func PrintQueues(w io.Writer, queues []Queue, o Options) error {
	t := table{{"MODULE", "QUEUE", "LENGTH", "OLDEST", "RUNNING", "HEAD", "REASON"}}
	for _, q := range queues {
		row := []string{q.Module, q.Queue, fmt.Sprint(q.Length), "", "", "", ""}
		if len(q.Running) > 0 {
			row[4] = line(q.Running[0])
			if more := len(q.Running) - 1; more > 0 {
				row[4] += fmt.Sprintf(" and %d more", more)
			}
		}
		if len(q.Waiting) > 0 {
			oldest := q.Waiting[0].Since
			for _, waits := range q.Waiting {
				if waits.Since.Before(oldest) {
					oldest = waits.Since
				}
			}
			head := q.Waiting[0]
			row[3], row[5] = o.Age(oldest), line(head.Name())
			row[6] = reason(o, head.Reason, "", head.Next, nil)
		}
		t = append(t, row)
	}
	return t.write(w, -1, o)
}

// Name is the hook, with the object that it is about.
func (q Queued) Name() string {
	if q.Key == "" {
		return q.Hook
	}
	return q.Hook + " of " + q.Key
}
