package cluster

import (
	"bytes"
	"encoding/json"
	"io"
	"net/http"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/rs/zerolog"
	"k8s.io/client-go/rest"

	"github.com/starling-operator/starling/runtime/apply"
	"github.com/starling-operator/starling/runtime/effect"
	"github.com/starling-operator/starling/runtime/reconcile"
)

// plainAPI is an API server that has no server-side apply for a resource, as a few aggregated ones.
type plainAPI struct {
	*farAPI
	resource string
	code     int
	notes    bool // the managers of fields
}

func (p *plainAPI) RoundTrip(r *http.Request) (*http.Response, error) {
	if !strings.Contains(r.URL.Path, "/"+p.resource) || r.URL.Query().Has("watch") {
		return p.farAPI.RoundTrip(r)
	}
	if r.Header.Get("Content-Type") == applyType {
		return &http.Response{StatusCode: p.code, Header: http.Header{"Content-Type": {"application/json"}}, Request: r, Body: io.NopCloser(strings.NewReader(
			`{"kind": "Status", "apiVersion": "v1", "status": "Failure", "code": ` + jsonOf(p.code) + `, "message": "it has no apply"}`))}, nil
	}
	answer, err := p.farAPI.RoundTrip(r)
	if err != nil || p.notes {
		return answer, err
	}
	var body map[string]any
	if err := json.NewDecoder(answer.Body).Decode(&body); err != nil {
		return nil, err
	}
	items, _ := body["items"].([]any)
	for _, o := range append(items, any(body)) {
		if metadata, is := o.(map[string]any)["metadata"].(map[string]any); is {
			delete(metadata, "managedFields")
		}
	}
	answer.Body, answer.ContentLength = io.NopCloser(bytes.NewReader([]byte(jsonOf(body)))), -1
	answer.Header.Del("Content-Length")
	return answer, nil
}

func jsonOf(v any) string {
	text, _ := json.Marshal(v)
	return string(text)
}

// plainWorlds runs a test with each such API server.
func plainWorlds(t *testing.T, test func(t *testing.T, w *farWorld, restart func())) {
	for name, api := range map[string]plainAPI{
		"no managers": {code: http.StatusUnsupportedMediaType}, "managers": {code: http.StatusUnsupportedMediaType, notes: true},
		"not allowed": {code: http.StatusMethodNotAllowed},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				w := newFarWorld(t)
				api.farAPI, api.resource = w.api, "configmaps"
				restart := func() {
					client, err := New(Options{Config: &rest.Config{Host: "http://sim", Transport: &api}, Log: zerolog.Nop()})
					if err != nil {
						t.Fatal(err)
					}
					client.UseSeal(newSeal())
					w.writer = NewWriter(WriterOptions{Client: client, Namespace: "ops", Name: "starling", Instance: "ops.starling"})
				}
				restart()
				test(t, w, restart)
			})
		})
	}
}

func newSeal() *effect.Seal {
	seal := effect.NewSeal(time.Now)
	seal.Use([]byte("key"), time.Time{})
	return seal
}

// others writes what somebody else has; nil: it goes.
func (w *farWorld) others(ref effect.Ref, obj map[string]any) {
	w.t.Helper()
	w.must("kubectl", effect.Write{Kind: effect.WriteDelete, Ref: ref})
	if obj != nil {
		w.must("kubectl", effect.Write{Kind: effect.WriteCreate, Ref: ref, Object: obj})
	}
}

func (w *farWorld) edit(ref effect.Ref, body map[string]any) {
	w.t.Helper()
	w.must("kubectl", effect.Write{Kind: effect.WritePatch, Ref: ref, Patch: &effect.Patch{Type: effect.PatchMerge, Body: body}})
}

