package hook

import (
	"context"
	"slices"

	"go.starlark.net/starlark"

	"github.com/starling-operator/starling/builtins"
	"github.com/starling-operator/starling/runtime/reconcile"
	"github.com/starling-operator/starling/runtime/script"
)

// twice returns a function that has the desired function asked once more, about the same children: it must
// answer as before. Each call may spend all that a run may.
func (d *decision) twice(q builtins.Question, options script.CallOptions) func(context.Context, starlark.Callable, *builtins.Desired) error {
	q.Children = slices.Clone(q.Children)
	unspent := *options.Context.Run
	return func(ctx context.Context, fn starlark.Callable, first *builtins.Desired) error {
		again := *options.Context
		again.Run, again.Log, options.Context = &unspent, unheard{}, &again
		_, _, err := d.r.Host.Call(ctx, q.Again(fn, first), nil, options)
		return err
	}
}

// unheard is the log of a function that has said all that before.
type unheard struct{}

// Log does nothing.
func (unheard) Log(builtins.Level, string, []builtins.Field) {}

// Wanted is a child that a controller wants.
type Wanted struct {
	// Part is its name.
	Part string
	// Object is the object as it is written.
	Object map[string]any
	Update reconcile.Update
	// AtCreation says that some fields count only as it is made.
	AtCreation bool
	// Judged says that the part says how to tell that the object is ready.
	Judged bool
	// Filled are the keys of a Secret's data that were made with it.
	Filled []string
}

// wants are the children of an answer, as they are written.
func (d *decision) wants(answer *builtins.Desired) []Wanted {
	out := make([]Wanted, 0, len(answer.Parts)) // nil would be: nothing now
	for i := range answer.Parts {
		p := &answer.Parts[i]
		if p.ID.Fields {
			continue
		}
		want := Wanted{Part: p.Name, Object: d.wanted[p.Name], Update: p.Update, AtCreation: len(p.AtCreation) > 0, Judged: p.Ready != builtins.ReadyAuto}
		for _, f := range p.Fill {
			want.Filled = append(want.Filled, f.Key)
		}
		out = append(out, want)
	}
	return out
}
