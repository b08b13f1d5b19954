package dev

import (
	"context"
	"strings"
	"testing"
	"time"

	"github.com/starling-operator/starling/modules/status"
	"github.com/starling-operator/starling/runtime/sim/store"
)

// The cluster can be asked from the first round on; the clock stands still but for runs that somebody asks for.
func TestTheClusterIsAsked(t *testing.T) {
	a := &author{t: t, files: module("web"), loop: New(Options{Builtins: store.NewBuiltins(), Namespace: "starling-system", Name: "starling", Parallel: 1, Version: "v1"})}
	a.loop.patience = time.Hour // however long the first round takes here
	soon, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	if _, err := a.loop.Status(soon); err == nil || !strings.Contains(err.Error(), "the first round of starling dev has not ended") {
		t.Errorf("before the first round: %v", err)
	}
	waits := make(chan error)
	go func() { _, err := a.loop.Status(t.Context()); waits <- err }()
	a.files["web/hooks/a.star"] = strings.Replace(hook, "len(", "lenn(", 1)
	a.save()
	if err := <-waits; err == nil || !strings.Contains(err.Error(), "no simulated cluster yet: module web: ") {
		t.Errorf("a question before the first round does not wait for its end: %v", err)
	}
	if _, err := a.loop.Status(t.Context()); err == nil || !strings.Contains(err.Error(), "no simulated cluster yet: module web: ") {
		t.Errorf("before a tree that loads: %v", err)
	}
	a.save("web/hooks/a.star", "lenn(", "len(")
	seen := func() (status.Status, status.Hook) {
		t.Helper()
		st, err := a.loop.Status(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		return st, st.Hooks[0]
	}
	st, h := seen()
	if !st.Simulated || !st.Leader || st.Instance != "starling-system/starling" || st.Version != "v1" || st.ReloadFailed != nil {
		t.Errorf("status %+v", st)
	}
	if h.Runs != 1 || h.Snapshots["nodes"] != 0 || len(h.Snapshots) != 1 || h.LastRun == nil {
		t.Errorf("hook %+v", h)
	}
	clock, first := a.loop.world.Now(), *h.LastRun
	a.save("web/values.yaml", "red", "green")
	if _, h = seen(); !h.LastRun.Equal(first) || !a.loop.world.Now().Equal(clock) {
		t.Errorf("a save of something else: last run %s, clock %s; before %s and %s", h.LastRun, a.loop.world.Now(), first, clock)
	}
	if snapshots, err := a.loop.Snapshots(t.Context(), h.ID); err != nil || len(snapshots) != 1 || !snapshots[0].Complete {
		t.Errorf("snapshots %+v, %v", snapshots, err)
	}
	if _, err := a.loop.Snapshots(t.Context(), "web/hooks/b.star:f"); err == nil {
		t.Error("snapshots of a hook that is not there")
	}
	if in, err := a.loop.Explain(t.Context(), "web"); err != nil || in.Section.Name != "web" {
		t.Errorf("explained %+v, %v", in, err)
	}
	// A failure waits for its next try, which comes with a run that is asked for.
	a.save("web/hooks/a.star", "values.set", "fail(\"no\")\n    values.set")
	st, h = seen()
	queues, err := a.loop.Queues(t.Context())
	if err != nil || len(queues) != 1 || queues[0].Length != 1 || queues[0].Waiting[0].Next != nil || queues[0].Waiting[0].Since.IsZero() {
		t.Errorf("queues %+v, %v", queues, err)
	}
	if h.LastError == "" || h.NextTry != nil || st.Modules[0].NextTry != nil || !h.LastRun.After(first) {
		t.Errorf("%+v, %+v", h, st.Modules)
	}
	runs := h.Runs
	if hooks, err := a.loop.RunNow(t.Context(), "web", ""); err != nil || len(hooks) != 1 {
		t.Errorf("runs %v, %v", hooks, err)
	}
	if _, h = seen(); h.Runs != runs+1 || time.Since(*h.LastRun) > time.Minute || !a.loop.world.Now().After(clock) {
		t.Errorf("%d runs, before %d; last at %s, clock %s, before %s", h.Runs, runs, h.LastRun, a.loop.world.Now(), clock)
	}
	if _, err := a.loop.RunNow(t.Context(), "api", ""); err == nil || !strings.Contains(err.Error(), `there is no module "api"`) {
		t.Errorf("a module that is not there: %v", err)
	}
	// A tree that does not load is told of, and the one that loaded last goes on.
	a.save("web/hooks/a.star", "len(", "lenn(")
	if st, _ = seen(); st.ReloadFailed == nil || !strings.Contains(st.ReloadFailed.Reason, "undefined: lenn") || len(st.Modules) != 1 {
		t.Errorf("status %+v", st)
	}
}
