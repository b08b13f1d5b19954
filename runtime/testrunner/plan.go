package testrunner

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"

	kjson "sigs.k8s.io/json"

	"github.com/starling-operator/starling/builtins"
	"github.com/starling-operator/starling/runtime/plan"
	"github.com/starling-operator/starling/runtime/record"
)

// Plan plans in a world that lies over the test's.
func (w *world) Plan(ctx context.Context, all bool) (builtins.TestPlan, error) {
	if !w.started && !all {
		if err := w.switchOn(); err != nil {
			return builtins.TestPlan{}, err
		}
	}
	fork, err := w.w.Fork()
	if err != nil {
		return builtins.TestPlan{}, err
	}
	if all {
		fork.Use(w.o.Generation)
	}
	p, err := plan.Make(ctx, fork)
	if err != nil {
		return builtins.TestPlan{}, err
	}
	out := builtins.TestPlan{Changes: p.Changes()}
	var text bytes.Buffer
	if err := p.Print(&text, plan.PrintOptions{}); err != nil {
		return out, err
	}
	out.Text = text.String()
	data, err := json.Marshal(p)
	if err != nil {
		return out, fmt.Errorf("the plan: %w", err)
	}
	return out, kjson.UnmarshalCaseSensitivePreserveInts(data, &out.Data)
}

// Replay runs a hook of the tree, beside the cluster.
func (w *world) Replay(ctx context.Context, run map[string]any) ([]string, error) {
	return record.Rerun(ctx, run, w.o.Generation, w.o.Generation.Host.Governor())
}
