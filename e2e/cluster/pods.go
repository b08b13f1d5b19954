package cluster

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"net"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/starling-operator/starling/e2e/balancer"
)

// PodsOptions say how [Cluster.Pods] runs pods.
type PodsOptions struct {
	// Node is the name of the node that it makes. Required.
	Node string
	// Kubeconfig is that of the pods. Required.
	Kubeconfig string
	// Webhooks are more flags of each process with hooks that the API server asks.
	Webhooks []string
}

// Pods is a node whose pods of Starling are processes of this machine.
type Pods struct {
	t       testing.TB
	c       *Cluster
	o       PodsOptions
	program string
	ended   context.Context
	busy    sync.WaitGroup

	mu        sync.Mutex
	pods      map[types.UID]*pod
	addresses map[string]string               // on this machine, by "IP:PORT" of the pod
	led       map[*balancer.Balancer][]string // the IPs of pods that it leads to
}

// Pods makes a node, and plays its kubelet until the test ends. A pod whose image is Starling's becomes a process:
// with the arguments, the ConfigMaps and the environment of its container, with its readiness probe, and with the
// time that its preStop hook and its grace give it; `starling` may be called in it. Each port at which it listens on all addresses, and 9443 for
// webhooks, is a free one of this machine. Other pods are Ready at once. A process that ends by itself, or must be killed,
// fails the test. End all pods before the test ends.
func (c *Cluster) Pods(t testing.TB, o PodsOptions) *Pods {
	t.Helper()
	program, err := Program()
	if err != nil {
		t.Fatal(err)
	}
	all := corev1.ResourceList{
		corev1.ResourceCPU: resource.MustParse("64"), corev1.ResourceMemory: resource.MustParse("256Gi"),
		corev1.ResourcePods: resource.MustParse("500"), corev1.ResourceEphemeralStorage: resource.MustParse("1Ti"),
	}
	ctx, end := context.WithCancel(context.Background())
	p := &Pods{t: t, c: c, o: o, program: program, ended: ctx,
		pods: map[types.UID]*pod{}, addresses: map[string]string{}, led: map[*balancer.Balancer][]string{}}
	status := corev1.NodeStatus{
		Capacity: all, Allocatable: all,
		Conditions: []corev1.NodeCondition{{Type: corev1.NodeReady, Status: corev1.ConditionTrue, Reason: "FakeNode", LastTransitionTime: metav1.Now(), LastHeartbeatTime: metav1.Now()}},
	}
	serveKubelet(t, &status, p.exec)
	_, err = c.Client.CoreV1().Nodes().Create(t.Context(), &corev1.Node{
		ObjectMeta: metav1.ObjectMeta{Name: o.Node, Labels: map[string]string{corev1.LabelHostname: o.Node, corev1.LabelOSStable: "linux"}},
		Status:     status,
	}, metav1.CreateOptions{})
	if err != nil {
		t.Fatalf("add node %s: %v", o.Node, err)
	}
	p.busy.Go(func() { p.each(10*time.Second, p.renew) })
	p.busy.Go(func() { p.each(100*time.Millisecond, p.look) })
	t.Cleanup(func() {
		end()
		p.busy.Wait()
		if err := c.Client.CoreV1().Nodes().Delete(context.Background(), o.Node, metav1.DeleteOptions{}); err != nil {
			t.Errorf("delete node %s: %v", o.Node, err)
		}
		for _, r := range p.pods {
			if t.Failed() {
				t.Logf("pod %s printed:\n%s", r.name, r.process.Output())
			}
		}
	})
	return p
}

// Address is where a port of a pod is on this machine, "" when nobody listens there.
func (p *Pods) Address(ip string, port int32) string {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.addresses[net.JoinHostPort(ip, strconv.Itoa(int(port)))]
}

// Folder is where the folder of a pod is on this machine, "" when there is no such pod.
func (p *Pods) Folder(pod, path string) string {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, r := range p.pods {
		if r.name == pod {
			return r.folders[path]
		}
	}
	return ""
}

// each calls f again and again until the test ends.
func (p *Pods) each(period time.Duration, f func(context.Context) error) {
	ticks := time.NewTicker(period)
	defer ticks.Stop()
	for {
		if err := f(p.ended); err != nil && p.ended.Err() == nil && !passing(err) {
			p.t.Errorf("node %s: %v", p.o.Node, err)
		}
		select {
		case <-ticks.C:
		case <-p.ended.Done():
			return
		}
	}
}

// renew says that the node is there.
func (p *Pods) renew(ctx context.Context) error {
	leases := p.c.Client.CoordinationV1().Leases(corev1.NamespaceNodeLease)
	now := metav1.NowMicro()
	lease, err := leases.Get(ctx, p.o.Node, metav1.GetOptions{})
	if apierrors.IsNotFound(err) {
		_, err = leases.Create(ctx, &coordinationv1.Lease{ObjectMeta: metav1.ObjectMeta{Name: p.o.Node},
			Spec: coordinationv1.LeaseSpec{HolderIdentity: &p.o.Node, LeaseDurationSeconds: new(int32(40)), RenewTime: &now}}, metav1.CreateOptions{})
		return err
	}
	if err == nil {
		lease.Spec.RenewTime = &now
		_, err = leases.Update(ctx, lease, metav1.UpdateOptions{})
	}
	return err
}

