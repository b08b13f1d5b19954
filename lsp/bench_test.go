package lsp

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"syscall"
	"testing"
	"time"

	"github.com/starling-operator/starling/lsp/text"
	"github.com/starling-operator/starling/modules/scaffold"
)

// A key is pressed in one of 100 modules, by somebody who has looked at what the last one did: how long until the editor
// has all diagnostics of that file, and so of its tree.
func BenchmarkDiagnostics100Modules(b *testing.B) {
	c, uri := manyModules(b)
	began := processorTime(b)
	defer func() { b.ReportMetric(float64((processorTime(b)-began).Milliseconds())/float64(b.N), "cpu-ms/op") }()
	median(b, func(i int) {
		c.replaceFirst(uri, fmt.Sprintf("# %d\n", i))
		if found := c.diagnostics(uri); len(found) > 0 {
			b.Fatal(found)
		}
	})
}

// The same for a mistake of syntax, of which the file tells by itself.
func BenchmarkSyntaxErrors100Modules(b *testing.B) {
	c, uri := manyModules(b)
	median(b, func(i int) {
		c.replaceFirst(uri, fmt.Sprintf("x%d = (\n", i))
		if found := c.diagnostics(uri); len(found) != 1 {
			b.Fatal(found)
		}
	})
}

// A completion comes right behind a key, before the tree has been looked at.
func BenchmarkCompletion100Modules(b *testing.B) {
	c, uri := manyModules(b)
	median(b, func(i int) {
		c.replaceFirst(uri, fmt.Sprintf("x%d = k8s.\n", i))
		var got completionList
		if c.call("textDocument/completion", place(uri, text.Position{Character: uint32(len(fmt.Sprintf("x%d = k8s.", i)))}), &got); len(got.Items) == 0 {
			b.Fatal("nothing is offered")
		}
	})
}

// median reports how long one of two times takes at most, with pauses in between that count for nothing.
func median(b *testing.B, once func(i int)) {
	b.Helper()
	var took []time.Duration
	for i := 0; b.Loop(); i++ {
		<-time.After(maxPause)
		began := time.Now()
		once(i)
		took = append(took, time.Since(began))
	}
	slices.Sort(took)
	b.ReportMetric(float64(took[len(took)/2].Microseconds())/1000, "p50-ms")
}

// processorTime is what the process has taken so far: on a machine that does other work it says more than the clock.
func processorTime(b testing.TB) time.Duration {
	b.Helper()
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
		b.Fatal(err)
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}

// replaceFirst replaces the first line of a document.
func (c *client) replaceFirst(uri, line string) {
	c.versions[uri]++
	r := &text.Range{End: text.Position{Line: 1}}
	if len(c.told) > cap(c.told)/2 {
		for len(c.told) > 0 {
			<-c.told
		}
	}
	c.change(uri, contentChange{Range: r, Text: line})
}

func manyModules(b *testing.B) (*client, string) {
	b.Helper()
	root := b.TempDir()
	for i := range 100 {
		if _, err := scaffold.Module(root, fmt.Sprintf("module-%d", i)); err != nil {
			b.Fatal(err)
		}
	}
	file := filepath.Join(root, "module-50", "module.star")
	src, err := os.ReadFile(file)
	if err != nil {
		b.Fatal(err)
	}
	c := begin(b, root)
	uri := c.edit(file, "# \n"+string(src))
	c.diagnostics(uri)
	return c, uri
}
