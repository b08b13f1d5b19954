package cluster

import (
	"context"
	"errors"

	"github.com/starling-operator/starling/runtime/apply"
)

// defaultSideBySide is how many members of a set are read, written or deleted at a time.
const defaultSideBySide = 8

// order is that of members of a set. A member that fails holds up no other, unless nobody answers, or this process may
// not write any more.
func (w *Writer) order(ctx context.Context, back bool) apply.Order {
	return apply.Order{Width: w.o.SideBySide, Back: back, Ends: func(err error) bool {
		return ctx.Err() != nil || InTrouble(err) || errors.Is(err, ErrFenced) || errors.Is(err, ErrStandby)
	}}
}
