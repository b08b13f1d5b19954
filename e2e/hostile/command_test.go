package hostile

import (
	"context"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// Commands that need no cluster survive the trees that attack the process: they end by
// themselves, and those that judge the tree name the files.
func TestCommands(t *testing.T) {
	a := newArena(t)
	for _, each := range append(files, sources...) {
		a.write(each.tree())
	}
	bomb := "all = []\n    for i in range(10000000):\n        all.append(\"a\" * (1 << 24))\n"
	a.write(map[string]string{
		"tested/module.star":       "module(enabled = True)\n",
		"tested/hooks/a.star":      "def run(ctx):\n    " + bomb + "\nhook(run, on = [startup()])\n",
		"tested/tests/a_test.star": "def test_hook(t):\n    t.start()\n\ndef test_itself(t):\n    " + bomb,
	})
	for _, args := range [][]string{{"check"}, {"rbac"}, {"test"}} {
		t.Run(args[0], func(t *testing.T) {
			ctx, cancel := context.WithTimeout(t.Context(), soon)
			defer cancel()
			program, err := filepath.Abs("../../bin/starling")
			if err != nil {
				t.Fatal(err)
			}
			name, all := a.memory.Command(program, append(args, a.modules)...)
			cmd := exec.CommandContext(ctx, name, all...)
			cmd.WaitDelay = time.Second
			out, err := cmd.CombinedOutput()
			if ctx.Err() != nil || cmd.ProcessState.ExitCode() < 0 || cmd.ProcessState.ExitCode() > 2 || strings.Contains(string(out), "goroutine ") {
				t.Fatalf("it did not end by itself: %v: %.3000s", err, out)
			}
			if args[0] != "rbac" && !strings.Contains(string(out), "load-") {
				t.Errorf("it does not name the files: %.3000s", out)
			}
		})
	}
}
