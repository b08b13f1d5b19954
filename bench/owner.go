package main

import (
	"context"
	"encoding/json"
	"flag"
	"maps"
	"slices"
	"sync"
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
	"k8s.io/client-go/kubernetes"
	corelisters "k8s.io/client-go/listers/core/v1"
	"k8s.io/client-go/tools/cache"
	"k8s.io/client-go/util/workqueue"
)

// ownerCommand as the first argument makes this program a controller of Apps as one writes it with
// client-go: informers of the parents and of the three kinds of their children, a queue of keys, and
// workers.
const ownerCommand = "bare-owner"

// ownerFinalizer keeps an App until its children are gone.
const ownerFinalizer = "bench.starling.dev/owner"

// owner has the children of Apps as they should be, and writes nothing but what differs from its informers.
type owner struct {
	namespace string
	client    kubernetes.Interface
	apps      dynamic.ResourceInterface
	parents   cache.GenericNamespaceLister
	configs   corelisters.ConfigMapNamespaceLister
	services  corelisters.ServiceNamespaceLister
	accounts  corelisters.ServiceAccountNamespaceLister
}

func runOwner(args []string) error {
	flags := flag.NewFlagSet(ownerCommand, flag.ContinueOnError)
	workers := flags.Int("workers", 0, "")
	namespace := flags.String("namespace", "", "")
	ctx, stop, client, err := bareClient(flags, args)
	if err != nil {
		return err
	}
	defer stop()
	config, err := adminConfig(flags.Lookup("kubeconfig").Value.String())
	if err != nil {
		return err
	}
	apps, err := dynamic.NewForConfig(config)
	if err != nil {
		return err
	}
	o := &owner{namespace: *namespace, client: client, apps: apps.Resource(appResource()).Namespace(*namespace)}
	queue := workqueue.NewTypedRateLimitingQueue(workqueue.DefaultTypedControllerRateLimiter[string]())
	informersOf, synced := o.watch(client, apps, queue.Add)
	for _, start := range informersOf {
		start(ctx.Done())
	}
	if !cache.WaitForCacheSync(ctx.Done(), synced...) {
		return ctx.Err()
	}
	var busy sync.WaitGroup
	for range *workers {
		busy.Go(func() {
			for {
				name, over := queue.Get()
				if over {
					return
				}
				if err := o.reconcile(ctx, name); err != nil {
					queue.AddRateLimited(name)
				} else {
					queue.Forget(name)
				}
				queue.Done(name)
			}
		})
	}
	<-ctx.Done()
	queue.ShutDown()
	busy.Wait()
	return nil
}

// watch has add told the names of parents: of each that changes, and of each whose child does.
func (o *owner) watch(client kubernetes.Interface, apps dynamic.Interface, add func(string)) (start []func(<-chan struct{}), synced []cache.InformerSynced) {
	bare := func(l *metav1.ListOptions) { l.LabelSelector = sideLabel + "=" + sideController }
	changed := func(name func(metav1.Object) string) cache.ResourceEventHandlerFuncs {
		tell := func(obj any) {
			if tombstone, is := obj.(cache.DeletedFinalStateUnknown); is {
				obj = tombstone.Obj
			}
			if o, is := obj.(metav1.Object); is && name(o) != "" {
				add(name(o))
			}
		}
		return cache.ResourceEventHandlerFuncs{AddFunc: tell, UpdateFunc: func(_, obj any) { tell(obj) }, DeleteFunc: tell}
	}
	parents := dynamicinformer.NewFilteredDynamicSharedInformerFactory(apps, 0, o.namespace, bare)
	of := parents.ForResource(appResource())
	o.parents = of.Lister().ByNamespace(o.namespace)
	children := informers.NewSharedInformerFactoryWithOptions(client, 0, informers.WithNamespace(o.namespace), informers.WithTweakListOptions(bare))
	core := children.Core().V1()
	configs, services, accounts := core.ConfigMaps(), core.Services(), core.ServiceAccounts()
	o.configs, o.services = configs.Lister().ConfigMaps(o.namespace), services.Lister().Services(o.namespace)
	o.accounts = accounts.Lister().ServiceAccounts(o.namespace)
	follow := func(informer cache.SharedIndexInformer, name func(metav1.Object) string) {
		if h, err := informer.AddEventHandler(changed(name)); err == nil { // it has not stopped
			synced = append(synced, h.HasSynced)
		}
	}
	follow(of.Informer(), metav1.Object.GetName)
	for _, informer := range []cache.SharedIndexInformer{configs.Informer(), services.Informer(), accounts.Informer()} {
		follow(informer, func(obj metav1.Object) string {
			if by := metav1.GetControllerOf(obj); by != nil {
				return by.Name
			}
			return ""
		})
	}
	return []func(<-chan struct{}){parents.Start, children.Start}, synced
}

