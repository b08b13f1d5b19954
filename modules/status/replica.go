package status

import (
	"io"
	"time"
)

// Replica is what one process of an instance says of itself, and where it runs.
type Replica struct {
	// Name is the pod's, or that of the host.
	Name string `json:"name"`
	// Leader is true while the process holds the Lease and may write. The others stand by.
	Leader bool `json:"leader"`
	// Holder is the host of the process that holds the Lease, as far as this one knows.
	Holder string `json:"holder,omitempty"`
	// Ready says that it serves, and Reason why not, or why it could not be asked.
	Ready  bool   `json:"ready"`
	Reason string `json:"reason,omitempty"`
	// Version of the binary.
	Version string `json:"version,omitempty"`
	// Simulated is true of a starling dev, whose cluster is simulated.
	Simulated bool `json:"simulated,omitempty"`
	// Generation is the number of the module tree in force, from 1; 0 before there is one.
	Generation int `json:"generation,omitempty"`
	// ReloadFailed says why the module tree as it is now is not in force; nil: it is.
	ReloadFailed *ReloadFailure `json:"reloadFailed,omitempty"`
	// Since is when the process began.
	Since time.Time `json:"since,omitzero"`
	// Node is the node of the pod.
	Node string `json:"node,omitempty"`
}

// PrintReplicas writes a table of replicas: NAME ROLE READY VERSION AGE NODE REASON. AGE is the time since the
// process began.
func PrintReplicas(w io.Writer, replicas []Replica, o Options) error {
	t := table{{"NAME", "ROLE", "READY", "VERSION", "AGE", "NODE", "REASON"}}
	for _, r := range replicas {
		role, ready, age := "standby", "no", ""
		if r.Leader {
			role = "leader"
		}
		if r.Ready {
			ready = "yes"
		}
		if !r.Since.IsZero() {
			age = o.Age(r.Since)
		} else {
			role, ready = "", "" // nobody has said so
		}
		t = append(t, []string{r.Name, role, ready, r.Version, age, line(r.Node), line(r.Reason)})
	}
	return t.write(w, 1, o)
}
