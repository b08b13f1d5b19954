package cluster

import (
	"context"
	"errors"
	"slices"
	"testing"
	"time"

	"github.com/starling-operator/starling/runtime/effect"
	"github.com/starling-operator/starling/runtime/sim/apitest"
)

// A delete with a time to wait ends once the object is gone, or another has its name, or
// with an error that says what holds it.
func TestADeleteWaitsForTheEnd(t *testing.T) {
	held := configMap("a", "x")
	held["metadata"].(map[string]any)["finalizers"] = []any{"example.com/a", "example.com/b"}
	never := func(*apitest.Server, int) error { return errors.New("nobody has to wait") }
	for _, test := range []struct {
		name   string
		there  map[string]any
		pause  func(api *apitest.Server, n int) error
		pauses []time.Duration
		err    string
	}{
		{"at once", configMap("a", "x"), never, nil, ""},
		{"never there", nil, never, nil, ""},
		{"later", held, func(api *apitest.Server, n int) error {
			if n == 2 {
				api.Put(configMap("a", "x")) // without its finalizers
			}
			return nil
		}, []time.Duration{100 * time.Millisecond, 200 * time.Millisecond}, ""},
		{"another has its name", held, func(api *apitest.Server, _ int) error {
			api.Put(configMap("a", "x")) // the end of the first
			api.Put(configMap("a", "x"))
			return nil
		}, []time.Duration{100 * time.Millisecond}, ""},
		{"too late", held, func(*apitest.Server, int) error { return nil },
			[]time.Duration{100 * time.Millisecond, 200 * time.Millisecond, 400 * time.Millisecond, 300 * time.Millisecond},
			"ConfigMap a/x is deleted, but still there after 1s, held by the finalizer example.com/a, example.com/b; it is tried again"},
		{"cut short", held, func(*apitest.Server, int) error { return errors.New("no") }, []time.Duration{100 * time.Millisecond},
			"ConfigMap a/x is deleted; the wait for its end was cut short"},
	} {
		t.Run(test.name, func(t *testing.T) {
			api := apitest.New(t)
			if test.there != nil {
				api.Put(test.there)
			}
			var pauses []time.Duration
			w := NewWriter(WriterOptions{Client: newClient(t, api), Pause: func(_ context.Context, d time.Duration) error {
				pauses = append(pauses, d)
				return test.pause(api, len(pauses))
			}})
			err := w.Write(t.Context(), "m", effect.Write{Kind: effect.WriteDelete, Ref: configRef, Propagation: "background", Wait: time.Second})
			if test.err == "" && err != nil || test.err != "" && (err == nil || err.Error() != test.err) {
				t.Errorf("error is %v, want %s", err, test.err)
			}
			if !slices.Equal(pauses, test.pauses) {
				t.Errorf("paused for %v, want %v", pauses, test.pauses)
			}
		})
	}
}

func TestPauseEndsWithItsContext(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if err := Pause(ctx, time.Hour); !errors.Is(err, context.Canceled) {
		t.Error(err)
	}
	if err := Pause(t.Context(), time.Nanosecond); err != nil {
		t.Error(err)
	}
}