// reconcile makes the writes that a controller of Starling makes: the finalizer, then the children that
// differ, then the status.
func (o *owner) reconcile(ctx context.Context, name string) error {
	obj, err := o.parents.Get(name)
	if apierrors.IsNotFound(err) {
		return nil
	} else if err != nil {
		return err
	}
	app := obj.(*unstructured.Unstructured)
	if !slices.Contains(app.GetFinalizers(), ownerFinalizer) {
		_, err := o.apps.Patch(ctx, name, types.MergePatchType, finalizerPatch(app), metav1.PatchOptions{})
		return err // its event brings us back
	}
	stamp, _, _ := unstructured.NestedString(app.Object, "spec", stampKey)
	if err := o.config(ctx, app, stamp); err != nil {
		return err
	}
	if err := o.service(ctx, app); err != nil {
		return err
	}
	if err := o.account(ctx, app); err != nil {
		return err
	}
	return o.status(ctx, app)
}

func (o *owner) apply() metav1.ApplyOptions {
	return metav1.ApplyOptions{FieldManager: ownerCommand, Force: true}
}

func (o *owner) config(ctx context.Context, app *unstructured.Unstructured, stamp string) error {
	data := map[string]string{stampKey: stamp}
	if live, err := o.configs.Get(app.GetName()); err == nil && metav1.IsControlledBy(live, app) && maps.Equal(live.Data, data) {
		return nil
	}
	_, err := o.client.CoreV1().ConfigMaps(o.namespace).Apply(ctx,
		acorev1.ConfigMap(app.GetName(), o.namespace).WithOwnerReferences(ownedBy(app)).WithLabels(ownerLabels(app)).WithData(data), o.apply())
	return err
}

func (o *owner) service(ctx context.Context, app *unstructured.Unstructured) error {
	if live, err := o.services.Get(app.GetName()); err == nil && metav1.IsControlledBy(live, app) && len(live.Spec.Ports) == 1 && live.Spec.Ports[0].Port == 80 {
		return nil
	}
	_, err := o.client.CoreV1().Services(o.namespace).Apply(ctx,
		acorev1.Service(app.GetName(), o.namespace).WithOwnerReferences(ownedBy(app)).WithLabels(ownerLabels(app)).
			WithSpec(acorev1.ServiceSpec().WithClusterIP("None").WithPorts(acorev1.ServicePort().WithPort(80))), o.apply())
	return err
}

func (o *owner) account(ctx context.Context, app *unstructured.Unstructured) error {
	if live, err := o.accounts.Get(app.GetName()); err == nil && metav1.IsControlledBy(live, app) &&
		live.AutomountServiceAccountToken != nil && !*live.AutomountServiceAccountToken {
		return nil
	}
	_, err := o.client.CoreV1().ServiceAccounts(o.namespace).Apply(ctx,
		acorev1.ServiceAccount(app.GetName(), o.namespace).WithOwnerReferences(ownedBy(app)).WithLabels(ownerLabels(app)).
			WithAutomountServiceAccountToken(false), o.apply())
	return err
}

// status says that all children are there: no controller of Kubernetes works on these kinds.
func (o *owner) status(ctx context.Context, app *unstructured.Unstructured) error {
	if seen, _, _ := unstructured.NestedInt64(app.Object, "status", "observedGeneration"); seen == app.GetGeneration() {
		return nil
	}
	condition := func(kind, status, message string) any {
		return map[string]any{"type": kind, "status": status, "reason": "Ready", "message": message, "lastTransitionTime": time.Now().UTC().Format(time.RFC3339)}
	}
	want := &unstructured.Unstructured{Object: map[string]any{
		"metadata": map[string]any{"name": app.GetName(), "namespace": o.namespace},
		"status": map[string]any{"observedGeneration": app.GetGeneration(), "children": int64(3), "conditions": []any{
			condition("Ready", "True", "all children are as they should be"), condition("Reconciling", "False", ""), condition("Stalled", "False", ""),
		}},
	}}
	want.SetGroupVersionKind(app.GroupVersionKind())
	_, err := o.apps.ApplyStatus(ctx, app.GetName(), want, o.apply())
	return err
}

func ownerLabels(app *unstructured.Unstructured) map[string]string {
	return map[string]string{"app": app.GetName(), sideLabel: sideController}
}

func ownedBy(app *unstructured.Unstructured) *ametav1.OwnerReferenceApplyConfiguration {
	return ametav1.OwnerReference().WithAPIVersion(app.GetAPIVersion()).WithKind(app.GetKind()).WithName(app.GetName()).WithUID(app.GetUID()).
		WithController(true).WithBlockOwnerDeletion(false)
}

// finalizerPatch adds the finalizer to those that an App has as it was seen.
func finalizerPatch(app *unstructured.Unstructured) []byte {
	text, _ := json.Marshal(map[string]any{"metadata": map[string]any{
		"resourceVersion": app.GetResourceVersion(), "finalizers": append(app.GetFinalizers(), ownerFinalizer),
	}})
	return text
}
