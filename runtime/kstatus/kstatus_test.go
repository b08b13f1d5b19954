package kstatus

import (
	"testing"

	"sigs.k8s.io/yaml"
)

func TestOf(t *testing.T) {
	const deployment = "apiVersion: apps/v1\nkind: Deployment\nmetadata: {generation: 2}\nspec: {replicas: 3}\n"
	const statefulSet = "apiVersion: apps/v1\nkind: StatefulSet\nmetadata: {generation: 2}\nspec: {replicas: 3}\n"
	const daemonSet = "apiVersion: apps/v1\nkind: DaemonSet\nmetadata: {generation: 1}\n"
	const replicaSet = "apiVersion: apps/v1\nkind: ReplicaSet\nmetadata: {generation: 1}\nspec: {replicas: 2}\n"
	const pod = "apiVersion: v1\nkind: Pod\n"
	const job = "apiVersion: batch/v1\nkind: Job\n"
	const widget = "apiVersion: example.org/v1\nkind: Widget\nmetadata: {generation: 4}\n"
	const definition = "apiVersion: apiextensions.k8s.io/v1\nkind: CustomResourceDefinition\n"
	for _, test := range []struct{ name, obj, want string }{
		{"nothing", "{}", "ready"},
		{"a kind without a status", "apiVersion: v1\nkind: ConfigMap\n", "ready"},
		{"one that is being deleted", "metadata: {deletionTimestamp: \"2026-01-01T00:00:00Z\"}", "it is being deleted"},
		{"broken", "apiVersion: 1\nkind: []\nmetadata: x\nspec: 3\nstatus: {conditions: [1, {type: 3}], observedGeneration: x}", "ready"},

		{"a custom resource without a status", widget, "ready"},
		{"of an old generation", widget + "status: {observedGeneration: 3, conditions: [{type: Ready, status: \"True\"}]}", "its controller has not seen generation 4 yet"},
		{"ready", widget + "status: {observedGeneration: 4, conditions: [{type: Ready, status: \"True\"}]}", "ready"},
		{"not ready", widget + "status: {conditions: [{type: Ready, status: \"False\", reason: NoHost, message: no host}]}", "no host"},
		{"not ready, with a reason alone", widget + "status: {conditions: [{type: Ready, status: \"False\", reason: NoHost}]}", "NoHost"},
		{"nobody knows", widget + "status: {conditions: [{type: Ready, status: Unknown}]}", "its condition Ready is Unknown"},
		{"reconciling", widget + "status: {conditions: [{type: Ready, status: \"True\"}, {type: Reconciling, status: \"True\", message: rolls out}]}", "rolls out"},
		{"stalled", widget + "status: {conditions: [{type: Stalled, status: \"True\", message: no such tier}]}", "stalled: no such tier"},

		{"a Deployment that is new", deployment, "its controller has not seen it yet"},
		{"a Deployment that is updated", deployment + "status: {observedGeneration: 2, replicas: 4, updatedReplicas: 1, availableReplicas: 3}", "1 of 3 updated"},
		{"a Deployment with old replicas", deployment + "status: {observedGeneration: 2, replicas: 4, updatedReplicas: 3, availableReplicas: 3}", "1 old replicas are still there"},
		{"a Deployment that starts", deployment + "status: {observedGeneration: 2, replicas: 3, updatedReplicas: 3, availableReplicas: 2}", "2 of 3 available"},
		{"a Deployment", deployment + "status: {observedGeneration: 2, replicas: 3, updatedReplicas: 3, availableReplicas: 3}", "ready"},
		{"a Deployment without replicas", "apiVersion: apps/v1\nkind: Deployment\nspec: {replicas: 0}\nstatus: {observedGeneration: 1}", "ready"},
		{"a Deployment without a number", "apiVersion: apps/v1\nkind: Deployment\nstatus: {observedGeneration: 1}", "0 of 1 updated"},
		{"a Deployment that makes no progress", deployment + "status: {observedGeneration: 2, conditions: [{type: Progressing, status: \"False\", reason: ProgressDeadlineExceeded, message: it takes too long}]}", "stalled: it takes too long"},

		{"a StatefulSet that starts", statefulSet + "status: {observedGeneration: 2, replicas: 2, readyReplicas: 1}", "1 of 3 ready"},
		{"a StatefulSet that shrinks", statefulSet + "status: {observedGeneration: 2, replicas: 4, readyReplicas: 4}", "1 replicas too many"},
		{"a StatefulSet that is updated", statefulSet + "status: {observedGeneration: 2, replicas: 3, readyReplicas: 3, updatedReplicas: 2}", "2 of 3 updated"},
		{"a StatefulSet", statefulSet + "status: {observedGeneration: 2, replicas: 3, readyReplicas: 3, updatedReplicas: 3}", "ready"},
		{"a StatefulSet with a partition", "apiVersion: apps/v1\nkind: StatefulSet\nspec: {replicas: 3, updateStrategy: {rollingUpdate: {partition: 2}}}\nstatus: {observedGeneration: 2, replicas: 3, readyReplicas: 3, updatedReplicas: 1}", "ready"},
		{"a StatefulSet whose Pods somebody deletes", "apiVersion: apps/v1\nkind: StatefulSet\nspec: {updateStrategy: {type: OnDelete}}\nstatus: {observedGeneration: 2, replicas: 1, readyReplicas: 1}", "ready"},

		{"a DaemonSet that is new", daemonSet, "its controller has not seen it yet"},
		{"a DaemonSet that is updated", daemonSet + "status: {observedGeneration: 1, desiredNumberScheduled: 2, updatedNumberScheduled: 1, numberAvailable: 2}", "1 of 2 updated"},
		{"a DaemonSet that starts", daemonSet + "status: {observedGeneration: 1, desiredNumberScheduled: 2, updatedNumberScheduled: 2, numberAvailable: 1}", "1 of 2 available"},
		{"a DaemonSet on no node", daemonSet + "status: {observedGeneration: 1}", "ready"},

		{"a ReplicaSet that starts", replicaSet + "status: {observedGeneration: 1, replicas: 2, availableReplicas: 1}", "1 of 2 available"},
		{"a ReplicaSet that shrinks", replicaSet + "status: {observedGeneration: 1, replicas: 3, availableReplicas: 3}", "1 replicas too many"},
		{"a ReplicaSet over its quota", replicaSet + "status: {observedGeneration: 1, conditions: [{type: ReplicaFailure, status: \"True\", message: exceeded quota}]}", "exceeded quota"},
		{"a ReplicaSet", replicaSet + "status: {observedGeneration: 1, replicas: 2, availableReplicas: 2}", "ready"},

		{"a Pod that is new", pod, "it has not started yet"},
		{"a Pod that finds no node", pod + "status: {phase: Pending, conditions: [{type: PodScheduled, status: \"False\", message: 0/3 nodes are available}]}", "0/3 nodes are available"},
		{"a Pod that starts", pod + "status: {phase: Running, conditions: [{type: Ready, status: \"False\", reason: ContainersNotReady}]}", "ContainersNotReady"},
		{"a Pod", pod + "status: {phase: Running, conditions: [{type: Ready, status: \"True\"}]}", "ready"},
		{"a Pod that has ended", pod + "status: {phase: Succeeded}", "ready"},
		{"a Pod that has failed", pod + "status: {phase: Failed, reason: Evicted}", "stalled: Evicted"},

		{"a Job that runs", job + "spec: {completions: 3}\nstatus: {succeeded: 1}", "1 of 3 completed"},
		{"a Job that is suspended", job + "spec: {suspend: true}", "it is suspended"},
		{"a Job", job + "status: {conditions: [{type: Complete, status: \"True\"}]}", "ready"},
		{"a Job that has failed", job + "status: {conditions: [{type: Failed, status: \"True\", reason: BackoffLimitExceeded}]}", "stalled: BackoffLimitExceeded"},

		{"a claim", "apiVersion: v1\nkind: PersistentVolumeClaim\nstatus: {phase: Bound}", "ready"},
		{"a claim that waits", "apiVersion: v1\nkind: PersistentVolumeClaim\nstatus: {phase: Pending}", "it is not bound to a volume"},
		{"a claim that is lost", "apiVersion: v1\nkind: PersistentVolumeClaim\nstatus: {phase: Lost}", "stalled: its volume is lost"},
		{"a Service", "apiVersion: v1\nkind: Service", "ready"},
		{"a Service that waits", "apiVersion: v1\nkind: Service\nspec: {type: LoadBalancer}", "its load balancer has no address yet"},
		{"a Service with an address", "apiVersion: v1\nkind: Service\nspec: {type: LoadBalancer}\nstatus: {loadBalancer: {ingress: [{ip: 192.0.2.1}]}}", "ready"},
		{"a Namespace", "apiVersion: v1\nkind: Namespace\nstatus: {phase: Active}", "ready"},
		{"a definition that is new", definition, "it is not established"},
		{"a definition", definition + "status: {conditions: [{type: Established, status: \"True\"}]}", "ready"},
		{"a definition with taken names", definition + "status: {conditions: [{type: NamesAccepted, status: \"False\", message: widgets is taken}]}", "stalled: widgets is taken"},
		{"an APIService", "apiVersion: apiregistration.k8s.io/v1\nkind: APIService\nstatus: {conditions: [{type: Available, status: \"True\"}]}", "ready"},
	} {
		t.Run(test.name, func(t *testing.T) {
			var obj map[string]any
			if err := yaml.Unmarshal([]byte(test.obj), &obj); err != nil {
				t.Fatal(err)
			}
			s := Of(obj)
			spec, status := Part(obj)
			part := map[string]any{"apiVersion": obj["apiVersion"], "kind": obj["kind"], "metadata": obj["metadata"], "spec": spec, "status": status}
			if of := Of(part); of != s {
				t.Errorf("of the part alone: %+v, want %+v", of, s)
			}
			got := s.Reason
			switch {
			case s.Ready:
				got = "ready" + s.Reason
			case s.Stalled:
				got = "stalled: " + s.Reason
			}
			if got != test.want {
				t.Errorf("got %q, want %q", got, test.want)
			}
		})
	}
}

// Numbers come as the decoders of the product give them, too.
func TestWholeNumbers(t *testing.T) {
	if s := Of(map[string]any{"metadata": map[string]any{"generation": int64(2)}, "status": map[string]any{"observedGeneration": int64(1)}}); s.Ready {
		t.Errorf("got %+v", s)
	}
}
