package main

import (
	"context"
	"fmt"
	"runtime"
	"strings"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

const (
	memoryNamespace = "bench-memory"
	memoryAim       = 80 // MiB
)

// memoryTree is a module whose hook keeps the names of ConfigMaps.
func memoryTree() map[string]string {
	return map[string]string{
		"memory/module.star": "module(enabled = True)\n",
		"memory/hooks/names.star": `def names(ctx):
    metrics.set("bench_config_maps", len(ctx.snapshots["all"]))

hook(
    names,
    on = [k8s.watch(
        "v1", "ConfigMap",
        name = "all",
        namespaces = ["` + memoryNamespace + `"],
        labels = "bench",
        filter = lambda o: o.metadata.name,
    )],
)
`,
	}
}

// measureMemory reads the resident memory at rest, after many ConfigMaps came one
// by one, and after a start that lists them all.
func measureMemory(ctx context.Context, b *bench) error {
	if runtime.GOOS != "linux" {
		b.table.add(row{what: "resident memory", starling: "read on Linux only"})
		return nil
	}
	n := 10_000
	if b.quick {
		n = 1000
	}
	if err := b.makeNamespaces(ctx, memoryNamespace); err != nil {
		return err
	}
	s, err := b.startStarling(ctx, "memory", memoryTree())
	if err != nil {
		return err
	}
	if err := s.ready(ctx); err != nil {
		return err
	}
	if err := b.addMemory(ctx, s, "resident memory at rest", memoryAim); err != nil {
		return err
	}
	err = parallel(ctx, burstWriters, n, func(i int) error {
		_, err := b.client.CoreV1().ConfigMaps(memoryNamespace).Create(ctx, &corev1.ConfigMap{
			ObjectMeta: metav1.ObjectMeta{Name: fmt.Sprintf("many-%d", i), Labels: map[string]string{"bench": "memory"}},
			Data:       map[string]string{"text": strings.Repeat("x", 2<<10)},
		}, metav1.CreateOptions{})
		return err
	})
	if err != nil {
		return err
	}
	if err := s.holds(ctx, n); err != nil {
		return err
	}
	if err := b.addMemory(ctx, s, fmt.Sprintf("… after %d ConfigMaps came", n), memoryAim); err != nil {
		return err
	}
	if err := s.stop(); err != nil {
		return err
	}
	if s, err = b.startStarling(ctx, "memory", nil); err != nil {
		return err
	}
	if err := s.ready(ctx); err != nil {
		return err
	}
	if err := s.holds(ctx, n); err != nil {
		return err
	}
	if err := b.addMemory(ctx, s, fmt.Sprintf("… after a start that lists %d", n), memoryAim); err != nil {
		return err
	}
	if err := s.stop(); err != nil {
		return err
	}
	return b.removeNamespaces(ctx, memoryNamespace)
}

// addMemory lets the process rest and adds its memory to the table. The aim is in MiB.
func (b *bench) addMemory(ctx context.Context, s *starling, what string, aim int64) error {
	if err := b.settle(ctx); err != nil {
		return err
	}
	m, err := s.memory()
	if err != nil {
		return err
	}
	b.table.add(row{
		what:     fmt.Sprintf("%s (peak %s, of the binary %s)", what, mebibytes(m.peak), mebibytes(m.file)),
		starling: mebibytes(m.now), aim: verdict(fmt.Sprintf("< %d MiB", aim), m.now < aim<<20),
	})
	b.say("%s: %s", what, mebibytes(m.now))
	return nil
}
