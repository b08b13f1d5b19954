package release

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"sync/atomic"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/starling-operator/starling/runtime/kstatus"
	"github.com/starling-operator/starling/runtime/lane"
)

// Pauses between two looks at objects that are not ready.
const (
	readyPauseMin = 200 * time.Millisecond
	readyPauseMax = 2 * time.Second
)

// inMemory is how much memory an action holds for each byte of its manifests: as texts, and as objects.
const inMemory = 12

// slowAnswer is how long an action works on while it has no answer of the API server.
const slowAnswer = time.Second

// onWait is the key of a [waiting].
type onWait struct{}

// waiting is how an action begins to wait.
type waiting struct {
	begin func(action context.Context, holds int64, slow bool)
	holds atomic.Int64 // 0: its manifests are not read yet
}

// OnWait has an action call f, with the context of the action and how many bytes it holds, as it begins to wait: for
// objects to be ready or gone, for a Job or Pod of a chart's hooks to end, or, slow, for an answer of the API server.
// For the last one f is called beside the action, again and again, and its context ends with the answer.
func OnWait(ctx context.Context, f func(action context.Context, holds int64, slow bool)) context.Context {
	return context.WithValue(ctx, onWait{}, &waiting{begin: f})
}

// holds says how many bytes of manifests the action has in memory.
func holds(ctx context.Context, n int) {
	if w, is := ctx.Value(onWait{}).(*waiting); is {
		w.holds.Store(int64(max(n, 1)) * inMemory)
	}
}

// waits says that the action waits from here on.
func waits(ctx context.Context, slow bool) {
	if w, is := ctx.Value(onWait{}).(*waiting); is && w.holds.Load() > 0 {
		w.begin(ctx, w.holds.Load(), slow)
	}
}

// patient has an action wait for an answer that takes long: an admission webhook may hold up each write for half a
// minute.
type patient struct{ next http.RoundTripper }

// RoundTrip implements [http.RoundTripper].
func (p patient) RoundTrip(r *http.Request) (*http.Response, error) {
	if r.Context().Value(onWait{}) != nil {
		ctx, answered := context.WithCancel(r.Context())
		defer answered()
		defer time.AfterFunc(slowAnswer, func() { waits(ctx, true) }).Stop()
	}
	return p.next.RoundTrip(r)
}

// WrappedRoundTripper lets client-go find the connections below.
func (p patient) WrappedRoundTripper() http.RoundTripper { return p.next }

// overtaken is the key of what Overtakable gives.
type overtaken struct{}

// Overtakable gives an action's context, and what ends its waits, those to come, too: for objects, and for hooks that
// may run once more. Its writes go on.
func Overtakable(ctx context.Context) (context.Context, context.CancelFunc) {
	over, overtake := context.WithCancel(context.Background())
	return context.WithValue(ctx, overtaken{}, over), overtake
}

// ended is an error that no further question changes.
type ended struct{ error }

// until asks one about each object, one after the other and with growing pauses, until it has no reason to wait for any.
// Errors that may pass are not the end; the last reason is told when the time is over. In a simulated cluster its clock
// counts, and nobody waits where nothing moves.
func (l *life) until(list []stored, one func(s stored) (why string, err error)) error {
	if len(list) == 0 {
		return nil
	}
	last, away, next := "", false, 0
	look := func() (over bool, err error) {
		why := ""
		for ; next < len(list); next++ {
			if why, err = one(list[next]); why != "" || err != nil {
				break
			}
		}
		if _, is := errors.AsType[*ended](err); err != nil && (is || l.ctx.Err() == nil && !transient(err)) {
			return false, err
		}
		if away = err != nil; !away {
			last = why
		}
		over = next == len(list)
		if late := l.overtaken(); late != nil && !over {
			return false, fmt.Errorf("%w: %s", late, last)
		}
		return over, nil
	}
	if await := l.m.o.Await; await != nil {
		err := await(l.ctx, errTimeout(l.target.Timeout), l.target.Timeout, look)
		if err != nil && l.ctx.Err() != nil {
			err = fmt.Errorf("%w: %s", err, last)
		}
		return err
	}
	patience, end := context.WithCancel(l.ctx)
	defer end()
	defer context.AfterFunc(l.over, end)()
	waits(patience, false)
	for pause := readyPauseMin; ; pause = min(pause*3/2, readyPauseMax) {
		if over, err := look(); over || err != nil {
			return err
		}
		select {
		case <-time.After(pause):
		case <-patience.Done():
			if err := context.Cause(l.ctx); err != nil {
				err = fmt.Errorf("%w: %s", err, last)
				if away {
					err = &lane.Passing{Err: err}
				}
				return err
			}
		}
	}
}

