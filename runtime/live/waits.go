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
	if h, is := ctx.Value(hookKey{}).(*generation.Hook); is {
		defer f.marks.aside(h.ID, h.Digest)()
	}
	return f.Fetcher.Gather(ctx, requests, parallel)
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
