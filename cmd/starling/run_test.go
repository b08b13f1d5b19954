package main

import (
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/rs/zerolog"

	"github.com/starling-operator/starling/runtime/admin"
	"github.com/starling-operator/starling/runtime/live"
)

// A process that must not run beside another one leaves its marks alone: what the other one
// evaluates has ended no process.
func TestASecondProcessLeavesTheMarksOfTheFirstOneAlone(t *testing.T) {
	f := runFlags{instance: instance{Namespace: "ops", Name: "starling", StateDir: t.TempDir()}, log: logFlags{level: "error"}, access: access{qps: 1}, history: 1, lease: leaseFlags{live.DefaultLeaseTimes()}}
	t.Cleanup(func() { zerolog.SetGlobalLevel(zerolog.TraceLevel) })
	lock, err := admin.Lock(f.instance.socket(), "starling")
	if err != nil {
		t.Fatal(err)
	}
	defer lock.Close()
	marks, err := live.OpenMarks(f.instance.StateDir)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := marks.Evaluating("a filter", "code"); err != nil {
		t.Fatal(err)
	}
	if err := f.run(t.Context(), io.Discard); err == nil || !strings.Contains(err.Error(), "another starling named starling runs") {
		t.Errorf("error %v", err)
	}
	left, err := os.ReadDir(filepath.Join(f.instance.StateDir, "runs"))
	if err != nil || len(left) != 1 || left[0].Name() != "running" {
		t.Errorf("left of the marks: %v %v", left, err)
	}
}
