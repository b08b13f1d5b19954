package hook

import (
	"context"
	"sync/atomic"
	"time"

	"github.com/starling-operator/starling/builtins"
	"github.com/starling-operator/starling/runtime/effect"
)

// waiting counts how long a run waits for others: that time is not its own.
type waiting struct{ total atomic.Int64 }

func (w *waiting) since(began time.Time) { w.total.Add(int64(time.Since(began))) }

type waitingReader struct {
	builtins.Reader
	waiting *waiting
}

// Get reads one object.
func (r waitingReader) Get(ctx context.Context, ref effect.Ref) (map[string]any, error) {
	defer r.waiting.since(time.Now())
	return r.Reader.Get(ctx, ref)
}

// List reads the objects of a kind.
func (r waitingReader) List(ctx context.Context, apiVersion, kind string, namespaces []string, labels, fields string) ([]map[string]any, error) {
	defer r.waiting.since(time.Now())
	return r.Reader.List(ctx, apiVersion, kind, namespaces, labels, fields)
}

type waitingFetcher struct {
	builtins.Fetcher
	waiting *waiting
}

// Gather asks servers.
func (f waitingFetcher) Gather(ctx context.Context, requests []effect.Request, parallel int) []builtins.Gathered {
	defer f.waiting.since(time.Now())
	return f.Fetcher.Gather(ctx, requests, parallel)
}

type waitingAnswerer struct {
	builtins.Answerer
	waiting *waiting
}

// Exec runs a command.
func (p waitingAnswerer) Exec(ctx context.Context, e effect.Exec) (builtins.Executed, error) {
	defer p.waiting.since(time.Now())
	return p.Answerer.Exec(ctx, e)
}

// Ask asks the API server.
func (p waitingAnswerer) Ask(ctx context.Context, q effect.Ask) (map[string]any, error) {
	defer p.waiting.since(time.Now())
	return p.Answerer.Ask(ctx, q)
}

// Logs reads a log.
func (p waitingAnswerer) Logs(ctx context.Context, q effect.LogQuery) ([]byte, error) {
	defer p.waiting.since(time.Now())
	return p.Answerer.Logs(ctx, q)
}
