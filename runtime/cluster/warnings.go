package cluster

import (
	"context"
	"sync"

	"github.com/rs/zerolog"

	"github.com/starling-operator/starling/runtime/message"
)

// maxWarnings bounds the memory of what was already said.
const maxWarnings = 1000

// warnings logs each warning of the API server (a deprecated version, an unknown
// field) once a process: a steady state writes no log lines.
type warnings struct {
	log zerolog.Logger

	mu   sync.Mutex
	seen map[string]bool
}

// HandleWarningHeaderWithContext implements client-go's warning handler. Code 299
// is the only one that the API server sends.
func (w *warnings) HandleWarningHeaderWithContext(_ context.Context, code int, _ string, text string) {
	if code != 299 || text == "" {
		return
	}
	text = message.Line(text)
	w.mu.Lock()
	known := w.seen[text] || len(w.seen) >= maxWarnings
	if !known {
		w.seen[text] = true
	}
	w.mu.Unlock()
	if !known {
		w.log.Warn().Str("warning", text).Msg("the API server warns")
	}
}
