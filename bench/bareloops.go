package main

import (
	"fmt"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/watch"
	aappsv1 "k8s.io/client-go/applyconfigurations/apps/v1"
	acorev1 "k8s.io/client-go/applyconfigurations/core/v1"
	ametav1 "k8s.io/client-go/applyconfigurations/meta/v1"
	"k8s.io/client-go/informers"
	listers "k8s.io/client-go/listers/core/v1"
	"k8s.io/client-go/tools/cache"
)

// ofSide selects the objects of one side.
func ofSide(side string) metav1.ListOptions {
	return metav1.ListOptions{LabelSelector: sideLabel + "=" + side}
}

// controlled selects the objects of the bare controllers.
func controlled(o *metav1.ListOptions) { o.LabelSelector = ofSide(sideController).LabelSelector }

func (s *bare) watchSources(side string) (watch.Interface, error) {
	return s.client.CoreV1().ConfigMaps(sourceNamespace).Watch(s.ctx, ofSide(side))
}

// apply writes a ConfigMap as k8s.apply of a hook does.
func (s *bare) apply(cm *acorev1.ConfigMapApplyConfiguration, manager string) error {
	_, err := s.client.CoreV1().ConfigMaps(*cm.Namespace).Apply(s.ctx, cm, forced(manager))
	return err
}

func forced(manager string) metav1.ApplyOptions {
	return metav1.ApplyOptions{FieldManager: manager, Force: true}
}

// mirrorEach mirrors each new ConfigMap of one side into a second one, with as little as
// client-go needs for that.
func (s *bare) mirrorEach(side string, write func(*corev1.ConfigMap) error) error {
	w, err := s.watchSources(side)
	if err != nil {
		return err
	}
	return each(s, w, func(event watch.EventType, source *corev1.ConfigMap) error {
		if event != watch.Added {
			return nil
		}
		return write(source)
	})
}

// createMirrors does the least that a program can do.
func (s *bare) createMirrors() error {
	return s.mirrorEach(sideCreate, func(source *corev1.ConfigMap) error {
		mirror := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: source.Name}, Data: source.Data}
		_, err := s.client.CoreV1().ConfigMaps(mirrorNamespace).Create(s.ctx, mirror, metav1.CreateOptions{})
		return err
	})
}

// applyMirrors makes the same write as the hook.
func (s *bare) applyMirrors() error {
	return s.mirrorEach(sideApply, func(source *corev1.ConfigMap) error {
		return s.apply(acorev1.ConfigMap(source.Name, mirrorNamespace).WithData(source.Data), "bare-loop")
	})
}

// applySet applies the members of a set, one after the other, each time that its source changes.
func (s *bare) applySet() error {
	w, err := s.watchSources(sideSet)
	if err != nil {
		return err
	}
	return each(s, w, func(event watch.EventType, source *corev1.ConfigMap) error {
		if event == watch.Deleted {
			return nil
		}
		for i := range setMembers {
			data := map[string]string{stampKey: "0"}
			if i == setChanged {
				data[stampKey] = source.Data[stampKey]
			}
			name := setMember(sideSet, source.Data[roundKey], i)
			if err := s.apply(acorev1.ConfigMap(name, mirrorNamespace).WithData(data), sideSet); err != nil {
				return err
			}
		}
		return nil
	})
}

// heal keeps n Deployments of the bare side as they are in a chart of the other one: it applies one that somebody has
// deleted or changed.
func (s *bare) heal() error {
	api := s.client.AppsV1().Deployments(helmNamespace)
	kept := map[string]*aappsv1.DeploymentApplyConfiguration{}
	apply := func(name string) error {
		_, err := api.Apply(s.ctx, kept[name], forced(sideHealer))
		return err
	}
	for i := range s.n {
		name := moduleName(i)
		kept[name] = bareDeployment(name)
		if err := apply(name); err != nil {
			return err
		}
	}
	list, err := api.List(s.ctx, metav1.ListOptions{})
	if err != nil {
		return err
	}
	w, err := api.Watch(s.ctx, metav1.ListOptions{ResourceVersion: list.ResourceVersion})
	if err != nil {
		return err
	}
	return each(s, w, func(event watch.EventType, d *appsv1.Deployment) error {
		if kept[d.Name] == nil || event != watch.Deleted && image(d) == chartImage {
			return nil
		}
		return apply(d.Name)
	})
}

