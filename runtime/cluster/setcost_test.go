package cluster

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/rs/zerolog"
	"github.com/starling-operator/starling/runtime/effect"
	simrest "github.com/starling-operator/starling/runtime/sim/rest"
	"github.com/starling-operator/starling/runtime/sim/store"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/rest"
)

const away = 10 * time.Millisecond

// farAPI is an API server with real field managers, some time away, that notes what is
// asked of it.
type farAPI struct {
	store *store.Store
	next  http.RoundTripper

	mu       sync.Mutex
	requests []string // but discovery
	active   int
	most     int // at a time
	writes   int
	left     int // writes until the connection ends; 0: it does not
	carried  bool
}

func newFarAPI() *farAPI {
	f := &farAPI{store: store.New(store.Options{Builtins: builtinKinds(), MakeNamespaces: true})}
	f.next = simrest.New(simrest.Options{Store: f.store})
	return f
}

var builtinKinds = sync.OnceValue(store.NewBuiltins)

func (f *farAPI) RoundTrip(r *http.Request) (*http.Response, error) {
	parts := strings.Split(strings.Trim(r.URL.Path, "/"), "/")
	if discovery := len(parts) < 3 || parts[0] == "apis" && len(parts) < 4; !discovery {
		what := r.Method + " " + parts[len(parts)-1]
		if r.Method == http.MethodGet && r.URL.Query().Has("limit") {
			what = "LIST " + strings.Join(parts[2:], "/")
		}
		f.mu.Lock()
		f.requests = append(f.requests, what)
		f.active++
		f.most = max(f.most, f.active)
		f.mu.Unlock()
		time.Sleep(away)
		defer func() { f.mu.Lock(); f.active--; f.mu.Unlock() }()
		if !f.alive(r, false) {
			return nil, errDied
		}
	}
	answer, err := f.next.RoundTrip(r)
	if !f.alive(r, true) {
		return nil, errDied
	}
	return answer, err
}

// farWorld applies the set "children" through a [farAPI].
type farWorld struct {
	t      *testing.T
	api    *farAPI
	writer *Writer
}

func newFarWorld(t *testing.T) *farWorld {
	w := &farWorld{t: t, api: newFarAPI()}
	w.restart()
	return w
}

func (w *farWorld) restart() {
	client, err := New(Options{Config: &rest.Config{Host: "http://sim", Transport: w.api}, Log: zerolog.Nop()})
	if err != nil {
		w.t.Fatal(err)
	}
	w.writer = NewWriter(WriterOptions{Client: client, Namespace: "ops", Name: "starling", Instance: "ops.starling"})
}

// apply returns what that has asked of the API server.
func (w *farWorld) apply(objects ...map[string]any) ([]string, error) {
	return w.write("starling/web/f", effect.Write{Kind: effect.WriteSet, Set: &effect.Set{Name: "children", Members: appliesOf(objects)}})
}

func (w *farWorld) write(manager string, wr effect.Write) ([]string, error) {
	w.api.mu.Lock()
	w.api.requests, w.api.most = nil, 0
	w.api.mu.Unlock()
	err := w.writer.Write(context.Background(), manager, wr)
	return w.api.requests, err
}

func appliesOf(objects []map[string]any) []effect.Write {
	var out []effect.Write
	for _, obj := range objects {
		out = append(out, effect.Write{Kind: effect.WriteApply, Ref: effect.RefOf(obj), Force: true, Object: obj})
	}
	return out
}

// want applies and compares what is asked for.
func (w *farWorld) want(what string, objects []map[string]any, want ...string) {
	w.t.Helper()
	got, err := w.apply(objects...)
	if err != nil {
		w.t.Errorf("%s: %v", what, err)
	}
	slices.Sort(got)
	slices.Sort(want)
	if !slices.Equal(got, want) {
		w.t.Errorf("%s: asked is %q, want %q", what, got, want)
	}
}

func (w *farWorld) get(ref effect.Ref) map[string]any {
	w.t.Helper()
	obj, err := w.writer.o.Client.Get(context.Background(), ref)
	if err != nil || obj == nil {
		w.t.Fatalf("%s: %v, %v", ref, obj, err)
	}
	return obj
}

func configMaps(n int, namespaces ...string) []map[string]any {
	var out []map[string]any
	for i := range n {
		out = append(out, configMap(namespaces[i%len(namespaces)], fmt.Sprintf("m%03d", i)))
	}
	return out
}

