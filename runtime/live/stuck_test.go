package live

import (
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/starling-operator/starling/builtins"
	"github.com/starling-operator/starling/runtime/engine"
	"github.com/starling-operator/starling/runtime/generation"
	"github.com/starling-operator/starling/runtime/script"
)

// One step that takes for ever delays its lane by one timeout, and no more.
func TestARunThatDoesNotEndIsGivenUp(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var s stuck
		a := engine.RunHook{Run: 7, Hook: &generation.Hook{ID: "web/a", HookDecl: &builtins.HookDecl{Timeout: 30 * time.Second}}}
		start := func(f func()) bool { go f(); return true }
		release := make(chan struct{})
		endless := func() engine.RunDone { <-release; return engine.RunDone{} }
		began := time.Now()
		done := s.run(a, endless, start)
		var limit *script.LimitError
		if took := time.Since(began); took != 30*time.Second+giveUpRunAfter || !errors.As(done.Err, &limit) || limit.Limit != script.LimitTime || done.Run != 7 {
			t.Errorf("after %s: %+v", took, done)
		}
		if done := s.run(a, endless, start); !errors.Is(done.Err, errStuck) {
			t.Errorf("got %+v: another run must not begin", done)
		}
		close(release)
		synctest.Wait()
		if done := s.run(a, endless, start); done.Err != nil || len(s.hooks) != 0 {
			t.Errorf("got %+v after the run has ended", done)
		}
	})
}