// look begins and ends pods.
func (p *Pods) look(ctx context.Context) error {
	list, err := p.c.Client.CoreV1().Pods("").List(ctx, metav1.ListOptions{FieldSelector: "spec.nodeName=" + p.o.Node})
	if err != nil {
		return err
	}
	for i := range list.Items {
		spec := &list.Items[i]
		p.mu.Lock()
		r := p.pods[spec.UID]
		p.mu.Unlock()
		if r == nil {
			r = &pod{p: p, name: spec.Name, namespace: spec.Namespace, uid: spec.UID, end: make(chan time.Duration, 1)}
			r.ip = fmt.Sprintf("10.%d.%d.%d", 200+rand.IntN(50), rand.IntN(250), 1+rand.IntN(250))
			if err := r.begin(ctx, spec); err != nil {
				return fmt.Errorf("pod %s: %w", spec.Name, err)
			}
			p.mu.Lock()
			p.pods[spec.UID] = r
			p.mu.Unlock()
		}
		if spec.DeletionTimestamp != nil {
			select {
			case r.end <- time.Duration(*spec.DeletionGracePeriodSeconds) * time.Second:
			default: // it is told
			}
		}
	}
	return nil
}

// pod is one of a node.
type pod struct {
	p                   *Pods
	name, namespace, ip string
	uid                 types.UID
	asked               bool               // by the API server
	folders             map[string]string  // of its volumes, by their paths in it
	process             *Process           // nil: it is played
	end                 chan time.Duration // its grace, once
}

// begin starts the process of a pod, and what looks after it.
func (r *pod) begin(ctx context.Context, spec *corev1.Pod) error {
	container := &spec.Spec.Containers[0]
	if !strings.HasPrefix(path.Base(container.Image), "starling:") {
		r.process = &Process{done: make(chan struct{})}
		r.p.busy.Go(func() { r.tend(container, func() bool { return true }) })
		return nil
	}
	dir, err := os.MkdirTemp("", "pod-")
	if err != nil {
		return err
	}
	if r.folders, err = r.mount(ctx, dir, spec); err != nil {
		return errors.Join(err, os.RemoveAll(dir))
	}
	var args []string
	for _, arg := range container.Args {
		arg = r.path(arg)
		if flag, port, is := strings.Cut(arg, "=0.0.0.0:"); is {
			arg = flag + "=" + r.listen(port)
		}
		args = append(args, arg)
	}
	args = append(args, "--namespace="+r.namespace, "--kubeconfig="+r.p.o.Kubeconfig)
	if r.asked {
		args = append(append(args, "--webhook-address="+r.listen("9443")), r.p.o.Webhooks...)
	}
	env := []string{"DOCKER_CONFIG="}
	fields := map[string]string{"metadata.name": r.name, "metadata.namespace": r.namespace}
	for _, e := range container.Env {
		if from := e.ValueFrom; from != nil && from.FieldRef != nil && fields[from.FieldRef.FieldPath] != "" {
			env = append(env, e.Name+"="+fields[from.FieldRef.FieldPath])
		}
	}
	if r.process, err = StartProcess(env, r.p.program, args...); err != nil {
		return err
	}
	probe := container.ReadinessProbe.HTTPGet
	i := slices.IndexFunc(container.Ports, func(p corev1.ContainerPort) bool { return p.Name == probe.Port.StrVal })
	page := "http://" + r.p.Address(r.ip, container.Ports[i].ContainerPort) + probe.Path
	r.p.busy.Go(func() {
		defer os.RemoveAll(dir)
		r.tend(container, func() bool { return serves(page) })
	})
	return nil
}

// listen finds an address of this machine for a port of the pod.
func (r *pod) listen(port string) string {
	r.p.mu.Lock()
	defer r.p.mu.Unlock()
	address := Address()
	r.p.addresses[net.JoinHostPort(r.ip, port)] = address
	return address
}

// mount makes the folders of the first container, by their paths in it.
func (r *pod) mount(ctx context.Context, dir string, spec *corev1.Pod) (map[string]string, error) {
	folders := map[string]string{}
	for _, m := range spec.Spec.Containers[0].VolumeMounts {
		folder := filepath.Join(dir, m.Name)
		folders[m.MountPath] = folder
		i := slices.IndexFunc(spec.Spec.Volumes, func(v corev1.Volume) bool { return v.Name == m.Name })
		v := spec.Spec.Volumes[i]
		maps := map[string][]corev1.KeyToPath{}
		if v.ConfigMap != nil {
			maps[v.ConfigMap.Name] = v.ConfigMap.Items
		} else if v.Projected != nil {
			for _, s := range v.Projected.Sources {
				if s.ConfigMap != nil { // the token is in the kubeconfig
					maps[s.ConfigMap.Name] = s.ConfigMap.Items
				}
			}
		}
		err := os.MkdirAll(folder, 0o700)
		for name, items := range maps {
			held, failed := r.p.c.Client.CoreV1().ConfigMaps(r.namespace).Get(ctx, name, metav1.GetOptions{})
			for _, item := range items {
				r.asked = r.asked || strings.Contains(held.Data[item.Key], "k8s.validate(")
				path := filepath.Join(folder, item.Path)
				failed = errors.Join(failed, os.MkdirAll(filepath.Dir(path), 0o755))
				failed = errors.Join(failed, os.WriteFile(path, []byte(held.Data[item.Key]), 0o644))
			}
			err = errors.Join(err, failed)
		}
		if err != nil {
			return nil, err
		}
	}
	return folders, nil
}