func changed(obj map[string]any, value string) map[string]any {
	out, _ := effect.WithMetadata(obj)
	out["data"] = map[string]any{"n": value}
	return out
}

// A set that is new is written side by side; of one that stands only what differs costs a
// request, also after a restart.
func TestSetCosts(t *testing.T) {
	for name, namespaces := range map[string][]string{"one namespace": {"a"}, "many": strings.Split("abcdefghijklmnopqrstuvwxyz", "")} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				w := newFarWorld(t)
				const n = 200
				objects := configMaps(n, namespaces...)
				began := time.Now()
				asked, err := w.apply(objects...)
				if err != nil {
					t.Fatal(err)
				}
				if len(asked) > n+3 {
					t.Errorf("%d requests for %d new members", len(asked), n)
				}
				if took := time.Since(began); took > n*away/5 {
					t.Errorf("%s for new members, one after the other are %s", took, n*away)
				}
				if w.api.most != defaultSideBySide {
					t.Errorf("%d at a time", w.api.most)
				}
				list := "LIST configmaps"
				if len(namespaces) == 1 {
					list = "LIST namespaces/a/configmaps"
				}
				w.want("nothing differs", objects, list)
				objects[77] = changed(objects[77], "2")
				w.want("one differs", objects, list, "PATCH m077")
				w.restart()
				const records = "LIST namespaces/ops/secrets" // of all sets
				w.want("nothing differs after a restart", objects, records, list)
				w.restart()
				objects[78] = changed(objects[78], "2")
				w.want("one differs after a restart", objects, records, list, "PATCH m078")
				gone := objects[199]
				objects = objects[:199]
				w.want("one goes", objects, list, "DELETE m199")
				objects = append(objects, gone)
				w.want("one comes", objects, list, "PATCH m199")
				asked, err = w.write("starling/web/f", effect.Write{Kind: effect.WriteSet, Set: &effect.Set{Name: "more", Members: appliesOf([]map[string]any{configMap("a", "x")})}})
				if err != nil || !slices.Equal(asked, []string{"PATCH x"}) {
					t.Errorf("another set asks for %q: %v", asked, err)
				}
			})
		})
	}
}

// A change of a member by others is undone, and only that costs requests.
func TestSetHealsWhatDiffers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newFarWorld(t)
		objects := configMaps(20, "a")
		const list = "LIST namespaces/a/configmaps"
		if _, err := w.apply(objects...); err != nil {
			t.Fatal(err)
		}
		ref := effect.RefOf(objects[3])
		theirs := func(typ effect.PatchType, body any) {
			t.Helper()
			if _, err := w.write("them", effect.Write{Kind: effect.WritePatch, Ref: ref, Patch: &effect.Patch{Type: typ, Body: body}}); err != nil {
				t.Fatal(err)
			}
		}
		theirs(effect.PatchMerge, map[string]any{"data": map[string]any{"n": "theirs"}})
		w.want("a value", objects, list, "PATCH m003")
		theirs(effect.PatchMerge, map[string]any{"data": map[string]any{"n": nil}})
		w.want("a field that is gone", objects, list, "PATCH m003")
		theirs(effect.PatchMerge, map[string]any{"data": map[string]any{"other": "1"}, "metadata": map[string]any{"annotations": map[string]any{"a": "b"}}})
		w.want("a field of theirs", objects, list)
		theirs(effect.PatchMerge, map[string]any{"metadata": map[string]any{"labels": nil}})
		w.want("the label", objects, list, "PATCH m003", "GET m003", "PATCH m003")
		theirs(effect.PatchMerge, map[string]any{"metadata": map[string]any{"managedFields": []any{map[string]any{}}}})
		w.want("managedFields", objects, list, "PATCH m003", "PATCH m003") // what nobody has is taken from it, too
		if entries := effect.At[[]any](w.get(ref), "metadata", "managedFields"); nobodyIn(entries) >= 0 {
			t.Errorf("nobody has fields: %v", entries)
		}
		if _, err := w.write("them", effect.Write{Kind: effect.WriteDelete, Ref: ref}); err != nil {
			t.Fatal(err)
		}
		w.want("the object", objects, list, "PATCH m003")
		w.want("nothing", objects, list)
		if data := w.get(ref)["data"].(map[string]any); data["n"] != "1" {
			t.Errorf("there is %v", data)
		}
	})
}

