package workloads

import (
	"fmt"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
)

// Options say how fast Pods are. Times in objects have seconds, so fractions of one are
// not exact.
type Options struct {
	// ReadyAfter is how long a Pod runs before it is ready; default 0.
	ReadyAfter time.Duration
	// CompletesAfter is how long a Pod that is not restarted for ever, as those of Jobs,
	// runs before it succeeds or fails; default 0.
	CompletesAfter time.Duration
}

// State is what controllers look at, at one time. They do not change it.
type State struct {
	Now     time.Time
	Options Options
	// Nodeless says that the cluster never had a Node: Pods run without one.
	Nodeless bool
	// Failing are the Pods whose containers fail now, by uid, with their exit codes.
	Failing map[types.UID]int32

	// Objects of a kind are in the order of namespace and name.
	Deployments  []*appsv1.Deployment
	ReplicaSets  []*appsv1.ReplicaSet
	StatefulSets []*appsv1.StatefulSet
	DaemonSets   []*appsv1.DaemonSet
	Revisions    []*appsv1.ControllerRevision
	Jobs         []*batchv1.Job
	CronJobs     []*batchv1.CronJob
	Pods         []*corev1.Pod
	Nodes        []*corev1.Node
	Claims       []*corev1.PersistentVolumeClaim
	Volumes      []*corev1.PersistentVolume
	Services     []*corev1.Service
	Slices       []*discoveryv1.EndpointSlice

	// before are the objects that the state before this one has read, read are those of this one.
	before, read map[objectVersion]any
}

// objectVersion is all that an object depends on.
type objectVersion struct{ uid, version string }

// next is an empty state after this one, nil: the first. Most of its objects are read already, and nobody changes them.
func (s *State) next() *State {
	out := &State{read: map[objectVersion]any{}}
	if s != nil {
		out.before = s.read
	}
	return out
}

// Kinds are those that [State.Add] takes.
var Kinds = []schema.GroupVersionKind{
	kindDeployment, kindReplicaSet, kindStatefulSet, kindDaemonSet, kindRevision, kindJob, kindCronJob,
	kindPod, kindNode, kindClaim, kindVolume, kindService, kindSlice,
}

var (
	kindDeployment  = appsv1.SchemeGroupVersion.WithKind("Deployment")
	kindReplicaSet  = appsv1.SchemeGroupVersion.WithKind("ReplicaSet")
	kindStatefulSet = appsv1.SchemeGroupVersion.WithKind("StatefulSet")
	kindDaemonSet   = appsv1.SchemeGroupVersion.WithKind("DaemonSet")
	kindRevision    = appsv1.SchemeGroupVersion.WithKind("ControllerRevision")
	kindJob         = batchv1.SchemeGroupVersion.WithKind("Job")
	kindCronJob     = batchv1.SchemeGroupVersion.WithKind("CronJob")
	kindPod         = corev1.SchemeGroupVersion.WithKind("Pod")
	kindNode        = corev1.SchemeGroupVersion.WithKind("Node")
	kindClaim       = corev1.SchemeGroupVersion.WithKind("PersistentVolumeClaim")
	kindVolume      = corev1.SchemeGroupVersion.WithKind("PersistentVolume")
	kindService     = corev1.SchemeGroupVersion.WithKind("Service")
	kindSlice       = discoveryv1.SchemeGroupVersion.WithKind("EndpointSlice")
)

// Add reads objects of a kind into the state; kinds that are not among [Kinds] are an error.
func (s *State) Add(gvk schema.GroupVersionKind, objects []map[string]any) (err error) {
	switch gvk {
	case kindDeployment:
		s.Deployments, err = read[appsv1.Deployment](s, objects)
	case kindReplicaSet:
		s.ReplicaSets, err = read[appsv1.ReplicaSet](s, objects)
	case kindStatefulSet:
		s.StatefulSets, err = read[appsv1.StatefulSet](s, objects)
	case kindDaemonSet:
		s.DaemonSets, err = read[appsv1.DaemonSet](s, objects)
	case kindRevision:
		s.Revisions, err = read[appsv1.ControllerRevision](s, objects)
	case kindJob:
		s.Jobs, err = read[batchv1.Job](s, objects)
	case kindCronJob:
		s.CronJobs, err = read[batchv1.CronJob](s, objects)
	case kindPod:
		s.Pods, err = read[corev1.Pod](s, objects)
	case kindNode:
		s.Nodes, err = read[corev1.Node](s, objects)
	case kindClaim:
		s.Claims, err = read[corev1.PersistentVolumeClaim](s, objects)
	case kindVolume:
		s.Volumes, err = read[corev1.PersistentVolume](s, objects)
	case kindService:
		s.Services, err = read[corev1.Service](s, objects)
	case kindSlice:
		s.Slices, err = read[discoveryv1.EndpointSlice](s, objects)
	default:
		err = fmt.Errorf("%s is moved by no controller", gvk)
	}
	return err
}

func read[T any](s *State, objects []map[string]any) ([]*T, error) {
	out := make([]*T, len(objects))
	for i, obj := range objects {
		meta, _ := obj["metadata"].(map[string]any)
		uid, _ := meta["uid"].(string)
		version, _ := meta["resourceVersion"].(string)
		v := objectVersion{uid, version}
		known, is := s.before[v].(*T)
		if !is {
			known = new(T)
			if err := runtime.DefaultUnstructuredConverter.FromUnstructured(obj, known); err != nil {
				return nil, err
			}
		}
		if out[i] = known; s.read != nil {
			s.read[v] = known
		}
	}
	return out, nil
}

// time is now as objects write it.
func (s *State) time() metav1.Time { return metav1.NewTime(s.Now.UTC().Truncate(time.Second)) }

// controlledBy are the objects of a list whose controller is the owner.
func controlledBy[T metav1.Object](list []T, owner metav1.Object) []T {
	var out []T
	for _, o := range list {
		if o.GetNamespace() == owner.GetNamespace() && metav1.IsControlledBy(o, owner) {
			out = append(out, o)
		}
	}
	return out
}

// find returns the object of a name, or the zero value.
func find[T metav1.Object](list []T, namespace, name string) (found T) {
	for _, o := range list {
		if o.GetName() == name && o.GetNamespace() == namespace {
			return o
		}
	}
	return found
}
