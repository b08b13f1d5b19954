package executor

import (
	"context"
	"strings"
	"testing"

	"github.com/rs/zerolog"

	"github.com/starling-operator/starling/runtime/cluster"
	"github.com/starling-operator/starling/runtime/effect"
	"github.com/starling-operator/starling/runtime/engine"
	"github.com/starling-operator/starling/runtime/generation"
	"github.com/starling-operator/starling/runtime/hook"
	"github.com/starling-operator/starling/runtime/sim/apitest"
)

// committing is an executor on an API server.
func committing(t *testing.T) (*apitest.Server, *Executor) {
	t.Helper()
	api := apitest.New(t)
	client, err := cluster.New(cluster.Options{Config: api.Config(), Log: zerolog.Nop()})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(client.Close)
	return api, New(Options{
		Client: client, Generation: &generation.Generation{},
		Writer: cluster.NewWriter(cluster.WriterOptions{Client: client, Namespace: "ops", Name: "starling", Instance: "ops.starling"}),
	})
}

func write(kind effect.WriteKind, name, pos string) effect.Write {
	ref := effect.Ref{APIVersion: "v1", Kind: "ConfigMap", Namespace: "a", Name: name}
	return effect.Write{Kind: kind, Ref: ref, Pos: pos, Object: map[string]any{
		"apiVersion": "v1", "kind": "ConfigMap", "metadata": map[string]any{"namespace": "a", "name": name}}}
}

// A write that says so lets those after it be made; the commit fails with all errors.
func TestACommitGoesOn(t *testing.T) {
	api, x := committing(t)
	missing := func(name string, goOn bool) effect.Write {
		w := write(effect.WritePatch, name, "a.star:5")
		w.Patch, w.Continue = &effect.Patch{Type: effect.PatchMerge, Body: map[string]any{}}, goOn
		return w
	}
	release := write(effect.WriteRemoveFinalizer, "x", "")
	release.Finalizer = "starling.dev/x"
	a := engine.Commit{Hook: &generation.Hook{ID: "web/hooks/a.star:f"}, Module: "web", Writes: []effect.Write{
		missing("p", true), write(effect.WriteApply, "x", ""), missing("q", true), write(effect.WriteApply, "y", ""), release,
	}}
	const want = `a.star:5: cannot patch ConfigMap a/p: configmaps "p" not found; a.star:5: cannot patch ConfigMap a/q: configmaps "q" not found (2 of 5 written)`
	if err := x.Commit(t.Context(), a).Err; err == nil || err.Error() != want {
		t.Errorf("error is\n%v, want\n%s", err, want)
	}
	if api.Object("v1", "ConfigMap", "a", "x") == nil || api.Object("v1", "ConfigMap", "a", "y") == nil {
		t.Error("what comes after a failed write is not written")
	}
	a.Writes = []effect.Write{missing("p", true), missing("q", false), write(effect.WriteApply, "z", "")}
	if err := x.Commit(t.Context(), a).Err; err == nil || !strings.HasSuffix(err.Error(), "(0 of 3 written)") || api.Object("v1", "ConfigMap", "a", "z") != nil {
		t.Errorf("a later write that stops has not: %v", err)
	}
	a.Writes = nil
	for range 7 {
		a.Writes = append(a.Writes, missing("p", true))
	}
	if err := x.Commit(t.Context(), a).Err; err == nil || strings.Count(err.Error(), "cannot patch") != 5 || !strings.HasSuffix(err.Error(), "; and 2 more (0 of 7 written)") {
		t.Errorf("many errors: %v", err)
	}
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	if err := x.Commit(ended, a).Err; err == nil || strings.Count(err.Error(), "cannot patch") != 1 {
		t.Errorf("a commit that is over goes on: %v", err)
	}
}

// A commit ends at the first write that fails and says how far it came.
func TestACommitSaysHowFarItCame(t *testing.T) {
	api, x := committing(t)
	missing := write(effect.WritePatch, "not-there", "web/hooks/a.star:5")
	missing.Patch = &effect.Patch{Type: effect.PatchMerge, Body: map[string]any{}}
	a := engine.Commit{Hook: &generation.Hook{ID: "web/hooks/a.star:f"}, Module: "web", Writes: []effect.Write{
		write(effect.WriteApply, "x", ""), write(effect.WriteApply, "y", ""), missing, write(effect.WriteApply, "z", ""),
	}}
	const want = `web/hooks/a.star:5: cannot patch ConfigMap a/not-there: configmaps "not-there" not found (2 of 4 written)`
	if err := x.Commit(context.Background(), a).Err; err == nil || err.Error() != want {
		t.Errorf("error is\n%v, want\n%s", err, want)
	}
	a.Seen = hook.NewSeen("not-there")
	if err := x.Commit(context.Background(), a).Err; err == nil || !strings.Contains(err.Error(), "ConfigMap a/***: ") {
		t.Errorf("what is secret is shown: %v", err)
	}
	if api.Object("v1", "ConfigMap", "a", "y") == nil || api.Object("v1", "ConfigMap", "a", "z") != nil {
		t.Error("what was written is not what comes before the failed write")
	}
}
