//go:build e2e

package cluster

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/base64"
	"encoding/pem"
	"fmt"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/rs/zerolog"
	"github.com/starling-operator/starling/builtins/jq"
	e2e "github.com/starling-operator/starling/e2e/cluster"
	"github.com/starling-operator/starling/runtime/apply"
	"github.com/starling-operator/starling/runtime/effect"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

var shared *e2e.Cluster

func TestMain(m *testing.M) { os.Exit(e2e.Main(m, &shared)) }

// realWorld writes to the real control plane, in its own namespace.
type realWorld struct {
	t      *testing.T
	ns     string
	client *Client
	writer *Writer
}

func newRealWorld(t *testing.T) *realWorld {
	client, err := New(Options{Config: shared.Config, Log: zerolog.Nop()})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(client.Close)
	w := &realWorld{t: t, ns: shared.Namespace(t), client: client}
	w.writer = NewWriter(WriterOptions{Client: client, Namespace: w.ns, Name: "starling", Instance: w.ns + ".starling", JQ: jq.Patch})
	return w
}

func (w *realWorld) ref(apiVersion, kind, name string) effect.Ref {
	return effect.Ref{APIVersion: apiVersion, Kind: kind, Namespace: w.ns, Name: name}
}

// write makes a write that must succeed.
func (w *realWorld) write(wr effect.Write) {
	w.t.Helper()
	if err := w.writer.Write(context.Background(), "starling/web/f", wr); err != nil {
		w.t.Fatalf("%s: %v", wr.Kind, err)
	}
}

// refused makes a write that must fail with an error that begins so.
func (w *realWorld) refused(wr effect.Write, want string) error {
	w.t.Helper()
	err := w.writer.Write(context.Background(), "starling/web/f", wr)
	if err == nil || !strings.HasPrefix(err.Error(), want) {
		w.t.Errorf("%s: error is\n%v, want\n%s", wr.Kind, err, want)
	}
	return err
}

func (w *realWorld) get(ref effect.Ref) map[string]any {
	w.t.Helper()
	obj, err := w.client.Get(context.Background(), ref)
	if err != nil {
		w.t.Fatal(err)
	}
	return obj
}

// expect compares what is at a path of an object.
func (w *realWorld) expect(ref effect.Ref, want any, path ...string) {
	w.t.Helper()
	var got any = w.get(ref)
	for _, key := range path {
		m, _ := got.(map[string]any)
		got = m[key]
	}
	if diff := cmp.Diff(want, got); diff != "" {
		w.t.Errorf("%s of %s (-want +got):\n%s", strings.Join(path, "."), ref, diff)
	}
}

func (w *realWorld) configMap(name string) effect.Write {
	return effect.Write{Kind: effect.WriteApply, Force: true, Ref: w.ref("v1", "ConfigMap", name), Object: configMap(w.ns, name)}
}

func seen(obj map[string]any) *effect.Unchanged {
	metadata := obj["metadata"].(map[string]any)
	return &effect.Unchanged{UID: uidOf(obj), ResourceVersion: metadata["resourceVersion"].(string)}
}

