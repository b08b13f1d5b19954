package main

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"time"
)

const (
	testsPerModule = 10
	// testsAim is for 200 tests on two cores, checkAim for 100 modules.
	testsAim = 5 * time.Second
	testAim  = 5 * time.Millisecond
	checkAim = 3 * time.Second
)

// testedTree is n modules of a chart and two hooks, each with ten tests that start them
// and look at values, objects and the release.
func testedTree(n int) map[string]string {
	tree := moduleTree(n)
	for i := range n {
		name := moduleName(i)
		tree[name+"/module.star"] = fmt.Sprintf("module(enabled = True, namespace = %q, grants = [grant(\"v1\", \"ConfigMap\", verbs = [\"apply\"])])\n", name)
		tree[name+"/openapi/values.yaml"] = "type: object\nproperties:\n  color: {type: string}\n  replicas: {type: integer}\n  port: {type: integer}\n"
		tree[name+"/hooks/nodes.star"] = `load("@std//k8s.star", "is_ready")

def count(ctx):
    values.set("replicas", len([n for n in ctx.snapshots["nodes"] if n["ready"]]))

hook(count, on = [k8s.watch("v1", "Node", name = "nodes", filter = lambda o: {"name": o.metadata.name, "ready": is_ready(o)})])
`
		tree[name+"/hooks/mirror.star"] = `def mirror(ctx):
    for c in ctx.snapshots["sources"]:
        k8s.apply({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "mirror-" + c["name"]}, "data": c["data"]})

hook(mirror, on = [k8s.watch("v1", "ConfigMap", name = "sources", labels = {"mirror": "yes"}, filter = lambda o: {"name": o.metadata.name, "data": o.get("data", {})})])
`
		var tests bytes.Buffer
		tests.WriteString("load(\"@std//testing.star\", \"configmap\", \"node\")\n")
		for k := range testsPerModule {
			fmt.Fprintf(&tests, `
def test_%d(t):
    t.cluster.apply(node("a"), node("b", ready = False), configmap("c", labels = {"mirror": "yes"}, data = {"k": "%d"}))
    t.start()
    t.expect(t.values.get("replicas")).equals(1)
    t.expect(t.cluster.get("v1", "ConfigMap", "mirror-c", %q).data.k).equals("%d")
    t.expect(t.cluster.get("apps/v1", "Deployment", %q, %q).spec.replicas).equals(1)
    t.cluster.apply(node("b"))
    t.expect(t.release().revision).equals(2)
    t.quiet()
`, k, k, name, k, name, name)
		}
		tree[name+"/hooks/nodes_test.star"] = tests.String()
	}
	return tree
}

// smallTree has one hook, and n tests that do nothing but start it.
func smallTree(n int) map[string]string {
	var tests bytes.Buffer
	for k := range n {
		fmt.Fprintf(&tests, "def test_%d(t):\n    t.start()\n\n", k)
	}
	return map[string]string{
		"small/hooks/one.star":      "def one(ctx):\n    values.set(\"a\", 1)\n\nhook(one, on = [startup])\n",
		"small/hooks/one_test.star": tests.String(),
	}
}

// measureOffline times the commands that need no cluster, as processes.
func measureOffline(ctx context.Context, b *bench) error {
	modules, checked := 20, 100
	if b.quick {
		modules, checked = 2, 10
	}
	tested, err := b.writeTree("tested", testedTree(modules))
	if err != nil {
		return err
	}
	small, err := b.writeTree("small", smallTree(100))
	if err != nil {
		return err
	}
	many, err := b.writeTree("checked", testedTree(checked))
	if err != nil {
		return err
	}
	took, cpu, _, err := b.timed(ctx, "test", tested)
	if err != nil {
		return err
	}
	b.table.add(row{what: fmt.Sprintf("starling test, %d tests of %d modules", modules*testsPerModule, modules), starling: seconds(took), aim: verdict("< 5 s", took < testsAim)})
	b.table.add(row{what: "… processor time", starling: seconds(cpu)})

	_, _, output, err := b.timed(ctx, "test", "-json", "-parallel", "1", small)
	if err != nil {
		return err
	}
	one, err := middleTest(output)
	if err != nil {
		return err
	}
	b.table.add(row{what: "… one test that starts one hook, p50", starling: millis(one), aim: verdict("< 5 ms", one < testAim)})

	if took, cpu, _, err = b.timed(ctx, "check", many); err != nil {
		return err
	}
	b.table.add(row{what: fmt.Sprintf("starling check, %d modules", checked), starling: seconds(took), aim: verdict("< 3 s", took < checkAim)})
	b.table.add(row{what: "… processor time", starling: seconds(cpu)})
	return measureDev(ctx, b)
}

// timed runs a command of starling three times, and returns the time in between, the
// same of the processor time, and what it has printed last.
func (b *bench) timed(ctx context.Context, args ...string) (took, cpu time.Duration, output []byte, err error) {
	var walls, cpus []time.Duration
	for range 3 {
		cmd := exec.CommandContext(ctx, b.program, args...)
		began := time.Now()
		if output, err = cmd.CombinedOutput(); err != nil {
			return 0, 0, nil, fmt.Errorf("starling %s: %w: %s", args[0], err, bytes.TrimSpace(output))
		}
		walls = append(walls, time.Since(began))
		cpus = append(cpus, cmd.ProcessState.UserTime()+cmd.ProcessState.SystemTime())
	}
	return percentile(walls, 0.5), percentile(cpus, 0.5), output, nil
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
	return percentile(took, 0.5), nil
}

// writeTree writes files by path into a folder of the run, and returns it.
func (b *bench) writeTree(name string, tree map[string]string) (string, error) {
	root := filepath.Join(b.dir, name)
	for path, text := range tree {
		path = filepath.Join(root, filepath.FromSlash(path))
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			return "", err
		}
		if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
			return "", err
		}
	}
	return root, nil
}
