package main

import (
	"testing/fstest"
	"time"

	"go.starlark.net/starlark"
	"go.starlark.net/syntax"

	"github.com/starling-operator/starling/builtins"
	"github.com/starling-operator/starling/builtins/spec"
	"github.com/starling-operator/starling/runtime/script"
)

// computing is a script that does what guards look at: sums, texts, lists, dicts, tuples,
// slices and comprehensions. It calls no builtin of Starling.
const computing = `def f():
    n, all, known = 0, [], {}
    for i in range(100000):
        n += i * 2 % 7
        all.append((i, "key-" + str(i % 100)))
        known["key-%d" % (i % 100)] = all[i][1]
    some = [x for x, key in all[1:] if key in known]
    return n + len(some) + len("".join([key.replace("-", "") for key in known]))
`

// guards runs a script under the guards and limits of a run, beside go.starlark.net
// alone.
func (b *bench) guards() {
	bare, err := starlark.ExecFileOptions(&syntax.FileOptions{}, &starlark.Thread{}, "a.star", computing, nil)
	b.check(err)
	host := script.New(script.Options{
		Files:    fstest.MapFS{"a.star": {Data: []byte(computing)}},
		Context:  func(string) *builtins.Context { return &builtins.Context{Phase: spec.InLoad, Log: builtins.Silent{}} },
		Governor: script.NewGovernor(script.GovernorOptions{}),
	})
	guarded, err := host.Load(b.ctx, "a.star")
	b.check(err)
	f := guarded["f"].(starlark.Callable)
	options := script.CallOptions{Name: "bench/f", Context: &builtins.Context{Log: builtins.Silent{}}}
	ours, theirs := b.inTurn(b.size(21, 3), func() error {
		_, _, err := host.Call(b.ctx, f, nil, options)
		return err
	}, func() error {
		_, err := starlark.Call(&starlark.Thread{}, bare["f"], nil, nil)
		return err
	})
	addBeside(b, "a script that only computes, beside go.starlark.net without limits",
		millis, middle(ours), middle(theirs), 0)
}

// inTurn times two sides in turn.
func (b *bench) inTurn(rounds int, one, other func() error) (ones, others []time.Duration) {
	for range rounds {
		began := time.Now()
		b.check(one())
		ones = append(ones, time.Since(began))
		began = time.Now()
		b.check(other())
		others = append(others, time.Since(began))
	}
	return ones, others
}