// tend asks whether the pod is ready until it is to end, and ends it.
func (r *pod) tend(container *corev1.Container, ready func() bool) {
	period, most := time.Second, int32(1)
	if probe := container.ReadinessProbe; probe != nil {
		period, most = time.Duration(probe.PeriodSeconds)*time.Second, probe.FailureThreshold
	}
	r.show(container, false)
	ticks := time.NewTicker(period)
	defer ticks.Stop()
	for is, failed := false, int32(0); ; {
		now := ready()
		if failed++; now {
			failed = 0
		}
		if now != is && (now || failed >= most) {
			is = now
			r.show(container, is)
		}
		select {
		case <-ticks.C:
		case <-r.process.done:
			r.p.t.Errorf("pod %s has ended by itself:\n%s", r.name, r.process.Output())
			return
		case grace := <-r.end:
			r.stop(container, grace)
			return
		case <-r.p.ended.Done():
			if r.process.cmd != nil {
				r.process.Signal(syscall.SIGKILL)
			}
			return
		}
	}
}

// stop ends the pod as a kubelet does.
func (r *pod) stop(container *corev1.Container, grace time.Duration) {
	if r.process.cmd != nil {
		if hook := container.Lifecycle; hook != nil {
			sleeps := min(grace, time.Duration(hook.PreStop.Sleep.Seconds)*time.Second)
			time.Sleep(sleeps)
			grace = cmp.Or(grace-sleeps, stopTimeout) // one that takes all of it leaves some more, as a kubelet has it
			// The hook lasts long enough for controllers and balancers; on a busy machine that is longer.
			for began := time.Now(); r.isLed() && time.Since(began) < stopTimeout; time.Sleep(50 * time.Millisecond) {
			}
		}
		r.process.Signal(syscall.SIGTERM)
		select {
		case <-r.process.done:
		case <-time.After(grace):
			r.p.t.Errorf("pod %s had to be killed:\n%s", r.name, r.process.Output())
			r.process.Signal(syscall.SIGKILL)
		}
	}
	err := r.p.c.Client.CoreV1().Pods(r.namespace).Delete(r.p.ended, r.name, metav1.DeleteOptions{
		GracePeriodSeconds: new(int64(0)), Preconditions: &metav1.Preconditions{UID: &r.uid},
	})
	if err != nil && !apierrors.IsNotFound(err) && r.p.ended.Err() == nil {
		r.p.t.Errorf("pod %s: %v", r.name, err)
	}
}

// isLed says that a balancer leads to the pod.
func (r *pod) isLed() bool {
	r.p.mu.Lock()
	defer r.p.mu.Unlock()
	for _, ips := range r.p.led {
		if slices.Contains(ips, r.ip) {
			return true
		}
	}
	return false
}

// show writes the status of the pod.
func (r *pod) show(container *corev1.Container, ready bool) {
	now := metav1.Now()
	is := map[bool]corev1.ConditionStatus{false: corev1.ConditionFalse, true: corev1.ConditionTrue}[ready]
	status := corev1.PodStatus{
		Phase: corev1.PodRunning, PodIP: r.ip, PodIPs: []corev1.PodIP{{IP: r.ip}}, StartTime: &now,
		ContainerStatuses: []corev1.ContainerStatus{{
			Name: container.Name, Image: container.Image, ImageID: "fake://" + container.Image, Ready: ready, Started: new(true),
			State: corev1.ContainerState{Running: &corev1.ContainerStateRunning{StartedAt: now}},
		}},
		Conditions: []corev1.PodCondition{
			{Type: corev1.PodInitialized, Status: corev1.ConditionTrue, LastTransitionTime: now},
			{Type: corev1.ContainersReady, Status: is, LastTransitionTime: now},
			{Type: corev1.PodReady, Status: is, LastTransitionTime: now},
		},
	}
	patch, err := json.Marshal(map[string]any{"status": status})
	if err == nil {
		_, err = r.p.c.Client.CoreV1().Pods(r.namespace).Patch(r.p.ended, r.name, types.StrategicMergePatchType, patch, metav1.PatchOptions{}, "status")
	}
	if err != nil && !apierrors.IsNotFound(err) && r.p.ended.Err() == nil {
		r.p.t.Errorf("status of pod %s: %v", r.name, err)
	}
}
