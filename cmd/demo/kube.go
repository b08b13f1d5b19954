package main

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/cache"
	"k8s.io/client-go/tools/clientcmd"
)

// kube is the demo's own view of the cluster, beside Starling's.
type kube struct {
	client kubernetes.Interface
	host   string
}

func connect(kubeconfig string) (*kube, error) {
	cfg, err := clientcmd.BuildConfigFromFlags("", kubeconfig)
	if err != nil {
		return nil, err
	}
	client, err := kubernetes.NewForConfig(cfg)
	if err != nil {
		return nil, err
	}
	return &kube{client: client, host: cfg.Host}, nil
}

// version returns "Kubernetes v1.37.1 at https://127.0.0.1:1234".
func (k *kube) version() (string, error) {
	v, err := k.client.Discovery().ServerVersion()
	if err != nil {
		return "", fmt.Errorf("the control plane does not answer: %w", err)
	}
	return fmt.Sprintf("Kubernetes %s at %s", v.GitVersion, k.host), nil
}

func (k *kube) makeNamespace(ctx context.Context, name string) error {
	ns := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: name}}
	_, err := k.client.CoreV1().Namespaces().Create(ctx, ns, metav1.CreateOptions{})
	if apierrors.IsAlreadyExists(err) {
		return nil
	}
	return err
}

// readyNodes returns the names of the Ready nodes, sorted.
func (k *kube) readyNodes(ctx context.Context) ([]string, error) {
	list, err := k.client.CoreV1().Nodes().List(ctx, metav1.ListOptions{})
	if err != nil {
		return nil, fmt.Errorf("cannot list the nodes: %w", err)
	}
	var out []string
	for i := range list.Items {
		if isReady(&list.Items[i]) {
			out = append(out, list.Items[i].Name)
		}
	}
	slices.Sort(out)
	return out, nil
}

func isReady(n *corev1.Node) bool {
	return slices.ContainsFunc(n.Status.Conditions, func(c corev1.NodeCondition) bool {
		return c.Type == corev1.NodeReady && c.Status == corev1.ConditionTrue
	})
}

// addNode makes a node that the devcluster takes for its own.
func (k *kube) addNode(ctx context.Context, name string) error {
	node := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: name, Labels: map[string]string{
		"type": "fake", corev1.LabelHostname: name, corev1.LabelOSStable: "linux", corev1.LabelArchStable: "amd64",
	}}}
	_, err := k.client.CoreV1().Nodes().Create(ctx, node, metav1.CreateOptions{})
	return err
}

func (k *kube) removeNode(ctx context.Context, name string) error {
	return k.client.CoreV1().Nodes().Delete(ctx, name, metav1.DeleteOptions{})
}

// configure sets one key of the user's ConfigMap and leaves the others.
func (k *kube) configure(ctx context.Context, key, text string) error {
	maps := k.client.CoreV1().ConfigMaps(namespace)
	cm, err := maps.Get(ctx, instance, metav1.GetOptions{})
	if apierrors.IsNotFound(err) {
		cm = &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: instance}, Data: map[string]string{key: text}}
		_, err = maps.Create(ctx, cm, metav1.CreateOptions{})
		return err
	}
	if err != nil {
		return err
	}
	if cm.Data == nil {
		cm.Data = map[string]string{}
	}
	cm.Data[key] = text
	_, err = maps.Update(ctx, cm, metav1.UpdateOptions{})
	return err
}

// watch sends what it sees of the nodes, the release and its objects, until ctx
// ends.
func (k *kube) watch(ctx context.Context, to chan<- observation) {
	send := func(o observation) {
		select {
		case to <- o:
		case <-ctx.Done():
		}
	}
	all := informers.NewSharedInformerFactory(k.client, 0)
	on(all.Core().V1().Nodes().Informer(), func(n *corev1.Node, gone bool) {
		send(sawNode{n.Name, !gone && isReady(n)})
	})
	hello := informers.NewSharedInformerFactoryWithOptions(k.client, 0, informers.WithNamespace("hello"))
	on(hello.Apps().V1().Deployments().Informer(), func(d *appsv1.Deployment, gone bool) {
		switch {
		case d.Name != "hello":
		case gone:
			send(sawDeployment{-1, -1})
		case d.Spec.Replicas != nil:
			ready := -1 // as long as the numbers are of an older spec
			if d.Status.ObservedGeneration >= d.Generation {
				ready = int(d.Status.ReadyReplicas)
			}
			send(sawDeployment{int(*d.Spec.Replicas), ready})
		}
	})
	on(hello.Core().V1().ConfigMaps().Informer(), func(c *corev1.ConfigMap, gone bool) {
		if c.Name == "hello" && !gone {
			send(sawConfigMap{c.Data["greeting"], strings.Fields(c.Data["nodes"])})
		}
	})
	releases := informers.NewSharedInformerFactoryWithOptions(k.client, 0, informers.WithNamespace("hello"),
		informers.WithTweakListOptions(func(o *metav1.ListOptions) { o.LabelSelector = "owner=helm,name=hello" }))
	store := releases.Core().V1().Secrets().Informer()
	on(store, func(s *corev1.Secret, gone bool) {
		switch revision, err := strconv.Atoi(s.Labels["version"]); {
		case err != nil:
		case !gone:
			send(sawRelease{revision, s.Labels["status"]})
		case len(store.GetStore().ListKeys()) == 0:
			send(sawNoRelease{})
		}
	})
	mine := informers.NewSharedInformerFactoryWithOptions(k.client, 0, informers.WithNamespace(namespace))
	on(mine.Core().V1().ConfigMaps().Informer(), func(c *corev1.ConfigMap, gone bool) {
		if c.Name == instance {
			version := c.ResourceVersion
			if gone {
				version = "deleted at " + time.Now().String() // each deletion is news
			}
			send(sawConfig{version})
		}
	})
	for _, f := range []informers.SharedInformerFactory{all, hello, releases, mine} {
		f.Start(ctx.Done())
	}
}

// on calls f with each object that appears, changes or goes.
func on[T any](in cache.SharedIndexInformer, f func(obj T, gone bool)) {
	see := func(o any, gone bool) {
		if last, ok := o.(cache.DeletedFinalStateUnknown); ok {
			o = last.Obj
		}
		if obj, ok := o.(T); ok {
			f(obj, gone)
		}
	}
	// The error is for an informer that has stopped; this one has not started.
	_, _ = in.AddEventHandler(cache.ResourceEventHandlerFuncs{
		AddFunc:    func(o any) { see(o, false) },
		UpdateFunc: func(_, o any) { see(o, false) },
		DeleteFunc: func(o any) { see(o, true) },
	})
}
