package live

import (
	"context"

	"github.com/starling-operator/starling/builtins"
	"github.com/starling-operator/starling/runtime/effect"
	"github.com/starling-operator/starling/runtime/generation"
)

// hookKey is the key of its hook in the context of a run.
type hookKey struct{}

// fetcher puts the mark of a hook aside while the hook waits for a server, which takes no
// process with it.
type fetcher struct {
	builtins.Fetcher
	marks *Marks
}

// Gather implements [builtins.Fetcher].
func (f fetcher) Gather(ctx context.Context, requests []effect.Request, parallel int) []builtins.Gathered {
	defer f.marks.waits(ctx)()
	return f.Fetcher.Gather(ctx, requests, parallel)
}

// answerer does the same while the hook waits for a container, or for an answer of the API server.
type answerer struct {
	builtins.Answerer
	marks *Marks
}

// Exec implements [builtins.Answerer].
func (p answerer) Exec(ctx context.Context, e effect.Exec) (builtins.Executed, error) {
	defer p.marks.waits(ctx)()
	return p.Answerer.Exec(ctx, e)
}

// Logs implements [builtins.Answerer].
func (p answerer) Logs(ctx context.Context, q effect.LogQuery) ([]byte, error) {
	defer p.marks.waits(ctx)()
	return p.Answerer.Logs(ctx, q)
}

// Ask implements [builtins.Answerer].
func (p answerer) Ask(ctx context.Context, q effect.Ask) (map[string]any, error) {
	defer p.marks.waits(ctx)()
	return p.Answerer.Ask(ctx, q)
}

// waits says that the run that ctx belongs to only waits, until back is called.
func (m *Marks) waits(ctx context.Context) (back func()) {
	if h, is := ctx.Value(hookKey{}).(*generation.Hook); is {
		return m.aside(h.ID, h.Digest)
	}
	return func() {}
}

// aside says that one run of something only waits, until back is called. A mark of which all
// runs wait is idle.
func (m *Marks) aside(what, digest string) (back func()) {
	m.mu.Lock()
	defer m.mu.Unlock()
	r := m.running[markOf(what, digest)]
	if r == nil || r.record == noRecord {
		return func() {}
	}
	if r.waiting++; r.waiting >= r.times {
		_ = m.book.end(r.record) // a mark that stays counts once
	}
	return func() {
		m.mu.Lock()
		defer m.mu.Unlock()
		r.waiting--
		if m.running[markOf(what, digest)] == r && r.waiting < r.times {
			_ = m.book.set(r.record, markRunning)
		}
	}
}
