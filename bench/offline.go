package main

import (
	"bufio"
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"
)

const testsPerModule = 10

// testedTree is n modules of a chart and two hooks, each with ten tests that start them
// and look at values, objects and the release.
func testedTree(n int) map[string]string {
	tree := moduleTree(n)
	for i := range n {
		name := moduleName(i)
		tree[name+"/module.star"] = moduleWith(inNamespace(name), `grants = [grant("v1", "ConfigMap", verbs = ["apply"])]`)
		tree[name+"/openapi/values.yaml"] = text("tested/values.yaml")
		tree[name+"/hooks/nodes.star"] = text("tested/nodes.star")
		tree[name+"/hooks/mirror.star"] = text("tested/mirror.star")
		tests := `load("@std//testing.star", "configmap", "node")` + "\n"
		for k := range testsPerModule {
			tests += text("tested/test.star", "NUMBER", fmt.Sprint(k), "MODULE", name)
		}
		tree[name+"/hooks/nodes_test.star"] = tests
	}
	return tree
}

// smallTree has one hook, and n tests that do nothing but start it.
func smallTree(n int) map[string]string {
	var tests strings.Builder
	for k := range n {
		fmt.Fprintf(&tests, "def test_%d(t):\n    t.start()\n\n", k)
	}
	return map[string]string{
		"small/hooks/one.star":      "def one(ctx):\n    values.set(\"a\", 1)\n\nhook(one, on = [startup])\n",
		"small/hooks/one_test.star": tests.String(),
	}
}

// offline times the commands that need no cluster, as processes.
func (b *bench) offline() {
	modules, checked := b.size(20, 2), b.size(100, 10)
	took, cpu, _ := b.timed("test", b.writeTree("tested", testedTree(modules)))
	b.add(fmt.Sprintf("starling test, %d tests of %d modules", modules*testsPerModule, modules),
		seconds(took), verdict("< 5 s", took < 5*time.Second)) // for 200 tests on two cores
	b.add("… processor time", seconds(cpu), "")

	_, _, output := b.timed("test", "-json", "-parallel", "1", b.writeTree("small", smallTree(100)))
	one, err := middleTest(output)
	b.check(err)
	b.add("… one test that starts one hook, p50", millis(one), verdict("< 5 ms", one < 5*time.Millisecond))

	took, cpu, _ = b.timed("check", b.writeTree("checked", testedTree(checked)))
	b.add(fmt.Sprintf("starling check, %d modules", checked), seconds(took), verdict("< 3 s", took < 3*time.Second))
	b.add("… processor time", seconds(cpu), "")
	b.dev()
}

// timed runs a command of starling three times, and returns the time in between, the
// same of the processor time, and what it has printed last.
func (b *bench) timed(args ...string) (took, cpu time.Duration, output []byte) {
	var walls, cpus []time.Duration
	for range 3 {
		cmd := exec.CommandContext(b.ctx, b.program, args...)
		began := time.Now()
		var err error
		if output, err = cmd.CombinedOutput(); err != nil {
			b.Fatalf("starling %s: %v: %s", args[0], err, bytes.TrimSpace(output))
		}
		walls = append(walls, time.Since(began))
		cpus = append(cpus, cmd.ProcessState.UserTime()+cmd.ProcessState.SystemTime())
	}
	return middle(walls), middle(cpus), output
}

// middleTest is the p50 of what the tests took, read from what `starling test -json`
// prints.
func middleTest(output []byte) (time.Duration, error) {
	var took []time.Duration
	for line := range bytes.Lines(output) {
		var event struct {
			Action, Test string
			Elapsed      float64
		}
		if err := json.Unmarshal(line, &event); err != nil {
			return 0, fmt.Errorf("starling test -json: %w", err)
		}
		if event.Action == "pass" && event.Test != "" {
			took = append(took, time.Duration(event.Elapsed*float64(time.Second)))
		}
	}
	if len(took) == 0 {
		return 0, fmt.Errorf("starling test -json has named no test")
	}
	return middle(took), nil
}

// dev times how long `starling dev` takes from a save to what it says, in a tree of
// many modules, each with a chart and two hooks. The modules that are edited have ten
// tests each, which run in their round.
func (b *bench) dev() {
	modules, edits := b.size(100, 5), b.size(5, 2)
	tree := testedTree(modules)
	for i := edits + 1; i < modules; i++ {
		delete(tree, moduleName(i)+"/hooks/nodes_test.star")
	}
	root := b.writeTree("dev", tree)
	cmd := exec.CommandContext(b.ctx, b.program, "dev", root)
	cmd.Stderr = os.Stderr
	out, err := cmd.StdoutPipe()
	b.check(err)
	b.check(cmd.Start())
	b.Cleanup(func() {
		_ = cmd.Process.Kill() // it ends by no other way than this or Ctrl-C
		_ = cmd.Wait()
	})
	lines := bufio.NewScanner(out)
	await := func(changed int) {
		for want := fmt.Sprintf("(%d of %d modules", changed, modules); lines.Scan(); {
			if line := lines.Text(); strings.Contains(line, want) {
				if !strings.Contains(line, "  ok, ") {
					b.Fatalf("starling dev: %s", strings.TrimSpace(line))
				}
				return
			}
		}
		b.Fatalf("starling dev has ended: %v", lines.Err())
	}
	await(modules)
	var rounds []time.Duration
	for i := range edits + 1 {
		path := filepath.Join(root, moduleName(i), "hooks", "mirror.star")
		text, err := os.ReadFile(path)
		b.check(err)
		began := time.Now()
		b.check(os.WriteFile(path, append(text, "# saved\n"...), 0o644))
		await(1)
		if i > 0 { // the first one comes while the cluster is still being set up
			rounds = append(rounds, time.Since(began))
		}
		b.pause(time.Second)
	}
	round := middle(rounds)
	b.add(fmt.Sprintf("starling dev, a save to what it says, %d modules, p50 of %d", modules, edits),
		seconds(round), verdict("< 1 s", round < time.Second))
}
