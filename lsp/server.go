// Package lsp is a server of the language server protocol for module trees: it tells what starling check would say while
// a file is written, completes and explains names, and finds, renames and formats them.
//
// Messages are handled one after the other, in their order, so that an answer is always about the document as it is. The
// checks of trees go on beside them, see [folder].
package lsp

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	stdlog "log"
	"sync"
	"sync/atomic"
	"time"

	"github.com/sourcegraph/jsonrpc2"

	"github.com/starling-operator/starling/modules/chart"
)

// Options configures [New].
type Options struct {
	// Renderer evaluates charts under limits; nil: they are evaluated without any.
	Renderer *chart.Renderer
	// Version is that of the server, for people.
	Version string
	// StdDir is a folder into which files of the standard library are written when somebody wants to see one; "": nobody
	// can.
	StdDir string
	// FollowLinks has links followed that lead out of a module tree.
	FollowLinks bool
}

// Server is one server, for one client.
type Server struct {
	o       Options
	builtin *catalog

	conn  *jsonrpc2.Conn
	ready chan struct{} // closed when conn is there

	mu        sync.Mutex
	stage     stage
	documents map[string]*document // by their paths
	folders   map[string]*folder   // by their paths
	std       parses               // of the standard library
	roots     []string             // of the client's workspace: it tells of changes below them
	watches   bool                 // the client tells of changes on the disk when it is asked
	selects   bool                 // the client can be told which documents are formatted
	ctx       context.Context      // ends with the connection
	working   sync.WaitGroup

	watching atomic.Bool // the client has said that it tells of changes on the disk
	asked    atomic.Bool // the client has asked for the end
}

// stage is how far a client has come.
type stage int

const (
	begun stage = iota
	initialized
	shutDown
)

// New returns a server that has not seen a client yet.
func New(o Options) *Server {
	return &Server{o: o, ready: make(chan struct{}), builtin: newCatalog(), std: parses{}, documents: map[string]*document{}, folders: map[string]*folder{}}
}

// endTime is for how long the end waits for what is under way.
const endTime = 2 * time.Second

// ErrNoShutdown says that the client has gone without having asked for the end.
var ErrNoShutdown = errors.New("the client has gone without a shutdown request")

// Serve speaks with the client until it goes, or until ctx ends.
func (s *Server) Serve(ctx context.Context, stream io.ReadWriteCloser) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	s.ctx = ctx
	var messages jsonrpc2.ObjectStream
	messages = jsonrpc2.NewBufferedStream(stream, codec{func(code int64, why string) {
		s.mu.Lock()
		s.loseAll(why)
		s.mu.Unlock()
		// Of a message that cannot be read nobody knows the id: it is null, which the library has no way to say.
		_ = messages.WriteObject(map[string]any{"jsonrpc": "2.0", "id": nil, "error": jsonrpc2.Error{Code: code, Message: why}})
	}})
	// The library's log would go to stderr, for nothing that matters: what cannot be sent is sent to nobody.
	quiet := jsonrpc2.SetLogger(stdlog.New(io.Discard, "", 0))
	s.conn = jsonrpc2.NewConn(ctx, messages, s, quiet)
	close(s.ready)
	select {
	case <-s.conn.DisconnectNotify():
	case <-ctx.Done():
	}
	cancel()
	_ = s.conn.Close() // it may be closed
	ended := make(chan struct{})
	go func() {
		s.working.Wait()
		close(ended)
	}()
	select {
	case <-ended:
	case <-time.After(endTime): // somebody writes to a client that has stopped reading, or a check goes on
	}
	if !s.asked.Load() {
		return ErrNoShutdown
	}
	return nil
}

// Handle implements [jsonrpc2.Handler].
func (s *Server) Handle(ctx context.Context, conn *jsonrpc2.Conn, req *jsonrpc2.Request) {
	<-s.ready
	result, err := s.handle(req)
	switch {
	case req.Notif && err != nil && req.Method != "exit":
		s.tell(messageError, fmt.Sprintf("%.100s: %v", req.Method, err))
	case req.Notif:
	case err != nil:
		_ = conn.ReplyWithError(ctx, req.ID, asError(err)) // the client may have gone
	default:
		_ = conn.Reply(ctx, req.ID, result)
	}
}

// asError is an error as the protocol has it.
func asError(err error) *jsonrpc2.Error {
	if as, ok := errors.AsType[*jsonrpc2.Error](err); ok {
		return as
	}
	return &jsonrpc2.Error{Code: codeRequestFailed, Message: err.Error()}
}