// bareDeployment is the Deployment of [chartFiles].
func bareDeployment(name string) *aappsv1.DeploymentApplyConfiguration {
	app := map[string]string{"app": name}
	return aappsv1.Deployment(name, helmNamespace).
		WithLabels(map[string]string{"app.kubernetes.io/name": name, "app.kubernetes.io/managed-by": "Helm"}).
		WithSpec(aappsv1.DeploymentSpec().WithReplicas(0).
			WithSelector(ametav1.LabelSelector().WithMatchLabels(app)).
			WithTemplate(acorev1.PodTemplateSpec().WithLabels(app).
				WithSpec(acorev1.PodSpec().WithServiceAccountName(name).
					WithContainers(acorev1.Container().WithName("main").WithImage(chartImage)))))
}

func image(d *appsv1.Deployment) string {
	if len(d.Spec.Template.Spec.Containers) != 1 {
		return ""
	}
	return d.Spec.Template.Spec.Containers[0].Image
}

// controller mirrors the ConfigMaps of its side as one writes it with client-go: an informer, a queue of keys, and
// workers.
func (s *bare) controller() error {
	queue := newQueue()
	factory := informers.NewSharedInformerFactoryWithOptions(s.client, 0, informers.WithNamespace(eachSources),
		informers.WithTweakListOptions(controlled))
	sources := factory.Core().V1().ConfigMaps()
	add := func(obj any) {
		if key, err := cache.MetaNamespaceKeyFunc(obj); err == nil {
			queue.Add(key)
		}
	}
	_, err := sources.Informer().AddEventHandler(cache.ResourceEventHandlerFuncs{
		AddFunc: add, UpdateFunc: func(_, obj any) { add(obj) },
	})
	if err != nil {
		return err
	}
	factory.Start(s.ctx.Done())
	if !cache.WaitForCacheSync(s.ctx.Done(), sources.Informer().HasSynced) {
		return s.ctx.Err()
	}
	lister := sources.Lister().ConfigMaps(eachSources)
	s.work(queue, func(key string) error { return s.mirror(lister, key) })
	return nil
}

// stateKey is the annotation of a source in which the controller notes what it has done, as
// others do in the status, which ConfigMaps do not have.
const stateKey = "bench.starling.dev/state"

// mirror makes the same write as the hook with for_each. With state, the name of what is
// noted, it notes the stamp at the source and does nothing when it stands there.
func (s *bare) mirror(sources listers.ConfigMapNamespaceLister, key string) error {
	_, name, err := cache.SplitMetaNamespaceKey(key)
	if err != nil {
		return err
	}
	source, err := sources.Get(name)
	if apierrors.IsNotFound(err) {
		return nil
	} else if err != nil {
		return err
	}
	note := s.state + "=" + source.Data[stampKey]
	if s.state != "" && source.Annotations[stateKey] == note {
		return nil
	}
	mirror := acorev1.ConfigMap(name, eachMirrors).WithLabels(map[string]string{"bench": "each"}).WithData(source.Data)
	if err := s.apply(mirror, sideController); err != nil || s.state == "" {
		return err
	}
	_, err = s.client.CoreV1().ConfigMaps(eachSources).Patch(s.ctx, name, types.MergePatchType,
		fmt.Appendf(nil, `{"metadata":{"annotations":{%q:%q}}}`, stateKey, note), metav1.PatchOptions{})
	return err
}