func TestRealCreateAndPatch(t *testing.T) {
	w := newRealWorld(t)
	ref := w.ref("v1", "ConfigMap", "x")
	create := effect.Write{Kind: effect.WriteCreate, Ref: ref, Object: configMap(w.ns, "x")}
	w.write(create)
	w.refused(create, "cannot create ConfigMap "+w.ns+"/x: it is there already")
	create.IfAbsent = true
	w.write(create)
	for _, step := range []struct {
		typ  effect.PatchType
		body any
		want map[string]any
	}{
		{effect.PatchMerge, map[string]any{"data": map[string]any{"m": "2"}}, map[string]any{"n": "1", "m": "2"}},
		{effect.PatchJSON, []any{map[string]any{"op": "replace", "path": "/data/m", "value": "3"}}, map[string]any{"n": "1", "m": "3"}},
		{effect.PatchStrategic, map[string]any{"data": map[string]any{"m": nil, "s": "3"}}, map[string]any{"n": "1", "s": "3"}},
		{effect.PatchJQ, `.data |= with_entries(.value += "!")`, map[string]any{"n": "1!", "s": "3!"}},
	} {
		p := patchOf(step.typ, step.body)
		p.Ref = ref
		before := seen(w.get(ref))
		p.Unchanged = before
		w.write(p)
		w.expect(ref, step.want, "data")
		if err := w.refused(p, "cannot patch ConfigMap "+w.ns+"/x: it was changed by someone else"); !apierrors.IsConflict(err) {
			t.Errorf("%s: no conflict: %v", step.typ, err)
		}
		w.expect(ref, step.want, "data")
	}
	odd := patchOf(effect.PatchJSON, []any{map[string]any{"op": "remove", "path": "/data/none"}})
	odd.Ref = ref
	w.refused(odd, "cannot patch ConfigMap "+w.ns+"/x: the JSON patch does not fit the object: a path is not there, or a test fails")
	stale := w.configMap("x")
	stale.Unchanged = &effect.Unchanged{ResourceVersion: "1"}
	w.refused(stale, "cannot apply ConfigMap "+w.ns+"/x: it was changed by someone else")
	del := effect.Write{Kind: effect.WriteDelete, Ref: ref, Unchanged: &effect.Unchanged{ResourceVersion: "1"}}
	w.refused(del, "cannot delete ConfigMap "+w.ns+"/x: it was changed by someone else")
	del.Unchanged = &effect.Unchanged{UID: "other"}
	w.refused(del, "cannot delete ConfigMap "+w.ns+"/x: it was changed by someone else")
	del.Unchanged = seen(w.get(ref))
	w.write(del)
	w.expect(ref, map[string]any(nil))
	missing := patchOf(effect.PatchMerge, map[string]any{})
	missing.Ref = ref
	w.refused(missing, "cannot patch ConfigMap "+w.ns+`/x: configmaps "x" not found`)
	missing.IgnoreMissing = true
	w.write(missing)

	held := configMap(w.ns, "held")
	held["metadata"].(map[string]any)["finalizers"] = []any{"example.com/a"}
	ref = w.ref("v1", "ConfigMap", "held")
	w.write(effect.Write{Kind: effect.WriteCreate, Ref: ref, Object: held})
	del = effect.Write{Kind: effect.WriteDelete, Ref: ref, Wait: 200 * time.Millisecond}
	w.refused(del, "ConfigMap "+w.ns+"/held is deleted, but still there after 200ms, held by the finalizer example.com/a")
	free := patchOf(effect.PatchMerge, map[string]any{"metadata": map[string]any{"finalizers": nil}})
	free.Ref = ref
	w.write(free)
	w.write(del)
	w.expect(ref, map[string]any(nil))
}

