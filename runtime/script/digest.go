package script

import (
	"crypto/sha256"
	"fmt"
	"maps"
	"slices"
	"strings"
)

// Inputs adds the files that were read to load the one at this path, that one
// included, with the SHA-256 of their content, see [Sum]. It says ok false for a file that was
// not loaded, or not without an error: what it would have read is not known.
func (h *Host) Inputs(path string, into map[string][sha256.Size]byte) (ok bool) {
	l := h.loaded(path)
	if l == nil {
		return false
	}
	if _, seen := into[path]; seen {
		return true
	}
	into[path] = l.sum
	maps.Copy(into, l.reads)
	return !slices.ContainsFunc(l.loads, func(other string) bool { return !h.Inputs(other, into) })
}

// Digest identifies what the file at this path does: its content and that of all it
// loads and reads, wherever they lie. It is "" for a file that was not loaded without an error.
func (h *Host) Digest(path string) string {
	known := map[string]string{}
	var of func(path string) string
	of = func(path string) string {
		if digest, seen := known[path]; seen {
			return digest
		}
		l := h.loaded(path)
		if l == nil {
			return ""
		}
		sum := sha256.New()
		sum.Write(l.sum[:])
		for _, other := range l.loads {
			fmt.Fprintf(sum, "%s\n", of(other))
		}
		for _, input := range slices.Sorted(maps.Keys(l.reads)) {
			fmt.Fprintf(sum, "%s %x\n", input, l.reads[input])
		}
		known[path] = fmt.Sprintf("%x", sum.Sum(nil)[:16])
		return known[path]
	}
	return of(path)
}

// loaded returns the loading of a file that has ended well, or nil.
func (h *Host) loaded(path string) *load {
	h.mu.Lock()
	l := h.loads[path]
	h.mu.Unlock()
	if l == nil {
		return nil
	}
	select {
	case <-l.done:
	default:
		return nil
	}
	if l.err != nil {
		return nil
	}
	return l
}

// takeOver begins with what another host has, so that what both have in common is there
// once: modules of many generations live side by side.
func (h *Host) takeOver(previous *Host, keep func(path string) bool) {
	h.predeclared, h.names = previous.predeclared, previous.names
	h.stuck = previous.stuck // unchanged functions are the same
	same := map[string]bool{}
	var unchanged func(path string) bool
	unchanged = func(path string) bool {
		if answer, known := same[path]; known {
			return answer
		}
		same[path] = false
		l := previous.loaded(path)
		if l == nil || !strings.HasPrefix(path, stdPrefix) && !keep(path) {
			return false
		}
		if src, err := h.read(path); err != nil || sha256.Sum256(src) != l.sum {
			return false
		}
		for _, other := range l.loads {
			if !unchanged(other) {
				return false
			}
		}
		for input, sum := range l.reads {
			if now, err := Sum(h.files, input); err != nil || now != sum {
				return false
			}
		}
		same[path], h.loads[path] = true, l
		return true
	}
	previous.mu.Lock()
	paths := slices.Collect(maps.Keys(previous.loads))
	previous.mu.Unlock()
	for _, path := range paths {
		unchanged(path)
	}
}
