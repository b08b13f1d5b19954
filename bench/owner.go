package main

import (
	"encoding/json"
	"maps"
	"slices"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	acorev1 "k8s.io/client-go/applyconfigurations/core/v1"
	ametav1 "k8s.io/client-go/applyconfigurations/meta/v1"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/dynamic/dynamicinformer"
	"k8s.io/client-go/informers"
	corelisters "k8s.io/client-go/listers/core/v1"
	"k8s.io/client-go/tools/cache"
)

// ownerFinalizer keeps an App until its children are gone.
const ownerFinalizer = "bench.starling.dev/owner"

// owner has the children of Apps as they should be, and writes nothing but what differs from its informers.
type owner struct {
	*bare
	apps     dynamic.ResourceInterface
	parents  cache.GenericNamespaceLister
	configs  corelisters.ConfigMapNamespaceLister
	services corelisters.ServiceNamespaceLister
	accounts corelisters.ServiceAccountNamespaceLister
}

// own is a controller of Apps as one writes it with client-go: informers of the parents and of the three kinds of
// their children, a queue of keys, and workers.
func (s *bare) own() error {
	client, err := dynamic.NewForConfig(s.config)
	if err != nil {
		return err
	}
	o := &owner{bare: s, apps: client.Resource(appResource()).Namespace(s.namespace)}
	queue := newQueue()
	if synced := o.watch(client, queue.Add); !cache.WaitForCacheSync(s.ctx.Done(), synced...) {
		return s.ctx.Err()
	}
	s.work(queue, o.reconcile)
	return nil
}

// watch has add told the names of parents: of each that changes, and of each whose child does.
func (o *owner) watch(client dynamic.Interface, add func(string)) (synced []cache.InformerSynced) {
	follow := func(informer cache.SharedIndexInformer, name func(metav1.Object) string) {
		tell := func(obj any) {
			if tombstone, is := obj.(cache.DeletedFinalStateUnknown); is {
				obj = tombstone.Obj
			}
			if o, is := obj.(metav1.Object); is && name(o) != "" {
				add(name(o))
			}
		}
		h, err := informer.AddEventHandler(cache.ResourceEventHandlerFuncs{
			AddFunc: tell, UpdateFunc: func(_, obj any) { tell(obj) }, DeleteFunc: tell,
		})
		if err == nil { // it has not stopped
			synced = append(synced, h.HasSynced)
		}
	}
	parents := dynamicinformer.NewFilteredDynamicSharedInformerFactory(client, 0, o.namespace, controlled)
	apps := parents.ForResource(appResource())
	o.parents = apps.Lister().ByNamespace(o.namespace)
	follow(apps.Informer(), metav1.Object.GetName)
	children := informers.NewSharedInformerFactoryWithOptions(o.client, 0,
		informers.WithNamespace(o.namespace), informers.WithTweakListOptions(controlled))
	core := children.Core().V1()
	o.configs = core.ConfigMaps().Lister().ConfigMaps(o.namespace)
	o.services = core.Services().Lister().Services(o.namespace)
	o.accounts = core.ServiceAccounts().Lister().ServiceAccounts(o.namespace)
	for _, informer := range []cache.SharedIndexInformer{
		core.ConfigMaps().Informer(), core.Services().Informer(), core.ServiceAccounts().Informer(),
	} {
		follow(informer, func(obj metav1.Object) string {
			if by := metav1.GetControllerOf(obj); by != nil {
				return by.Name
			}
			return ""
		})
	}
	parents.Start(o.ctx.Done())
	children.Start(o.ctx.Done())
	return synced
}

// reconcile makes the writes that a controller of Starling makes: the finalizer, then the children that
// differ, then the status.
func (o *owner) reconcile(name string) error {
	obj, err := o.parents.Get(name)
	if apierrors.IsNotFound(err) {
		return nil
	} else if err != nil {
		return err
	}
	app := obj.(*unstructured.Unstructured)
	if !slices.Contains(app.GetFinalizers(), ownerFinalizer) {
		_, err := o.apps.Patch(o.ctx, name, types.MergePatchType, finalizerPatch(app), metav1.PatchOptions{})
		return err // its event brings us back
	}
	for _, write := range []func(*unstructured.Unstructured) error{o.config, o.service, o.account, o.status} {
		if err := write(app); err != nil {
			return err
		}
	}
	return nil
}

