package main

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"

	"github.com/starling-operator/starling/modules/status"
)

// starling is a `starling run` under measurement.
type starling struct {
	*process
	b        *bench
	name     string
	stateDir string
	listen   string
}

// startStarling starts an instance on a module tree, given as the content of its
// files by path, with more flags, and waits for nothing but its address. Modules of several
// instances have the same names, so only [thousand] keeps Module objects.
func (b *bench) startStarling(ctx context.Context, name string, tree map[string]string, flags ...string) (*starling, error) {
	return b.startProcess(ctx, name, name, tree, flags...)
}

// startProcess starts one process of an instance, with its own folders.
func (b *bench) startProcess(ctx context.Context, name, folder string, tree map[string]string, flags ...string) (*starling, error) {
	modules, err := b.writeTree(folder, tree)
	if err != nil {
		return nil, err
	}
	s := &starling{b: b, name: name, stateDir: filepath.Join(b.dir, folder+".state")}
	s.process, err = b.start(b.program, append([]string{"run", "--modules", modules, "--namespace", operatorNamespace, "--name", name,
		"--kubeconfig", b.kubeconfig, "--listen", "127.0.0.1:0", "--state-dir", s.stateDir,
		fmt.Sprintf("--module-objects=%t", name == thousand)}, flags...)...)
	if err != nil {
		return nil, err
	}
	return s, wait(ctx, func() bool { s.listen = listenAddress(s.output.String()); return s.listen != "" })
}

// listenAddress finds the address in the first line of the log.
func listenAddress(log string) string {
	for line := range strings.Lines(log) {
		var said struct{ Listen string }
		if json.Unmarshal([]byte(line), &said) == nil && said.Listen != "" {
			return said.Listen
		}
	}
	return ""
}

// ready waits until every module has once been released.
func (s *starling) ready(ctx context.Context) error {
	return wait(ctx, func() bool {
		resp, err := http.Get("http://" + s.listen + "/readyz/modules")
		if err != nil {
			return false
		}
		defer resp.Body.Close()
		return resp.StatusCode == http.StatusOK
	})
}

// status asks the instance through its socket, as people do.
func (s *starling) status(ctx context.Context, what string, into any) error {
	cmd := exec.CommandContext(ctx, s.b.program, "get", what, "-o", "json",
		"--namespace", operatorNamespace, "--name", s.name, "--state-dir", s.stateDir)
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	if err != nil {
		return fmt.Errorf("starling get %s: %w: %s", what, err, strings.TrimSpace(stderr.String()))
	}
	return json.Unmarshal(out, into)
}

// holds waits until the snapshots of all hooks hold n objects together.
func (s *starling) holds(ctx context.Context, n int) error {
	for {
		var hooks []status.Hook
		if err := s.status(ctx, "hooks", &hooks); err != nil {
			return err
		}
		have := 0
		for _, h := range hooks {
			for _, size := range h.Snapshots {
				have += size
			}
		}
		if have == n {
			return nil
		}
		// Not often: each question is a process.
		if err := pause(ctx, time.Second/2); err != nil {
			return err
		}
	}
}

// startLoop starts a bare loop that serves a side, and waits until it watches.
func (b *bench) startLoop(ctx context.Context, side string) (*process, error) {
	self, err := os.Executable()
	if err != nil {
		return nil, err
	}
	args := []string{loopCommand, "-kubeconfig", b.kubeconfig, "-side", side}
	if side == sideApply {
		args = append(args, "-apply")
	}
	p, err := b.start(self, args...)
	if err != nil {
		return nil, err
	}
	return p, wait(ctx, func() bool { return p.output.String() != "" })
}
