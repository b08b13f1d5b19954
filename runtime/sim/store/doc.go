// Package store is an API server's state in memory: objects of every built-in kind,
// of CRDs and of kinds that are just named, with what the server itself does to
// them. It is deterministic: clock and seed come from outside, nothing happens by
// itself, and what controllers would do later, [Store.Settle] does now.
//
// It answers what a real API server answers. testdata/parity of package
// rest holds the cases that both must pass; they were recorded from bin/devcluster.
// On purpose it differs in this:
//
//   - No controllers but those of [Store.Settle], no scheduler, no kubelet:
//     Deployments make no Pods, nothing becomes ready, and Pods go at once when they
//     are deleted. A test says what becomes of its objects by writing their status, or
//     has package workloads move them.
//   - Pods have no qosClass, and volumes say nothing of their phases but Pending.
//   - No admission but that of namespaces: no ServiceAccount in Pods, no default
//     ServiceAccount, no kube-root-ca.crt, no priorities, no quotas, no webhooks, no
//     finalizers on volumes, no taints on Nodes. Namespaces may come by themselves
//     (Options.MakeNamespaces), because tests want it so.
//   - No RBAC and no authentication: everybody may do everything.
//   - CRDs are Established, and their kinds served, when the write that made them
//     returns: nobody has to wait. They are checked less than on a real server, and
//     conversion webhooks are not called: versions differ in their apiVersion only.
//   - Built-in kinds have their types, defaults (of the kinds that addons use) and
//     the checks of metadata, ConfigMaps, Secrets, and of what charts get wrong most
//     often: what workloads, Services, Ingresses and Roles must have, and what
//     cannot change once it is there. The many other checks of the real server are
//     code that is no library. Of Pods nothing is
//     checked: tests make them of what a hook looks at.
//   - Reviews of access say yes, those of tokens no. Bindings, logs and shells of Pods are
//     not served, and neither are the kinds that an APIService brings.
//   - A HorizontalPodAutoscaler in autoscaling/v1 keeps what it has no field for in the
//     annotations of the real server, but written as autoscaling/v2 does.
//   - Messages that name Go types of the server, or show an object in the order of
//     its fields, differ. Continue tokens look different.
//   - metadata.generation of EndpointSlices is not kept as exactly.
//   - A watch from before the history is always 410, and the history is
//     Options.History changes long, whatever their age.
package store
