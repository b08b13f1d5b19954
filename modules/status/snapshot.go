package status

import (
	"fmt"
	"io"
)

// Snapshot is what a watch of a hook keeps now, as the hook's next run sees it, without secrets.
type Snapshot struct {
	Hook    string `json:"hook"`
	Binding string `json:"binding"`
	// Kind is "apiVersion/Kind".
	Kind string `json:"kind"`
	// Complete is false before all that there is has come.
	Complete bool `json:"complete"`
	// Objects are sorted by namespace and name.
	Objects []SnapshotObject `json:"objects"`
}

// SnapshotObject is what the filter of a watch has made of one object.
type SnapshotObject struct {
	Namespace string `json:"namespace,omitempty"`
	Name      string `json:"name"`
	Result    any    `json:"result"`
}

// PrintSnapshots writes a table of snapshots: HOOK BINDING KIND OBJECTS STATE.
func PrintSnapshots(w io.Writer, snapshots []Snapshot, o Options) error {
	t := table{{"HOOK", "BINDING", "KIND", "OBJECTS", "STATE"}}
	for _, s := range snapshots {
		state := "complete"
		if !s.Complete {
			state = "not complete"
		}
		t = append(t, []string{s.Hook, s.Binding, s.Kind, fmt.Sprint(len(s.Objects)), state})
	}
	return t.write(w, -1, o)
}
