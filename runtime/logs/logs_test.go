package logs

import (
	"context"
	"fmt"
	"runtime"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"
)

func write(b *Buffer, module string, n int) {
	fmt.Fprintf(b, `{"level":"info","module":%q,"message":"line %d"}`+"\n", module, n)
}

func texts(b *Buffer, module string, tail int) (out []string) {
	for l := range b.Lines(context.Background(), module, tail, false) {
		_, text, _ := strings.Cut(string(l), `"message":"`)
		out = append(out, moduleOf(l)+" "+strings.TrimSuffix(text, "\"}\n"))
	}
	return out
}

// Lines are those of one module, or of all in their order, the last of them.
func TestLinesOfAModule(t *testing.T) {
	b := New(Options{})
	write(b, "web", 1)
	write(b, "shop", 2)
	write(b, "web", 3)
	fmt.Fprintln(b, `{"message":"line 4"}`)
	fmt.Fprintln(b, `{"file":"web/hooks/a.star","message":"line 5"}`)
	fmt.Fprintln(b, `no JSON`)
	for _, c := range []struct {
		module string
		tail   int
		want   []string
	}{
		{"web", -1, []string{"web line 1", "web line 3", "web line 5"}},
		{"web", 1, []string{"web line 5"}},
		{"web", 0, nil},
		{"none", -1, nil},
		{"", 4, []string{"web line 3", " line 4", "web line 5", " "}},
	} {
		if got := texts(b, c.module, c.tail); !slices.Equal(got, c.want) {
			t.Errorf("%q, %d: got %q, want %q", c.module, c.tail, got, c.want)
		}
	}
}

// A module that logs a lot loses its lines, not those of others, and memory is bounded.
func TestTheModuleWithTheMostLosesLines(t *testing.T) {
	b := New(Options{Bytes: 4096})
	write(b, "quiet", 0)
	for i := range 1000 {
		write(b, "loud", i)
	}
	if got := texts(b, "quiet", -1); len(got) != 1 {
		t.Errorf("the quiet module has %d lines", len(got))
	}
	loud := texts(b, "loud", -1)
	if n := len(loud); n < 15 || n > 100 || loud[n-1] != "loud line 999" {
		t.Errorf("the loud module has %d lines: %q", n, loud)
	}
	if b.bytes > 4096 {
		t.Errorf("%d bytes are kept", b.bytes)
	}
	fmt.Fprintf(b, `{"module":"loud","message":%q}`+"\n", strings.Repeat("x", 5000))
	if got := texts(b, "", -1); len(got) > 1 {
		t.Errorf("a line above the limit is kept beside %d others", len(got))
	}
}

// A reader that follows is given the lines that come, until its context ends.
func TestFollow(t *testing.T) {
	b := New(Options{})
	write(b, "web", 1)
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	got := make(chan string)
	go func() {
		defer close(got)
		for l := range b.Lines(ctx, "web", -1, true) {
			got <- string(l)
		}
	}()
	for n := 1; n < 4; n++ {
		if line := <-got; !strings.Contains(line, fmt.Sprintf("line %d", n)) {
			t.Errorf("got %q, want line %d", line, n)
		}
		write(b, "shop", n)
		write(b, "web", n+1)
	}
	<-got
	cancel()
	if line, more := <-got; more {
		t.Errorf("after its end there is %q", line)
	}
}

// Nobody who writes waits for a reader, who is told once where lines are missing, in order.
func TestSlowReader(t *testing.T) {
	const writers, each = 4, 500
	b := New(Options{Bytes: 20_000})
	write(b, "web", -1)
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	read, goOn := make(chan string), make(chan struct{})
	go func() {
		defer close(read)
		for l := range b.Lines(ctx, "", -1, true) {
			read <- string(l)
			<-goOn
		}
	}()
	<-read // and the reader stands still
	var writing sync.WaitGroup
	for range writers {
		writing.Go(func() {
			for n := range each {
				write(b, "web", n)
			}
		})
	}
	writing.Wait()
	write(b, "web", each)
	close(goOn)
	first, lines := <-read, 0
	if !strings.Contains(first, "lines are missing here") {
		t.Errorf("after the gap there is %q", first)
	}
	for line := range read {
		if lines++; strings.Contains(line, fmt.Sprintf("line %d\"", each)) {
			break
		}
	}
	if lines < 50 || lines > 20_000/perLine {
		t.Errorf("%d lines of %d bytes are kept", lines, b.bytes)
	}
}

// The limit is that of memory: short lines take more than their text.
func TestShortLinesTakeMemoryToo(t *testing.T) {
	heap := func() uint64 {
		var m runtime.MemStats
		runtime.GC()
		runtime.ReadMemStats(&m)
		return m.HeapAlloc
	}
	before := heap()
	b := New(Options{})
	for n := range 60_000 {
		write(b, fmt.Sprint(n%7), 0)
	}
	if took := int64(heap()) - int64(before); took < keep/2 || took > keep*3/2 {
		t.Errorf("%d lines take %d bytes", len(texts(b, "", -1)), took)
	}
	runtime.KeepAlive(b)
}
