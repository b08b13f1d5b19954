package lsp

import (
	"context"
	"encoding/json"
	"errors"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/sourcegraph/jsonrpc2"

	"github.com/starling-operator/starling/lsp/text"
)

// client is an editor: it speaks the protocol with a server, over a pipe.
type client struct {
	t    testing.TB
	conn *jsonrpc2.Conn
	// told are the diagnostics in the order in which they came.
	told chan diagnosticsParams
	logs chan string
	// registered is what the server has asked to be asked for, or told.
	registered chan []registration
	// open are the texts as the editor has them, by URI.
	open     map[string]*text.Text
	versions map[string]int
	served   chan error
	server   *Server
}

func start(t testing.TB) *client {
	t.Helper()
	ours, theirs := net.Pipe()
	server := New(Options{StdDir: filepath.Join(t.TempDir(), "std")})
	c := &client{t: t, told: make(chan diagnosticsParams, 10_000), logs: make(chan string, 1000), registered: make(chan []registration, 10), open: map[string]*text.Text{}, versions: map[string]int{}, served: make(chan error, 1), server: server}
	go func() { c.served <- server.Serve(context.WithoutCancel(t.Context()), theirs) }()
	c.conn = jsonrpc2.NewConn(context.WithoutCancel(t.Context()), jsonrpc2.NewBufferedStream(ours, jsonrpc2.VSCodeObjectCodec{}), c)
	t.Cleanup(func() { _ = c.conn.Close() })
	return c
}

// Handle implements [jsonrpc2.Handler]. Like an editor, it reads on while it answers.
func (c *client) Handle(ctx context.Context, conn *jsonrpc2.Conn, req *jsonrpc2.Request) {
	switch req.Method {
	case "textDocument/publishDiagnostics":
		var p diagnosticsParams
		if err := json.Unmarshal(*req.Params, &p); err != nil {
			c.logs <- err.Error()
		}
		c.told <- p
	case "client/registerCapability":
		var p struct{ Registrations []registration }
		if err := json.Unmarshal(*req.Params, &p); err != nil {
			c.logs <- err.Error()
		}
		c.registered <- p.Registrations
	case "window/logMessage":
		c.logs <- string(*req.Params)
	}
	if !req.Notif {
		go func() { _ = conn.Reply(ctx, req.ID, nil) }()
	}
}

// begin starts a server for an editor that tells of changes on the disk.
func begin(t testing.TB, dir string) *client {
	t.Helper()
	return beginAs(t, dir, true)
}

// beginAs starts a server for an editor that tells of changes on the disk, or for one that does not.
func beginAs(t testing.TB, dir string, tells bool) *client {
	t.Helper()
	c := start(t)
	var result initializeResult
	var p initializeParams
	p.Capabilities.Workspace.DidChangeWatchedFiles.DynamicRegistration = tells
	c.call("initialize", map[string]any{"rootUri": uriOf(dir), "capabilities": p.Capabilities}, &result)
	if result.Capabilities.PositionEncoding != "utf-16" {
		t.Fatalf("got %+v", result)
	}
	c.notify("initialized", map[string]any{})
	return c
}

func (c *client) call(method string, params, result any) {
	c.t.Helper()
	if err := c.try(method, params, result); err != nil {
		c.t.Fatalf("%s: %v", method, err)
	}
}

func (c *client) try(method string, params, result any) error {
	ctx, cancel := context.WithTimeout(c.t.Context(), time.Minute)
	defer cancel()
	return c.conn.Call(ctx, method, params, result)
}

func (c *client) notify(method string, params any) {
	c.t.Helper()
	if err := c.conn.Notify(c.t.Context(), method, params); err != nil {
		c.t.Fatalf("%s: %v", method, err)
	}
}

// edit opens a file with a text, or has the whole of it replaced.
func (c *client) edit(path, src string) string {
	uri := uriOf(path)
	c.versions[uri]++
	if c.open[uri] == nil {
		c.notify("textDocument/didOpen", map[string]any{"textDocument": map[string]any{"uri": uri, "languageId": "starlark", "version": c.versions[uri], "text": src}})
	} else {
		c.change(uri, contentChange{Text: src})
	}
	c.open[uri] = text.New(src)
	return uri
}

func (c *client) change(uri string, changes ...contentChange) {
	c.notify("textDocument/didChange", map[string]any{"textDocument": map[string]any{"uri": uri, "version": c.versions[uri]}, "contentChanges": changes})
}

// openFile opens a file as it is on the disk.
func (c *client) openFile(path string) string {
	c.t.Helper()
	data, err := os.ReadFile(path)
	if err != nil {
		c.t.Fatal(err)
	}
	return c.edit(path, string(data))
}

// diagnostics waits for those of a document as it is now.
func (c *client) diagnostics(uri string) []diagnostic {
	c.t.Helper()
	for {
		if p := c.next(); p.URI == uri && (p.Version == nil && c.open[uri] == nil || p.Version != nil && *p.Version == c.versions[uri]) {
			return p.Diagnostics
		}
	}
}

// next waits for diagnostics of any document.
func (c *client) next() diagnosticsParams {
	c.t.Helper()
	select {
	case p := <-c.told:
		return p
	case <-time.After(time.Minute):
		c.t.Fatal("no diagnostics came within a minute")
	}
	return diagnosticsParams{}
}

func (c *client) end() {
	c.t.Helper()
	c.call("shutdown", nil, nil)
	c.notify("exit", nil)
	select {
	case err := <-c.served:
		if err != nil {
			c.t.Error(err)
		}
	case <-time.After(time.Minute):
		c.t.Error("the server has not ended within a minute")
	}
}

// at is the place of the mark ‸ in a text, which is taken out of it.
func at(t testing.TB, marked string) (src string, p text.Position) {
	t.Helper()
	before, after, ok := strings.Cut(marked, "‸")
	if !ok {
		t.Fatalf("no ‸ in %q", marked)
	}
	src = before + after
	return src, text.New(src).Position(len(before))
}

func place(uri string, p text.Position) map[string]any {
	return map[string]any{"textDocument": documentID{uri}, "position": p}
}

// write makes files in a new folder.
func write(t testing.TB, files map[string]string) string {
	t.Helper()
	dir := t.TempDir()
	for name, src := range files {
		path := filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(src), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

// codeOf is the code of an error that a server has answered.
func codeOf(err error) int64 {
	var e *jsonrpc2.Error
	if errors.As(err, &e) {
		return e.Code
	}
	return 0
}
