package lsp

import (
	"encoding/json"

	"github.com/starling-operator/starling/lsp/text"
)

// The parts of the language server protocol 3.17 that this server speaks, as they are in its JSON.

type initializeParams struct {
	RootURI          string       `json:"rootUri"`
	WorkspaceFolders []documentID `json:"workspaceFolders"`
	Capabilities     struct {
		Workspace struct {
			DidChangeWatchedFiles struct {
				DynamicRegistration bool `json:"dynamicRegistration"`
			} `json:"didChangeWatchedFiles"`
		} `json:"workspace"`
		TextDocument struct {
			Formatting struct {
				DynamicRegistration bool `json:"dynamicRegistration"`
			} `json:"formatting"`
		} `json:"textDocument"`
	} `json:"capabilities"`
}

type watchedFilesParams struct {
	Changes []documentID `json:"changes"`
}

type initializeResult struct {
	Capabilities serverCapabilities `json:"capabilities"`
	ServerInfo   serverInfo         `json:"serverInfo"`
}

type serverInfo struct {
	Name    string `json:"name"`
	Version string `json:"version,omitempty"`
}

type serverCapabilities struct {
	PositionEncoding           string            `json:"positionEncoding"`
	TextDocumentSync           syncOptions       `json:"textDocumentSync"`
	CompletionProvider         completionOptions `json:"completionProvider"`
	HoverProvider              bool              `json:"hoverProvider"`
	SignatureHelpProvider      signatureOptions  `json:"signatureHelpProvider"`
	DefinitionProvider         bool              `json:"definitionProvider"`
	ReferencesProvider         bool              `json:"referencesProvider"`
	DocumentHighlightProvider  bool              `json:"documentHighlightProvider"`
	DocumentSymbolProvider     bool              `json:"documentSymbolProvider"`
	DocumentFormattingProvider bool              `json:"documentFormattingProvider"`
	RenameProvider             renameOptions     `json:"renameProvider"`
}

type syncOptions struct {
	OpenClose bool `json:"openClose"`
	Change    int  `json:"change"` // 2: by ranges
	Save      bool `json:"save"`
}

type completionOptions struct {
	TriggerCharacters []string `json:"triggerCharacters"`
}

type signatureOptions struct {
	TriggerCharacters []string `json:"triggerCharacters"`
}

type renameOptions struct {
	PrepareProvider bool `json:"prepareProvider"`
}

type didOpenParams struct {
	TextDocument struct {
		URI     string `json:"uri"`
		Version int    `json:"version"`
		Text    string `json:"text"`
	} `json:"textDocument"`
}

type didChangeParams struct {
	TextDocument struct {
		URI     string `json:"uri"`
		Version int    `json:"version"`
	} `json:"textDocument"`
	ContentChanges []contentChange `json:"contentChanges"`
}

// contentChange replaces a range, or without one the whole document.
type contentChange struct {
	Range *text.Range `json:"range"`
	Text  string      `json:"text"`
}

type documentParams struct {
	TextDocument documentID `json:"textDocument"`
}

type documentID struct {
	URI string `json:"uri"`
}

type positionParams struct {
	documentParams
	Position text.Position `json:"position"`
}

type referencesParams struct {
	positionParams
	Context struct {
		IncludeDeclaration bool `json:"includeDeclaration"`
	} `json:"context"`
}

type renameParams struct {
	positionParams
	NewName string `json:"newName"`
}

type location struct {
	URI   string     `json:"uri"`
	Range text.Range `json:"range"`
}

type highlight struct {
	Range text.Range `json:"range"`
}

type workspaceEdit struct {
	Changes map[string][]text.Edit `json:"changes"`
}

type prepareRenameResult struct {
	Range       text.Range `json:"range"`
	Placeholder string     `json:"placeholder"`
}

type diagnosticsParams struct {
	URI         string       `json:"uri"`
	Version     *int         `json:"version,omitempty"`
	Diagnostics []diagnostic `json:"diagnostics"`
}

type diagnostic struct {
	Range    text.Range `json:"range"`
	Severity int        `json:"severity"`
	Code     string     `json:"code,omitempty"`
	Source   string     `json:"source"`
	Message  string     `json:"message"`
}

// The severities of diagnostics.
const (
	severityError       = 1
	severityWarning     = 2
	severityInformation = 3
)

type markup struct {
	Kind  string `json:"kind"` // "markdown"
	Value string `json:"value"`
}

type hover struct {
	Contents markup      `json:"contents"`
	Range    *text.Range `json:"range,omitempty"`
}

type completionList struct {
	IsIncomplete bool             `json:"isIncomplete"`
	Items        []completionItem `json:"items"`
}

type completionItem struct {
	Label         string     `json:"label"`
	Kind          int        `json:"kind"`
	Detail        string     `json:"detail,omitempty"`
	Documentation *markup    `json:"documentation,omitempty"`
	SortText      string     `json:"sortText,omitempty"`
	TextEdit      *text.Edit `json:"textEdit,omitempty"`
}

// The kinds of completions that are used.
const (
	kindFunction = 3
	kindField    = 5
	kindVariable = 6
	kindModule   = 9
	kindProperty = 10
	kindKeyword  = 14
	kindFile     = 17
	kindConstant = 21
)

type signatureHelp struct {
	Signatures      []signature `json:"signatures"`
	ActiveSignature int         `json:"activeSignature"`
	ActiveParameter int         `json:"activeParameter"`
}

type signature struct {
	Label         string      `json:"label"`
	Documentation *markup     `json:"documentation,omitempty"`
	Parameters    []parameter `json:"parameters"`
}

type parameter struct {
	Label         [2]uint32 `json:"label"` // where it is in the label of the signature
	Documentation *markup   `json:"documentation,omitempty"`
}

type documentSymbol struct {
	Name           string     `json:"name"`
	Kind           int        `json:"kind"`
	Range          text.Range `json:"range"`
	SelectionRange text.Range `json:"selectionRange"`
}

// The kinds of symbols that are used.
const (
	symbolFunction = 12
	symbolVariable = 13
)

type messageParams struct {
	Type    int    `json:"type"`
	Message string `json:"message"`
}

// The types of messages.
const (
	messageError   = 1
	messageWarning = 2
)

type registration struct {
	ID              string `json:"id"`
	Method          string `json:"method"`
	RegisterOptions any    `json:"registerOptions,omitempty"`
}

// Codes of errors that JSON-RPC does not have.
const (
	codeNotInitialized = -32002
	codeRequestFailed  = -32803
)

func decode(params *json.RawMessage, into any) error {
	if params == nil {
		return json.Unmarshal([]byte("null"), into)
	}
	return json.Unmarshal(*params, into)
}