// Objects of such a kind are members of sets as others are: they are compared by value.
func TestSetsOfKindsWithoutApply(t *testing.T) {
	plainWorlds(t, func(t *testing.T, w *farWorld, restart func()) {
		x, y := configMap("a", "x"), configMap("a", "y")
		x["data"] = map[string]any{"n": "1", "more": "1"}
		const list, records = "LIST namespaces/a/configmaps", "LIST namespaces/ops/secrets"
		if _, err := w.apply(x, y); err != nil {
			t.Fatal(err)
		}
		w.want("nothing differs", []map[string]any{x, y}, list)
		restart()
		w.want("nothing differs after a restart", []map[string]any{x, y}, list, records)

		theirs := map[string]any{"labels": map[string]any{"theirs": "1"}, "annotations": map[string]any{"theirs": "1"}}
		w.edit(configRef, map[string]any{"metadata": theirs})
		w.want("others have written a label", []map[string]any{x, y}, list)
		w.edit(configRef, map[string]any{"data": map[string]any{"n": "2"}})
		w.want("others have changed a value", []map[string]any{x, y}, list, "PATCH x", "GET x")
		x["data"] = map[string]any{"n": "1"}
		w.want("a field is wanted no more", []map[string]any{x, y}, list, "PATCH x", "GET x")
		live := w.get(configRef)
		if diff := cmp.Diff(map[string]any{"n": "1"}, live["data"]); diff != "" || textOf(live, "labels", "theirs") != "1" {
			t.Errorf("%v (-want +got):\n%s", live, diff)
		}

		foreign := configMap("a", "z")
		w.others(effect.RefOf(foreign), foreign)
		if _, err := w.apply(x, y, foreign); err == nil || !strings.Contains(err.Error(), "it is there, and set \"children\" of this hook did not make it") {
			t.Errorf("an object of somebody else: %v", err)
		}
		// A file that was saved, under another name, and an hour later in the place of a member.
		copied, metadata := effect.WithMetadata(live)
		for _, key := range []string{"uid", "resourceVersion", "managedFields", "creationTimestamp"} {
			delete(metadata, key)
		}
		metadata["name"] = "copied"
		w.others(effect.RefOf(copied), copied)
		time.Sleep(time.Hour)
		metadata["name"] = "x"
		w.others(configRef, copied)
		w.want("y goes", nil, list, records, "GET z", "DELETE y", "DELETE "+w.records()[0])
		if diff := cmp.Diff([]string{"ConfigMap a/copied", "ConfigMap a/x", "ConfigMap a/z"}, w.names()); diff != "" {
			t.Errorf("objects (-want +got):\n%s", diff)
		}
	})
}

// copyOf is an object as a file has it that somebody saves, with all marks, and that of a kind without apply.
func copyOf(live map[string]any) map[string]any {
	copied, metadata := effect.WithMetadata(live)
	for _, key := range []string{"uid", "resourceVersion", "managedFields", "creationTimestamp"} {
		delete(metadata, key)
	}
	effect.Cloned(metadata, "annotations")[apply.Applied] = "made up"
	return copied
}

// A copy with all marks that somebody puts in the place of a member, or of a child, a moment after that was made, is
// neither: it stays. A process that begins then knows no uid, so only the managers of fields tell.
func TestCopiesInThePlaceOfWhatWasMade(t *testing.T) {
	test := func(t *testing.T, w *farWorld, restart func(), tells bool) {
		x, y := configMap("a", "x"), configMap("a", "y")
		restarts := []func(){func() {}}
		if tells {
			restarts = append(restarts, restart)
		}
		for _, between := range restarts {
			w.others(configRef, nil)
			if _, err := w.apply(x, y); err != nil {
				t.Fatal(err)
			}
			w.others(configRef, copyOf(w.get(configRef)))
			between()
			if _, err := w.apply(y); err != nil {
				t.Fatal(err)
			}
			if !slices.Contains(w.names(), "ConfigMap a/x") {
				t.Error("a copy goes that somebody has put in the place of a member")
			}

			w.others(configRef, nil)
			const manager = "starling/web/c"
			child := effect.Write{Kind: effect.WriteChildren, Children: appliesOf([]map[string]any{childOf("u1", "x", "1")})}
			if _, err := w.writer.Children(t.Context(), manager, child); err != nil {
				t.Fatal(err)
			}
			ours := func() bool {
				made, signed := Written(w.writer.o.Client.Seal(), Pruned(w.get(configRef), manager), manager)
				return made && signed
			}
			if !ours() {
				t.Error("a child is none")
			}
			w.others(configRef, copyOf(w.get(configRef)))
			if between(); ours() {
				t.Error("a copy counts as the child in whose place it is")
			}
		}
	}
	plainWorlds(t, func(t *testing.T, w *farWorld, restart func()) {
		test(t, w, restart, strings.HasSuffix(t.Name(), "/managers"))
	})
	t.Run("with server-side apply", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			w := newFarWorld(t)
			restart := func() {
				w.restart()
				w.writer.o.Client.UseSeal(newSeal())
			}
			restart()
			test(t, w, restart, true)
		})
	})
}

