package cluster

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/starling-operator/starling/runtime/effect"
	"github.com/starling-operator/starling/runtime/lane"
	"github.com/starling-operator/starling/runtime/sim/apitest"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
)

var (
	configRef = effect.Ref{APIVersion: "v1", Kind: "ConfigMap", Namespace: "a", Name: "x"}
)

// fakeJQ sets data.n to the program.
func fakeJQ(_ context.Context, program string, obj map[string]any) (map[string]any, error) {
	if program == "fail" {
		return nil, errors.New("cannot iterate over: string")
	}
	return map[string]any{
		"apiVersion": obj["apiVersion"], "kind": obj["kind"], "metadata": obj["metadata"], "data": map[string]any{"n": program},
	}, nil
}

func patchOf(typ effect.PatchType, body any) effect.Write {
	program, _ := body.(string)
	return effect.Write{Kind: effect.WritePatch, Patch: &effect.Patch{Type: typ, Body: body, Program: program}}
}

func TestWrites(t *testing.T) {
	const changed = ": it was changed by someone else at the same time; it is tried again"
	plain, matching := configMap("a", "x"), configMap("a", "x")
	matching["metadata"].(map[string]any)["labels"] = map[string]any{"app": "web"}
	guard := &effect.Guard{Any: []effect.Condition{{Labels: "app=web"}}, Refused: "hook web/f may not do that"}
	passed := &effect.Unchanged{ResourceVersion: "1"}
	guarded := func(w effect.Write) effect.Write { w.Guard = guard; return w }
	ifUnchanged := func(w effect.Write) effect.Write { w.Unchanged = passed; return w }
	very := &effect.Unchanged{UID: "of nothing", ResourceVersion: "1"} // the object before the write
	veryObject := func(w effect.Write) effect.Write { w.Unchanged = very; return w }
	ifThere := func(w effect.Write) effect.Write { w.IgnoreMissing = true; return w }
	create := effect.Write{Kind: effect.WriteCreate, Object: plain}
	apply := effect.Write{Kind: effect.WriteApply, Object: plain}
	del := effect.Write{Kind: effect.WriteDelete}
	setM := patchOf(effect.PatchMerge, map[string]any{"data": map[string]any{"n": nil, "m": "2"}})
	addM := patchOf(effect.PatchJSON, []any{map[string]any{"op": "add", "path": "/data/m", "value": "2"}})
	type data = map[string]any
	for _, test := range []struct {
		name     string
		there    map[string]any // before the write
		write    effect.Write
		want     data // of the object after it; nil: there is none
		requests string
		err      string
	}{
		{"create", nil, create, data{"n": "1"}, "create", ""},
		{"create what is there", plain, create, data{"n": "1"}, "create", "cannot create ConfigMap a/x: it is there already: use if_absent=True to leave it alone, or k8s.apply to change it"},
		{"create if absent", plain, effect.Write{Kind: effect.WriteCreate, IfAbsent: true, Object: matching}, data{"n": "1"}, "create", ""},
		{"merge patch", plain, setM, data{"m": "2"}, "patch", ""},
		{"json patch", plain, addM, data{"n": "1", "m": "2"}, "patch", ""},
		{"strategic patch", plain, patchOf(effect.PatchStrategic, data{"data": data{"m": "2"}}), data{"n": "1", "m": "2"}, "patch", ""},
		{"patch of nothing", nil, setM, nil, "patch", `cannot patch ConfigMap a/x: configmaps "x" not found`},
		{"patch of what may be missing", nil, ifThere(setM), nil, "patch", ""},
		{"jq patch of what may be missing", nil, ifThere(patchOf(effect.PatchJQ, "1")), nil, "get", ""},
		{"guarded patch of what may be missing", nil, ifThere(guarded(setM)), nil, "get", ""},
		{"patch of what may be missing, and is there", plain, ifThere(setM), data{"m": "2"}, "patch", ""},
		{"jq patch", plain, patchOf(effect.PatchJQ, "2"), data{"n": "2"}, "get put", ""},
		{"jq patch that changes nothing", plain, patchOf(effect.PatchJQ, "1"), data{"n": "1"}, "get", ""},
		{"jq patch that fails", plain, patchOf(effect.PatchJQ, "fail"), data{"n": "1"}, "get", "cannot patch ConfigMap a/x: the jq program: cannot iterate over: string"},
		{"jq patch of nothing", nil, patchOf(effect.PatchJQ, "1"), nil, "get", `cannot patch ConfigMap a/x: configmaps "x" not found`},
		{"jq patch, changed since", plain, ifUnchanged(patchOf(effect.PatchJQ, "2")), data{"n": "1"}, "get", "cannot patch ConfigMap a/x" + changed},
		{"apply, changed since", plain, ifUnchanged(apply), data{"n": "1"}, "get patch", "cannot apply ConfigMap a/x" + changed},
		{"apply, gone since", nil, ifUnchanged(apply), nil, "get", "cannot apply ConfigMap a/x" + changed},
		{"apply to this very object, gone since", nil, veryObject(apply), nil, "patch", "cannot apply ConfigMap a/x" + changed},
		{"apply to this very object", plain, veryObject(apply), data{"n": "1"}, "patch", ""},
		{"merge patch, changed since", plain, ifUnchanged(setM), data{"n": "1"}, "patch", "cannot patch ConfigMap a/x" + changed},
		{"json patch, changed since", plain, ifUnchanged(addM), data{"n": "1"}, "patch", "cannot patch ConfigMap a/x" + changed},
		{"delete, another of that name", plain, effect.Write{Kind: effect.WriteDelete, Unchanged: &effect.Unchanged{UID: "other"}}, data{"n": "1"}, "delete", "cannot delete ConfigMap a/x" + changed},
		{"delete of this very object", plain, veryObject(del), nil, "delete", ""},
		{"guarded apply to nothing", nil, guarded(apply), data{"n": "1"}, "get patch", ""},
		{"guarded apply", matching, guarded(apply), data{"n": "1"}, "get patch", ""},
		{"guarded apply refused", plain, guarded(effect.Write{Kind: effect.WriteApply, Object: matching}), data{"n": "1"}, "get", guard.Refused},
		{"guarded patch refused", plain, guarded(setM), data{"n": "1"}, "get", guard.Refused},
		{"guarded patch", matching, guarded(setM), data{"m": "2"}, "get patch", ""},
		{"guarded patch of nothing", nil, guarded(setM), nil, "get", `cannot patch ConfigMap a/x: configmaps "x" not found`},
		{"guarded delete refused", plain, guarded(del), data{"n": "1"}, "get", guard.Refused},
		{"guarded delete", matching, guarded(del), nil, "get delete", ""},
		{"guarded delete of nothing", nil, guarded(del), nil, "get", ""},
		{"an unknown kind of write", nil, effect.Write{Kind: "replace"}, nil, "", `cannot write ConfigMap a/x: unknown kind of write "replace"`},
		{"an unknown kind of patch", nil, patchOf("odd", nil), nil, "", `cannot patch ConfigMap a/x: unknown kind of patch "odd"`},
		{"an empty set", nil, effect.Write{Kind: effect.WriteSet}, nil, "", "a set without a name cannot be applied"},
		{"an empty event", nil, effect.Write{Kind: effect.WriteEvent}, nil, "", "an event about ConfigMap a/x says nothing"},
		{"a path for a subresource", plain, effect.Write{Kind: effect.WritePatch, Patch: &effect.Patch{Type: effect.PatchMerge, Subresource: "a/b"}}, data{"n": "1"}, "", `cannot patch ConfigMap a/x: "a/b" is no name of a subresource`},
	} {
		t.Run(test.name, func(t *testing.T) {
			api := apitest.New(t)
			if test.there != nil {
				obj := api.Put(test.there)
				very.UID, very.ResourceVersion = uidOf(obj), obj["metadata"].(map[string]any)["resourceVersion"].(string)
			}
			c := newClient(t, api)
			if _, err := c.Mapping(context.Background(), "v1", "ConfigMap"); err != nil {
				t.Fatal(err)
			}
			before := len(api.Requests())
			test.write.Ref = configRef
			err := NewWriter(WriterOptions{Client: c, JQ: fakeJQ}).Write(context.Background(), "starling/web/f", test.write)
			if got := fmt.Sprint(err); got != test.err && (err != nil || test.err != "") {
				t.Errorf("error is\n%v, want\n%s", err, test.err)
			}
			if passing, is := errors.AsType[*lane.Passing](err); strings.HasSuffix(test.err, changed) != (is && passing.Race) {
				t.Errorf("a lost race: %v", is)
			}
			var verbs []string
			for _, r := range api.Requests()[before:] {
				verb, _, _ := strings.Cut(r, " ")
				verbs = append(verbs, verb)
			}
			if got := strings.Join(verbs, " "); got != test.requests {
				t.Errorf("requests are %q, want %q", got, test.requests)
			}
			var got data
			if obj := api.Object("v1", "ConfigMap", "a", "x"); obj != nil {
				got = obj["data"].(data)
			}
			if diff := cmp.Diff(test.want, got); diff != "" {
				t.Errorf("data (-want +got):\n%s", diff)
			}
		})
	}
}

