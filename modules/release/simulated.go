package release

import (
	"fmt"
	"time"

	"helm.sh/helm/v3/pkg/kube"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/cli-runtime/pkg/resource"
)

// untilFinished is WatchUntilReady where time is not that of the machine.
func (c *client) untilFinished(resources kube.ResourceList, timeout time.Duration) error {
	for _, info := range resources {
		kind := info.Mapping.GroupVersionKind.Kind
		if c.m.o.Await == nil || kind != "Job" && kind != "Pod" {
			continue
		}
		err := c.m.o.Await(c.ctx, errTimeout(timeout), timeout, func() (bool, error) {
			live, err := resource.NewHelper(info.Client, info.Mapping).Get(info.Namespace, info.Name)
			if object, ok := live.(*unstructured.Unstructured); err == nil && ok {
				return finished(object), failure(object)
			}
			if apierrors.IsNotFound(err) {
				return true, nil
			}
			return false, err
		})
		if err != nil && c.ctx.Err() != nil {
			return fmt.Errorf("%w: %s %s has not finished", err, kind, info.Name)
		}
		if err != nil {
			return err
		}
	}
	return nil
}
