package script

import (
	"context"

	"go.starlark.net/starlark"
)

// An operation that makes much at once asks for room first: between two steps the
// governor sees what was made, and never what is about to be.

const (
	// noticed is how many bytes an operation may make without asking, and from how many
	// elements on a list, dict or set is looked at before it grows.
	noticed     = 1 << 20
	noticedHeld = 1 << 16
	// elementCost and keyCost are the bytes of one more element of a list or tuple, and of
	// one of a dict or set that grows: its table is made anew with twice the room.
	elementCost = 16
	keyCost     = 140
)

// runKey is the thread-local name of the run.
const runKey = "starling.run"

// room returns nil when the run of a thread may go on to make n bytes at once, or the
// limit that it would pass. It may wait for the run's turn.
func room(t *starlark.Thread, n int) error {
	r, _ := t.Local(runKey).(*run)
	if r == nil || n < noticed {
		return nil
	}
	return r.room(n)
}

// room is asked on the goroutine of the run. With 0 it is a checkpoint.
func (r *run) room(n int) error {
	if n < noticed {
		if !r.share.passed() {
			return nil
		}
	} else {
		r.large = true
		if n := len(r.threads); n > 0 {
			r.threads[n-1].SetMaxExecutionSteps(r.threads[n-1].Steps + 1)
		}
	}
	if err := r.share.check(r.ctx, r.pause, uint64(n)); err != nil {
		r.cancel(err)
		return err
	}
	if r.ctx.Err() != nil {
		return context.Cause(r.ctx)
	}
	return nil
}

// held is about how many bytes the elements of a list, tuple, dict or set take, or those
// of a text.
func held(v starlark.Value) int {
	switch v := v.(type) {
	case starlark.String:
		return len(v)
	case starlark.Bytes:
		return len(v)
	case *starlark.List:
		return v.Len() * elementCost
	case starlark.Tuple:
		return len(v) * elementCost
	case *starlark.Dict:
		return v.Len() * keyCost
	case *starlark.Set:
		return v.Len() * keyCost
	}
	return 0
}

// growth is how many bytes v may make when one element is added to it.
func growth(v starlark.Value) int {
	switch v := v.(type) {
	case *starlark.List:
		if n := v.Len(); n >= noticedHeld {
			return n * elementCost * 5 / 4
		}
	case *starlark.Dict:
		return tableGrowth(v.Len())
	case *starlark.Set:
		return tableGrowth(v.Len())
	}
	return 0
}

// tableGrowth: a table of 2ⁿ buckets is doubled when it holds 6.5 times as many elements.
func tableGrowth(n int) int {
	if n < noticedHeld || n%13 != 0 || (n/13)&(n/13-1) != 0 {
		return 0
	}
	return n * keyCost
}
