package lsp

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/sourcegraph/jsonrpc2"

	"github.com/starling-operator/starling/lsp/text"
)

// Whatever bytes a client sends, the server answers the request that comes after them.
func TestGarbageEndsNothing(t *testing.T) {
	message := func(body string) string { return fmt.Sprintf("Content-Length: %d\r\n\r\n%s", len(body), body) }
	for name, sent := range map[string]string{
		"no header":             "garbage\n\n\r\n{}\n",
		"no JSON":               message("{\"jsonrpc\""),
		"an empty message":      message(""),
		"no request":            message("[]") + message("null") + message("1") + message("{}") + message(`{"id": [1], "method": "x"}`),
		"a batch":               message(`[{"jsonrpc":"2.0","id":5,"method":"shutdown"}]`),
		"lengths that are none": "Content-Length: -5\r\n\r\nContent-Length: x\r\n\r\nContent-Length: 99999999999999999999\r\n\r\n",
		"a huge message":        fmt.Sprintf("Content-Length: %d\r\n\r\n%s", MaxMessage+1, strings.Repeat("a", MaxMessage+1)),
		"a huge claim":          "Content-Length: 9223372036854775807\r\n\r\n{}",
		"a line without end":    strings.Repeat("x", 1<<20) + "\n",
		"deep JSON":             message(`{"jsonrpc":"2.0","id":5,"method":"x","params":` + strings.Repeat("[", 5000) + strings.Repeat("]", 5000) + "}"),
		"answers to nobody":     message(`{"jsonrpc":"2.0","id":77,"result":null}`),
		"methods of the wild":   message(`{"jsonrpc":"2.0","method":"$/setTrace","params":{}}`) + message(`{"jsonrpc":"2.0","method":"textDocument/didChange","params":{"textDocument":{"uri":"file:///x"},"contentChanges":[{"range":{"start":{"line":-1}}}]}}`),
	} {
		t.Run(name, func(t *testing.T) {
			answers(t, sent+message(`{"jsonrpc":"2.0","id":1,"method":"initialize","params":{}}`))
		})
	}
}

// answers sends bytes to a new server and waits for the answer to request 1.
func answers(t *testing.T, sent string) {
	t.Helper()
	ours, theirs := net.Pipe()
	served := make(chan error, 1)
	go func() { served <- New(Options{}).Serve(context.Background(), theirs) }()
	go func() { _, _ = io.WriteString(ours, sent) }()
	found := make(chan struct{})
	go func() {
		var all bytes.Buffer
		part := make([]byte, 4096)
		for {
			n, err := ours.Read(part)
			all.Write(part[:n])
			if bytes.Contains(all.Bytes(), []byte(`"positionEncoding":"utf-16"`)) {
				close(found)
				return
			}
			if err != nil {
				return
			}
		}
	}()
	select {
	case <-found:
	case <-served:
		t.Error("the server has ended")
	case <-time.After(time.Minute):
		t.Error("no answer came within a minute")
	}
	ours.Close()
}

// A line of many names takes no longer than as many lines.
func TestLongLine(t *testing.T) {
	c := begin(t, addons(t))
	path := filepath.Join(t.TempDir(), "long.star")
	unknown := "x = [" + strings.Repeat("unknown, ", 40_000) + "]\n"
	began := processorTime(t)
	uri := c.edit(path, unknown)
	if found := c.diagnostics(uri); len(found) != 101 {
		t.Errorf("%d mistakes are told", len(found))
	}
	src := "a = 1;x = [" + strings.Repeat("a, ", 40_000) + "\"ä\", a]\n"
	c.edit(path, src)
	at := text.Position{Character: uint32(len([]rune(src)) - 3)}
	var places []highlight
	if c.call("textDocument/documentHighlight", place(uri, at), &places); len(places) != 40_002 {
		t.Errorf("%d places", len(places))
	}
	c.call("textDocument/hover", place(uri, at), nil)
	if took := processorTime(t) - began; took > 10*time.Second {
		t.Errorf("it took %s", took)
	}
	c.end()
}

// Requests of any kind at any place of a document that is being torn apart are answered, and the server goes on.
func FuzzRequests(f *testing.F) {
	f.Add(counting, uint32(3), uint32(20), uint32(4), uint32(2), "x")
	f.Add("load(\"", uint32(0), uint32(6), uint32(0), uint32(0), "")
	f.Add("a = \"😀\\", uint32(0), uint32(6), uint32(0), uint32(9), "\"\"\"")
	f.Add("ctx.", uint32(0), uint32(4), uint32(1<<31), uint32(0), "\r")
	f.Add("for e in e.events:\n e.", uint32(1), uint32(3), uint32(0), uint32(0), "")
	f.Add("for a in b.events:\n for b in a.children:\n  a.", uint32(2), uint32(4), uint32(0), uint32(0), "")
	f.Add("def f(ctx):\n  for e in ctx.events:\n    e.", uint32(2), uint32(6), uint32(0), uint32(0), "(")
	dir := addons(f)
	s := New(Options{})
	s.ctx = f.Context()
	s.conn = begin(f, dir).conn // it takes what is told
	_, uri := dir, uriOf(dir+"/web/hooks/count.star")
	methods := []string{"hover", "completion", "signatureHelp", "definition", "references", "documentHighlight", "prepareRename", "rename", "formatting", "documentSymbol"}
	f.Fuzz(func(t *testing.T, src string, line, col, line2, col2 uint32, with string) {
		s.stage = initialized
		for _, file := range []string{uri, uriOf(dir + "/values.yaml")} {
			handle(t, s, "textDocument/didOpen", map[string]any{"textDocument": map[string]any{"uri": file, "text": src}})
			at := text.Position{Line: line, Character: col}
			for range 2 {
				for _, m := range methods {
					handle(t, s, "textDocument/"+m, map[string]any{"textDocument": documentID{file}, "position": at, "newName": with})
				}
				r := text.Range{Start: at, End: text.Position{Line: line2, Character: col2}}
				handle(t, s, "textDocument/didChange", map[string]any{"textDocument": documentID{file}, "contentChanges": []contentChange{{&r, with}}})
			}
		}
	})
}

// handle has a message handled; an internal error is one of the server.
func handle(t *testing.T, s *Server, method string, params any) {
	t.Helper()
	data, err := json.Marshal(params)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := s.handle(request(method, data)); err != nil && strings.Contains(err.Error(), "internal error") {
		t.Errorf("%s %s: %v", method, data, err)
	}
}

func request(method string, params []byte) *jsonrpc2.Request {
	return &jsonrpc2.Request{Method: method, Params: (*json.RawMessage)(&params)}
}
