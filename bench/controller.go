package main

import (
	"context"
	"flag"
	"fmt"
	"sync"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	acorev1 "k8s.io/client-go/applyconfigurations/core/v1"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes"
	listers "k8s.io/client-go/listers/core/v1"
	"k8s.io/client-go/tools/cache"
	"k8s.io/client-go/util/workqueue"
)

// controllerCommand as the first argument makes this program a controller as one writes
// it with client-go: an informer, a queue of keys, and workers.
const controllerCommand = "bare-controller"

// controller mirrors the ConfigMaps of the bare side, one key at a time.
func controller(args []string) error {
	flags := flag.NewFlagSet(controllerCommand, flag.ContinueOnError)
	workers := flags.Int("workers", 0, "")
	state := flags.String("state", "", "")
	ctx, stop, client, err := bareClient(flags, args)
	if err != nil {
		return err
	}
	defer stop()
	queue := workqueue.NewTypedRateLimitingQueue(workqueue.DefaultTypedControllerRateLimiter[string]())
	factory := informers.NewSharedInformerFactoryWithOptions(client, 0, informers.WithNamespace(eachSources),
		informers.WithTweakListOptions(func(o *metav1.ListOptions) { o.LabelSelector = sideLabel + "=" + sideController }))
	sources := factory.Core().V1().ConfigMaps()
	add := func(obj any) {
		if key, err := cache.MetaNamespaceKeyFunc(obj); err == nil {
			queue.Add(key)
		}
	}
	_, err = sources.Informer().AddEventHandler(cache.ResourceEventHandlerFuncs{
		AddFunc: add, UpdateFunc: func(_, obj any) { add(obj) },
	})
	if err != nil {
		return err
	}
	factory.Start(ctx.Done())
	if !cache.WaitForCacheSync(ctx.Done(), sources.Informer().HasSynced) {
		return ctx.Err()
	}
	var busy sync.WaitGroup
	for range *workers {
		busy.Go(func() {
			for {
				key, over := queue.Get()
				if over {
					return
				}
				if err := reconcile(ctx, client, sources.Lister(), key, *state); err != nil {
					queue.AddRateLimited(key)
				} else {
					queue.Forget(key)
				}
				queue.Done(key)
			}
		})
	}
	<-ctx.Done()
	queue.ShutDown()
	busy.Wait()
	return nil
}

// stateKey is the annotation of a source in which the controller notes what it has done, as
// others do in the status, which ConfigMaps do not have.
const stateKey = "bench.starling.dev/state"

// reconcile makes the same write as the hook with for_each. With state, the name of what is
// noted, it notes the stamp at the source and does nothing when it stands there.
func reconcile(ctx context.Context, client kubernetes.Interface, sources listers.ConfigMapLister, key, state string) error {
	namespace, name, err := cache.SplitMetaNamespaceKey(key)
	if err != nil {
		return err
	}
	source, err := sources.ConfigMaps(namespace).Get(name)
	if apierrors.IsNotFound(err) {
		return nil
	} else if err != nil {
		return err
	}
	note := state + "=" + source.Data[stampKey]
	if state != "" && source.Annotations[stateKey] == note {
		return nil
	}
	mirror := acorev1.ConfigMap(source.Name, eachMirrors).WithLabels(map[string]string{"bench": "each"}).WithData(source.Data)
	_, err = client.CoreV1().ConfigMaps(eachMirrors).Apply(ctx, mirror, metav1.ApplyOptions{FieldManager: controllerCommand, Force: true})
	if err != nil || state == "" {
		return err
	}
	_, err = client.CoreV1().ConfigMaps(namespace).Patch(ctx, name, types.MergePatchType,
		fmt.Appendf(nil, `{"metadata":{"annotations":{%q:%q}}}`, stateKey, note), metav1.PatchOptions{})
	return err
}
