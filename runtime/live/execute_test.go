package live

import (
	"errors"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/rs/zerolog"

	"github.com/starling-operator/starling/builtins"
	"github.com/starling-operator/starling/runtime/engine"
	"github.com/starling-operator/starling/runtime/watch"
)

func TestAPanicIsAnAnswer(t *testing.T) {
	d := &Driver{o: Options{Log: zerolog.Nop()}, inbox: newInbox()}
	answer := func(err error) engine.Input { return engine.Committed{Run: 7, Err: err} }
	d.start(func() error { panic("boom") }, answer)
	d.start(func() error { return nil }, answer)
	d.busy.Wait()
	var failed, fine int
	for _, in := range d.inbox.take() {
		switch c := in.(engine.Committed); {
		case c.Run != 7:
			t.Errorf("%+v", c)
		case c.Err == nil:
			fine++
		case strings.Contains(c.Err.Error(), "boom"):
			failed++
		}
	}
	if failed != 1 || fine != 1 {
		t.Errorf("%d failed, %d succeeded; want one each", failed, fine)
	}
	if err := d.guard(func() error { return errors.New("plain") }); err.Error() != "plain" {
		t.Error(err)
	}
}

// What a binding says must reach the watch.
func TestWatchSpecHoldsTheWholeBinding(t *testing.T) {
	want := watch.Spec{
		ID: "id", APIVersion: "v1", Kind: "Pod", Namespaces: []string{"a"}, ExcludeNamespaces: []string{"b"},
		NamespaceLabels: "c", Names: []string{"d"}, Labels: "e", Fields: "f=g", FilterID: "h", KeepObject: true,
	}
	got := watchSpec("id", &builtins.WatchBinding{
		APIVersion: "v1", Kind: "Pod", Namespaces: []string{"a"}, ExcludeNamespaces: []string{"b"},
		NamespaceLabels: "c", Names: []string{"d"}, Labels: "e", Fields: "f=g", FilterID: "h", KeepObject: true,
	})
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}
