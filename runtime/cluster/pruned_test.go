package cluster

import (
	"context"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"sigs.k8s.io/yaml"

	"github.com/starling-operator/starling/runtime/effect"
	"github.com/starling-operator/starling/runtime/kstatus"
	"github.com/starling-operator/starling/runtime/object"
	"github.com/starling-operator/starling/runtime/reconcile"
)

// sameOfAPart compares what is said of an object with what is said of the part that is kept.
func sameOfAPart(t *testing.T, want map[string]any, ref effect.Ref, w *farWorld) {
	t.Helper()
	live, err := w.writer.o.Client.Get(context.Background(), ref)
	if err != nil {
		t.Fatal(err)
	}
	for _, manager := range []string{"starling/web/f", "them"} {
		kept := object.Pack(Pruned(live, manager)).Unpack()
		for _, want := range []map[string]any{want, w.writer.marksOf("starling/web/f", "children", false).on(want)} {
			if of, is := Same(want, live, manager, ""), Same(want, kept, manager, ""); of != is {
				t.Errorf("%s: the same of all: %t, of what is kept: %t\n%v", manager, of, is, kept)
			}
		}
		if diff := cmp.Diff(told(live, manager), told(kept, manager)); diff != "" {
			t.Errorf("%s (-of all +of what is kept):\n%s", manager, diff)
		}
	}
}

// told is all that is asked about a child but whether it is the same.
func told(live map[string]any, manager string) map[string]any {
	key, uid := reconcile.ParentOf(live)
	ours, _ := Written(nil, live, manager)
	return map[string]any{
		"ours": ours, "by": Taker(live, manager), "child": reconcile.ChildOf(live), "parent": key + "/" + uid, "status": kstatus.Of(live),
	}
}

const child = `
apiVersion: apps/v1
kind: Deployment
metadata:
  name: x
  namespace: a
  uid: u
  generation: 2
  resourceVersion: "7"
  creationTimestamp: "2026-01-01T00:00:00Z"
  labels: {app: x, theirs: "1", starling.dev/controller: c}
  annotations: {starling.dev/parent: a/p, starling.dev/parent-uid: u1, starling.dev/desired: d, starling.dev/order: "2", starling.dev/child: a/x, theirs: "1"}
  ownerReferences: [{apiVersion: v1, kind: P, name: p, uid: u1, controller: true}]
  managedFields:
  - manager: us
    operation: Apply
    apiVersion: apps/v1
    time: "2026-01-01T00:00:05Z"
    fieldsV1:
      f:metadata: {f:annotations: {f:starling.dev/parent-uid: {}}, f:labels: {f:app: {}}}
      f:spec: {f:template: {f:spec: {f:containers: {'k:{"name":"main"}': {.: {}, f:name: {}, f:image: {}, f:ports: {'k:{"containerPort":80,"protocol":"TCP"}': {.: {}, f:containerPort: {}}}}}}}}
  - {manager: kube-controller-manager, operation: Update, subresource: status, apiVersion: apps/v1, time: "2026-01-01T00:00:09Z", fieldsV1: {f:status: {}}}
  - {manager: somebody, operation: Update, apiVersion: apps/v1, time: "2026-01-01T00:00:09Z", fieldsV1: {f:spec: {f:replicas: {}}}}
spec:
  replicas: 2
  strategy: {type: RollingUpdate, rollingUpdate: {maxSurge: 1}}
  template:
    spec:
      containers:
      - {name: main, image: i, ports: [{containerPort: 80, protocol: TCP, hostPort: 1}, {containerPort: 81, protocol: TCP}], terminationMessagePath: /dev/x}
      - {name: injected, image: i}
status:
  observedGeneration: 2
  replicas: 2
  updatedReplicas: 1
  conditions: [{type: Progressing, status: "True", reason: Rolls, message: m, lastTransitionTime: "2026-01-01T00:00:00Z"}]
`

// Of a child that a fifth is kept of, the same is said.
func TestWhatIsKeptOfAChild(t *testing.T) {
	live := parse(t, child)
	for _, manager := range []string{"us", "somebody", "nobody"} {
		kept := object.Pack(Pruned(live, manager))
		if diff := cmp.Diff(told(live, manager), told(kept.Unpack(), manager)); diff != "" {
			t.Errorf("%s (-of all +of what is kept):\n%s", manager, diff)
		}
	}
	kept := object.Pack(Pruned(live, "us"))
	text, err := yaml.Marshal(kept.Unpack())
	if err != nil {
		t.Fatal(err)
	}
	for _, lost := range []string{"theirs", "injected", "hostPort", "maxSurge", "terminationMessagePath", "lastTransitionTime", "resourceVersion"} {
		if strings.Contains(string(text), lost) {
			t.Errorf("%s is kept:\n%s", lost, text)
		}
	}
	if len(kept) > 700 {
		t.Errorf("it takes %d bytes", len(kept))
	}
	if diff := cmp.Diff(parse(t, child), live); diff != "" {
		t.Errorf("the object has changed:\n%s", diff)
	}
	// Another change of others is no change.
	metadata := live["metadata"].(map[string]any)
	metadata["resourceVersion"] = "8"
	metadata["labels"].(map[string]any)["theirs"] = "2"
	if object.Pack(Pruned(live, "us")) != kept {
		t.Error("a label of somebody else counts")
	}
	metadata["deletionTimestamp"], metadata["finalizers"] = "2026-01-01T00:00:09Z", []any{"example.org/hold"}
	if diff := cmp.Diff(told(live, "us"), told(Pruned(live, "us"), "us")); diff != "" {
		t.Errorf("of one that goes (-of all +of what is kept):\n%s", diff)
	}
}

// The part of a child that is kept tells what a manager has applied of it. Keys that are given by default are not
// among that, so an apply of it changes nothing.
func TestWhatIsAppliedOfAChild(t *testing.T) {
	live := parse(t, child)
	want := parse(t, `
metadata: {labels: {app: x}, annotations: {starling.dev/parent-uid: u1}}
spec: {template: {spec: {containers: [{name: main, image: i, ports: [{containerPort: 80}]}]}}}
`)
	for _, live := range []map[string]any{live, object.Pack(Pruned(live, "us")).Unpack()} {
		got := appliedOf(live, "us", false)
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("(-want +got):\n%s", diff)
		}
		got["apiVersion"], got["kind"] = live["apiVersion"], live["kind"]
		if !Same(got, live, "us", "") {
			t.Error("an apply of it would change something")
		}
	}
	if got := appliedOf(live, "nobody", false); len(got) > 0 {
		t.Errorf("of nobody: %v", got)
	}
}

// Of a Secret all is kept: values are made once, and its texts are hidden.
func TestASecretIsKept(t *testing.T) {
	live := parse(t, "{apiVersion: v1, kind: Secret, metadata: {name: x, namespace: a, labels: {theirs: '1'}}, data: {password: eA==}, type: Opaque}")
	if diff := cmp.Diff(live["data"], Pruned(live, "us")["data"]); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}
