package live

import (
	"context"
	"encoding/json"
	"maps"
	"os"
	"slices"
	"sync"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	coordinationv1 "k8s.io/api/coordination/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
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

// treeAnnotation is where a Lease carries the digest of the newest module tree that has led.
const treeAnnotation = "starling.dev/tree"

// olderAnnotation is where it carries the digests of trees that are older, each with the time until which a process
// that takes over with it is late: its volume may not have the newest one yet.
const olderAnnotation = "starling.dev/older-trees"

// trees knows from the Lease which module trees have led, and says there which one does.
type trees struct {
	own func() string // the digest of the tree in force

	mu    sync.Mutex
	led   string // the newest one that the Lease has shown; "": none was
	newer bool   // it is another one than that of this process, and may be newer
	late  bool   // this process leads all the same, and the newer one may arrive
	said  string // the own one, as the last write of the Lease has said
}

// compares notes which tree has led. One that has come while this process was here is newer: this process began with
// its own one before. So is one that, by the Lease, came after the own one.
func (t *trees) compares(lease *coordinationv1.Lease) {
	led, own := lease.Annotations[treeAnnotation], t.own()
	if led == "" {
		return
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	t.newer = led != own && (t.newer || t.led != "" && led != t.led || readOlder(lease)[own].After(time.Now()))
	t.led = led
}

// begin notes that this process leads no more: another tree than its own one is taken for a newer one from now on.
func (t *trees) begin() {
	own := t.own()
	t.mu.Lock()
	defer t.mu.Unlock()
	if !t.late {
		t.led, t.newer = own, false
	}
	t.late = false
}

// arrives says whether a newer tree than the own one has led, and may arrive.
func (t *trees) arrives() bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.newer && t.led != t.own()
}

// settle notes that the own tree takes away what it lacks: it is the newest one.
func (t *trees) settle() {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.newer, t.late = false, false
}

// mark has the Lease say which tree leads, and returns that. A late one does not take the place of the newer one: the
// process that follows has to know of that, too.
func (t *trees) mark(lease *coordinationv1.Lease, takesOver bool) (own string) {
	own = t.own()
	t.mu.Lock()
	defer t.mu.Unlock()
	led, older := lease.Annotations[treeAnnotation], readOlder(lease)
	if takesOver {
		t.late = t.newer
	}
	now := time.Now()
	maps.DeleteFunc(older, func(_ string, until time.Time) bool { return !until.After(now) })
	switch {
	case led == own:
		t.late = false
	case t.late && led != "":
		if _, noted := older[own]; !noted {
			older[own] = now.Add(treeArrives)
		}
	default:
		if !takesOver && led != "" && led == t.said {
			older[led] = now.Add(treeArrives)
		}
		led = own
	}
	delete(older, led)
	metav1.SetMetaDataAnnotation(&lease.ObjectMeta, treeAnnotation, led)
	delete(lease.Annotations, olderAnnotation)
	if len(older) > 0 {
		text, _ := json.Marshal(older) // texts and times
		metav1.SetMetaDataAnnotation(&lease.ObjectMeta, olderAnnotation, string(text))
	}
	return own
}

// tell notes that the Lease says which tree is in force here, and which one is the newest.
func (t *trees) tell(said, led string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.said, t.led = said, led
}

// told is the own tree, as the Lease says.
func (t *trees) told() string {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.said
}

// maxOlder bounds what a Lease carries: a tree that is edited all the time has the last ones there.
const maxOlder = 32

// readOlder are the trees that a Lease calls older. A text that cannot be read says nothing.
func readOlder(lease *coordinationv1.Lease) map[string]time.Time {
	older := map[string]time.Time{}
	if json.Unmarshal([]byte(lease.Annotations[olderAnnotation]), &older) != nil || older == nil {
		return map[string]time.Time{}
	}
	for len(older) > maxOlder {
		first := slices.MinFunc(slices.Collect(maps.Keys(older)), func(a, b string) int { return older[a].Compare(older[b]) })
		delete(older, first)
	}
	return older
}

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

// older says until when releases stay as they are that a newer tree than that of this process has made, or "".
func (d *Driver) older() (until string) {
	if d.trees.arrives() {
		until = "that tree arrives here, or another process with it leads; three minutes at most outside a rollout"
	}
	return until
}

// arrives says that a newer tree may arrive until then, or "".
func (d *Driver) arrives(until time.Time) string {
	if !d.trees.arrives() || !time.Now().Before(until) {
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
			if now == "" {
				d.trees.settle()
			}
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
