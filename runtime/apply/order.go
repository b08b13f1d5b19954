package apply

import (
	"cmp"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
)

// installOrder are the kinds that others need first, in Helm's order of installation.
var installOrder = []string{
	"PriorityClass", "Namespace", "NetworkPolicy", "ResourceQuota", "LimitRange", "PodSecurityPolicy", "PodDisruptionBudget",
	"ServiceAccount", "Secret", "SecretList", "ConfigMap", "StorageClass", "PersistentVolume", "PersistentVolumeClaim",
	"CustomResourceDefinition", "ClusterRole", "ClusterRoleList", "ClusterRoleBinding", "ClusterRoleBindingList", "Role", "RoleList",
	"RoleBinding", "RoleBindingList", "Service", "DaemonSet", "Pod", "ReplicationController", "ReplicaSet", "Deployment",
	"HorizontalPodAutoscaler", "StatefulSet", "Job", "CronJob", "IngressClass", "Ingress", "APIService",
}

// rank is the place of a kind in that order; kinds that Helm does not know come last.
func rank(kind string) int {
	if i := slices.Index(installOrder, kind); i >= 0 {
		return i
	}
	return len(installOrder)
}

// Order is how objects are written or deleted: kinds in the order of installation, one after the other, the objects of
// one kind side by side.
type Order struct {
	// Width is how many at a time.
	Width int
	// Back turns the order of kinds round, as for a removal.
	Back bool
	// Ends says of an error that it ends the whole: nobody answers, for instance. Any other one holds up no other object;
	// nil: each one.
	Ends func(err error) bool
}

// Each calls do for n objects. It returns the errors of single objects, in their order, and the one that has ended
// the whole.
func (o Order) Each(n int, kind func(i int) string, do func(i int) error) (refused []error, err error) {
	order := make([]int, n)
	for i := range order {
		order[i] = i
	}
	slices.SortStableFunc(order, func(a, b int) int {
		c := cmp.Or(cmp.Compare(rank(kind(a)), rank(kind(b))), cmp.Compare(kind(a), kind(b)))
		if o.Back {
			return -c
		}
		return c
	})
	errs := make([]error, n) // each goroutine has its own places
	for len(order) > 0 && err == nil {
		size := 1
		for size < len(order) && kind(order[size]) == kind(order[0]) {
			size++
		}
		group := order[:size]
		err = SideBySide(size, o.Width, func(i int) error {
			at := group[i]
			err := do(at)
			if err != nil && (o.Ends == nil || !o.Ends(err)) {
				errs[at], err = err, nil
			}
			return err
		})
		order = order[size:]
	}
	return slices.DeleteFunc(errs, func(err error) bool { return err == nil }), err
}

// SideBySide calls fn with 0 to n-1, begun in this order, up to width at a time. After a
// failure none is begun any more. The error is that of the first in order which failed.
func SideBySide(n, width int, fn func(i int) error) error {
	var (
		next    atomic.Int64
		stop    atomic.Bool
		crashed atomic.Value
		wg      sync.WaitGroup
	)
	errs := make([]error, n) // each goroutine has its own places
	work := func() {
		defer func() {
			if p := recover(); p != nil {
				stop.Store(true)
				crashed.Store(fmt.Sprint(p))
			}
		}()
		for !stop.Load() {
			i := int(next.Add(1)) - 1
			if i >= n {
				return
			}
			if errs[i] = fn(i); errs[i] != nil {
				stop.Store(true)
			}
		}
	}
	for range min(width, n) - 1 {
		wg.Go(work)
	}
	work()
	wg.Wait()
	if p := crashed.Load(); p != nil { // somebody guards the caller's goroutine, nobody the others
		panic(p)
	}
	return cmp.Or(errs...)
}

// maxErrors is how many errors are shown of what fails side by side.
const maxErrors = 5

// Joined is the error of several, in one line; nil when there are none.
func Joined(failed []error) error {
	if len(failed) == 0 {
		return nil
	}
	err := failed[0]
	for _, next := range failed[1:min(len(failed), maxErrors)] {
		err = fmt.Errorf("%w; %w", err, next)
	}
	if more := len(failed) - maxErrors; more > 0 {
		err = fmt.Errorf("%w; and %d more", err, more)
	}
	return err
}