// The writes of request of @std//certs.star, and the approval that stands beside it.
func TestRealCertificateRequests(t *testing.T) {
	w := newRealWorld(t)
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	der, err := x509.CreateCertificateRequest(rand.Reader, &x509.CertificateRequest{Subject: pkix.Name{CommonName: "web"}}, key)
	if err != nil {
		t.Fatal(err)
	}
	ref := effect.Ref{APIVersion: "certificates.k8s.io/v1", Kind: "CertificateSigningRequest", Name: w.ns}
	text := base64.StdEncoding.EncodeToString(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE REQUEST", Bytes: der}))
	w.write(effect.Write{Kind: effect.WriteApply, Force: true, Ref: ref, Object: map[string]any{
		"apiVersion": ref.APIVersion, "kind": ref.Kind, "metadata": map[string]any{"name": ref.Name},
		"spec": map[string]any{"request": text, "signerName": "example.org/clients", "usages": []any{"client auth"}, "expirationSeconds": int64(86400)},
	}})
	w.expect(ref, text, "spec", "request")
	approve := patchOf(effect.PatchMerge, map[string]any{"status": map[string]any{"conditions": []any{
		map[string]any{"type": "Approved", "status": "True", "reason": "Web", "message": "asked for by module web"},
	}}})
	approve.Ref, approve.Patch.Subresource = ref, "approval"
	w.write(approve)
	status, _ := w.get(ref)["status"].(map[string]any)
	if conditions, _ := status["conditions"].([]any); len(conditions) != 1 || conditions[0].(map[string]any)["type"] != "Approved" {
		t.Errorf("status is %v", status)
	}
	w.write(effect.Write{Kind: effect.WriteDelete, Ref: ref, Wait: 10 * time.Second})
	w.expect(ref, map[string]any(nil))
}

const realCRD = `apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: gadgets.example.com}
spec:
  group: example.com
  names: {kind: Gadget, plural: gadgets, singular: gadget, listKind: GadgetList}
  scope: Namespaced
  versions:
  - name: v1
    served: true
    storage: true
    subresources: {status: {}}
    schema: {openAPIV3Schema: {type: object, x-kubernetes-preserve-unknown-fields: true}}
`

func TestRealStatus(t *testing.T) {
	w := newRealWorld(t)
	shared.Apply(t, realCRD)
	ref := w.ref("example.com/v1", "Gadget", "g")
	object := func(field string, v any) map[string]any {
		return map[string]any{"apiVersion": ref.APIVersion, "kind": ref.Kind, "metadata": map[string]any{"name": "g", "namespace": w.ns}, field: v}
	}
	e2e.Eventually(t, 3*time.Minute, "the kind is served", func() error {
		return w.writer.Write(context.Background(), "m", effect.Write{Kind: effect.WriteApply, Ref: ref, Object: object("spec", map[string]any{"n": "1"})})
	})
	status := effect.Write{Kind: effect.WriteStatus, Ref: ref, Force: true, Object: object("status", map[string]any{"ready": true, "n": int64(1)})}
	w.write(status)
	w.expect(ref, map[string]any{"ready": true, "n": int64(1)}, "status")
	status.Object = object("status", map[string]any{"ready": true})
	w.write(status)
	w.expect(ref, map[string]any{"ready": true}, "status") // what is not given any more goes
	jq := patchOf(effect.PatchJQ, `.status.seen = .spec.n`)
	jq.Ref, jq.Patch.Subresource = ref, "status"
	w.write(jq)
	w.expect(ref, map[string]any{"ready": true, "seen": "1"}, "status")
	strategic := patchOf(effect.PatchStrategic, map[string]any{})
	strategic.Ref = ref
	w.refused(strategic, "cannot patch Gadget "+w.ns+"/g: ")
	status.Ref.Name = "none"
	status.Object = map[string]any{"apiVersion": ref.APIVersion, "kind": ref.Kind, "metadata": map[string]any{"name": "none", "namespace": w.ns}, "status": map[string]any{}}
	w.refused(status, "cannot apply Gadget "+w.ns+"/none: ")
}

func TestRealGuardsAndOwners(t *testing.T) {
	w := newRealWorld(t)
	owned := &effect.Guard{Any: []effect.Condition{{MadeBy: "web"}}, MarkFor: "web", Refused: "hook web/f may not do that"}
	mine := w.configMap("mine")
	mine.Guard = owned
	w.write(mine)
	w.write(mine)
	w.expect(mine.Ref, map[string]any{effect.MadeByAnnotation: "web"}, "metadata", "annotations")
	w.write(w.configMap("theirs"))
	theirs := w.configMap("theirs")
	theirs.Guard = owned
	w.refused(theirs, owned.Refused)
	for _, wr := range []effect.Write{{Kind: effect.WriteDelete}, patchOf(effect.PatchMerge, map[string]any{"data": nil}), patchOf(effect.PatchJQ, "del(.data)")} {
		wr.Ref, wr.Guard = theirs.Ref, owned
		w.refused(wr, owned.Refused)
		wr.Ref = mine.Ref
		if wr.Kind == effect.WritePatch {
			w.write(wr)
			w.expect(mine.Ref, nil, "data")
		}
	}
	child := w.configMap("child")
	child.Owner = &effect.Owner{Ref: mine.Ref}
	w.write(child)
	w.write(child)
	w.expect(child.Ref, []any{map[string]any{"apiVersion": "v1", "kind": "ConfigMap", "name": "mine", "uid": uidOf(w.get(mine.Ref)), "controller": true, "blockOwnerDeletion": false}}, "metadata", "ownerReferences")
	w.write(effect.Write{Kind: effect.WriteDelete, Ref: mine.Ref, Guard: owned})
	e2e.Eventually(t, 3*time.Minute, "the garbage collector takes the child", func() error {
		if obj, err := w.client.Get(context.Background(), child.Ref); err != nil || obj == nil {
			return err
		}
		return os.ErrExist
	})
}

func TestRealEvents(t *testing.T) {
	w := newRealWorld(t)
	now := time.Now()
	w.writer.o.Now = func() time.Time { return now }
	w.write(w.configMap("x"))
	about := w.ref("v1", "ConfigMap", "x")
	event := effect.Write{Kind: effect.WriteEvent, Ref: about, Event: &effect.Event{Type: "Warning", Reason: "Copied", Message: "all is well"}}
	w.write(event)
	w.write(event)
	now = now.Add(2 * time.Minute)
	w.write(event)
	// As kubectl describe looks for them.
	found, err := shared.Client.CoreV1().Events(w.ns).List(context.Background(), metav1.ListOptions{
		FieldSelector: "involvedObject.name=x,involvedObject.kind=ConfigMap,involvedObject.uid=" + uidOf(w.get(about))})
	if err != nil || len(found.Items) != 1 || found.Items[0].Count != 2 || found.Items[0].Type != "Warning" {
		t.Errorf("events are %+v, %v", found, err)
	}
	w.write(effect.Write{Kind: effect.WriteEvent, Ref: effect.Ref{APIVersion: "v1", Kind: "Node", Name: "fake-0"}, Event: event.Event})
	found, err = shared.Client.CoreV1().Events("default").List(context.Background(), metav1.ListOptions{FieldSelector: "involvedObject.name=fake-0,reason=Copied"})
	if err != nil || len(found.Items) != 1 {
		t.Errorf("events of the node are %+v, %v", found, err)
	}
	// A finalizer holds a namespace that is being deleted: it takes no Event, which is no error.
	held := w.configMap("held")
	held.Object["metadata"].(map[string]any)["finalizers"] = []any{"example.com/held"}
	w.write(held)
	t.Cleanup(func() {
		_, _ = shared.Client.CoreV1().ConfigMaps(w.ns).Patch(context.Background(), "held", types.MergePatchType, []byte(`{"metadata":{"finalizers":null}}`), metav1.PatchOptions{})
	})
	if err := shared.Client.CoreV1().Namespaces().Delete(t.Context(), w.ns, metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	e2e.Eventually(t, time.Minute, "the namespace takes nothing new", func() error {
		err := w.writer.Write(t.Context(), "starling/web/f", w.configMap("late"))
		if apierrors.HasStatusCause(err, corev1.NamespaceTerminatingCause) {
			return nil
		}
		return fmt.Errorf("it was taken: %v", err)
	})
	w.write(effect.Write{Kind: effect.WriteEvent, Ref: held.Ref, Event: event.Event})
}

func TestRealEviction(t *testing.T) {
	w := newRealWorld(t)
	ref := w.ref("v1", "Pod", "p")
	w.write(effect.Write{Kind: effect.WriteApply, Ref: ref, Object: map[string]any{"apiVersion": "v1", "kind": "Pod",
		"metadata": map[string]any{"name": "p", "namespace": w.ns, "labels": map[string]any{"app": "p"}},
		"spec":     map[string]any{"containers": []any{map[string]any{"name": "c", "image": "none"}}, "terminationGracePeriodSeconds": int64(0)}}})
	budget := w.ref("policy/v1", "PodDisruptionBudget", "b")
	w.write(effect.Write{Kind: effect.WriteApply, Ref: budget, Object: map[string]any{"apiVersion": budget.APIVersion, "kind": budget.Kind,
		"metadata": map[string]any{"name": "b", "namespace": w.ns},
		"spec":     map[string]any{"maxUnavailable": int64(0), "selector": map[string]any{"matchLabels": map[string]any{"app": "p"}}}}})
	evict := effect.Write{Kind: effect.WriteEvict, Ref: ref}
	e2e.Eventually(t, 3*time.Minute, "the Pod runs", func() error {
		pod, err := shared.Client.CoreV1().Pods(w.ns).Get(context.Background(), "p", metav1.GetOptions{})
		if err != nil || pod.Status.Phase == "Running" {
			return err
		}
		return os.ErrNotExist
	})
	if err := w.refused(evict, "cannot evict Pod "+w.ns+"/p: a PodDisruptionBudget does not allow it now"); !apierrors.IsTooManyRequests(err) {
		t.Errorf("no wish to come back later: %v", err)
	}
	w.write(effect.Write{Kind: effect.WriteDelete, Ref: budget})
	e2e.Eventually(t, 3*time.Minute, "the Pod may go", func() error {
		return w.writer.Write(context.Background(), "m", evict)
	})
	e2e.Eventually(t, 3*time.Minute, "the Pod is gone", func() error {
		if obj, err := w.client.Get(context.Background(), ref); err != nil || obj == nil {
			return err
		}
		return os.ErrExist
	})
	w.write(evict) // of what is gone
}

func TestRealSets(t *testing.T) {
	w := newRealWorld(t)
	applySet := func(members ...effect.Write) effect.Write {
		return effect.Write{Kind: effect.WriteSet, Set: &effect.Set{Name: "children", Members: members}}
	}
	secret := effect.Write{Kind: effect.WriteApply, Force: true, Ref: w.ref("v1", "Secret", "s"), Object: map[string]any{
		"apiVersion": "v1", "kind": "Secret", "metadata": map[string]any{"name": "s", "namespace": w.ns}}}
	w.write(applySet(w.configMap("a"), secret))
	quiet := seen(w.get(secret.Ref))
	w.write(applySet(w.configMap("a"), secret))
	if diff := cmp.Diff(quiet, seen(w.get(secret.Ref))); diff != "" {
		t.Errorf("a set that stays as it is was written (-before +after):\n%s", diff)
	}
	w.write(w.configMap("theirs"))
	w.refused(applySet(w.configMap("a"), w.configMap("theirs")), "cannot apply ConfigMap "+w.ns+"/theirs: it is there, and set \"children\" of this hook did not make it")
	w.expect(w.ref("v1", "ConfigMap", "theirs"), nil, "metadata", "labels")
	// A copy with all marks, and with the field managers, which a create drops, under another name.
	copied, metadata := effect.WithMetadata(w.get(w.ref("v1", "ConfigMap", "a")))
	metadata["name"] = "copy"
	delete(metadata, "uid")
	delete(metadata, "resourceVersion")
	w.write(effect.Write{Kind: effect.WriteCreate, Ref: effect.RefOf(copied), Object: copied})
	w.write(effect.Write{Kind: effect.WritePatch, Ref: effect.RefOf(copied), Patch: &effect.Patch{Type: effect.PatchMerge,
		Body: map[string]any{"metadata": map[string]any{"managedFields": metadata["managedFields"]}}}})
	if apply.FieldsOf(w.get(effect.RefOf(copied)), "starling/web/f", "") == nil {
		t.Error("the copy has no field managers")
	}
	w.writer = NewWriter(w.writer.o) // another process
	w.write(applySet(w.configMap("a"), w.configMap("b")))
	w.expect(secret.Ref, map[string]any(nil))
	w.write(applySet())
	for _, name := range []string{"a", "b"} {
		w.expect(w.ref("v1", "ConfigMap", name), map[string]any(nil))
	}
	if left, err := w.client.List(context.Background(), "v1", "Secret", []string{w.ns}, effect.InstanceLabel, ""); err != nil || len(left) > 0 {
		t.Errorf("%d records are left, %v", len(left), err)
	}
	if w.get(w.ref("v1", "ConfigMap", "theirs")) == nil {
		t.Error("what others made is gone")
	}
	if w.get(effect.RefOf(copied)) == nil {
		t.Error("a copy is gone")
	}
}