func (o *owner) config(app *unstructured.Unstructured) error {
	stamp, _, _ := unstructured.NestedString(app.Object, "spec", stampKey)
	data := map[string]string{stampKey: stamp}
	if live, err := o.configs.Get(app.GetName()); err == nil && metav1.IsControlledBy(live, app) &&
		maps.Equal(live.Data, data) {
		return nil
	}
	return o.apply(acorev1.ConfigMap(app.GetName(), o.namespace).
		WithOwnerReferences(ownedBy(app)).WithLabels(ownerLabels(app)).WithData(data), sideOwner)
}

func (o *owner) service(app *unstructured.Unstructured) error {
	if live, err := o.services.Get(app.GetName()); err == nil && metav1.IsControlledBy(live, app) &&
		len(live.Spec.Ports) == 1 && live.Spec.Ports[0].Port == 80 {
		return nil
	}
	want := acorev1.Service(app.GetName(), o.namespace).
		WithOwnerReferences(ownedBy(app)).WithLabels(ownerLabels(app)).
		WithSpec(acorev1.ServiceSpec().WithClusterIP("None").WithPorts(acorev1.ServicePort().WithPort(80)))
	_, err := o.client.CoreV1().Services(o.namespace).Apply(o.ctx, want, forced(sideOwner))
	return err
}

func (o *owner) account(app *unstructured.Unstructured) error {
	if live, err := o.accounts.Get(app.GetName()); err == nil && metav1.IsControlledBy(live, app) &&
		live.AutomountServiceAccountToken != nil && !*live.AutomountServiceAccountToken {
		return nil
	}
	want := acorev1.ServiceAccount(app.GetName(), o.namespace).
		WithOwnerReferences(ownedBy(app)).WithLabels(ownerLabels(app)).WithAutomountServiceAccountToken(false)
	_, err := o.client.CoreV1().ServiceAccounts(o.namespace).Apply(o.ctx, want, forced(sideOwner))
	return err
}

// status says that all children are there: no controller of Kubernetes works on these kinds.
func (o *owner) status(app *unstructured.Unstructured) error {
	if seen, _, _ := unstructured.NestedInt64(app.Object, "status", "observedGeneration"); seen == app.GetGeneration() {
		return nil
	}
	now := time.Now().UTC().Format(time.RFC3339)
	condition := func(kind, status, message string) any {
		return map[string]any{
			"type": kind, "status": status, "reason": "Ready", "message": message, "lastTransitionTime": now,
		}
	}
	want := &unstructured.Unstructured{Object: map[string]any{
		"metadata": map[string]any{"name": app.GetName(), "namespace": o.namespace},
		"status": map[string]any{"observedGeneration": app.GetGeneration(), "children": int64(3), "conditions": []any{
			condition("Ready", "True", "all children are as they should be"),
			condition("Reconciling", "False", ""), condition("Stalled", "False", ""),
		}},
	}}
	want.SetGroupVersionKind(app.GroupVersionKind())
	_, err := o.apps.ApplyStatus(o.ctx, app.GetName(), want, forced(sideOwner))
	return err
}

func ownerLabels(app *unstructured.Unstructured) map[string]string {
	return map[string]string{"app": app.GetName(), sideLabel: sideController}
}

func ownedBy(app *unstructured.Unstructured) *ametav1.OwnerReferenceApplyConfiguration {
	return ametav1.OwnerReference().WithAPIVersion(app.GetAPIVersion()).WithKind(app.GetKind()).
		WithName(app.GetName()).WithUID(app.GetUID()).WithController(true).WithBlockOwnerDeletion(false)
}

// finalizerPatch adds the finalizer to those that an App has as it was seen.
func finalizerPatch(app *unstructured.Unstructured) []byte {
	text, _ := json.Marshal(map[string]any{"metadata": map[string]any{
		"resourceVersion": app.GetResourceVersion(), "finalizers": append(app.GetFinalizers(), ownerFinalizer),
	}})
	return text
}
