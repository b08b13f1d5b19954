package status

import (
	"io"
	"time"
)

// Parent is what a controller has decided about one of its parents when it looked last.
type Parent struct {
	// Controller is the id of the controller, Key the "namespace/name" of the parent, or its name.
	Controller string `json:"controller"`
	Key        string `json:"key"`
	// Failure says why the last look, or what it has written, failed; "" when it has not.
	Failure string `json:"failure,omitempty"`
	// Waits says for what the rest waits, "" when nothing is left to be done.
	Waits string `json:"waits,omitempty"`
	// Looked says where that look has looked beside the children, as code: `ctx.reads.nodes.get("n1")`, or
	// `values`. Many places of one watch are `.all()`; values of indexes that may be secret are left out.
	Looked []string `json:"looked,omitempty"`
	// Next is when it looks again though nothing changes, for ctx.reached or a child that is left for a
	// moment; nil: never. Tries after a failure are not among it.
	Next *time.Time `json:"next,omitempty"`
	// Observed is what was observed last, ObservedAt when; nil: nothing was.
	Observed   any        `json:"observed,omitempty"`
	ObservedAt *time.Time `json:"observedAt,omitempty"`
	// Actions are what was to be done then, and why nothing was: none when all is as it should be.
	Actions []Action `json:"actions"`
}

// Action is what is done about one child.
type Action struct {
	// Op is create, apply, recreate, delete, wait or hold.
	Op string `json:"op"`
	// Child is "Deployment shop/web". Part is the name of its part, "" of a child that is not wanted.
	Child string `json:"child"`
	Part  string `json:"part,omitempty"`
	Why   string `json:"why"`
}

// PrintActions writes a table of actions: OP CHILD PART WHY.
func PrintActions(w io.Writer, actions []Action, o Options) error {
	rows := [][]string{{"OP", "CHILD", "PART", "WHY"}}
	for _, a := range actions {
		rows = append(rows, []string{a.Op, a.Child, a.Part, a.Why})
	}
	return PrintTable(w, rows, 0, o)
}
