package release

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
)

// Work that does not end is there once, whatever comes after it, and is not in the way of
// work with other inputs.
func TestWorkThatDoesNotEndIsThereOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var o overdue
		web, changed := "some digest", "another digest"
		boom := errors.New("timed out")
		ctx, cancel := context.WithCancelCause(t.Context())
		end, begun := make(chan struct{}), 0
		loop := func() { begun++; <-end }
		cancel(boom)
		if err := o.run(ctx, web, loop); !errors.Is(err, boom) {
			t.Errorf("got %v", err)
		}
		for range 3 {
			if err := o.run(t.Context(), web, loop); !errors.Is(err, errOverdue) {
				t.Errorf("beside it: got %v", err)
			}
		}
		if err := o.run(t.Context(), changed, func() {}); err != nil {
			t.Errorf("with other inputs: %v", err)
		}
		close(end)
		synctest.Wait()
		if err := o.run(t.Context(), web, loop); err != nil || begun != 2 {
			t.Errorf("after it has ended: %v, %d times", err, begun)
		}
	})
}