// Others change the object between read and write.
func TestWritesThatMeetOthers(t *testing.T) {
	api := apitest.New(t)
	api.Put(configMap("a", "x"))
	w := NewWriter(WriterOptions{Client: newClient(t, api), JQ: fakeJQ})
	others := 2
	api.OnRequest(func(r *http.Request) {
		if r.Method == http.MethodPut && others > 0 {
			others--
			obj := configMap("a", "x")
			obj["metadata"].(map[string]any)["labels"] = map[string]any{"others": fmt.Sprint(others)}
			api.Put(obj)
		}
	})
	patch := patchOf(effect.PatchJQ, "2")
	patch.Ref = configRef
	if err := w.Write(context.Background(), "m", patch); err != nil {
		t.Fatal(err)
	}
	if n := api.Count("put configmaps"); n != 3 {
		t.Errorf("%d updates, want 3", n)
	}
	others = 1000
	if patch.Patch.Program = "3"; !apierrors.IsConflict(w.Write(context.Background(), "m", patch)) {
		t.Error("without an end it gives no conflict")
	}
	if n := api.Count("put configmaps"); n != 3+maxTries {
		t.Errorf("%d updates, want %d more", n, maxTries)
	}
}

func TestMarksOfOwnedObjects(t *testing.T) {
	api := apitest.New(t)
	w := NewWriter(WriterOptions{Client: newClient(t, api)})
	marked := func(name string) any {
		metadata := api.Object("v1", "ConfigMap", "a", name)["metadata"].(map[string]any)
		annotations, _ := metadata["annotations"].(map[string]any)
		return annotations[effect.MadeByAnnotation]
	}
	apply := func(module, name string, owned bool) error {
		g := &effect.Guard{MarkFor: module, Refused: "no"}
		if owned {
			g.Any = []effect.Condition{{MadeBy: module}}
		}
		ref := configRef
		ref.Name = name
		return w.Write(context.Background(), "m", effect.Write{Kind: effect.WriteApply, Ref: ref, Object: configMap("a", name), Guard: g})
	}
	for range 2 { // made, and applied once more
		if err := apply("web", "x", true); err != nil || marked("x") != "web" {
			t.Fatalf("%v, marked for %v", err, marked("x"))
		}
	}
	api.Put(configMap("a", "y"))
	if err := apply("web", "y", true); err == nil || err.Error() != "no" {
		t.Errorf("what others made: %v", err)
	}
	if err := apply("web", "y", false); err != nil || marked("y") != nil {
		t.Errorf("what others made, under a wide grant: %v, marked for %v", err, marked("y"))
	}
	if err := apply("db", "x", true); err == nil || err.Error() != "no" {
		t.Errorf("what another module made: %v", err)
	}
	// A mark of before marks named instances counts, and names one from then on.
	a, b := effect.Instance{Namespace: "ops", Name: "a"}, effect.Instance{Namespace: "ops", Name: "b"}
	if err := apply(a.Mark("web"), "x", true); err != nil || marked("x") != "ops/a/web" {
		t.Errorf("an old mark: %v, marked for %v", err, marked("x"))
	}
	if err := apply(b.Mark("web"), "x", true); err == nil || err.Error() != "no" || marked("x") != "ops/a/web" {
		t.Errorf("what the module of another instance made: %v, marked for %v", err, marked("x"))
	}
}

