package main

import (
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"time"
)

const (
	reloadNamespace = "bench-reload"
	readyNamespace  = "bench-ready"
)

// reloadHook writes a ConfigMap whose stamp is part of the code: who sees it knows that
// an edit is live.
func reloadHook(namespace, name, stamp string) string {
	return text("reload.star", "MODULE", name, "SPACE", namespace, "STAMP", stamp)
}

// reloadTree is n modules, each with a chart of four objects and a hook.
func reloadTree(namespace string, n int) map[string]string {
	tree := map[string]string{}
	for i := range n {
		name := moduleName(i)
		tree[name+"/module.star"] = moduleWith(inNamespace(namespace), mayApply(namespace))
		tree[name+"/hooks/stamped.star"] = reloadHook(namespace, name, "0")
		addChart(tree, name, chartFiles(name))
	}
	return tree
}

// reloads times how long an edit of one hook of many modules takes until what it
// does is seen, and looks at the memory after many edits; then at starts with a few
// modules that have not changed.
func (b *bench) reloads() {
	b.scope(b.edits)
	b.unchangedStarts()
}

func (b *bench) edits() {
	modules, few, many := b.size(100, 10), 5, b.size(500, 25)
	b.namespaces(reloadNamespace)
	w, s := b.observe(reloadNamespace), b.startReady("reload", reloadTree(reloadNamespace, modules))
	b.settle()
	var lives []time.Duration
	edit := func(upTo int) {
		for n := len(lives); n < upTo; n++ {
			name, stamp := moduleName(n%modules), fmt.Sprint(n+1)
			path := filepath.Join(b.dir, "reload", name, "hooks", "stamped.star")
			lives = append(lives, w.after(func() error {
				return os.WriteFile(path, []byte(reloadHook(reloadNamespace, name, stamp)), 0o644)
			}, stamped(name+"-stamp", stamp)))
		}
	}
	var memories []int64
	runs := s.costs(func() {
		for _, n := range []int{few, many} {
			edit(n)
			b.settle()
			memories = append(memories, b.memory(s.PID()).Now)
		}
	}, runsMetric)[0]
	if runs != len(lives) {
		b.Fatalf("%d edits have led to %d runs: hooks that nobody has edited ran", len(lives), runs)
	}
	for i, what := range []string{
		fmt.Sprintf("edit of a hook to what it does, %d modules, p50 of %d", modules, len(lives)), "… p99",
	} {
		live := percentile(lives, parts()[i].part)
		b.add(what, seconds(live), verdict("< 1 s", live < time.Second))
	}
	if runtime.GOOS == "linux" {
		what := fmt.Sprintf("… resident memory after %d edits, beside after %d", many, few)
		addBeside(b, what, mebibytes, memories[1], memories[0], 1.05)
	}
}

// unchangedStarts times starts on ten modules that are as they should be.
func (b *bench) unchangedStarts() {
	const modules, starts = 10, 5
	b.namespaces(readyNamespace)
	var readies []time.Duration
	for i := range starts + 1 {
		s := b.startReady("unchanged", reloadTree(readyNamespace, modules))
		if i > 0 { // the first one installs
			readies = append(readies, time.Since(s.Process().Began))
		}
		s.stop()
	}
	ready := middle(readies)
	b.add(fmt.Sprintf("start of the process to /readyz, %d unchanged modules, p50 of %d", modules, starts),
		seconds(ready), verdict("< 2 s", ready < 2*time.Second))
}
