package live

import (
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/starling-operator/starling/builtins"
	"github.com/starling-operator/starling/runtime/effect"
	"github.com/starling-operator/starling/runtime/engine"
	"github.com/starling-operator/starling/runtime/generation"
)

// A process that is killed while a hook waits for a server has nothing against the hook.
func TestAHookThatWaitsIsNotMarked(t *testing.T) {
	var f *fixture
	asked, against := 0, 0
	server := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) {
		asked++
		against += len(open(t, f.dir).unclean) // of the process that comes after this one
	}))
	defer server.Close()
	host := strings.TrimPrefix(server.URL, "http://")
	f = newFixture(t, map[string]string{
		"web/module.star":  fmt.Sprintf("module(http = [%q])\n", host),
		"web/hooks/a.star": fmt.Sprintf("hook(lambda ctx: http.get(%q), name = \"a\", on = [startup()])\n", server.URL),
	})
	m := f.driver.generation.Load().Modules["web"]
	done, _ := f.driver.callHook(t.Context(), engine.RunHook{Hook: m.Hooks[0], Module: m, Attempt: 1, Now: time.Now()})
	if done.Err != nil || asked != 1 || against != 0 {
		t.Errorf("%v: asked %d times, %d marks", done.Err, asked, against)
	}
}

// A mark is there while any run of the hook does more than wait.
func TestMarksOfRunsThatWait(t *testing.T) {
	m := open(t, t.TempDir())
	marked := func(want bool) {
		t.Helper()
		left, err := readMarks(m.book.path)
		if err != nil || left[markOf("web/a", "code")] != want {
			t.Errorf("%v %v, want it marked: %t", left, err, want)
		}
	}
	must := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	must(m.begin("web/a", "code"))
	first := m.aside("web/a", "code")
	marked(false)
	must(m.begin("web/a", "code"))
	marked(true)
	second := m.aside("web/a", "code")
	marked(false)
	first()
	marked(true)
	must(m.end("web/a", "code", false)) // the other one waits
	marked(false)
	second()
	marked(true)
	late := m.aside("web/a", "code")
	must(m.end("web/a", "code", false)) // given up while it waits
	marked(false)
	must(m.begin("web/a", "code"))
	marked(true)
	late()
	marked(true)
	must(m.end("web/a", "code", false))
	marked(false)
	gone := m.aside("web/a", "code")
	must(m.Clear())
	gone()
	m.aside("web/b", "code")() // not marked at all
}

// It measures what a request of a hook pays for its mark.
func BenchmarkMarkAside(b *testing.B) {
	m, err := OpenMarks(b.TempDir())
	if err == nil {
		err = m.begin("web/a", "code")
	}
	if err != nil {
		b.Fatal(err)
	}
	for b.Loop() {
		m.aside("web/a", "code")()
	}
}

// watched looks at the marks while it answers.
type watched struct{ look func() }

func (w watched) Exec(context.Context, effect.Exec) (builtins.Executed, error) {
	w.look()
	return builtins.Executed{}, nil
}

func (w watched) Ask(context.Context, effect.Ask) (map[string]any, error) {
	w.look()
	return nil, nil
}

func (w watched) Logs(context.Context, effect.LogQuery) ([]byte, error) {
	w.look()
	return nil, nil
}

// A hook that waits for a container is not marked meanwhile.
func TestAHookThatWaitsForAContainerIsNotMarked(t *testing.T) {
	m := open(t, t.TempDir())
	if err := m.begin("web/a", "code"); err != nil {
		t.Fatal(err)
	}
	looked := 0
	p := answerer{marks: m, Answerer: watched{func() {
		looked++
		if left, err := readMarks(m.book.path); err != nil || left[markOf("web/a", "code")] {
			t.Errorf("%v %v, want it unmarked", left, err)
		}
	}}}
	ctx := context.WithValue(t.Context(), hookKey{}, &generation.Hook{ID: "web/a", Digest: "code"})
	_, err1 := p.Exec(ctx, effect.Exec{})
	_, err2 := p.Logs(ctx, effect.LogQuery{})
	_, err3 := p.Ask(ctx, effect.Ask{})
	if left, err := readMarks(m.book.path); err1 != nil || err2 != nil || err3 != nil || looked != 3 || err != nil || !left[markOf("web/a", "code")] {
		t.Errorf("%v, %v, %v, %v: looked %d times, left %v", err1, err2, err3, err, looked, left)
	}
}