func TestOwner(t *testing.T) {
	api := apitest.New(t)
	c := newClient(t, api)
	owner := configRef
	owner.Name = "owner"
	write := effect.Write{Kind: effect.WriteApply, Ref: configRef, Object: configMap("a", "x"), Owner: &effect.Owner{Ref: owner}}
	if _, err := c.Write(context.Background(), "", write); err == nil || err.Error() != "cannot apply ConfigMap a/x: its owner, ConfigMap a/owner, is not there" {
		t.Errorf("without owner: %v", err)
	}
	uid := uidOf(api.Put(configMap("a", "owner")))
	obj, err := c.Write(context.Background(), "", write)
	if err != nil {
		t.Fatal(err)
	}
	want := []any{map[string]any{"apiVersion": "v1", "kind": "ConfigMap", "name": "owner", "uid": uid, "controller": true, "blockOwnerDeletion": false}}
	if diff := cmp.Diff(want, obj["metadata"].(map[string]any)["ownerReferences"]); diff != "" {
		t.Error(diff)
	}
	if len(write.Object["metadata"].(map[string]any)) != 2 {
		t.Error("the effect itself was changed")
	}
}

func TestEvictAndSubresources(t *testing.T) {
	api := apitest.New(t)
	seen := 0
	w := NewWriter(WriterOptions{Client: newClient(t, api), Observe: func(effect.Ref, map[string]any, *effect.Cause, time.Time) { seen++ }})
	ref := effect.Ref{APIVersion: "v1", Kind: "Pod", Namespace: "a", Name: "p"}
	pod := map[string]any{"apiVersion": "v1", "kind": "Pod", "metadata": map[string]any{"namespace": "a", "name": "p"},
		"spec": map[string]any{"containers": []any{map[string]any{"name": "c", "image": "i"}}}}
	api.Put(pod)
	for i, wr := range []effect.Write{
		{Kind: effect.WriteStatus, Object: pod, Force: true},
		{Kind: effect.WritePatch, Patch: &effect.Patch{Type: effect.PatchMerge, Body: map[string]any{}, Subresource: "status"}},
	} {
		wr.Ref = ref
		if err := w.Write(context.Background(), "m", wr); err != nil || api.Count("patch pods/status") != i+1 {
			t.Errorf("%s: %v, %v", wr.Kind, err, api.Requests())
		}
	}
	if seen != 2 {
		t.Errorf("%d observed, want 2", seen)
	}
	evict := effect.Write{Kind: effect.WriteEvict, Ref: ref}
	api.Deny("post pods/eviction", http.StatusTooManyRequests)
	if err := w.Write(context.Background(), "m", evict); err == nil || err.Error() != "cannot evict Pod a/p: a PodDisruptionBudget does not allow it now; it is tried again" {
		t.Errorf("a budget gives %v", err)
	}
	api.Deny("post pods/eviction", 0)
	for range 2 { // the second time it is gone
		if err := w.Write(context.Background(), "m", evict); err != nil || api.Object("v1", "Pod", "a", "p") != nil {
			t.Errorf("evict: %v", err)
		}
	}
	if seen != 2 {
		t.Error("an eviction was taken for the end of the Pod")
	}
}

