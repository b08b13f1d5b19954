// Command devcluster runs a real Kubernetes control plane in one process: etcd,
// kube-apiserver, kube-controller-manager, kube-scheduler and fake nodes. It is
// for demos and tests on a machine with only Go: nothing is downloaded but Go
// modules.
//
// It prints one line when the cluster can schedule pods, and stops on SIGINT or
// SIGTERM. The kubeconfig file appears, whole, at that moment and not before. SIGUSR1
// compacts etcd, and a line says when that is done.
//
// To add a node, create a Node object with the label type=fake; to remove it,
// delete the object. Pods on fake nodes run in name only: there are no logs, no
// exec and no port-forward, and pods that are meant to end succeed at once.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"strings"
	"syscall"

	"golang.org/x/sys/unix"
)

// options are the command line.
type options struct {
	kubeconfig string // file to write; required
	dir        string // where the cluster's data is kept; "" for a temporary folder
	addr       string // address of the API server
	nodes      int    // fake nodes to make
}

func main() {
	o, err := parseOptions(os.Args[1:], os.Stdout)
	if errors.Is(err, flag.ErrHelp) {
		return
	}
	stderr := os.Stderr
	if err == nil {
		if stderr, err = privateStderr(); err != nil {
			fail(os.Stderr, err.Error())
		}
		ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
		context.AfterFunc(ctx, stop) // a second signal kills a process that hangs
		err = run(ctx, o, os.Stdout, stderr)
	}
	if err != nil {
		fail(stderr, err.Error())
	}
}

// privateStderr is a second way to the process's stderr, for us alone: what the
// components print to the first goes to the log later on.
func privateStderr() (*os.File, error) {
	fd, err := unix.FcntlInt(uintptr(unix.Stderr), unix.F_DUPFD_CLOEXEC, 0)
	if err != nil {
		return nil, fmt.Errorf("stderr: %w", err)
	}
	return os.NewFile(uintptr(fd), "stderr"), nil
}

// fail ends the process with one line on stderr.
func fail(stderr io.Writer, msg string) {
	fmt.Fprintln(stderr, "devcluster: "+strings.ReplaceAll(strings.TrimSpace(msg), "\n", "; "))
	os.Exit(1)
}

// parseOptions reads the command line. It prints the usage to out for -h and
// returns flag.ErrHelp.
func parseOptions(args []string, out io.Writer) (options, error) {
	var o options
	fs := flag.NewFlagSet("devcluster", flag.ContinueOnError)
	fs.SetOutput(io.Discard) // errors are one line; main prints it
	fs.StringVar(&o.kubeconfig, "kubeconfig", "", "`file` to write the admin kubeconfig to when the cluster is ready (required)")
	fs.StringVar(&o.dir, "dir", "", "`folder` that keeps the cluster's data between runs (default: a temporary one)")
	fs.StringVar(&o.addr, "addr", "127.0.0.1:0", "`address` of the API server; port 0 picks a free one")
	fs.IntVar(&o.nodes, "nodes", 1, "`number` of fake nodes to make")
	err := fs.Parse(args)
	switch {
	case errors.Is(err, flag.ErrHelp):
		fmt.Fprintln(out, "A Kubernetes control plane in one process, for demos and tests.\n\nusage: devcluster --kubeconfig FILE [--dir DIR] [--addr 127.0.0.1:0] [--nodes 1]")
		fs.SetOutput(out)
		fs.PrintDefaults()
		return o, err
	case err != nil:
		return o, err
	case fs.NArg() > 0:
		return o, fmt.Errorf("unexpected argument %q; see devcluster -h", fs.Arg(0))
	case o.kubeconfig == "":
		return o, errors.New("--kubeconfig FILE is missing; see devcluster -h")
	case o.nodes < 0 || o.nodes > 1000:
		return o, fmt.Errorf("--nodes %d: must be between 0 and 1000", o.nodes)
	}
	return o, nil
}
