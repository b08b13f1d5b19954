package workloads

import (
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
)

// Verb is what a write does.
type Verb string

// The writes of controllers.
const (
	Create Verb = "create"
	Update Verb = "update"
	// UpdateStatus writes the subresource status.
	UpdateStatus Verb = "update status"
	Delete       Verb = "delete"
)

// Object is one of the kinds of [State], with its apiVersion and kind.
type Object interface {
	metav1.Object
	runtime.Object
}

// Write is one change that a controller wants. An object that has changed since the state
// was read has another resourceVersion: the write is refused, and the next step decides anew.
type Write struct {
	Verb   Verb
	Object Object
}

// Result is what a controller answers.
type Result struct {
	// Writes are in the order in which they happen.
	Writes []Write
	// Next is when the controller must look again though nothing has changed; zero: never.
	Next time.Time
}

// Controller is one controller of the cluster.
type Controller struct {
	// Name says who changes objects, for people.
	Name string
	// Manager is its field manager.
	Manager string
	// Step says what the controller does in a state. It is pure.
	Step func(s *State) Result
}

// Controllers are all of them, in the order in which they have their turn: a controller
// acts when those before it want nothing.
var Controllers = []Controller{
	{"the kubelet", "kubelet", kubelets},
	{"the node lifecycle controller", controllerManager, lostNodes},
	{"the volume binder", controllerManager, claims},
	{"the scheduler", "kube-scheduler", scheduler},
	{"the CronJob controller", controllerManager, cronJobs},
	{"the Job controller", controllerManager, jobs},
	{"the ReplicaSet controller", controllerManager, replicaSets},
	{"the Deployment controller", controllerManager, deployments},
	{"the StatefulSet controller", controllerManager, statefulSets},
	{"the DaemonSet controller", controllerManager, daemonSets},
	{"the EndpointSlice controller", controllerManager, endpointSlices},
}

const controllerManager = "kube-controller-manager"

func (r *Result) create(o Object)       { r.Writes = append(r.Writes, Write{Create, o}) }
func (r *Result) update(o Object)       { r.Writes = append(r.Writes, Write{Update, o}) }
func (r *Result) updateStatus(o Object) { r.Writes = append(r.Writes, Write{UpdateStatus, o}) }
func (r *Result) delete(o Object)       { r.Writes = append(r.Writes, Write{Delete, o}) }

// at has the controller look again at a time; zero: no need.
func (r *Result) at(t time.Time) { r.Next = Earlier(r.Next, t) }

// Earlier is the earlier of two times; one that is zero never comes.
func Earlier(a, b time.Time) time.Time {
	if a.IsZero() || !b.IsZero() && b.Before(a) {
		return b
	}
	return a
}