// A kind without that subresource is served all the same.
func TestSubresourcesThatAreNone(t *testing.T) {
	api := apitest.New(t)
	api.Put(configMap("a", "x"))
	w := NewWriter(WriterOptions{Client: newClient(t, api)})
	for sub, wr := range map[string]effect.Write{
		"status": {Kind: effect.WriteStatus, Object: configMap("a", "x"), Force: true},
		"scale":  {Kind: effect.WritePatch, Patch: &effect.Patch{Type: effect.PatchMerge, Body: map[string]any{}, Subresource: "scale"}},
	} {
		wr.Ref = configRef
		api.Deny("patch configmaps/"+sub, http.StatusNotFound)
		err := w.Write(context.Background(), "m", wr)
		if err == nil || !strings.HasSuffix(err.Error(), `: a ConfigMap has no subresource "`+sub+`"`) {
			t.Errorf("%s: %v", sub, err)
		}
	}
	api.Unserve(apitest.Kind{APIVersion: "v1", Kind: "ConfigMap", Resource: "configmaps", Namespaced: true})
	if err := w.Write(context.Background(), "m", effect.Write{Kind: effect.WriteStatus, Ref: configRef, Object: configMap("a", "x")}); !errors.Is(err, ErrNotServed) {
		t.Errorf("a kind that is gone: %v", err)
	}
}

