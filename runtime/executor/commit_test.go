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

// A commit ends at the first write that fails and says how far it came.
func TestACommitSaysHowFarItCame(t *testing.T) {
	api := apitest.New(t)
	client, err := cluster.New(cluster.Options{Config: api.Config(), Log: zerolog.Nop()})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(client.Close)
	x := New(Options{
		Client: client, Generation: &generation.Generation{},
		Writer: cluster.NewWriter(cluster.WriterOptions{Client: client, Namespace: "ops", Name: "starling", Instance: "ops.starling"}),
	})
	write := func(kind effect.WriteKind, name, pos string) effect.Write {
		ref := effect.Ref{APIVersion: "v1", Kind: "ConfigMap", Namespace: "a", Name: name}
		return effect.Write{Kind: kind, Ref: ref, Pos: pos, Object: map[string]any{
			"apiVersion": "v1", "kind": "ConfigMap", "metadata": map[string]any{"namespace": "a", "name": name}}}
	}
	missing := write(effect.WritePatch, "not-there", "web/hooks/a.star:5")
	missing.Patch = &effect.Patch{Type: effect.PatchMerge, Body: map[string]any{}}
	a := engine.Commit{Hook: &generation.Hook{ID: "web/hooks/a.star:f"}, Module: "web", Writes: []effect.Write{
		write(effect.WriteApply, "x", ""), write(effect.WriteApply, "y", ""), missing, write(effect.WriteApply, "z", ""),
	}}
	const want = `web/hooks/a.star:5: cannot patch ConfigMap a/not-there: configmaps "not-there" not found (2 of 4 written)`
	if err := x.Commit(context.Background(), a); err == nil || err.Error() != want {
		t.Errorf("error is\n%v, want\n%s", err, want)
	}
	a.Seen = hook.NewSeen("not-there")
	if err := x.Commit(context.Background(), a); err == nil || !strings.Contains(err.Error(), "ConfigMap a/***: ") {
		t.Errorf("what is secret is shown: %v", err)
	}
	if api.Object("v1", "ConfigMap", "a", "y") == nil || api.Object("v1", "ConfigMap", "a", "z") != nil {
		t.Error("what was written is not what comes before the failed write")
	}
}
