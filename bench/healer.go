package main

import (
	"context"
	"errors"
	"flag"
	"fmt"

	appsv1 "k8s.io/api/apps/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/watch"
	aappsv1 "k8s.io/client-go/applyconfigurations/apps/v1"
	acorev1 "k8s.io/client-go/applyconfigurations/core/v1"
	ametav1 "k8s.io/client-go/applyconfigurations/meta/v1"
	"k8s.io/client-go/kubernetes"
)

// healerCommand as the first argument makes this program a loop that watches Deployments, and
// applies one that somebody has deleted or changed.
const healerCommand = "bare-healer"

// healer keeps n Deployments of the bare side as they are in a chart of the other one.
func healer(args []string) error {
	flags := flag.NewFlagSet(healerCommand, flag.ContinueOnError)
	n := flags.Int("n", 0, "")
	ctx, stop, client, err := bareClient(flags, args)
	if err != nil {
		return err
	}
	defer stop()
	kept := map[string]*aappsv1.DeploymentApplyConfiguration{}
	for i := range *n {
		d := bareDeployment(moduleName(i))
		kept[*d.Name] = d
		if err := applyDeployment(ctx, client, d); err != nil {
			return err
		}
	}
	list, err := client.AppsV1().Deployments(helmNamespace).List(ctx, metav1.ListOptions{})
	if err != nil {
		return err
	}
	w, err := client.AppsV1().Deployments(helmNamespace).Watch(ctx, metav1.ListOptions{ResourceVersion: list.ResourceVersion})
	if err != nil {
		return err
	}
	fmt.Println("watches")
	for event := range w.ResultChan() {
		d, ok := event.Object.(*appsv1.Deployment)
		if !ok || kept[d.Name] == nil || event.Type != watch.Deleted && image(d) == chartImage {
			continue
		}
		if err := applyDeployment(ctx, client, kept[d.Name]); err != nil {
			return err
		}
	}
	if ctx.Err() == nil {
		return errors.New("the watch of the bare loop has ended")
	}
	return nil
}

func applyDeployment(ctx context.Context, client kubernetes.Interface, d *aappsv1.DeploymentApplyConfiguration) error {
	_, err := client.AppsV1().Deployments(helmNamespace).Apply(ctx, d, metav1.ApplyOptions{FieldManager: healerCommand, Force: true})
	return err
}

// bareDeployment is the Deployment of [chartFiles].
func bareDeployment(name string) *aappsv1.DeploymentApplyConfiguration {
	app := map[string]string{"app": name}
	return aappsv1.Deployment(name, helmNamespace).
		WithLabels(map[string]string{"app.kubernetes.io/name": name, "app.kubernetes.io/managed-by": "Helm"}).
		WithSpec(aappsv1.DeploymentSpec().WithReplicas(0).
			WithSelector(ametav1.LabelSelector().WithMatchLabels(app)).
			WithTemplate(acorev1.PodTemplateSpec().WithLabels(app).
				WithSpec(acorev1.PodSpec().WithServiceAccountName(name).WithContainers(acorev1.Container().WithName("main").WithImage(chartImage)))))
}

func image(d *appsv1.Deployment) string {
	if len(d.Spec.Template.Spec.Containers) != 1 {
		return ""
	}
	return d.Spec.Template.Spec.Containers[0].Image
}