// An aggregated API server may have no server-side apply: a hook says what to do.
func TestKindsWithoutApply(t *testing.T) {
	for _, code := range []int{http.StatusUnsupportedMediaType, http.StatusMethodNotAllowed} {
		s := newSetWorld(t)
		s.api.Deny("patch configmaps", code)
		plain := effect.Write{Kind: effect.WriteApply, Ref: configRef, Force: true, Object: configMap("a", "x")}
		err := s.writer.Write(t.Context(), "starling/web/f", plain)
		if err == nil || !strings.Contains(err.Error(), "use k8s.create and k8s.patch, k8s.apply_set, a child of a controller, or the module's chart") {
			t.Errorf("%d: a hook says %v", code, err)
		}
	}
}

// The error of a program about a Secret is not shown.
func TestJQOnSecrets(t *testing.T) {
	api := apitest.New(t)
	api.Put(map[string]any{"apiVersion": "v1", "kind": "Secret", "metadata": map[string]any{"namespace": "a", "name": "x"}, "data": map[string]any{"p": "aHVudGVyMg=="}})
	w := NewWriter(WriterOptions{Client: newClient(t, api), JQ: func(_ context.Context, _ string, obj map[string]any) (map[string]any, error) {
		return nil, fmt.Errorf("error: %v", obj["data"])
	}})
	patch := patchOf(effect.PatchJQ, "error(.data)")
	patch.Ref = configRef
	patch.Ref.Kind = "Secret"
	if err := w.Write(context.Background(), "m", patch); err == nil || strings.Contains(err.Error(), "aHVu") {
		t.Errorf("error is %v", err)
	}
}

// A write that an API server in trouble has failed says so: it is tried again once that is back. Another one does not.
func TestAWriteAwaitsAServerInTrouble(t *testing.T) {
	for code, want := range map[int]lane.Awaited{
		http.StatusServiceUnavailable: lane.AwaitsServer, http.StatusTooManyRequests: lane.AwaitsServer, http.StatusForbidden: "",
	} {
		api := apitest.New(t)
		api.Deny("patch configmaps", code)
		err := NewWriter(WriterOptions{Client: newClient(t, api)}).Write(t.Context(), "starling/web/f", effect.Write{
			Kind: effect.WriteApply, Ref: configRef, Force: true,
			Object: map[string]any{"apiVersion": "v1", "kind": "ConfigMap", "metadata": map[string]any{"namespace": "a", "name": "x"}},
		})
		if got := lane.AwaitedBy(err); err == nil || got != want {
			t.Errorf("%d awaits %q, want %q: %v", code, got, want, err)
		}
	}
}
