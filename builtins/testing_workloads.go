package builtins

import (
	"context"
	"errors"
	"fmt"
	"time"

	"go.starlark.net/starlark"
	"k8s.io/apimachinery/pkg/util/validation"

	"github.com/starling-operator/starling/builtins/spec"
)

// TestWorkloads is the part of [World] in which Deployments, Pods and the like move.
type TestWorkloads interface {
	// MoveWorkloads has them move by the clock from now on, and settles.
	MoveWorkloads(ctx context.Context, readyAfter, completesAfter time.Duration) error
	// FailPods has Pods fail, RecoverPods has them fail no more; both settle.
	FailPods(ctx context.Context, f PodFailure) error
	RecoverPods(ctx context.Context, namespace, labels string) error
}

// PodFailure says which Pods fail: those of a namespace with labels; "" for all of them.
type PodFailure struct {
	Namespace, Labels string
	ExitCode          int
	// Times is how often; 0 means always.
	Times int
}

func testWorkloadSpecs() []spec.Spec {
	row := testSpec(spec.Writes)
	labels := spec.Optional("labels", spec.Selector, "None")
	namespace := spec.Optional("namespace", spec.String, `"default"`)
	times := spec.Optional("times", spec.Int, "0")
	code := spec.Optional("exit_code", spec.Int, "1").Between(1, 255)
	return []spec.Spec{
		row("workloads", callTestWorkloads, spec.Optional("ready_after", spec.Duration, `"0s"`),
			spec.Optional("completes_after", spec.Duration, `"0s"`)),
		row("pods.fail", callPodsFail, labels, namespace, times, code),
		row("pods.recover", callPodsRecover, labels, namespace),
		row("jobs.fail", callJobFail, spec.Required("name", spec.String),
			spec.Optional("namespace", spec.String, `"default"`), times, code),
		does("stale", func(c *call, t *Test) error { return t.World.Stale(c.Str("kind")) }, spec.Required("kind", spec.String)),
	}
}

func callTestWorkloads(c *call, t *Test) (starlark.Value, error) {
	ready, completes := c.DurationOr("ready_after", 0), c.DurationOr("completes_after", 0)
	for name, d := range map[string]time.Duration{"ready_after": ready, "completes_after": completes} {
		if d < 0 || d%time.Second != 0 {
			return nil, fmt.Errorf("%s: %s is no number of whole seconds, which is how Kubernetes writes times", name, d)
		}
	}
	return nil, t.World.MoveWorkloads(t.Ctx, ready, completes)
}

func callPodsFail(c *call, t *Test) (starlark.Value, error) {
	labels, err := c.labelSelector("labels")
	if err != nil {
		return nil, err
	}
	return nil, c.failPods(t, labels)
}

func callJobFail(c *call, t *Test) (starlark.Value, error) {
	if name := c.Str("name"); len(validation.IsDNS1123Subdomain(name)) > 0 {
		return nil, fmt.Errorf("name: %q is no name of a Job: t.jobs.fail takes one Job, t.pods.fail Pods by their labels", spec.Clip(name))
	}
	return nil, c.failPods(t, "batch.kubernetes.io/job-name="+c.Str("name"))
}

func (c *call) failPods(t *Test, labels string) error {
	f := PodFailure{Namespace: c.StrOr("namespace", "default"), Labels: labels, ExitCode: c.IntOr("exit_code", 1), Times: c.IntOr("times", 0)}
	if f.Times < 0 {
		return errors.New("times: it is below 0")
	}
	return t.World.FailPods(t.Ctx, f)
}

func callPodsRecover(c *call, t *Test) (starlark.Value, error) {
	labels, err := c.labelSelector("labels")
	if err != nil {
		return nil, err
	}
	return nil, t.World.RecoverPods(t.Ctx, c.StrOr("namespace", "default"), labels)
}
