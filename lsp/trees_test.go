package lsp

import (
	"fmt"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/starling-operator/starling/lsp/text"
	"github.com/starling-operator/starling/modules/scaffold"
)

// changedOnDisk is what an editor tells of a file that has changed.
func changedOnDisk(path string) map[string]any {
	return map[string]any{"changes": []any{map[string]any{"uri": uriOf(path), "type": 2}}}
}

// The tree is checked although files change all the time: those of no tree concern no check, and those of the tree stop
// a check only for a while.
func TestEventsAllTheTime(t *testing.T) {
	dir := addons(t)
	for i := range 60 { // so that a check takes longer than the time between two events
		if _, err := scaffold.Module(dir, fmt.Sprintf("module-%d", i)); err != nil {
			t.Fatal(err)
		}
	}
	for name, path := range map[string]string{"of no tree": "/no/such/folder/build.log", "of the tree": filepath.Join(dir, "build.log")} {
		t.Run(name, func(t *testing.T) {
			c := begin(t, dir)
			uri := c.openFile(filepath.Join(dir, "web/hooks/count.star"))
			c.diagnostics(uri)
			done, ended := make(chan struct{}), make(chan struct{})
			go func() {
				defer close(ended)
				for {
					select {
					case <-done:
						return
					case <-time.After(10 * time.Millisecond):
						_ = c.conn.Notify(t.Context(), "workspace/didChangeWatchedFiles", changedOnDisk(path))
					}
				}
			}()
			<-time.After(maxPause)
			c.edit(filepath.Join(dir, "web/hooks/count.star"), misspelt)
			if found := c.diagnostics(uri); len(found) == 0 {
				t.Error("the mistake is not told of")
			}
			close(done)
			<-ended
			c.end()
		})
	}
}

// An editor tells of changes in its workspace alone: files of a tree elsewhere are read with each check.
func TestTreeOutsideOfTheWorkspace(t *testing.T) {
	dir := addons(t)
	c := begin(t, t.TempDir())
	path := filepath.Join(dir, "web/hooks/count.star")
	uri := c.openFile(path)
	for range 3 { // the editor has answered that it tells of changes
		c.edit(path, counting)
		c.diagnostics(uri)
	}
	writeFile(t, filepath.Join(dir, "lib/names.star"), "def redy(n):\n    return n\n")
	c.edit(path, counting)
	if found := c.diagnostics(uri); len(found) == 0 {
		t.Error("the function that has gone is not told of")
	}
	c.end()
}

// Of trees none of whose files is open few are kept; the others are checked no more, and nothing is shown of them.
func TestTreesThatNobodyLooksAt(t *testing.T) {
	c := begin(t, t.TempDir())
	for range maxFolders + 4 {
		dir := addons(t)
		writeFile(t, filepath.Join(dir, "lib/names.star"), "def redy(n):\n    return n\n") // a mistake in count.star
		uri := c.openFile(filepath.Join(dir, "web/values.yaml"))
		c.diagnostics(uri)
		c.notify("textDocument/didClose", map[string]any{"textDocument": documentID{uri}})
	}
	c.end()
	<-c.conn.DisconnectNotify() // all that was told has come
	if n := len(c.server.folders); n != maxFolders {
		t.Errorf("%d trees are kept", n)
	}
	shown := map[string]int{}
	for len(c.told) > 0 {
		p := <-c.told
		shown[p.URI] = len(p.Diagnostics)
	}
	wrong := 0
	for _, n := range shown {
		wrong += n
	}
	if wrong > maxFolders {
		t.Errorf("%d mistakes are shown", wrong)
	}
}

// The end that a client has asked for is none without a reason, though a check goes on that does not stop at once.
func TestEndDuringACheck(t *testing.T) {
	c := begin(t, addons(t))
	free := make(chan struct{})
	t.Cleanup(func() { close(free) })
	c.server.working.Go(func() { <-free })
	c.end()
}

// A completion does not read a file anew for each name that is loaded of it.
func TestCompletionOfManyNames(t *testing.T) {
	dir := addons(t)
	var lib, names strings.Builder
	for i := range 600 {
		fmt.Fprintf(&lib, "def fn_%d(a, b = 1):\n    \"\"\"Says %d.\"\"\"\n    return [x for x in b if a]\n\n", i, i)
		fmt.Fprintf(&names, ", \"fn_%d\"", i)
	}
	writeFile(t, filepath.Join(dir, "lib/many.star"), lib.String())
	c := begin(t, dir)
	uri := c.edit(filepath.Join(dir, "web/hooks/count.star"), "load(\"//lib/many.star\""+names.String()+")\nx = fn_1\n")
	c.diagnostics(uri)
	began := processorTime(t)
	var got completionList
	c.call("textDocument/completion", place(uri, text.Position{Line: 1, Character: 5}), &got)
	// Once per name it took 256 ms for 60 names on an idle machine, and grew with their square.
	if took := processorTime(t) - began; took > 20*time.Second {
		t.Errorf("it took %s", took)
	}
	if !strings.Contains(fmt.Sprint(got.Items), "fn_599") {
		t.Error("a name that is loaded is not offered")
	}
	c.end()
}
