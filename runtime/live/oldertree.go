package live

import (
	"context"
	"os"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/starling-operator/starling/runtime/effect"
	"github.com/starling-operator/starling/runtime/engine"
)

// A process that takes over may have an older module tree than the one before it: its pod is of another template, or
// its kubelet has not brought the last ConfigMap yet. Then what its tree lacks is new, and not gone. So the tree takes
// nothing away while a rollout is under way, or while a newer tree may arrive.

const (
	// treeArrives is how long a newer tree may take until it is here, too: kubelets look at ConfigMaps each minute or
	// so, and go by what they have read up to a minute before.
	treeArrives = 3 * time.Minute
	// rolloutEvery is how often a rollout is looked at.
	rolloutEvery = 5 * time.Second
)

// treeDigest is that of the tree in force.
func (d *Driver) treeDigest() string { return d.generation.Load().Tree.Digest }

// stays returns a function that says until when the tree of a process that has taken over takes nothing away, and why;
// "": it does. It is asked again and again. The first time that the Deployment can be read decides: where a rollout is
// under way, its end is awaited, and no other file.
func (d *Driver) stays(began time.Time) func() string {
	decided, rolls := false, true
	return func() (until string) {
		if rolls {
			var read bool
			if until, read = d.rollout(); read && !decided {
				decided, rolls = true, until != ""
			}
		}
		if !rolls {
			until = d.arrives(began.Add(treeArrives))
		}
		return until
	}
}

// arrives says that a newer tree may arrive until then, or "".
func (d *Driver) arrives(until time.Time) string {
	if !d.sight.hadNewer(d.treeDigest()) || !time.Now().Before(until) {
		return ""
	}
	return until.UTC().Format("15:04:05 UTC") + ": the process that led before had a newer module tree, which may still arrive here"
}

// endStays has the tree take away what it lacks as soon as nothing speaks against that any more; until is what the
// engine was told at first. It returns false when the work has ended before.
func (d *Driver) endStays(until string, again func() string) bool {
	for until != "" {
		select {
		case <-d.work().Done():
			return false
		case <-time.After(rolloutEvery):
		}
		if now := again(); now != until && d.work().Err() == nil {
			d.inbox.put(engine.Stays{Until: now})
			until = now
		}
	}
	return d.work().Err() == nil
}

// rollout says until when the Deployment of this process has pods of older templates, or "". It is "" outside a
// Deployment, and without the right to read it. One that cannot be read for now may have such pods.
func (d *Driver) rollout() (until string, read bool) {
	name := deploymentOf(os.Getenv(podName))
	if name == "" {
		return "", true
	}
	ctx, end := context.WithTimeout(d.work(), 10*time.Second)
	defer end()
	obj, err := d.o.Client.Get(ctx, effect.Ref{APIVersion: "apps/v1", Kind: "Deployment", Namespace: d.o.Namespace, Name: name})
	switch {
	case apierrors.IsForbidden(err), err == nil && obj == nil:
		return "", true
	case err != nil:
		return "Deployment " + name + " can be read: " + err.Error(), false
	}
	var is appsv1.Deployment
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(obj, &is); err != nil || rolledOut(&is) {
		return "", true
	}
	return "the rollout of Deployment " + name + " is done, or undone: pods of two templates are there", true
}

// rolledOut says that all pods of a Deployment are of one template. A paused one of which no pod has its template was
// edited since, and makes no such pod until it is resumed.
func rolledOut(d *appsv1.Deployment) bool {
	s := &d.Status
	return s.ObservedGeneration >= d.Generation && (s.UpdatedReplicas >= s.Replicas || d.Spec.Paused && s.UpdatedReplicas == 0)
}
