package release

import (
	"context"
	"errors"
	"sync"
)

// errOverdue is the answer to a render beside one that does not end.
var errOverdue = errors.New("a template loops without end, or nearly: the last render has run out of time and still goes on; change the chart, or its values")

// overdue knows which work goes on that nobody waits for any more, by its inputs' digest.
// The template engine takes no context, so what does not end cannot be stopped; but it is
// not begun a second time with the same inputs, or there would soon be many.
type overdue struct {
	mu   sync.Mutex
	late map[string]bool
}

// run does the work of these inputs and waits for its end, or for that of ctx, whose
// cause it returns then.
func (o *overdue) run(ctx context.Context, inputs string, work func()) error {
	if o.has(inputs) {
		return errOverdue
	}
	done := make(chan struct{})
	go func() {
		defer close(done)
		work()
	}()
	select {
	case <-done:
		return nil
	case <-ctx.Done():
	}
	o.set(inputs, true)
	go func() {
		<-done
		o.set(inputs, false)
	}()
	return context.Cause(ctx)
}

func (o *overdue) has(inputs string) bool {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.late[inputs]
}

func (o *overdue) set(inputs string, late bool) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if !late {
		delete(o.late, inputs)
		return
	}
	if o.late == nil {
		o.late = map[string]bool{}
	}
	o.late[inputs] = true
}
