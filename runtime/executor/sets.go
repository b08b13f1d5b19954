package executor

import (
	"context"

	"github.com/starling-operator/starling/runtime/engine"
)

// SetMark is to be asked as soon as the engine wants sets dropped: what is applied
// later belongs to objects that have come since.
func (x *Executor) SetMark() uint64 { return x.o.Writer.SetMark() }

// DropSets forgets the sets of objects that are gone.
func (x *Executor) DropSets(ctx context.Context, a engine.DropSets, mark uint64) error {
	if a.Key != "" {
		return x.o.Writer.DropSets(ctx, fieldManager(a.Hook), a.Key, mark)
	}
	return x.o.Writer.SweepSets(ctx, fieldManager(a.Hook), a.Keys, mark)
}