// handle has a message handled, whatever is in it.
func (s *Server) handle(req *jsonrpc2.Request) (result any, err error) {
	defer func() {
		if p := recover(); p != nil {
			result, err = nil, &jsonrpc2.Error{Code: jsonrpc2.CodeInternalError, Message: fmt.Sprintf("internal error: %v", p)}
		}
	}()
	s.mu.Lock()
	defer s.mu.Unlock()
	switch {
	case req.Method == "initialize" && s.stage == begun:
	case req.Method == "exit":
	case req.Method == "initialize":
		return nil, &jsonrpc2.Error{Code: jsonrpc2.CodeInvalidRequest, Message: "initialize comes once"}
	case s.stage == begun && req.Notif, s.stage == shutDown && req.Notif:
		return nil, nil // as the protocol says
	case s.stage == begun:
		return nil, &jsonrpc2.Error{Code: codeNotInitialized, Message: "initialize comes first"}
	case s.stage == shutDown:
		return nil, &jsonrpc2.Error{Code: jsonrpc2.CodeInvalidRequest, Message: "nothing comes after shutdown but exit"}
	}
	switch req.Method {
	case "initialize":
		return call(req, s.initialize)
	case "initialized":
		return nil, s.register()
	case "shutdown":
		s.stage = shutDown
		s.asked.Store(true)
		return nil, nil
	case "exit":
		return nil, s.conn.Close()
	case "textDocument/didOpen":
		return note(req, s.didOpen)
	case "textDocument/didChange":
		var p didChangeParams
		if err := decode(req.Params, &p); err != nil {
			s.loseAll("an edit cannot be read")
			return nil, badParams(err)
		}
		return nil, s.didChange(p)
	case "textDocument/didClose":
		return note(req, s.didClose)
	case "textDocument/didSave":
		return note(req, func(p documentParams) error { return s.diskChanged(p.TextDocument) })
	case "workspace/didChangeWatchedFiles":
		return note(req, func(p watchedFilesParams) error { return s.diskChanged(p.Changes...) })
	case "textDocument/definition":
		return call(req, s.definition)
	case "textDocument/references":
		return call(req, s.references)
	case "textDocument/documentHighlight":
		return call(req, s.highlights)
	case "textDocument/documentSymbol":
		return call(req, s.symbols)
	case "textDocument/prepareRename":
		return call(req, s.prepareRename)
	case "textDocument/rename":
		return call(req, s.rename)
	case "textDocument/formatting":
		return call(req, s.formatting)
	case "textDocument/hover":
		return call(req, s.hover)
	case "textDocument/completion":
		return call(req, s.completion)
	case "textDocument/signatureHelp":
		return call(req, s.signatureHelp)
	}
	if req.Notif { // such as $/cancelRequest: what it would cancel has been answered
		return nil, nil
	}
	return nil, &jsonrpc2.Error{Code: jsonrpc2.CodeMethodNotFound, Message: fmt.Sprintf("there is no method %.100q", req.Method)}
}

// call has a request with these parameters answered.
func call[P, R any](req *jsonrpc2.Request, f func(P) (R, error)) (any, error) {
	var p P
	if err := decode(req.Params, &p); err != nil {
		return nil, badParams(err)
	}
	return f(p)
}

// note has a notification with these parameters handled.
func note[P any](req *jsonrpc2.Request, f func(P) error) (any, error) {
	var p P
	if err := decode(req.Params, &p); err != nil {
		return nil, badParams(err)
	}
	return nil, f(p)
}

func badParams(err error) error {
	if wrong, ok := errors.AsType[*json.UnmarshalTypeError](err); ok {
		return &jsonrpc2.Error{Code: jsonrpc2.CodeInvalidParams, Message: fmt.Sprintf("parameter %s: a %s does not fit", wrong.Field, wrong.Value)}
	}
	return &jsonrpc2.Error{Code: jsonrpc2.CodeInvalidParams, Message: "the parameters do not fit"}
}

func invalid(format string, args ...any) error {
	return &jsonrpc2.Error{Code: jsonrpc2.CodeInvalidParams, Message: fmt.Sprintf(format, args...)}
}

func (s *Server) initialize(p initializeParams) (initializeResult, error) {
	s.stage = initialized
	s.watches = p.Capabilities.Workspace.DidChangeWatchedFiles.DynamicRegistration
	s.selects = p.Capabilities.TextDocument.Formatting.DynamicRegistration
	for _, root := range append(p.WorkspaceFolders, documentID{p.RootURI}) {
		if dir, err := pathOf(root.URI); err == nil {
			s.roots = append(s.roots, real(dir))
		}
	}
	return initializeResult{
		Capabilities: serverCapabilities{
			PositionEncoding:           "utf-16",
			TextDocumentSync:           syncOptions{OpenClose: true, Change: 2, Save: true},
			CompletionProvider:         completionOptions{TriggerCharacters: []string{".", "\"", "'", "/"}},
			HoverProvider:              true,
			SignatureHelpProvider:      signatureOptions{TriggerCharacters: []string{"(", ","}},
			DefinitionProvider:         true,
			ReferencesProvider:         true,
			DocumentHighlightProvider:  true,
			DocumentSymbolProvider:     true,
			DocumentFormattingProvider: !s.selects,
			RenameProvider:             renameOptions{PrepareProvider: true},
		},
		ServerInfo: serverInfo{Name: "starling", Version: s.o.Version},
	}, nil
}

// register asks the client to tell of what changes on the disk, and to have only .star files formatted: a server that
// offers to format all documents of the client keeps formatters of YAML from theirs.
func (s *Server) register() error {
	var wanted []registration
	watches := s.watches
	if watches {
		wanted = append(wanted, registration{"disk", "workspace/didChangeWatchedFiles", map[string]any{"watchers": []map[string]string{{"globPattern": "**/*"}}}})
	}
	if s.selects {
		wanted = append(wanted, registration{"format", "textDocument/formatting", map[string]any{"documentSelector": []map[string]string{{"pattern": "**/*.star"}}}})
	}
	if len(wanted) == 0 {
		return nil
	}
	call, err := s.conn.DispatchCall(s.ctx, "client/registerCapability", map[string]any{"registrations": wanted})
	if err != nil {
		return err
	}
	s.working.Go(func() { s.watching.Store(call.Wait(s.ctx, nil) == nil && watches) })
	return nil
}

// tell shows a message in the log of the client.
func (s *Server) tell(kind int, text string) {
	_ = s.conn.Notify(s.ctx, "window/logMessage", messageParams{kind, text}) // the client may have gone
}
