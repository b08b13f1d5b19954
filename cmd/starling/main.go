// Command starling is a Kubernetes addon operator: modules with hooks in Starlark
// and releases of Helm, in one process. Start with `starling --help`.
package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/signal"
	"syscall"

	"github.com/starling-operator/starling/cmd/starling/command"
	"github.com/starling-operator/starling/cmd/starling/process"
	"github.com/starling-operator/starling/cmd/starling/simulation"
	"github.com/starling-operator/starling/runtime/message"
)

func main() {
	process.TuneMemory()
	os.Exit(starling())
}

// starling runs the command line and returns the exit code: 0, or 1 after an
// error, which is one line on stderr; a plan has other codes.
func starling() int {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	// A clean stop is bounded, so a second signal has nothing to hurry; a
	// terminal and a parent process often send one each.
	root := newRootCommand()
	root.SetArgs(simulation.LikeGo(command.CalledAs(root, os.Args)))
	if err := root.ExecuteContext(ctx); err != nil {
		if code := command.ExitCode(0); errors.As(err, &code) {
			return int(code)
		}
		fmt.Fprintln(os.Stderr, "error:", message.Line(command.AsCalled(root, err.Error())))
		return 1
	}
	return 0
}
