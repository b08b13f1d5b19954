package status

import (
	"fmt"
	"io"
)

// ModuleRelease is the Helm release of a module.
type ModuleRelease struct {
	Release
	Module string `json:"module"`
	// State, Reason and Drifted are the module's.
	State   ModuleState `json:"state"`
	Reason  string      `json:"reason,omitempty"`
	Drifted []Drifted   `json:"drifted,omitempty"`
}

// Releases returns the releases of modules, in their order; those without one are left out.
func Releases(modules []Module) []ModuleRelease {
	out := []ModuleRelease{}
	for _, m := range modules {
		if m.Release != nil {
			out = append(out, ModuleRelease{*m.Release, m.Name, m.State, m.Reason, m.Drifted})
		}
	}
	return out
}

// PrintReleases writes a table of releases, as helm list would: NAMESPACE NAME REVISION MODULE STATE DRIFT. A revision
// that this process has not seen yet is left out. A wide one has the module's REASON.
func PrintReleases(w io.Writer, releases []ModuleRelease, o Options) error {
	t := table{{"NAMESPACE", "NAME", "REVISION", "MODULE", "STATE", "DRIFT"}}
	if o.Wide {
		t[0] = append(t[0], "REASON")
	}
	for _, r := range releases {
		revision := ""
		if r.Revision > 0 {
			revision = fmt.Sprint(r.Revision)
		}
		row := []string{r.Namespace, r.Name, revision, r.Module, string(r.State), drift(r.Drifted)}
		if o.Wide {
			row = append(row, line(r.Reason))
		}
		t = append(t, row)
	}
	return t.write(w, 4, o)
}
