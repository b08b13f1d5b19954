package live

import (
	"context"
	"errors"
	"fmt"
	"os"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/starling-operator/starling/runtime/cluster"
	"github.com/starling-operator/starling/runtime/replicas"
)

// showRole has the pods say that this one leads, and no other. It is tried until it is done, or cannot be: nothing
// but the label depends on it, so one log line is all that is said.
func (d *Driver) showRole() {
	own := os.Getenv(podName)
	if own == "" {
		return
	}
	wait := time.Second
	for told := false; ; told = true {
		err := d.labelPods(own)
		if err == nil || d.work().Err() != nil {
			return
		}
		if !told {
			d.o.Log.Warn().Err(err).Msg("the label " + replicas.RoleLabel + " of the pods does not say which one leads")
		}
		if apierrors.IsForbidden(err) || apierrors.IsNotFound(err) {
			return
		}
		select {
		case <-d.work().Done():
			return
		case <-time.After(wait):
		}
		wait = min(wait*2, time.Minute)
	}
}

// labelPods labels this pod, and takes the label from those of the same Deployment: a process that stands by writes
// nothing, so one that has led before keeps it.
func (d *Driver) labelPods(own string) error {
	ctx, end := context.WithTimeout(d.work(), 10*time.Second)
	defer end()
	kind := cluster.Mapping{GVR: corev1.SchemeGroupVersion.WithResource("pods"), Kind: "Pod", Namespaced: true}
	pods := d.o.Client.Dynamic().Resource(kind.GVR).Namespace(d.o.Namespace)
	label := func(pod, role string) error {
		patch := fmt.Appendf(nil, `{"metadata":{"labels":{%q:%q}}}`, replicas.RoleLabel, role)
		_, err := pods.Patch(ctx, pod, types.MergePatchType, patch, metav1.PatchOptions{FieldManager: "starling"})
		return d.o.Client.Explain(err, "patch", kind, d.o.Namespace)
	}
	if err := label(own, replicas.Leader); err != nil {
		return err
	}
	labelled, err := pods.List(ctx, metav1.ListOptions{LabelSelector: replicas.RoleLabel + "=" + replicas.Leader})
	if err != nil {
		return d.o.Client.Explain(err, "list", kind, d.o.Namespace)
	}
	var failed []error
	for i := range labelled.Items {
		name := labelled.Items[i].GetName()
		if name == own || deploymentOf(name) != deploymentOf(own) {
			continue
		}
		if err := label(name, replicas.Standby); err != nil && !apierrors.IsNotFound(err) {
			failed = append(failed, err)
		}
	}
	return errors.Join(failed...)
}
