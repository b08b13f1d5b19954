package hook

import (
	"context"
	"errors"
	"fmt"

	"github.com/starling-operator/starling/builtins"
	"github.com/starling-operator/starling/runtime/effect"
	"github.com/starling-operator/starling/runtime/script"
)

// final says whether another try would fail as well, and marks such an error: the functions of a controller are
// pure. One that was stopped, or got no answer, may do better the next time.
func (d *decision) final(ctx context.Context, err error) (marked error, is bool) {
	var failed *builtins.FailError
	switch {
	case ctx.Err() != nil, d.unanswered.Load(), errors.Is(err, script.ErrStuck):
	case errors.As(err, new(*script.LimitError)), errors.As(err, new(*script.PanicError)):
	case errors.As(err, &failed) && failed.RetryAfter > 0:
	default:
		return fmt.Errorf("%w%w", &builtins.FailError{Permanent: true}, err), true
	}
	return err, false
}

// scope says whether a kind has namespaces.
func (d *decision) scope(apiVersion, kind string) (namespaced bool, err error) {
	if d.r.Scope == nil {
		return true, nil
	}
	if namespaced, err = d.r.Scope(apiVersion, kind); err != nil {
		d.unanswered.Store(true)
	}
	return namespaced, err
}

// compose puts the values of the module together.
func (d *decision) compose(own []effect.ValueOp) (view map[string]any, err error) {
	if d.r.Compose == nil {
		return nil, nil
	}
	if view, err = d.r.Compose(own); err != nil {
		d.unanswered.Store(true)
	}
	return view, err
}
