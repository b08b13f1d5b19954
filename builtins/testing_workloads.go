package builtins

import (
	"context"
	"errors"
	"fmt"
	"time"

	"go.starlark.net/starlark"
	"k8s.io/apimachinery/pkg/util/validation"
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

func testWorkloadSpecs() []Spec {
	spec := func(name, doc string, do func(*call, *Test) (starlark.Value, error), params ...Param) Spec {
		return Spec{Name: "t." + name, Phases: PhaseTest, Effect: EffectWrite, Doc: doc, Params: params,
			call: func(c *call) (starlark.Value, error) { return do(c, c.ctx.Test) }}
	}
	labels := Param{Name: "labels", Type: TypeSelector, Default: "None", Doc: "Labels of the Pods: a dict of equal values, or the text kubectl takes; None: all Pods of the namespace."}
	namespace := Param{Name: "namespace", Type: TypeString, Default: `"default"`, Doc: "Their namespace."}
	times := Param{Name: "times", Type: TypeInt, Default: "0", Doc: "How often their containers fail, restarts and new Pods included; 0: until t.pods.recover."}
	code := Param{Name: "exit_code", Type: TypeInt, Default: "1", Doc: "The exit code, 1 to 255."}
	return []Spec{
		spec("workloads", "Has Deployments, ReplicaSets, StatefulSets, DaemonSets, Jobs, CronJobs, Pods, claims and the EndpointSlices of Services move by the clock, as the controllers of Kubernetes would, and settles. Called again, it changes how fast.", callTestWorkloads,
			Param{Name: "ready_after", Type: TypeDuration, Default: `"0s"`, Doc: "How long a Pod runs before it is ready, in whole seconds."},
			Param{Name: "completes_after", Type: TypeDuration, Default: `"0s"`, Doc: "How long a Pod of a Job runs before it ends, in whole seconds."}),
		spec("pods.fail", "Has containers of Pods fail, and settles: those that run, and those that come. A Pod that is restarted goes into CrashLoopBackOff, one of a Job fails when it would end.", callPodsFail, labels, namespace, times, code),
		spec("pods.recover", "Has Pods fail no more that t.pods.fail named with these labels, and settles. Those that wait for a restart run after it.", callPodsRecover, labels, namespace),
		spec("jobs.fail", "Has the Pods of a Job fail, and settles; the Job itself fails beyond its backoffLimit.", callJobFail,
			Param{Name: "name", Type: TypeString, Doc: "Name of the Job. Its Pods recover by t.pods.recover(\"batch.kubernetes.io/job-name=NAME\")."},
			Param{Name: "namespace", Type: TypeString, Default: `"default"`, Doc: "Its namespace."}, times, code),
		spec("stale", "Has the next process read a kind from the past: after t.restart() each watch first lists the objects as they are now, whatever has changed since, and only then as they are. An API server that lags behind answers so.", callTestStale,
			Param{Name: "kind", Type: TypeString, Doc: "A kind, such as \"ConfigMap\"."}),
	}
}

func callTestWorkloads(c *call, t *Test) (starlark.Value, error) {
	ready, completes := c.durationOr("ready_after", 0), c.durationOr("completes_after", 0)
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
	if name := c.str("name"); len(validation.IsDNS1123Subdomain(name)) > 0 {
		return nil, fmt.Errorf("name: %q is no name of a Job: t.jobs.fail takes one Job, t.pods.fail Pods by their labels", clip(name))
	}
	return nil, c.failPods(t, "batch.kubernetes.io/job-name="+c.str("name"))
}

func (c *call) failPods(t *Test, labels string) error {
	f := PodFailure{Namespace: c.strOr("namespace", "default"), Labels: labels, ExitCode: c.intOr("exit_code", 1), Times: c.intOr("times", 0)}
	if f.Times < 0 {
		return errors.New("times: it is below 0")
	}
	if f.ExitCode < 1 || f.ExitCode > 255 {
		return fmt.Errorf("exit_code: %d is not between 1 and 255", f.ExitCode)
	}
	return t.World.FailPods(t.Ctx, f)
}

func callPodsRecover(c *call, t *Test) (starlark.Value, error) {
	labels, err := c.labelSelector("labels")
	if err != nil {
		return nil, err
	}
	return nil, t.World.RecoverPods(t.Ctx, c.strOr("namespace", "default"), labels)
}

func callTestStale(c *call, t *Test) (starlark.Value, error) {
	return nil, t.World.Stale(c.str("kind"))
}
