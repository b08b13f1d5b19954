package e2e

import (
	"fmt"
	"path/filepath"
	"testing"

	"github.com/starling-operator/starling/e2e/cluster"
	"github.com/starling-operator/starling/modules/status"
	"github.com/starling-operator/starling/runtime/admin"
)

// A process that has not looked at a release, as that of a module that is paused, shows the revision that was there
// before it, and so does one that stands by.
func TestARevisionThatAnotherProcessHasSeen(t *testing.T) {
	t.Parallel()
	f := withObjects(t, shared.Namespace(t), "starling", mirror("mo-rest", on))
	f.start()
	f.waitCondition("mo-rest", "Released", "True", "revision 1")
	f.patchObject("mo-rest", `{"spec":{"paused":true}}`)
	f.waitState("mo-rest", status.ModulePaused)
	for range 2 {
		f.restart()
		f.waitState("mo-rest", status.ModulePaused)
		for _, p := range []*cluster.Starling{f.process, f.standby} {
			socket := filepath.Join(p.StateDir, "admin", "starling.sock")
			f.eventually("the revision is shown", func() error {
				s, err := admin.NewClient(admin.ClientOptions{Socket: socket}).Status(t.Context())
				if err != nil || len(s.Modules) != 1 || s.Modules[0].Release == nil || s.Modules[0].Release.Revision != 1 {
					return fmt.Errorf("%+v, %w", s.Modules, err)
				}
				return nil
			})
		}
		if row := f.row("mo-rest"); row["Revision"] != "1" {
			t.Errorf("%v", row)
		}
	}
}
