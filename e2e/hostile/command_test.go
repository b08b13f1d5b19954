package hostile

import (
	"context"
	"os"
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
	program, err := filepath.Abs("../../bin/starling")
	if err != nil {
		t.Fatal(err)
	}
	for _, args := range [][]string{{"check"}, {"rbac"}, {"test"}, {"plan", "--offline", "--modules"}, {"dev"}} {
		t.Run(args[0], func(t *testing.T) {
			ctx, cancel := context.WithTimeout(t.Context(), soon)
			defer cancel()
			name, all := a.memory.Command(program, append(args, a.modules)...)
			cmd := exec.CommandContext(ctx, name, all...)
			cmd.WaitDelay = time.Second
			out := &output{until: func(string) {}}
			cmd.Stdout, cmd.Stderr = out, out
			if args[0] == "dev" { // goes on until it is told to end: after its first round
				out.until = func(said string) {
					if strings.Contains(said, " modules, ") {
						_ = cmd.Process.Signal(os.Interrupt)
					}
				}
			}
			err := cmd.Run()
			said := out.String()
			if code := cmd.ProcessState.ExitCode(); ctx.Err() != nil || code < 0 || code > 2 || strings.Contains(said, "goroutine ") {
				t.Fatalf("it did not end by itself: %v: %.3000s", err, said)
			}
			if args[0] != "rbac" && !strings.Contains(said, "load-") {
				t.Errorf("it does not name the files: %.3000s", said)
			}
		})
	}
}

// output is what a command has printed; until sees all of it after each piece.
type output struct {
	strings.Builder
	until func(said string)
}

func (o *output) Write(piece []byte) (int, error) {
	n, err := o.Builder.Write(piece)
	o.until(o.String())
	return n, err
}
