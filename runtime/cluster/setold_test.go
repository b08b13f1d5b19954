package cluster

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/google/go-cmp/cmp"
	"github.com/starling-operator/starling/runtime/effect"
)

// dies ends the connection at the write of this number: before it is carried out, or before its answer.
func (f *farAPI) dies(at int, carried bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.left, f.carried = at, carried
}

var errDied = errors.New("the process has died")

// alive is asked before and after each request.
func (f *farAPI) alive(r *http.Request, after bool) bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.left == 0 {
		return true
	}
	if r.Method != http.MethodGet && !after {
		f.writes++
	}
	return f.writes < f.left || f.writes == f.left && f.carried && !after && r.Method != http.MethodGet
}

// names are all objects of the kinds of tests, but those of Starling.
func (w *farWorld) names() []string {
	w.t.Helper()
	out := []string{}
	for _, kind := range []string{"ConfigMap", "Secret", "ServiceAccount"} {
		list, err := w.reader().List(context.Background(), "v1", kind, nil, "", "")
		if err != nil {
			w.t.Fatal(err)
		}
		for _, obj := range list {
			if ref := effect.RefOf(obj); ref.Namespace != "ops" {
				out = append(out, fmt.Sprintf("%s %s/%s", ref.Kind, ref.Namespace, ref.Name))
			}
		}
	}
	return out
}

// reader is a client of somebody else, whose connection does not end.
func (w *farWorld) reader() *Client {
	w.t.Helper()
	w.api.dies(0, false)
	return w.writer.o.Client
}

func (w *farWorld) must(manager string, wr effect.Write) {
	w.t.Helper()
	if _, err := w.reader().Write(context.Background(), manager, wr); err != nil {
		w.t.Fatal(err)
	}
}

// old makes a set as an earlier version has: its members carry one label, a Secret names them.
func (w *farWorld) old(name string, annotations map[string]any, objects []map[string]any, more ...member) {
	w.t.Helper()
	const manager = "starling/web/f"
	id, members := w.writer.setID(manager, name), more
	for _, obj := range objects {
		obj, metadata := withMetadata(obj)
		metadata["labels"] = map[string]any{SetLabel: id}
		w.must(manager, effect.Write{Kind: effect.WriteApply, Ref: effect.RefOf(obj), Object: obj})
		members = append(members, member{effect.RefOf(obj), uidOf(w.get(effect.RefOf(obj)))})
	}
	text, err := json.Marshal(members)
	if err != nil {
		w.t.Fatal(err)
	}
	annotations["starling.dev/set-of"] = manager + " " + name
	ref := effect.Ref{APIVersion: "v1", Kind: "Secret", Namespace: "ops", Name: "starling-set-" + id}
	w.must("starling", effect.Write{Kind: effect.WriteApply, Ref: ref, Object: map[string]any{
		"apiVersion": "v1", "kind": "Secret", "type": SetType, "data": map[string]any{"members": base64.StdEncoding.EncodeToString(text)},
		"metadata": map[string]any{"name": ref.Name, "namespace": "ops", "labels": map[string]any{effect.InstanceLabel: "ops.starling"}, "annotations": annotations},
	}})
}

func (w *farWorld) records() (out []string) {
	w.t.Helper()
	list, err := w.reader().List(context.Background(), "v1", "Secret", []string{"ops"}, "", "")
	if err != nil {
		w.t.Fatal(err)
	}
	for _, obj := range list {
		out = append(out, effect.RefOf(obj).Name)
	}
	return out
}

func account(namespace, name string) map[string]any {
	return map[string]any{"apiVersion": "v1", "kind": "ServiceAccount", "metadata": map[string]any{"name": name, "namespace": namespace}}
}

// Sets of an earlier version are taken over once, wherever the process dies meanwhile: what is listed
// is not made twice, what is not goes, and what others have made stays. Then the Secret of the set goes.
func TestSetsOfAnEarlierVersion(t *testing.T) {
	for _, carried := range []bool{false, true} {
		for at, ends := 1, false; !ends; at++ {
			synctest.Test(t, func(t *testing.T) { ends = takenOver(t, at, carried) })
		}
	}
}