// wait waits until the objects are ready, as kubectl and GitOps tools mean it; Jobs may still run. The error says
// which one is not.
func (l *life) wait(list []stored) error {
	return l.until(list, func(s stored) (why string, err error) {
		if s.obj.GroupVersionKind().GroupKind() == jobKind {
			return "", nil
		}
		live, err := l.to(s).Get(l.ctx, s.key.Name, metav1.GetOptions{})
		if err != nil {
			return "", fmt.Errorf("%s: %w", s, err)
		}
		paused, _, _ := unstructured.NestedBool(live.Object, "spec", "paused")
		if status := kstatus.Of(live.Object); !status.Ready && !(paused && s.key.Kind == "Deployment") {
			return fmt.Sprintf("%s is not ready: %s", s, status.Reason), nil
		}
		return "", nil
	})
}

// gone waits until objects are gone.
func (l *life) gone(list []stored) error {
	if l.m.o.Await != nil {
		return nil
	}
	return l.until(list, func(s stored) (why string, err error) {
		_, err = l.m.meta.Resource(s.mapping.Resource).Namespace(s.key.Namespace).Get(l.ctx, s.key.Name, metav1.GetOptions{})
		switch {
		case err == nil:
			return fmt.Sprintf("%s is still there", s), nil
		case !apierrors.IsNotFound(err):
			return "", fmt.Errorf("%s: %w", s, err)
		}
		return "", nil
	})
}

// result says whether a Job or Pod has ended, and why it has failed, nil if it has not.
func result(o *unstructured.Unstructured) (over bool, failed error) {
	if o.GetKind() == "Pod" {
		switch phase, _, _ := unstructured.NestedString(o.Object, "status", "phase"); phase {
		case "Succeeded":
			return true, nil
		case "Failed":
			why, of := kstatus.Of(o.Object).Reason, o.Object["status"].(map[string]any)
			containers, _ := of["containerStatuses"].([]any)
			for _, c := range containers {
				c, _ := c.(map[string]any)
				if code, _, _ := unstructured.NestedInt64(c, "state", "terminated", "exitCode"); code != 0 && of["reason"] == nil {
					why = fmt.Sprintf("container %v has ended with exit code %d", c["name"], code)
				}
			}
			return true, fmt.Errorf("pod %s failed: %s", o.GetName(), why)
		}
		return false, nil
	}
	conditions, _, _ := unstructured.NestedSlice(o.Object, "status", "conditions")
	for _, c := range conditions {
		switch c, _ := c.(map[string]any); {
		case c["status"] != "True":
		case c["type"] == "Complete":
			return true, nil
		case c["type"] == "Failed":
			reason, _ := c["reason"].(string)
			return true, fmt.Errorf("job %s failed: %s", o.GetName(), reason)
		}
	}
	return false, nil
}

// transient says whether asking again may help: anything but a final answer of the API server.
func transient(err error) bool {
	var status apierrors.APIStatus
	if !errors.As(err, &status) {
		return true
	}
	code := status.Status().Code
	return code == 0 || code == http.StatusTooManyRequests || code >= 500 && code != http.StatusNotImplemented
}
