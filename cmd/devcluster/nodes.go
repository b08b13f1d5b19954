package main

import (
	"context"
	"fmt"
	"hash/fnv"
	"net"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/wait"
	coreinformers "k8s.io/client-go/informers/core/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/cache"
	"k8s.io/klog/v2"
	"k8s.io/utils/ptr"
)

const (
	fakeLabel     = "type" // = "fake"
	notReadyTaint = corev1.TaintNodeNotReady
	leaseDuration = 40 * time.Second // a kubelet's, renewed after a quarter
	// resync shows every object to the handlers again: what failed is tried again.
	resync = 30 * time.Second
)

// fakeNodes plays the kubelet of every Node with the label type=fake: it
// fills in its status, renews its Lease, and runs its pods in name.
type fakeNodes struct {
	client kubernetes.Interface
	// leases holds what ends the renewal of a node's Lease, by the node's UID.
	// Only the handler of node events touches it.
	leases map[types.UID]context.CancelFunc
}

func nodeName(i int) string { return fmt.Sprintf("fake-%d", i) }

// create makes the first count nodes; those of an earlier run stay as they are.
func (f *fakeNodes) create(ctx context.Context, count int) error {
	for i := range count {
		node := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: nodeName(i), Labels: map[string]string{fakeLabel: "fake"}}}
		if _, err := f.client.CoreV1().Nodes().Create(ctx, node, metav1.CreateOptions{}); err != nil && !apierrors.IsAlreadyExists(err) {
			return err
		}
	}
	return nil
}

// run plays until ctx ends.
func (f *fakeNodes) run(ctx context.Context) error {
	f.leases = map[types.UID]context.CancelFunc{}
	var loops wait.Group
	nodes := coreinformers.NewFilteredNodeInformer(f.client, resync, cache.Indexers{},
		func(o *metav1.ListOptions) { o.LabelSelector = fakeLabel + "=fake" })
	handled, err := nodes.AddEventHandler(cache.ResourceEventHandlerFuncs{
		AddFunc: func(o any) { f.nodeSeen(ctx, &loops, o.(*corev1.Node)) },
		UpdateFunc: func(old, o any) {
			if old.(*corev1.Node).UID != o.(*corev1.Node).UID { // deleted and made again, seen as one change
				f.nodeGone(old)
			}
			f.nodeSeen(ctx, &loops, o.(*corev1.Node))
		},
		DeleteFunc: f.nodeGone,
	})
	if err != nil {
		return err
	}
	pods := coreinformers.NewFilteredPodInformer(f.client, metav1.NamespaceAll, resync, cache.Indexers{},
		func(o *metav1.ListOptions) { o.FieldSelector = "spec.nodeName!=" })
	podSeen := func(o any) {
		pod := o.(*corev1.Pod)
		if _, fake, err := nodes.GetStore().GetByKey(pod.Spec.NodeName); fake && err == nil {
			f.podSeen(ctx, pod)
		}
	}
	if _, err := pods.AddEventHandler(cache.ResourceEventHandlerFuncs{
		AddFunc:    podSeen,
		UpdateFunc: func(_, o any) { podSeen(o) },
	}); err != nil {
		return err
	}
	loops.StartWithContext(ctx, nodes.RunWithContext)
	if cache.WaitForCacheSync(ctx.Done(), handled.HasSynced) {
		loops.StartWithContext(ctx, pods.RunWithContext)
	}
	<-ctx.Done()
	loops.Wait()
	return nil
}

func (f *fakeNodes) nodeGone(o any) {
	if unknown, ok := o.(cache.DeletedFinalStateUnknown); ok {
		o = unknown.Obj
	}
	node := o.(*corev1.Node)
	if stop := f.leases[node.UID]; stop != nil {
		stop()
		delete(f.leases, node.UID)
	}
}

func (f *fakeNodes) nodeSeen(ctx context.Context, loops *wait.Group, node *corev1.Node) {
	if f.leases[node.UID] == nil {
		leaseCtx, stop := context.WithCancel(ctx)
		f.leases[node.UID] = stop
		loops.Start(func() {
			wait.UntilWithContext(leaseCtx, func(ctx context.Context) {
				if err := f.renewLease(ctx, node); err != nil && ctx.Err() == nil {
					klog.ErrorS(err, "renew the lease of a fake node", "node", node.Name)
				}
			}, leaseDuration/4)
		})
	}
	if err := f.fillIn(ctx, node.DeepCopy()); err != nil && !apierrors.IsConflict(err) && !apierrors.IsNotFound(err) && ctx.Err() == nil {
		klog.ErrorS(err, "fill in a fake node", "node", node.Name)
	}
}

