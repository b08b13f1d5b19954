package script

import (
	"context"
	"errors"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"go.starlark.net/starlark"

	"github.com/starling-operator/starling/builtins"
)

// One step that does not end keeps nobody waiting for longer than the limit and a second;
// what it computes meanwhile is charged, and the function is not called again until it ends.
func TestACallThatDoesNotEndIsGivenUp(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		released := make(chan struct{})
		f := newFixture(t, map[string]string{"a.star": "def f():\n    wait()\n    return 1\n\ndef g():\n    return 2\n"}, func(o *Options) {
			o.Predeclared["wait"] = starlark.NewBuiltin("wait", func(*starlark.Thread, *starlark.Builtin, starlark.Tuple, []starlark.Tuple) (starlark.Value, error) {
				<-released
				return starlark.None, nil
			})
		})
		globals, err := f.Load(t.Context(), "a.star")
		if err != nil {
			t.Fatal(err)
		}
		var used time.Duration
		var more atomic.Int64
		ctx := Charged(Metered(t.Context(), func(u Usage) { used += u.Wall }), func(module string, computed time.Duration) {
			if module != "web" {
				t.Errorf("charged to %q", module)
			}
			more.Add(int64(computed))
		})
		call := func(ctx context.Context, name string) error {
			_, _, err := f.Call(ctx, globals[name].(starlark.Callable), nil, CallOptions{
				Name: "web/a", Context: &builtins.Context{Log: &f.log}, Limits: Limits{Wall: 30 * time.Second},
			})
			return err
		}
		began := time.Now()
		err = call(ctx, "f")
		var l *LimitError
		if took := time.Since(began); took != 31*time.Second || !errors.As(err, &l) || l.Limit != LimitTime {
			t.Errorf("after %s: %v", took, err)
		}
		if used != 31*time.Second || more.Load() != 0 {
			t.Errorf("used %s, and %s more", used, time.Duration(more.Load()))
		}
		time.Sleep(10*time.Second + time.Millisecond)
		if time.Duration(more.Load()) != 10*time.Second {
			t.Errorf("10 seconds later it has computed %s more", time.Duration(more.Load()))
		}
		if err := call(t.Context(), "f"); !errors.Is(err, ErrStuck) {
			t.Errorf("got %v: another call must not begin", err)
		}
		if err := call(t.Context(), "g"); err != nil {
			t.Errorf("another function: %v", err)
		}
		close(released)
		synctest.Wait()
		if err := call(t.Context(), "f"); err != nil || len(f.stuck.calls) != 0 {
			t.Errorf("after it has ended: %v", err)
		}
		// So are calls whose context ends.
		released = make(chan struct{})
		ctx, stop := context.WithTimeout(t.Context(), time.Second)
		defer stop()
		began = time.Now()
		if err := call(ctx, "f"); !errors.Is(err, context.DeadlineExceeded) || time.Since(began) != 2*time.Second {
			t.Errorf("after %s: %v", time.Since(began), err)
		}
		close(released)
	})
}

// A run that is ended within a builtin says so as one that is ended between two steps.
func TestARunThatIsEndedWithinABuiltinSaysWhy(t *testing.T) {
	f := newFixture(t, map[string]string{"a.star": "def f():\n    for i in range(1000000):\n        sorted(range(1000000))\n"}, nil)
	globals, err := f.Load(t.Context(), "a.star")
	if err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancelCause(t.Context())
	time.AfterFunc(100*time.Millisecond, func() { stop(errors.New("interrupted")) })
	_, _, err = f.Call(ctx, globals["f"].(starlark.Callable), nil, CallOptions{Name: "web/a", Context: &builtins.Context{Log: &f.log}})
	if err == nil || !strings.Contains(err.Error(), "stopped: interrupted") {
		t.Errorf("got %v", err)
	}
}

// A function that does not end for one subject is called for others, but not for many; one that was made for a call
// counts as the function whose work it does.
func TestACallThatDoesNotEndIsOfItsSubject(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		released := make(chan struct{})
		var entered atomic.Int32
		f := newFixture(t, map[string]string{"a.star": "def f():\n    wait()\n"}, func(o *Options) {
			o.Predeclared["wait"] = starlark.NewBuiltin("wait", func(*starlark.Thread, *starlark.Builtin, starlark.Tuple, []starlark.Tuple) (starlark.Value, error) {
				entered.Add(1)
				<-released
				return starlark.None, nil
			})
		})
		globals, err := f.Load(t.Context(), "a.star")
		if err != nil {
			t.Fatal(err)
		}
		of := globals["f"].(starlark.Callable)
		call := func(subject string) error {
			made := starlark.NewBuiltin("made", func(thread *starlark.Thread, _ *starlark.Builtin, _ starlark.Tuple, _ []starlark.Tuple) (starlark.Value, error) {
				return starlark.Call(thread, of, nil, nil)
			})
			_, _, err := f.Call(t.Context(), made, nil, CallOptions{
				Name: "web/a", Context: &builtins.Context{Log: &f.log}, Limits: Limits{Wall: time.Second}, Of: of, Subject: subject,
			})
			return err
		}
		for i, subject := range []string{"a", "a", "b", "a", "c", "d", "e", "f", "b"} {
			err := call(subject)
			wantStuck := i == 1 || i == 3 || i > 5 // the same, or a fifth
			if errors.Is(err, ErrStuck) != wantStuck {
				t.Errorf("call %d, of %s: %v", i, subject, err)
			}
			if err == nil || !strings.HasPrefix(err.Error(), "a.star:1:1: ") {
				t.Errorf("call %d: %v does not say where", i, err)
			}
		}
		if n := entered.Load(); n != maxStuck {
			t.Errorf("%d calls go on, want %d", n, maxStuck)
		}
		close(released)
		synctest.Wait()
		if err := call("e"); err != nil || len(f.stuck.calls) != 0 {
			t.Errorf("after they have ended: %v", err)
		}
	})
}