// Kinds come in Helm's order, and go in the opposite one; within a kind the call's order is
// that of the beginnings.
func TestSetOrderOfKinds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) { // of one kind the newest goes first, so all is made in one second
		w := newFarWorld(t)
		w.writer.o.SideBySide = 1
		object := func(apiVersion, kind, name string, rest map[string]any) map[string]any {
			obj := map[string]any{"apiVersion": apiVersion, "kind": kind, "metadata": map[string]any{"name": name}}
			if kind != "Namespace" {
				obj["metadata"].(map[string]any)["namespace"] = "a"
			}
			maps.Copy(obj, rest)
			return obj
		}
		rules := map[string]any{"rules": []any{}}
		objects := []map[string]any{
			object("rbac.authorization.k8s.io/v1", "Role", "role", rules),
			object("v1", "ConfigMap", "map-b", nil),
			object("coordination.k8s.io/v1", "Lease", "lease", nil),
			object("v1", "ConfigMap", "map-a", nil),
			object("v1", "Namespace", "space", nil),
			object("v1", "Secret", "secret", nil),
		}
		var written, deleted []string
		w.writer.o.Observe = func(ref effect.Ref, obj map[string]any, _ *effect.Cause, _ time.Time) {
			if obj == nil || ref.Kind == "Namespace" && len(written) == len(objects) {
				deleted = append(deleted, ref.Name)
			} else {
				written = append(written, ref.Name)
			}
		}
		for range 2 { // nothing is written anew
			if _, err := w.apply(objects...); err != nil {
				t.Fatal(err)
			}
		}
		if want := []string{"space", "secret", "map-b", "map-a", "role", "lease"}; !slices.Equal(written, want) {
			t.Errorf("written are %q, want %q", written, want)
		}
		if _, err := w.apply(); err != nil {
			t.Fatal(err)
		}
		if want := []string{"lease", "role", "map-b", "map-a", "secret", "space"}; !slices.Equal(deleted, want) {
			t.Errorf("deleted are %q, want %q", deleted, want)
		}
	})
}

// Members that are refused hold up no other; the error names them in order. When the API server itself is in trouble
// no member is begun any more.
func TestSetAtAFailure(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newFarWorld(t)
		objects := configMaps(100, "a")
		for _, i := range []int{21, 20} {
			objects[i], _ = effect.WithMetadata(objects[i])
			objects[i]["data"] = map[string]any{"a b": "no key"}
		}
		w.api.store.FailNext("patch", "ConfigMap", apierrors.NewServiceUnavailable("not now"), 1)
		asked, err := w.apply(objects...)
		if err == nil || !strings.Contains(err.Error(), "not now") || len(asked) > 3*defaultSideBySide {
			t.Errorf("%d requests, error is %v", len(asked), err)
		}
		_, err = w.apply(objects...)
		if text := fmt.Sprint(err); !strings.Contains(text, `(98 of 100 objects of set "children" applied)`) ||
			!strings.Contains(text, "m020") || strings.Index(text, "m021") < strings.Index(text, "m020") {
			t.Errorf("error is %v", err)
		}
		w.api.store.FailNext("delete", "ConfigMap", apierrors.NewForbidden(schema.GroupResource{Resource: "configmaps"}, "", errors.New("no")), 2)
		if _, err = w.apply(configMaps(10, "a")...); err == nil || !strings.Contains(err.Error(), "lists it no more") {
			t.Errorf("error is %v", err)
		}
		if left, err := w.writer.o.Client.List(context.Background(), "v1", "ConfigMap", nil, "", ""); err != nil || len(left) != 12 {
			t.Errorf("there are %d objects, %v", len(left), err)
		}
		if asked, err = w.apply(configMaps(10, "a")...); err != nil {
			t.Error(err)
		}
		if n := len(asked); n < 1+2 {
			t.Errorf("what is not listed any more stays: %q", asked)
		}
		if left, err := w.writer.o.Client.List(context.Background(), "v1", "ConfigMap", nil, "", ""); err != nil || len(left) != 10 {
			t.Errorf("there are %d objects, %v", len(left), err)
		}
	})
}

