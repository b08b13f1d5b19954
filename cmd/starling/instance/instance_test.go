package instance

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestInstanceDefaults(t *testing.T) {
	tmp := t.TempDir()
	t.Setenv("TMPDIR", tmp)
	inPod := filepath.Join(tmp, "namespace")
	if err := os.WriteFile(inPod, []byte("addons\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	noPod := filepath.Join(tmp, "none")
	for name, c := range map[string]struct {
		given   Instance
		podFile string
		want    Instance
	}{
		"outside of a cluster": {
			Instance{Name: "starling"}, noPod,
			Instance{"starling-system", "starling", filepath.Join(instancesDir(), "starling-system.starling"), false},
		},
		"in a pod": {
			Instance{Name: "starling"}, inPod,
			Instance{"addons", "starling", filepath.Join(instancesDir(), "addons.starling"), false},
		},
		"all given": {
			Instance{"team", "edge", "/var/lib/starling/", false}, inPod,
			Instance{"team", "edge", "/var/lib/starling", false},
		},
	} {
		t.Run(name, func(t *testing.T) {
			got := c.given
			if err := got.complete(c.podFile); err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(c.want, got); diff != "" {
				t.Error(diff)
			}
		})
	}
}

func TestMakeStateDirRefusesAForeignTemporaryFolder(t *testing.T) {
	t.Setenv("TMPDIR", t.TempDir())
	if err := os.Mkdir(instancesDir(), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.Chmod(instancesDir(), 0o777); err != nil {
		t.Fatal(err)
	}
	i := Instance{Name: "starling"}
	if err := i.complete("none"); err != nil {
		t.Fatal(err)
	}
	if err := i.MakeStateDir(); err == nil {
		t.Error("a folder that anyone may write to was taken")
	}
	if err := os.Chmod(instancesDir(), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := i.MakeStateDir(); err != nil {
		t.Error(err)
	}
}
