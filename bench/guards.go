package main

import (
	"context"
	"testing/fstest"
	"time"

	"go.starlark.net/starlark"
	"go.starlark.net/syntax"

	"github.com/starling-operator/starling/builtins"
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

type silent struct{}

func (silent) Log(builtins.Level, string, []builtins.Field) {}

// measureGuards runs a script under the guards and limits of a run, beside go.starlark.net
// alone.
func measureGuards(ctx context.Context, b *bench) error {
	rounds := 21
	if b.quick {
		rounds = 3
	}
	bare, err := starlark.ExecFileOptions(&syntax.FileOptions{}, &starlark.Thread{}, "a.star", computing, nil)
	if err != nil {
		return err
	}
	host := script.New(script.Options{
		Files:    fstest.MapFS{"a.star": {Data: []byte(computing)}},
		Context:  func(string) *builtins.Context { return &builtins.Context{Phase: builtins.PhaseLoad, Log: silent{}} },
		Governor: script.NewGovernor(script.GovernorOptions{}),
	})
	guarded, err := host.Load(ctx, "a.star")
	if err != nil {
		return err
	}
	var ours, theirs []time.Duration
	for range rounds {
		began := time.Now()
		_, _, err := host.Call(ctx, guarded["f"].(starlark.Callable), nil, script.CallOptions{Name: "bench/f", Context: &builtins.Context{Log: silent{}}})
		if err != nil {
			return err
		}
		ours = append(ours, time.Since(began))
		began = time.Now()
		if _, err := starlark.Call(&starlark.Thread{}, bare["f"], nil, nil); err != nil {
			return err
		}
		theirs = append(theirs, time.Since(began))
	}
	with, without := percentile(ours, 0.5), percentile(theirs, 0.5)
	b.table.add(row{
		what: "a script that only computes, beside go.starlark.net without limits", starling: millis(with), bare: millis(without),
		ratio: times(float64(with) / float64(without)),
	})
	return nil
}
