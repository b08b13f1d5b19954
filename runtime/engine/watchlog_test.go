package engine

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/starling-operator/starling/builtins"
)

// One cause that meets many watches is one line in the log, and one in the status of each hook.
func TestOneCauseIsOneLine(t *testing.T) {
	w := newWorld(t, mod("a", isOn(), hk("h", onWatch("nodes"))), mod("b", isOn(), hk("h", onWatch("nodes"))), mod("c", isOn(), hk("h", onWatch("nodes"))))
	w.start()
	var told []string
	fail := func(module, reason string) {
		for _, a := range w.e.Handle(w.now, WatchFailed{ID: module + "/h#nodes", Reason: reason}) {
			if n, is := a.(Note); is && n.Level >= builtins.LevelWarn {
				told = append(told, n.Module+" "+n.Message)
			}
		}
	}
	for _, module := range []string{"a", "b"} {
		fail(module, "the API server is away")
	}
	fail("c", "forbidden")
	if want := []string{"a watch nodes: the API server is away", "c watch nodes: forbidden"}; !slices.Equal(told, want) {
		t.Errorf("the log says %q", told)
	}
	for _, h := range w.e.Status().Hooks[:2] {
		if got := fmt.Sprintf("%+v", h); !strings.Contains(got, "the API server is away") {
			t.Errorf("the status says %s", got)
		}
	}
	for _, module := range []string{"a", "b", "c"} {
		fail(module, "")
	}
	w.now, told = w.now.Add(time.Hour), nil
	if fail("b", "the API server is away"); len(told) != 1 {
		t.Errorf("an hour later the log says %q", told)
	}
}
