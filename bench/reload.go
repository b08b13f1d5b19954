package main

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"time"
)

const (
	reloadNamespace = "bench-reload"
	readyNamespace  = "bench-ready"
	liveAim         = time.Second
	readyAim        = 2 * time.Second
)

// reloadHook writes a ConfigMap whose stamp is part of the code: who sees it knows that
// an edit is live.
func reloadHook(namespace, name, stamp string) string {
	return fmt.Sprintf(`def stamped(ctx):
    k8s.apply({
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": {"name": "%s-stamp", "namespace": "%s"},
        "data": {"%s": "%s"},
    })

hook(stamped, on = [startup()])
`, name, namespace, stampKey, stamp)
}

// reloadTree is n modules, each with a chart of four objects and a hook.
func reloadTree(namespace string, n int) map[string]string {
	tree := map[string]string{}
	for i := range n {
		name := moduleName(i)
		tree[name+"/module.star"] = fmt.Sprintf(`module(
    enabled = True,
    namespace = %q,
    grants = [grant("v1", "ConfigMap", verbs = ["apply"], namespaces = [%[1]q])],
)
`, namespace)
		tree[name+"/hooks/stamped.star"] = reloadHook(namespace, name, "0")
		for path, text := range chartFiles(name) {
			tree[name+"/chart/"+path] = text
		}
	}
	return tree
}

// measureReload times how long an edit of one hook of many modules takes until what it
// does is seen, and looks at the memory after many edits; then at starts with a few
// modules that have not changed.
func measureReload(ctx context.Context, b *bench) error {
	modules, few, many := 100, 5, 500
	if b.quick {
		modules, many = 10, 25
	}
	if err := b.makeNamespaces(ctx, reloadNamespace); err != nil {
		return err
	}
	w, err := b.observe(ctx, reloadNamespace)
	if err != nil {
		return err
	}
	defer w.stop()
	s, err := b.startStarling(ctx, "reload", reloadTree(reloadNamespace, modules))
	if err != nil {
		return err
	}
	if err := s.ready(ctx); err != nil {
		return err
	}
	if err := b.settle(ctx); err != nil {
		return err
	}
	before, err := s.runs()
	if err != nil {
		return err
	}
	var lives []time.Duration
	edits := 0
	edit := func(upTo int) error {
		for ; edits < upTo; edits++ {
			name, stamp := moduleName(edits%modules), fmt.Sprint(edits+1)
			began := time.Now()
			path := filepath.Join(b.dir, "reload", name, "hooks", "stamped.star")
			if err := os.WriteFile(path, []byte(reloadHook(reloadNamespace, name, stamp)), 0o644); err != nil {
				return err
			}
			at, err := w.all(ctx, []string{stamped(name+"-stamp", stamp)})
			if err != nil {
				return err
			}
			lives = append(lives, at.Sub(began))
		}
		return nil
	}
	var memories []int64
	for _, n := range []int{few, many} {
		if err := edit(n); err != nil {
			return err
		}
		if runtime.GOOS != "linux" {
			continue
		}
		if err := b.settle(ctx); err != nil {
			return err
		}
		m, err := s.memory()
		if err != nil {
			return err
		}
		memories = append(memories, m.now)
	}
	after, err := s.runs()
	if err != nil {
		return err
	}
	if after-before != edits {
		return fmt.Errorf("%d edits have led to %d runs: hooks that nobody has edited ran", edits, after-before)
	}
	live := percentile(lives, 0.5)
	b.table.add(row{
		what:     fmt.Sprintf("edit of a hook to what it does, %d modules, p50 of %d", modules, edits),
		starling: seconds(live), aim: verdict("< 1 s", live < liveAim),
	})
	worst := percentile(lives, 0.99)
	b.table.add(row{what: "… p99", starling: seconds(worst), aim: verdict("< 1 s", worst < liveAim)})
	if len(memories) == 2 {
		ratio := float64(memories[1]) / float64(memories[0])
		b.table.add(row{
			what:     fmt.Sprintf("… resident memory after %d edits, beside after %d", many, few),
			starling: mebibytes(memories[1]), bare: mebibytes(memories[0]), ratio: times(ratio), aim: verdict("≤ 1.05×", ratio <= 1.05),
		})
	}
	if err := s.stop(); err != nil {
		return err
	}
	if err := b.measureReady(ctx); err != nil {
		return err
	}
	return b.removeNamespaces(ctx, reloadNamespace)
}

// measureReady times starts on ten modules that are as they should be.
func (b *bench) measureReady(ctx context.Context) error {
	const modules, starts = 10, 5
	if err := b.makeNamespaces(ctx, readyNamespace); err != nil {
		return err
	}
	tree := reloadTree(readyNamespace, modules)
	var readies []time.Duration
	for i := range starts + 1 {
		s, err := b.startStarling(ctx, "unchanged", tree)
		if err != nil {
			return err
		}
		if err := s.ready(ctx); err != nil {
			return err
		}
		if i > 0 { // the first one installs
			readies = append(readies, time.Since(s.began))
		}
		if err := s.stop(); err != nil {
			return err
		}
	}
	ready := percentile(readies, 0.5)
	b.table.add(row{
		what:     fmt.Sprintf("start of the process to /readyz, %d unchanged modules, p50 of %d", modules, starts),
		starling: seconds(ready), aim: verdict("< 2 s", ready < readyAim),
	})
	return b.removeNamespaces(ctx, readyNamespace)
}