// fillIn adds what a kubelet would and what is not there: a Ready condition that
// somebody set to False stays. After a conflict the newer object comes as an event.
func (f *fakeNodes) fillIn(ctx context.Context, node *corev1.Node) error {
	changed := false
	for key, value := range map[string]string{
		corev1.LabelHostname: node.Name, corev1.LabelOSStable: "linux", corev1.LabelArchStable: "amd64",
	} {
		if _, ok := node.Labels[key]; !ok {
			node.Labels[key], changed = value, true
		}
	}
	if changed {
		var err error
		if node, err = f.client.CoreV1().Nodes().Update(ctx, node, metav1.UpdateOptions{}); err != nil {
			return err
		}
	}
	if !fillInStatus(node) {
		return nil
	}
	_, err := f.client.CoreV1().Nodes().UpdateStatus(ctx, node, metav1.UpdateOptions{})
	return err
}

func fillInStatus(node *corev1.Node) (changed bool) {
	s := &node.Status
	if len(s.Capacity) == 0 {
		s.Capacity = corev1.ResourceList{
			corev1.ResourceCPU: resource.MustParse("64"), corev1.ResourceMemory: resource.MustParse("256Gi"),
			corev1.ResourcePods: resource.MustParse("500"), corev1.ResourceEphemeralStorage: resource.MustParse("1Ti"),
		}
		s.Allocatable, changed = s.Capacity, true
	}
	if len(s.Addresses) == 0 {
		s.Addresses = []corev1.NodeAddress{
			{Type: corev1.NodeInternalIP, Address: nodeIP(node.Name)},
			{Type: corev1.NodeHostName, Address: node.Name},
		}
		changed = true
	}
	if s.NodeInfo.KubeletVersion == "" {
		s.NodeInfo.KubeletVersion, s.NodeInfo.ContainerRuntimeVersion = "fake", "fake://1"
		s.NodeInfo.OperatingSystem, s.NodeInfo.Architecture = "linux", "amd64"
		changed = true
	}
	for _, want := range []corev1.NodeCondition{
		{Type: corev1.NodeReady, Status: corev1.ConditionTrue},
		{Type: corev1.NodeMemoryPressure, Status: corev1.ConditionFalse},
		{Type: corev1.NodeDiskPressure, Status: corev1.ConditionFalse},
		{Type: corev1.NodePIDPressure, Status: corev1.ConditionFalse},
	} {
		want.Reason, want.LastTransitionTime, want.LastHeartbeatTime = "FakeNode", metav1.Now(), metav1.Now()
		have := condition(node, want.Type)
		switch {
		case have == nil:
			s.Conditions, changed = append(s.Conditions, want), true
		case have.Status == corev1.ConditionUnknown: // by the node controller: this process slept too long
			*have, changed = want, true
		}
	}
	return changed
}

func condition(node *corev1.Node, t corev1.NodeConditionType) *corev1.NodeCondition {
	for i := range node.Status.Conditions {
		if node.Status.Conditions[i].Type == t {
			return &node.Status.Conditions[i]
		}
	}
	return nil
}

func ready(node *corev1.Node) bool {
	c := condition(node, corev1.NodeReady)
	return c != nil && c.Status == corev1.ConditionTrue
}

// renewLease reads the Lease first: an update without a resourceVersion is
// refused, and 50 s later the node would be NotReady.
func (f *fakeNodes) renewLease(ctx context.Context, node *corev1.Node) error {
	leases := f.client.CoordinationV1().Leases(corev1.NamespaceNodeLease)
	lease, err := leases.Get(ctx, node.Name, metav1.GetOptions{})
	if apierrors.IsNotFound(err) {
		_, err = leases.Create(ctx, &coordinationv1.Lease{
			ObjectMeta: metav1.ObjectMeta{
				Name: node.Name,
				OwnerReferences: []metav1.OwnerReference{
					{APIVersion: "v1", Kind: "Node", Name: node.Name, UID: node.UID},
				},
			},
			Spec: coordinationv1.LeaseSpec{
				HolderIdentity:       &node.Name,
				LeaseDurationSeconds: ptr.To(int32(leaseDuration.Seconds())),
				RenewTime:            ptr.To(metav1.NowMicro()),
			},
		}, metav1.CreateOptions{})
		return err
	}
	if err != nil {
		return err
	}
	lease.Spec.RenewTime = ptr.To(metav1.NowMicro())
	_, err = leases.Update(ctx, lease, metav1.UpdateOptions{})
	return err
}

// nodeIP and podIP make addresses up. They come from a hash, so that a restart
// needs no memory; nothing is ever sent to them.
func nodeIP(name string) string {
	h := hash(name)
	return net.IPv4(10, 100, byte(h>>8), byte(h)).String()
}

func podIP(uid types.UID) string {
	h := hash(string(uid))
	return net.IPv4(10, 128|byte(h>>16), byte(h>>8), byte(h)).String()
}

func hash(s string) uint32 {
	h := fnv.New32a()
	h.Write([]byte(s))
	return h.Sum32()
}
