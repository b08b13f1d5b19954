package operator

import (
	"context"
	"time"

	"github.com/rs/zerolog"

	"github.com/starling-operator/starling/modules/fetch"
	"github.com/starling-operator/starling/modules/tree"
	"github.com/starling-operator/starling/runtime/generation"
	"github.com/starling-operator/starling/runtime/live"
	"github.com/starling-operator/starling/runtime/reload"
	"github.com/starling-operator/starling/runtime/script"
	"github.com/starling-operator/starling/stdlib"
)

// load compiles a tree; previous is the generation before, or nil.
type load func(ctx context.Context, t *tree.Tree, previous *generation.Generation) *generation.Generation

// newLoad compiles the generations of one process.
func newLoad(log zerolog.Logger, marks *live.Marks) load {
	governor := script.NewGovernor(script.GovernorOptions{})
	return func(ctx context.Context, t *tree.Tree, previous *generation.Generation) *generation.Generation {
		o := generation.Options{Tree: t, Std: stdlib.FS, Number: 1, Previous: previous, Log: live.FileLog(log), Governor: governor, Loading: marks.Loading}
		if previous != nil {
			o.Number = previous.Number + 1
		}
		return generation.Load(ctx, o)
	}
}

// followAfter is how long a process has for its start before it reads the module tree again,
// which takes as long as the first time.
const followAfter = 2 * time.Second

// follow has the driver follow the module tree on disk until ctx ends. A change since it was
// read is found by the first look.
func (f *runFlags) follow(ctx context.Context, driver *live.Driver, digest string, cache *fetch.Cache, log zerolog.Logger) {
	select {
	case <-time.After(followAfter):
	case <-ctx.Done():
		return
	}
	changed := func(ctx context.Context, t *tree.Tree) {
		driver.Reload(ctx, t)
		cache.Keep(t)
	}
	reload.Run(ctx, reload.Options{
		Dir: f.modules, Tree: f.tree(cache), Wake: cache.Changed(),
		Digest: digest, Changed: changed, Failed: driver.ReloadFailed, Log: log,
	})
}

// complete has the driver take archives of charts as they come, until ctx ends. All else of the tree
// stays as it was at the start.
func (f *runFlags) complete(ctx context.Context, driver *live.Driver, t *tree.Tree, cache *fetch.Cache) {
	for {
		select {
		case <-cache.Changed():
		case <-ctx.Done():
			return
		}
		o := f.tree(cache)
		o.Name = f.modules
		next, err := t.Again(o)
		switch {
		case err != nil:
			driver.ReloadFailed(err)
		case next.Digest != t.Digest:
			driver.Reload(ctx, next)
			t = next
		}
	}
}