// An object that somebody makes after the set was looked at is not taken over.
func TestSetMeetsWhatComesMeanwhile(t *testing.T) {
	w := newFarWorld(t)
	if _, err := w.writer.o.Client.Write(context.Background(), "them", effect.Write{Kind: effect.WriteCreate, Ref: configRef, Object: configMap("a", "x")}); err != nil {
		t.Fatal(err)
	}
	_, err := w.apply(configMap("a", "x"))
	if err == nil || !strings.Contains(err.Error(), "did not make it") {
		t.Errorf("error is %v", err)
	}
	if labels := w.get(configRef)["metadata"].(map[string]any)["labels"]; labels != nil {
		t.Errorf("labels are %v", labels)
	}
}

// Without the right to list, members are read one by one, and nobody asks again.
func TestSetWithoutLists(t *testing.T) {
	w := newFarWorld(t)
	objects := configMaps(10, "a", "b")
	if _, err := w.apply(objects...); err != nil {
		t.Fatal(err)
	}
	w.api.store.FailNext("list", "ConfigMap", apierrors.NewForbidden(schema.GroupResource{Resource: "configmaps"}, "", errors.New("no")), 3)
	var gets []string
	for i := range 10 {
		gets = append(gets, fmt.Sprintf("GET m%03d", i))
	}
	w.want("refused", objects, append(gets, "LIST configmaps", "LIST namespaces/a/configmaps", "LIST namespaces/b/configmaps")...)
	w.want("known to be refused", objects, gets...)
	w.later(listAgain)
	w.want("the right has come", objects, "LIST configmaps")
	w.want("and stays", objects, "LIST configmaps")
}

// A process with wider rights has recorded where to list, one without them begins: an apply reads its members by
// name, and says once which right is missing. A removal needs the right.
func TestSetAfterAProcessThatMightList(t *testing.T) {
	const manager = "starling/web/f"
	w := newFarWorld(t)
	if _, err := w.apply(configMaps(4, "a")...); err != nil {
		t.Fatal(err)
	}
	refuse := func(n int) {
		w.api.store.FailNext("list", "ConfigMap", apierrors.NewForbidden(schema.GroupResource{Resource: "configmaps"}, "", errors.New("no")), n)
	}
	narrow := func() (said *[]string) {
		w.restart()
		said = &[]string{}
		w.writer.o.Warn = func(of, text string) { *said = append(*said, of+" "+text) }
		return said
	}
	said, objects, record := narrow(), configMaps(3, "a"), w.writer.recordOf(manager).Name
	refuse(1)
	w.want("refused", objects, "LIST namespaces/ops/secrets", "LIST namespaces/a/configmaps", "GET m000", "GET m001", "GET m002", "PATCH "+record)
	w.want("known to be refused", objects[:2], "GET m000", "GET m001", "GET m002", "DELETE m002", "PATCH "+record)
	if want := manager + " cannot list ConfigMap in namespace a: "; len(*said) != 1 || !strings.HasPrefix((*said)[0], want) || !strings.Contains((*said)[0], "stays until") {
		t.Errorf("said is %q, want one line that begins with %q", *said, want)
	}
	refuse(1)
	if err := w.writer.RemoveSets(context.Background(), []string{manager}, w.writer.SetMark()); err == nil || !strings.Contains(err.Error(), "(sets of this hook may have objects there)") {
		t.Errorf("a removal: %v", err)
	}
	w.later(listAgain)
	refuse(1)
	w.want("refused once more", objects[:2], "LIST namespaces/a/configmaps", "GET m000", "GET m001")
	if len(*said) != 1 {
		t.Errorf("said is %q, want one line", *said)
	}
	// The next one knows by name what the one before has made, also what it lists no more.
	said = narrow()
	refuse(1)
	w.want("refused again", objects[:1], "LIST namespaces/ops/secrets", "LIST namespaces/a/configmaps", "GET m000", "GET m001", "DELETE m001", "PATCH "+record)
	if len(*said) != 1 {
		t.Errorf("said is %q, want one line", *said)
	}
	w.restart()
	w.want("allowed again", objects[:1], "LIST namespaces/ops/secrets", "LIST namespaces/a/configmaps", "GET m000", "DELETE m003", "PATCH "+record)
	w.want("as before", objects[:1], "GET m000")
}

