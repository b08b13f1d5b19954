package lsp

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/starling-operator/starling/lsp/text"
)

// misspelt is counting with a mistake that only the check of the tree finds.
var misspelt = strings.Replace(counting, "internal.ready", "internal.raedy", 1)

// A thousand changes come faster than the tree can be checked: only newer states are told of, the newest in the end, and
// nothing is kept of the others.
func TestManyChangesAtOnce(t *testing.T) {
	dir := addons(t)
	c := begin(t, dir)
	path := filepath.Join(dir, "web/hooks/count.star")
	uri := c.openFile(path)
	c.diagnostics(uri)
	before := heap()
	for i := range 1000 {
		c.versions[uri]++
		c.change(uri, contentChange{Range: &text.Range{}, Text: fmt.Sprintf("# %d\n", i)})
	}
	c.edit(path, misspelt)
	for last := 0; ; {
		p := c.next()
		if p.URI != uri || p.Version == nil {
			continue
		}
		if *p.Version < last {
			t.Errorf("version %d is told of after %d", *p.Version, last)
		}
		if last = *p.Version; last < c.versions[uri] {
			continue
		}
		if len(p.Diagnostics) == 0 {
			t.Error("the mistake of the last change is not told of")
		}
		break
	}
	if after := heap(); after > before+64<<20 {
		t.Errorf("the heap has grown from %d to %d MiB", before>>20, after>>20)
	}
	c.end()
}

func heap() uint64 {
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return m.HeapAlloc
}

// A document that is larger than any file of a tree is told of once, and is a document again when it comes smaller.
func TestHugeDocument(t *testing.T) {
	dir := addons(t)
	c := begin(t, dir)
	path := filepath.Join(dir, "web/values.yaml")
	uri := c.edit(path, strings.Repeat("# five MiB\n", 5<<20/11+1))
	if found := c.diagnostics(uri); len(found) > 0 {
		t.Errorf("got %v", found)
	}
	for range 10 {
		c.versions[uri]++
		c.change(uri, contentChange{Range: &text.Range{}, Text: "x"})
		c.diagnostics(uri)
	}
	if err := c.try("textDocument/hover", place(uri, text.Position{}), nil); err == nil || !strings.Contains(err.Error(), "not known any more") {
		t.Errorf("got %v", err)
	}
	if n := len(c.logs); n != 1 {
		t.Errorf("the log has %d lines", n)
	}
	if log := <-c.logs; !strings.Contains(log, "more than 4 MiB") {
		t.Errorf("got %s", log)
	}
	c.edit(path, "replicas: many\n")
	for found := c.diagnostics(uri); len(found) == 0; {
		found = c.diagnostics(uri)
	}
	c.end()
}

// A tree that is removed while files of it are open is told of once, whatever is written; it is checked again when it
// comes back.
func TestTreeThatIsRemoved(t *testing.T) {
	dir := addons(t)
	c := begin(t, dir)
	path := filepath.Join(dir, "web/hooks/count.star")
	uri := c.edit(path, misspelt)
	if found := c.diagnostics(uri); len(found) == 0 {
		t.Fatal("no mistake")
	}
	if err := os.RemoveAll(dir); err != nil {
		t.Fatal(err)
	}
	c.notify("workspace/didChangeWatchedFiles", changedOnDisk(filepath.Join(dir, "lib/names.star")))
	for range 5 {
		c.edit(path, misspelt)
		if found := c.diagnostics(uri); len(found) > 0 {
			t.Errorf("got %v", found)
		}
	}
	if n := len(c.logs); n != 1 {
		t.Errorf("the log has %d lines", n)
	}
	if err := os.CopyFS(dir, os.DirFS(addons(t))); err != nil {
		t.Fatal(err)
	}
	c.notify("workspace/didChangeWatchedFiles", changedOnDisk(filepath.Join(dir, "lib/names.star")))
	for found := c.diagnostics(uri); len(found) == 0; {
		found = c.diagnostics(uri)
	}
	c.end()
}

