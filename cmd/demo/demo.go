package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"
)

const (
	startNodes = 2
	namespace  = "starling-system" // the operator's
	instance   = "starling"        // names the user's ConfigMap
	modules    = "examples/quickstart"
	logTail    = 20 // lines of starling's log that explain a failure
	patience   = 20 * time.Second
)

// demo is one control plane with one Starling, and what was seen of them.
type demo struct {
	program string // file of the starling to run
	dir     string // everything that this demo writes
	begin   time.Time
	print   *printer
	story   *story

	cluster  *process
	starling *process
	kube     *kube
	seen     chan observation

	added     []string // nodes of ours, in order
	greetings int      // how often the greeting was changed
	wait      string   // what is waited for, for the error
	why       string   // what starling said of its modules when we gave up
}

func newDemo(begin time.Time, program string, p *printer) (*demo, error) {
	for _, file := range []string{"bin/devcluster", program, modules} {
		if _, err := os.Stat(file); err != nil {
			return nil, fmt.Errorf("%s is missing; start the demo with `make run` or `make smoke` in the top folder", file)
		}
	}
	dir, err := os.MkdirTemp("", "starling-demo-")
	if err != nil {
		return nil, err
	}
	return &demo{program: program, dir: dir, begin: begin, print: p, story: newStory(), seen: make(chan observation, 100)}, nil
}

func (d *demo) path(name string) string { return filepath.Join(d.dir, name) }

// say prints one line of the commentary.
func (d *demo) say(l line) { d.print.line(time.Since(d.begin), l) }

// setUp starts the control plane, then Starling, and begins to watch.
func (d *demo) setUp(ctx context.Context) error {
	d.print.title("Starling on a separate, real control plane: " + modules)
	ready := make(chan struct{}, 1)
	var err error
	d.cluster, err = startProcess(processOptions{
		Name: "the control plane", Log: d.path("devcluster.out"),
		Args: []string{"bin/devcluster", "--kubeconfig", d.path("kubeconfig"), "--dir", d.path("cluster"), "--nodes", fmt.Sprint(startNodes)},
		Stdout: func(string) {
			select {
			case ready <- struct{}{}:
			default:
			}
		},
	})
	if err != nil {
		return err
	}
	select {
	case <-ready:
	case <-d.cluster.ended:
		return d.cluster.died()
	case <-ctx.Done():
		return fmt.Errorf("the control plane did not become ready: %w", ctx.Err())
	}
	if d.kube, err = connect(d.path("kubeconfig")); err != nil {
		return err
	}
	server, err := d.kube.version()
	if err != nil {
		return err
	}
	d.say(line{good, "control plane ready", server})
	if err := d.kube.makeNamespace(ctx, namespace); err != nil {
		return err
	}
	nodes, err := d.kube.readyNodes(ctx)
	if err != nil {
		return err
	}
	d.story.begin(nodes)
	d.say(line{good, "nodes found", strings.Join(nodes, ", ")})
	d.kube.watch(ctx, d.seen)

	d.starling, err = startProcess(processOptions{
		Name: "starling", Log: d.path("starling.log"),
		Args: []string{d.program, "run", "--modules", modules, "--namespace", namespace, "--name", instance,
			"--kubeconfig", d.path("kubeconfig"), "--listen", "127.0.0.1:0", "--state-dir", d.stateDir()},
		Stderr: func(text string) {
			if o, ok := fromLog(text); ok {
				select {
				case d.seen <- o:
				case <-ctx.Done():
				}
			}
		},
	})
	if err != nil {
		return err
	}
	d.say(line{good, "starling started", fmt.Sprintf("pid %d, log %s", d.starling.pid(), d.path("starling.log"))})
	return nil
}

func (d *demo) stateDir() string { return d.path("state") }

// follow tells what happens until goal returns "" (it returns what is missing).
// keys, which may be nil, are what people type meanwhile.
func (d *demo) follow(ctx context.Context, keys <-chan string, goal func() string) error {
	slow := time.NewTimer(patience)
	defer slow.Stop()
	for {
		d.wait = goal()
		if d.wait == "" {
			return nil
		}
		select {
		case o := <-d.seen:
			for _, l := range d.story.see(o, time.Now()) {
				d.say(l)
			}
		case key, more := <-keys:
			if !more {
				keys = nil // no terminal: goes on until a signal
				continue
			}
			if err := d.handleKey(ctx, key); err != nil {
				return err
			}
		case <-slow.C:
			if keys == nil && d.wait != "you" {
				d.say(line{bad, "still waiting", d.wait + "; see " + d.path("starling.log")})
			}
		case <-d.starling.ended:
			return d.starling.died()
		case <-d.cluster.ended:
			return d.cluster.died()
		case <-ctx.Done():
			d.askWhy(ctx)
			return fmt.Errorf("gave up waiting: %s", d.wait)
		}
	}
}

// askStatus runs `starling get modules`, as a second terminal would.
func (d *demo) askStatus(ctx context.Context) error {
	out, err := d.get(ctx, "modules")
	if err != nil {
		return fmt.Errorf("starling get modules: %s", strings.TrimSpace(out))
	}
	if !strings.Contains(out, "hello") {
		return fmt.Errorf("starling get modules does not show the module hello: %s", strings.TrimSpace(out))
	}
	d.say(line{good, "status asked", "starling get modules answers"})
	return nil
}

func (d *demo) get(ctx context.Context, what string) (string, error) {
	cmd := exec.CommandContext(ctx, d.program, "get", what,
		"--namespace", namespace, "--name", instance, "--state-dir", d.stateDir())
	out, err := cmd.CombinedOutput()
	return string(out), err
}

// askWhy notes what starling says of its modules; ctx has ended.
func (d *demo) askWhy(ctx context.Context) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), 3*time.Second)
	defer cancel()
	d.why, _ = d.get(ctx, "modules") // its error is in the text
}

// stop ends Starling first, so that it gives its lease back to an API server that
// is still there, then the control plane. It returns cause, or what went wrong
// while stopping. The folder is removed unless there is something to look at.
func (d *demo) stop(cause error) error {
	d.print.blank()
	for _, p := range []*process{d.starling, d.cluster} {
		if p == nil {
			continue
		}
		if err := p.stop(); err != nil {
			cause = errors.Join(cause, err)
			continue
		}
		d.say(line{good, "stopped", p.Name})
	}
	if cause == nil {
		return os.RemoveAll(d.dir)
	}
	return cause
}

// explain shows the status and the end of the logs after a failure.
func (d *demo) explain(w io.Writer) {
	if d.why != "" {
		fmt.Fprintf(w, "\nstarling get modules said:\n%s", indent(d.why))
	}
	for _, p := range []*process{d.starling, d.cluster} {
		if p == nil {
			continue
		}
		tail := p.tail(logTail)
		if len(tail) == 0 {
			continue
		}
		fmt.Fprintf(w, "\nthe last lines of %s (%s):\n", p.Name, p.Log)
		for _, l := range tail {
			fmt.Fprintln(w, "    "+l)
		}
	}
	fmt.Fprintf(w, "\nall logs are kept in %s\n", d.dir)
}
