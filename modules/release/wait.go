package release

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"time"

	"helm.sh/helm/v3/pkg/kube"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/cli-runtime/pkg/resource"
	"k8s.io/client-go/tools/cache"
	watchtools "k8s.io/client-go/tools/watch"
)

// Pauses between two looks at objects that are not ready.
const (
	readyPauseMin = 200 * time.Millisecond
	readyPauseMax = 2 * time.Second
)

// onWait is the key of what OnWait gives.
type onWait struct{}

// inMemory is how much memory an action holds for each byte of its manifests: as texts, and as objects.
const inMemory = 12

// OnWait has an action call f, with the context of the action and how many bytes it holds, as it begins to wait: for
// objects to be ready or gone, or for a Job or Pod of a chart's hooks to end.
func OnWait(ctx context.Context, f func(action context.Context, holds int64)) context.Context {
	return context.WithValue(ctx, onWait{}, f)
}

// waits says that the action waits from here on.
func (c *client) waits() {
	if f, ok := c.ctx.Value(onWait{}).(func(context.Context, int64)); ok {
		f(c.ctx, c.built*inMemory)
	}
}

// Wait waits until the objects are ready by Helm's rules. The error says which
// one is not.
func (c *client) Wait(resources kube.ResourceList, timeout time.Duration) error {
	if c.lifeless {
		return nil
	}
	c.waits()
	set, err := c.Factory.KubernetesClientSet()
	if err != nil {
		return err
	}
	var last string
	checker := kube.NewReadyChecker(set, func(format string, args ...any) { last = line(fmt.Sprintf(format, args...)) }, kube.PausedAsReady(true))
	ctx, cancel := context.WithTimeoutCause(c.ctx, timeout, errTimeout(timeout))
	defer cancel()
	pause := readyPauseMin
	for {
		waiting, err := firstNotReady(ctx, checker, resources)
		if ctx.Err() == nil && err != nil && !transient(err) {
			return err
		}
		if waiting == nil && err == nil {
			return nil
		}
		select {
		case <-time.After(pause):
		case <-ctx.Done():
			if last == "" {
				last = waiting.ObjectName() + " is not ready"
			}
			return errors.New(context.Cause(ctx).Error() + ": " + last)
		}
		pause = min(pause*3/2, readyPauseMax)
	}
}

func firstNotReady(ctx context.Context, checker kube.ReadyChecker, resources kube.ResourceList) (*resource.Info, error) {
	for _, info := range resources {
		if ok, err := checker.IsReady(ctx, info); !ok || err != nil {
			return info, err
		}
	}
	return nil, nil
}

// WatchUntilReady waits for the Jobs and Pods of a chart's hooks until they have
// succeeded or failed, by Helm's rules; other kinds are ready at once. Helm's own
// does not end with the action.
func (c *client) WatchUntilReady(resources kube.ResourceList, timeout time.Duration) error {
	if c.lifeless {
		return c.untilFinished(resources, timeout)
	}
	ctx, cancel := context.WithTimeoutCause(c.ctx, timeout, errTimeout(timeout))
	defer cancel()
	for _, info := range resources {
		kind := info.Mapping.GroupVersionKind.Kind
		if kind != "Job" && kind != "Pod" {
			continue
		}
		c.waits()
		lw := cache.NewListWatchFromClient(info.Client, info.Mapping.Resource.Resource, info.Namespace,
			fields.OneTermEqualSelector("metadata.name", info.Name))
		_, err := watchtools.UntilWithSync(ctx, lw, &unstructured.Unstructured{}, nil, func(e watch.Event) (bool, error) {
			object, ok := e.Object.(*unstructured.Unstructured)
			if !ok {
				return false, fmt.Errorf("watching %s %s failed", kind, info.Name)
			}
			return e.Type == watch.Deleted || finished(object), failure(object)
		})
		if err != nil && ctx.Err() != nil {
			return fmt.Errorf("%w: %s %s has not finished", context.Cause(ctx), kind, info.Name)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// finished says whether a Job or Pod has succeeded.
func finished(o *unstructured.Unstructured) bool {
	if o.GetKind() == "Pod" {
		phase, _, _ := unstructured.NestedString(o.Object, "status", "phase")
		return phase == "Succeeded"
	}
	_, ok := jobCondition(o, "Complete")
	return ok
}

// failure is why a Job or Pod has failed, nil if it has not.
func failure(o *unstructured.Unstructured) error {
	if o.GetKind() == "Pod" {
		if phase, _, _ := unstructured.NestedString(o.Object, "status", "phase"); phase == "Failed" {
			return fmt.Errorf("pod %s failed", o.GetName())
		}
		return nil
	}
	if reason, ok := jobCondition(o, "Failed"); ok {
		return fmt.Errorf("job %s failed: %s", o.GetName(), reason)
	}
	return nil
}

// jobCondition gives the reason of a condition that is true.
func jobCondition(o *unstructured.Unstructured, kind string) (reason string, ok bool) {
	list, _, _ := unstructured.NestedSlice(o.Object, "status", "conditions")
	for _, c := range list {
		if c, ok := c.(map[string]any); ok && c["type"] == kind && c["status"] == "True" {
			reason, _ := c["reason"].(string)
			return reason, true
		}
	}
	return "", false
}

// transient says whether asking again may help: anything but a final answer of
// the API server.
func transient(err error) bool {
	var status apierrors.APIStatus
	if !errors.As(err, &status) {
		return true
	}
	code := status.Status().Code
	return code == 0 || code == http.StatusTooManyRequests || code >= 500 && code != http.StatusNotImplemented
}