// Each file is of the tree that its path leads to, as the editor gives it; one that is in none is looked at by itself.
func TestSeveralTreesAndNone(t *testing.T) {
	one, two, link := addons(t), addons(t), filepath.Join(t.TempDir(), "link")
	if err := os.Symlink(two, link); err != nil {
		t.Fatal(err)
	}
	c := begin(t, one)
	for _, dir := range []string{one, two, link} {
		path := filepath.Join(dir, "web/hooks/count.star")
		if found := c.diagnostics(c.edit(path, misspelt)); len(found) != 1 {
			t.Errorf("%s: got %+v", dir, found)
		}
		if found := c.diagnostics(c.edit(path, counting)); len(found) != 0 {
			t.Errorf("%s: got %+v", dir, found)
		}
	}
	for _, path := range []string{filepath.Join(t.TempDir(), "alone.star"), "/no/such/folder/alone.star", "/alone.star"} {
		if found := c.diagnostics(c.edit(path, "x = (\n")); len(found) != 1 {
			t.Errorf("%s: got %+v", path, found)
		}
		if found := c.diagnostics(c.edit(path, "x = 1\n")); len(found) != 0 {
			t.Errorf("%s: got %+v", path, found)
		}
	}
	for _, uri := range []string{"untitled:Untitled-1", "file:relative", "https://example.com/a.star", "%zz"} {
		c.notify("textDocument/didOpen", map[string]any{"textDocument": map[string]any{"uri": uri, "text": "x = (\n"}})
		c.notify("textDocument/didChange", map[string]any{"textDocument": documentID{uri}, "contentChanges": []contentChange{{Text: "x"}}})
		c.notify("textDocument/didClose", map[string]any{"textDocument": documentID{uri}})
	}
	c.end()
	if n := len(c.logs); n != 0 {
		t.Errorf("the log has %d lines: %s", n, <-c.logs)
	}
}

// Mistakes in files that nobody has open are told of when they differ, and not with each key.
func TestDiagnosticsComeWhenTheyDiffer(t *testing.T) {
	dir := addons(t)
	c := begin(t, dir)
	other, times := uriOf(filepath.Join(dir, "web/hooks/count.star")), 0
	for i := range 5 {
		uri := c.edit(filepath.Join(dir, "lib/names.star"), fmt.Sprintf("# %d\ndef redy(n):\n    return n\n", i))
		for {
			p := c.next()
			if p.URI == other {
				times++
			}
			if p.URI == uri && p.Version != nil && *p.Version == c.versions[uri] {
				break
			}
		}
	}
	c.call("shutdown", nil, nil)
	for len(c.told) > 0 {
		if p := <-c.told; p.URI == other {
			times++
		}
	}
	if times > 1 {
		t.Errorf("it is told of %d times", times)
	}
	c.notify("exit", nil)
	if err := <-c.served; err != nil {
		t.Error(err)
	}
}

// Files on the disk count as they are: when the editor tells that they have changed, and with each check for an editor
// that tells of nothing.
func TestFilesOnTheDisk(t *testing.T) {
	for _, tells := range []bool{true, false} {
		dir := addons(t)
		c := beginAs(t, dir, tells)
		path := filepath.Join(dir, "web/hooks/count.star")
		uri := c.openFile(path)
		for range 3 {
			c.edit(path, counting)
			if found := c.diagnostics(uri); len(found) > 0 {
				t.Errorf("got %v", found)
			}
		}
		if err := os.WriteFile(filepath.Join(dir, "lib/names.star"), []byte("def redy(n):\n    return n\n"), 0o644); err != nil {
			t.Fatal(err)
		}
		if tells {
			c.notify("workspace/didChangeWatchedFiles", changedOnDisk(filepath.Join(dir, "lib/names.star")))
		} else {
			c.edit(path, counting)
		}
		for found := c.diagnostics(uri); len(found) == 0; {
			found = c.diagnostics(uri)
		}
		c.end()
	}
}