// A right that comes is noticed by the same process: what an earlier one has made goes then.
func TestSetWhosePlaceMayBeReadLater(t *testing.T) {
	w := newFarWorld(t)
	if _, err := w.apply(configMaps(3, "a")...); err != nil {
		t.Fatal(err)
	}
	w.restart()
	w.writer.o.Warn = func(string, string) {}
	record := w.writer.recordOf("starling/web/f").Name
	w.api.store.FailNext("list", "ConfigMap", apierrors.NewForbidden(schema.GroupResource{Resource: "configmaps"}, "", errors.New("no")), 1)
	w.want("refused", configMaps(1, "a"), "LIST namespaces/ops/secrets", "LIST namespaces/a/configmaps", "GET m000", "PATCH "+record)
	w.later(listAgain)
	w.want("the right has come", configMaps(1, "a"), "LIST namespaces/a/configmaps", "DELETE m001", "DELETE m002", "PATCH "+record)
}

// later has a time pass since lists were refused.
func (w *farWorld) later(d time.Duration) {
	for p, at := range w.writer.refused {
		w.writer.refused[p] = at.Add(-d)
	}
}

// One that may not be read by its recorded name any more fails nothing either, until it is written.
func TestSetWhoseNameIsRefused(t *testing.T) {
	w := newFarWorld(t)
	no := apierrors.NewForbidden(schema.GroupResource{Resource: "configmaps"}, "", errors.New("no"))
	w.api.store.FailNext("list", "ConfigMap", no, 1)
	if _, err := w.apply(configMaps(2, "a")...); err != nil {
		t.Fatal(err)
	}
	w.restart()
	said := 0
	w.writer.o.Warn = func(string, string) { said++ }
	w.writer.o.SideBySide = 1
	w.api.store.FailNext("get", "ConfigMap", no, 1)
	w.api.store.FailNext("list", "ConfigMap", no, 1)
	w.want("the first is refused", configMaps(2, "a"), "LIST namespaces/ops/secrets", "GET m000", "GET m001", "LIST namespaces/a/configmaps",
		"PATCH m000", "GET m000", "PATCH m000")
	if said != 1 {
		t.Errorf("said %d times", said)
	}
	w.want("known", configMaps(1, "a"), "GET m000", "GET m001", "DELETE m001", "PATCH "+w.writer.recordOf("starling/web/f").Name)
}

// Where lists were never allowed each object is recorded, and read when a process begins.
func TestSetOfNames(t *testing.T) {
	w := newFarWorld(t)
	objects := configMaps(3, "a")
	w.api.store.FailNext("list", "ConfigMap", apierrors.NewForbidden(schema.GroupResource{Resource: "configmaps"}, "", errors.New("no")), 1)
	if _, err := w.apply(objects...); err != nil {
		t.Fatal(err)
	}
	w.want("nothing differs", objects, "GET m000", "GET m001", "GET m002")
	w.restart()
	w.want("nothing differs after a restart", objects, "LIST namespaces/ops/secrets", "GET m000", "GET m001", "GET m002")
	w.restart()
	record := w.writer.recordOf("starling/web/f").Name
	w.want("one goes", objects[:2], "LIST namespaces/ops/secrets", "GET m000", "GET m001", "GET m002", "DELETE m002", "PATCH "+record)
	w.want("all go", nil, "LIST namespaces/a/configmaps", "DELETE m000", "DELETE m001", "LIST namespaces/ops/secrets", "DELETE "+record)
}

// The owner of all members is asked for once.
func TestSetFindsItsOwnerOnce(t *testing.T) {
	w := newFarWorld(t)
	if _, err := w.writer.o.Client.Write(context.Background(), "them", effect.Write{Kind: effect.WriteCreate, Ref: configRef, Object: configMap("a", "x")}); err != nil {
		t.Fatal(err)
	}
	set := effect.Write{Kind: effect.WriteSet, Owner: &effect.Owner{Ref: configRef}, Set: &effect.Set{Name: "children", Members: appliesOf(configMaps(5, "a"))}}
	for range 2 {
		asked, err := w.write("starling/web/f", set)
		if err != nil {
			t.Fatal(err)
		}
		if n := len(slices.DeleteFunc(asked, func(r string) bool { return r != "GET x" })); n != 1 {
			t.Errorf("the owner is read %d times", n)
		}
	}
	owners, _ := w.get(effect.RefOf(configMaps(1, "a")[0]))["metadata"].(map[string]any)["ownerReferences"].([]any)
	if len(owners) != 1 {
		t.Errorf("owners are %v", owners)
	}
}