// takenOver has the process die at one write. It says that there was none of that number.
func takenOver(t *testing.T, at int, carried bool) bool {
	w := newFarWorld(t)
	theirs := configMap("a", "theirs")
	w.must("them", effect.Write{Kind: effect.WriteCreate, Ref: effect.RefOf(theirs), Object: theirs})
	w.old("children", map[string]any{}, []map[string]any{configMap("a", "b"), configMap("a", "c"), configMap("b", "d"), account("a", "e")},
		member{effect.RefOf(theirs), ""}, member{effect.RefOf(configMap("a", "never")), ""})
	w.must("them", effect.Write{Kind: effect.WritePatch, Ref: effect.RefOf(configMap("a", "c")), Patch: &effect.Patch{Type: effect.PatchMerge,
		Body: map[string]any{"metadata": map[string]any{"labels": nil}}}})
	uid := uidOf(w.get(effect.RefOf(configMap("a", "b"))))
	w.restart()
	w.api.writes = 0
	w.api.dies(at, carried)
	_, err := w.apply(configMap("a", "b"), configMap("a", "new"))
	died := w.api.writes >= at
	w.api.dies(0, false)
	if died {
		if err == nil {
			t.Fatalf("write %d: no error", at)
		}
		w.restart()
		if _, err := w.apply(configMap("a", "b"), configMap("a", "new")); err != nil {
			t.Fatalf("write %d: %v", at, err)
		}
	} else if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]string{"ConfigMap a/b", "ConfigMap a/new", "ConfigMap a/theirs"}, w.names()); diff != "" {
		t.Fatalf("write %d, carried out %t (-want +got):\n%s", at, carried, diff)
	}
	b := w.get(effect.RefOf(configMap("a", "b")))
	if got := textOf(b, "annotations", setAnnotation); got != "children of ops.starling as a/b" || uidOf(b) != uid {
		t.Errorf("write %d: the member says %q", at, got)
	}
	record := w.writer.recordOf("starling/web/f").Name
	if got := w.records(); !slices.Equal(got, []string{record}) {
		t.Errorf("write %d: there are the records %q", at, got)
	}
	w.restart()
	w.want("after a restart", []map[string]any{configMap("a", "b"), configMap("a", "new")}, "LIST namespaces/ops/secrets", "LIST namespaces/a/configmaps")
	if !died && at < 8 {
		t.Errorf("there were %d writes", at-1)
	}
	return !died
}

// Sets of an earlier version go with their hook, and stay, as before; of those with an owner that is gone the
// Secrets go.
func TestSetsOfAnEarlierVersionGoAndStay(t *testing.T) {
	const manager = "starling/web/f"
	w := newFarWorld(t)
	w.old("goes", map[string]any{}, []map[string]any{configMap("a", "goes"), account("b", "goes")})
	w.old("stays", map[string]any{keepAnnotation: "true"}, []map[string]any{configMap("a", "stays")})
	w.old("b/x parts", map[string]any{"starling.dev/set-owned": "true"}, []map[string]any{configMap("b", "owned")})
	w.restart()
	ctx := context.Background()
	if managers, err := w.writer.SetManagers(ctx); err != nil || !slices.Equal(managers, []string{manager}) {
		t.Errorf("managers are %q, %v", managers, err)
	}
	if err := w.writer.SweepSets(ctx, manager, map[string]bool{"b/y": true}, w.writer.SetMark()); err != nil {
		t.Fatal(err)
	}
	if n := len(w.records()); n != 2 {
		t.Errorf("%d records are left", n)
	}
	if err := w.writer.RemoveSets(ctx, []string{manager}, w.writer.SetMark()); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]string{"ConfigMap a/stays", "ConfigMap b/owned"}, w.names()); diff != "" {
		t.Errorf("left are (-want +got):\n%s", diff)
	}
	if got := w.records(); !slices.Equal(got, []string{"starling-set-" + w.writer.setID(manager, "stays")}) {
		t.Errorf("records are %q", got)
	}
	w.restart()
	if managers, err := w.writer.SetManagers(ctx); err != nil || len(managers) > 0 {
		t.Errorf("managers are %q, %v", managers, err)
	}
	if _, err := w.write(manager, effect.Write{Kind: effect.WriteSet, Set: &effect.Set{Name: "stays", Keep: true, Members: appliesOf([]map[string]any{configMap("a", "stays")})}}); err != nil {
		t.Fatal(err)
	}
	if got := w.records(); !slices.Equal(got, []string{w.writer.recordOf(manager).Name}) {
		t.Errorf("records are %q", got)
	}
	w.restart()
	if err := w.writer.RemoveSets(ctx, []string{manager}, w.writer.SetMark()); err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(fmt.Sprint(w.names()), "a/stays") {
		t.Error("what must be kept has gone")
	}
	if managers, err := w.writer.SetManagers(ctx); err != nil || len(managers) > 0 {
		t.Errorf("managers are %q, %v", managers, err)
	}
}