// A change that comes after a while is looked at without delay; while somebody writes, checks that are slow take half of
// the time.
func TestPace(t *testing.T) {
	for _, c := range []struct {
		last        pace
		since, want time.Duration
	}{
		{pace{took: 20 * time.Millisecond}, 0, 0},
		{pace{took: 100 * time.Millisecond}, time.Hour, 0},
		{pace{took: 100 * time.Millisecond}, 30 * time.Millisecond, 70 * time.Millisecond},
		{pace{took: 100 * time.Millisecond, stopped: 1}, time.Hour, 100 * time.Millisecond},
		{pace{took: time.Minute}, 0, maxPause},
	} {
		if got := c.last.wait(c.since); got != c.want {
			t.Errorf("%+v, %s later: got %s, want %s", c.last, c.since, got, c.want)
		}
	}
}

// A server whose client does not read what it is told ends when it is stopped.
func TestClientThatDoesNotRead(t *testing.T) {
	dir := addons(t)
	path := filepath.Join(dir, "web/hooks/count.star")
	message := func(body string) string { return fmt.Sprintf("Content-Length: %d\r\n\r\n%s", len(body), body) }
	s := &stuck{wrote: make(chan struct{}), free: make(chan struct{})}
	t.Cleanup(func() { close(s.free) })
	s.sent = strings.NewReader(message(`{"jsonrpc":"2.0","id":1,"method":"initialize","params":{}}`) +
		message(fmt.Sprintf(`{"jsonrpc":"2.0","method":"textDocument/didOpen","params":{"textDocument":{"uri":%q,"text":%q}}}`, uriOf(path), misspelt)))
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	served := make(chan error, 1)
	go func() { served <- New(Options{}).Serve(ctx, s) }()
	select {
	case <-s.wrote:
	case <-time.After(time.Minute):
		t.Fatal("nothing was written within a minute")
	}
	cancel()
	select {
	case err := <-served:
		if !errors.Is(err, ErrNoShutdown) {
			t.Errorf("got %v", err)
		}
	case <-time.After(time.Minute):
		t.Error("the server has not ended within a minute")
	}
}

// stuck is a client that reads no diagnostics.
type stuck struct {
	sent        io.Reader
	once        sync.Once
	wrote, free chan struct{}
}

func (s *stuck) Read(p []byte) (int, error) {
	if n, err := s.sent.Read(p); err == nil {
		return n, nil
	}
	<-s.free
	return 0, io.EOF
}

func (s *stuck) Write(p []byte) (int, error) {
	if bytes.Contains(p, []byte("publishDiagnostics")) {
		s.once.Do(func() { close(s.wrote) })
		<-s.free
	}
	return len(p), nil
}

func (s *stuck) Close() error { return nil }

// A parameter is renamed where calls name it too, in other files as well.
func TestRenameOfAParameter(t *testing.T) {
	dir := addons(t)
	c := begin(t, dir)
	hook := filepath.Join(dir, "web/hooks/count.star")
	src := strings.Replace(counting, "if ready(n)", "if ready(n = n)", 1)
	c.edit(hook, src)
	lib := c.openFile(filepath.Join(dir, "lib/names.star"))
	c.diagnostics(lib)
	var got workspaceEdit
	c.call("textDocument/rename", map[string]any{"textDocument": documentID{lib}, "position": text.Position{Character: 10}, "newName": "node"}, &got)
	if now := applied(t, text.New(src), got.Changes[uriOf(hook)]); now != strings.Replace(counting, "if ready(n)", "if ready(node = n)", 1) {
		t.Errorf("got %s", now)
	}
	if now := applied(t, c.open[lib], got.Changes[lib]); !strings.Contains(now, "def ready(node):") || !strings.Contains(now, `node["name"]`) {
		t.Errorf("got %s", now)
	}
	c.end()
}

// Names that Starling looks for are given to no function by a rename, and taken from none.
func TestRenameOfWhatStarlingCalls(t *testing.T) {
	dir := addons(t)
	c := begin(t, dir)
	uri := c.edit(filepath.Join(dir, "web/module.star"), "module()\n\ndef enabled():\n    return more()\n\ndef more():\n    return True\n")
	c.diagnostics(uri)
	for line, want := range map[uint32]string{2: "keeps its name", 5: "starling calls"} {
		err := c.try("textDocument/rename", map[string]any{"textDocument": documentID{uri}, "position": text.Position{Line: line, Character: 5}, "newName": "readiness"}, nil)
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("line %d: got %v, want %s", line, err, want)
		}
	}
	c.end()
}
