package main

import (
	"fmt"
	"strings"
)

const (
	memoryNamespace = "bench-memory"
	memoryAim       = 80 // MiB
)

// snapshots reads the resident memory at rest, after many ConfigMaps came one
// by one, and after a start that lists them all.
func (b *bench) snapshots() {
	if b.needsLinux("resident memory") {
		return
	}
	n, content := b.size(10_000, 1000), strings.Repeat("x", 2<<10)
	b.namespaces(memoryNamespace)
	s := b.startReady("memory", map[string]string{
		"memory/module.star":      plainModule,
		"memory/hooks/names.star": text("memory.star"),
	})
	b.addMemory(s, "resident memory at rest", memoryAim)
	b.each(writers, n, func(i int) error {
		name := fmt.Sprintf("many-%d", i)
		return b.createConfigMap(memoryNamespace, name, "bench", "memory", map[string]string{"text": content})
	})
	s.holds(n)
	b.addMemory(s, fmt.Sprintf("… after %d ConfigMaps came", n), memoryAim)
	s.stop()
	s = b.startReady("memory", nil)
	s.holds(n)
	b.addMemory(s, fmt.Sprintf("… after a start that lists %d", n), memoryAim)
}

// addMemory lets the process rest and adds its memory to the table. The aim is in MiB.
func (b *bench) addMemory(s *starling, what string, aim int64) {
	b.settle()
	m := b.memory(s.PID())
	b.add(fmt.Sprintf("%s (peak %s, of the binary %s)", what, mebibytes(m.Peak), mebibytes(m.File)),
		mebibytes(m.Now), verdict(fmt.Sprintf("< %d MiB", aim), m.Now < aim<<20))
	b.say("%s: %s", what, mebibytes(m.Now))
}

// laterMemory returns the memory of a start that finds everything as it is: what the start has taken is given back.
func (b *bench) laterMemory(s *starling) int64 {
	b.settle()
	b.settle()
	m := b.memory(s.PID()).Own()
	b.say("memory of %s: %s", s.name, mebibytes(m))
	return m
}
