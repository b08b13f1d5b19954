package live

import (
	"errors"
	"strings"
	"testing"

	"github.com/rs/zerolog"

	"github.com/starling-operator/starling/runtime/engine"
)

func TestAPanicIsAnAnswer(t *testing.T) {
	d := &Driver{o: Options{Log: zerolog.Nop()}, inbox: newInbox()}
	d.term.Store(newTerm())
	answer := func(err error) engine.Input { return engine.Committed{Run: 7, Err: err} }
	d.start(func() error { panic("boom") }, answer)
	d.start(func() error { return nil }, answer)
	<-d.busy().close()
	var failed, fine int
	for in, ok := d.inbox.take(); ok; in, ok = d.inbox.take() {
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
