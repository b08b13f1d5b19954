// Package logs keeps the last lines of the log of a process in memory, by module, for
// `starling logs`.
package logs

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"iter"
	"slices"
	"strings"
	"sync"
	"time"
)

const (
	// keep is how many bytes of lines are kept, unless [Options] say otherwise.
	keep = 4 << 20
	// perLine is about what a line takes beside its text.
	perLine = 80
	// missing is what a reader sees in place of lines that were dropped before it came to them.
	missing = `{"level":"warn","time":%q,"message":"lines are missing here: this reader is slower than the log"}` + "\n"
)

// Options configures a [Buffer].
type Options struct {
	// Bytes is how much memory the lines of all modules take together; 0: 4 MiB. When there is more,
	// the module with the most loses its oldest line, so one that logs a lot takes nothing from the
	// others.
	Bytes int
}

// line is one line of the log, as it was written, with its end.
type line struct {
	json []byte
	seq  uint64
}

// Buffer takes lines and shows the last of them. It is safe for concurrent use.
type Buffer struct {
	limit int

	mu    sync.Mutex
	lines map[string]*kept // by module
	bytes int
	seq   uint64
	more  chan struct{} // closed with the next line
}

// kept are the lines of one module, oldest first.
type kept struct {
	lines   []line
	bytes   int
	dropped uint64 // the number of the last line that is gone
}

// size is about what a line takes in memory.
func size(text []byte) int { return len(text) + perLine }

// New returns an empty buffer.
func New(o Options) *Buffer {
	o.Bytes = cmp.Or(o.Bytes, keep)
	return &Buffer{limit: o.Bytes, lines: map[string]*kept{}, more: make(chan struct{})}
}

// Write takes one line of JSON, as zerolog writes it. It never fails.
func (b *Buffer) Write(text []byte) (int, error) {
	module := moduleOf(text)
	b.mu.Lock()
	defer b.mu.Unlock()
	b.seq++
	of := b.lines[module]
	if of == nil {
		of = &kept{}
		b.lines[module] = of
	}
	of.lines = append(of.lines, line{append([]byte(nil), text...), b.seq})
	of.bytes += size(text)
	b.bytes += size(text)
	for b.bytes > b.limit {
		b.drop()
	}
	close(b.more)
	b.more = make(chan struct{})
	return len(text), nil
}

// drop forgets the oldest line of the module that has the most.
func (b *Buffer) drop() {
	var most string
	for module, of := range b.lines {
		if at := b.lines[most]; at == nil || of.bytes > at.bytes {
			most = module
		}
	}
	of := b.lines[most]
	gone := of.lines[0]
	of.lines[0] = line{} // the array lives on for a while
	of.lines = of.lines[1:]
	of.dropped = gone.seq
	of.bytes -= size(gone.json)
	b.bytes -= size(gone.json)
}

// moduleOf reads whose line it is: files are named by their path in the tree.
func moduleOf(line []byte) string {
	var about struct{ Module, File string }
	if json.Unmarshal(line, &about) != nil {
		return ""
	}
	if about.Module == "" {
		about.Module, _, _ = strings.Cut(about.File, "/")
	}
	return about.Module
}

// Lines yields the last lines of a module, of all with "", in the order in which they were
// written: tail of them at most, with a negative tail all that are kept. With follow it goes on
// with those that come, until ctx ends. Nobody waits for a slow reader: it finds a line that says
// where others are missing.
func (b *Buffer) Lines(ctx context.Context, module string, tail int, follow bool) iter.Seq[[]byte] {
	return func(yield func([]byte) bool) {
		lines, last, _, more := b.after(module, 0)
		if tail >= 0 && len(lines) > tail {
			lines = lines[len(lines)-tail:]
		}
		for {
			for _, l := range lines {
				if !yield(l.json) {
					return
				}
			}
			if !follow {
				return
			}
			select {
			case <-ctx.Done():
				return
			case <-more:
			}
			var missed bool
			lines, last, missed, more = b.after(module, last)
			if missed && !yield(fmt.Appendf(nil, missing, time.Now().Format(time.RFC3339Nano))) {
				return
			}
		}
	}
}

// after returns the lines that were written after a number, the number of the last one, whether
// some of them are gone, and what is closed when there are more.
func (b *Buffer) after(module string, seq uint64) (out []line, last uint64, missed bool, more <-chan struct{}) {
	b.mu.Lock()
	defer b.mu.Unlock()
	for name, of := range b.lines {
		if module == "" || name == module {
			out = append(out, of.after(seq)...)
			missed = missed || of.dropped > seq
		}
	}
	slices.SortFunc(out, func(a, b line) int { return cmp.Compare(a.seq, b.seq) })
	return out, b.seq, missed, b.more
}

// after returns the lines that were written after a number.
func (k *kept) after(seq uint64) []line {
	i, _ := slices.BinarySearchFunc(k.lines, seq+1, func(l line, seq uint64) int { return cmp.Compare(l.seq, seq) })
	return k.lines[i:]
}
