package main

import (
	"bufio"
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

const devAim = time.Second

// measureDev times how long `starling dev` takes from a save to what it says, in a tree of
// many modules, each with a chart and two hooks. The modules that are edited have ten
// tests each, which run in their round.
func measureDev(ctx context.Context, b *bench) (err error) {
	modules, edits := 100, 5
	if b.quick {
		modules, edits = 5, 2
	}
	tree := testedTree(modules)
	for i := edits + 1; i < modules; i++ {
		delete(tree, moduleName(i)+"/hooks/nodes_test.star")
	}
	root, err := b.writeTree("dev", tree)
	if err != nil {
		return err
	}
	cmd := exec.CommandContext(ctx, b.program, "dev", root)
	cmd.Stderr = os.Stderr
	out, err := cmd.StdoutPipe()
	if err == nil {
		err = cmd.Start()
	}
	if err != nil {
		return err
	}
	defer func() {
		_ = cmd.Process.Kill() // it ends by no other way than this or Ctrl-C
		_ = cmd.Wait()
	}()
	lines := bufio.NewReader(out)
	await := func(changed int) error {
		want := fmt.Sprintf("(%d of %d modules", changed, modules)
		for {
			line, err := lines.ReadString('\n')
			if errors.Is(err, io.EOF) {
				return errors.New("starling dev has ended")
			}
			if err != nil {
				return err
			}
			if strings.Contains(line, want) {
				if !strings.Contains(line, "  ok, ") {
					return fmt.Errorf("starling dev: %s", strings.TrimSpace(line))
				}
				return nil
			}
		}
	}
	if err := await(modules); err != nil {
		return err
	}
	var rounds []time.Duration
	for i := range edits + 1 {
		path := filepath.Join(root, moduleName(i), "hooks", "mirror.star")
		text, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		began := time.Now()
		if err := os.WriteFile(path, append(text, "# saved\n"...), 0o644); err != nil {
			return err
		}
		if err := await(1); err != nil {
			return err
		}
		if i > 0 { // the first one comes while the cluster is still being set up
			rounds = append(rounds, time.Since(began))
		}
		if err := pause(ctx, time.Second); err != nil {
			return err
		}
	}
	round := percentile(rounds, 0.5)
	b.table.add(row{
		what:     fmt.Sprintf("starling dev, a save to what it says, %d modules, p50 of %d", modules, edits),
		starling: seconds(round), aim: verdict("< 1 s", round < devAim),
	})
	return nil
}