// So they are children, and somebody who changes one has it put right once.
func TestChildrenOfKindsWithoutApply(t *testing.T) {
	plainWorlds(t, func(t *testing.T, w *farWorld, _ func()) {
		const manager = "starling/web/c"
		write := func(m effect.Write) (effect.Fate, error) {
			fates, err := w.writer.Children(t.Context(), manager, effect.Write{Kind: effect.WriteChildren, Children: []effect.Write{m}})
			return fates[0], err
		}
		child := func(value string) effect.Write { return appliesOf([]map[string]any{childOf("u1", "x", value)})[0] }
		m := child("1")
		if fate, err := write(m); err != nil || !fate.Written || fate.Form != "" {
			t.Fatalf("%+v, %v", fate, err)
		}
		state := func(want map[string]any) (same, ours bool) {
			live := Pruned(w.get(configRef), manager)
			made, signed := Written(w.writer.o.Client.Seal(), live, manager)
			return Same(want, live, manager, ""), made && signed
		}
		if same, ours := state(m.Object); !same || !ours {
			t.Errorf("after a create: same %t, ours %t", same, ours)
		}
		w.edit(configRef, map[string]any{"data": map[string]any{"n": "9"}})
		if same, ours := state(m.Object); same || !ours {
			t.Errorf("after a change: same %t, ours %t", same, ours)
		}
		uid := uidOf(w.get(configRef))
		m = child("2")
		m.Unchanged = &effect.Unchanged{UID: uid}
		if fate, err := write(m); err != nil || fate.Form != "" {
			t.Errorf("%+v, %v", fate, err)
		}
		if same, ours := state(m.Object); !same || !ours {
			t.Errorf("after an update: same %t, ours %t", same, ours)
		}

		// The child of another parent, one of somebody else, and one that is another object by now.
		if _, err := write(appliesOf([]map[string]any{childOf("u2", "x", "2")})[0]); err == nil || !strings.Contains(err.Error(), "this controller did not make it for this parent") {
			t.Errorf("the child of another parent: %v", err)
		}
		w.others(configRef, configMap("a", "x"))
		for _, goes := range []effect.Write{child("3"), m, {Kind: effect.WriteDelete, Ref: configRef, Unchanged: &effect.Unchanged{UID: uid}}} {
			_, err := write(goes)
			if (err == nil) != (goes.Kind == effect.WriteDelete) {
				t.Errorf("%+v: %v", goes, err)
			}
		}
		if reconcile.ControllerOf(w.get(configRef)) != "" {
			t.Error("the object of somebody else is taken")
		}

		w.others(configRef, nil)
		if _, err := write(child("4")); err != nil {
			t.Error(err)
		}
		if _, err := write(effect.Write{Kind: effect.WriteDelete, Ref: configRef, Unchanged: &effect.Unchanged{UID: uidOf(w.get(configRef))}}); err != nil || slices.Contains(w.names(), "ConfigMap a/x") {
			t.Errorf("a child is deleted: %v", err)
		}
	})
}

// The API server fills in values, and keeps some in another form: the child is as it was left until somebody changes it.
func TestFormsOfKindsWithoutApply(t *testing.T) {
	want := map[string]any{"apiVersion": "a.example.com/v1", "kind": "A", "metadata": map[string]any{"name": "x"},
		"spec": map[string]any{"list": []any{map[string]any{"name": "a"}}, "none": nil, "off": false}}
	live, metadata := effect.WithMetadata(apply.Noted(want))
	metadata["uid"], metadata["resourceVersion"], live["status"] = "u", "1", map[string]any{"observed": int64(1)}
	live["spec"] = map[string]any{"list": []any{map[string]any{"name": "a", "port": int64(80)}}, "filled": "in"}
	if !Same(want, live, "us", "") || !Same(want, Pruned(live, "us"), "us", "") {
		t.Error("values that the API server has filled in are a change")
	}
	other, metadata := effect.WithMetadata(live)
	metadata["resourceVersion"], metadata["managedFields"] = "2", []any{map[string]any{"manager": "kubelet", "operation": "Update", "subresource": "status"}}
	if !Same(want, other, "us", "") {
		t.Error("a manager of somebody else is a change")
	}
	other["status"] = map[string]any{"observed": int64(2)}
	if form := Form(want, live, "us"); form == "" || form != Form(want, Pruned(other, "us"), "us") {
		t.Error("a new status is another form")
	}
	other["spec"] = map[string]any{}
	if Form(want, live, "us") == Form(want, Pruned(other, "us"), "us") || Same(want, other, "us", "") {
		t.Error("another value is the same form")
	}
}
