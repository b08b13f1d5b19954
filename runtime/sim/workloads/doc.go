// Package workloads moves Deployments, ReplicaSets, StatefulSets, DaemonSets, Jobs,
// CronJobs, Pods, claims and the EndpointSlices of Services of a simulated cluster by
// its clock, as the controllers of Kubernetes, its scheduler and its kubelets would.
//
// Each controller is one pure function, [Controller.Step]: the objects that are there go
// in, the writes that it wants come out, and the time at which it has to look again. It
// keeps nothing: all that it knows stands in the objects. The caller makes the writes and
// asks again, until nobody wants any.
//
// Kinds and fields that tests look at are as in a real cluster: owners, labels, hashes of
// templates, conditions, counts, the order of StatefulSets, the back-off of Jobs. On
// purpose it differs in this:
//
//   - Pods run at once when they have a Node, and go at once when they are deleted: there
//     are no containers to pull or to stop. Probes are not asked: [Options] and
//     [Failures] say when a Pod is ready.
//   - A cluster without Nodes runs its Pods without one, so that tests need none. With
//     Nodes the scheduler looks at taints, selectors and required affinity; not at
//     resources, Pod affinity and spreading. A toleration that ends after some seconds
//     counts for Nodes that are not ready, or whose taint says since when it is there.
//   - Every claim is bound at once to a volume made for it, whatever its class.
//   - DaemonSets do not surge. Of Jobs there are no policies of Pod failures, of success,
//     or per index, and nobody waits after a Pod that was deleted. CronJobs take the
//     schedules of package schedule.
//   - A Service has EndpointSlices of IPv4, of any size, and no Endpoints.
//   - No Events are written, and no HorizontalPodAutoscaler acts.
package workloads
