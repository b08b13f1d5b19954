package e2e

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/dynamic"

	"github.com/starling-operator/starling/runtime/effect"
	"github.com/starling-operator/starling/runtime/reconcile"
)

// shops is a module whose controller gives a Shop a Secret with a key that is made once, a ConfigMap, a
// ServiceAccount after that, and up to two more ConfigMaps.
var shops = map[string]string{
	"shops/module.star": `module(enabled = True)
crd("chaos.example.net/v1", "Shop", {"n": field("integer", default = 1)})
`,
	"shops/hooks/shop.star": `
def shop(ctx, o):
    name, n = o.metadata.name, o.spec.n

    def child(kind, suffix, **fields):
        return dict({"apiVersion": "v1", "kind": kind, "metadata": {"name": name + suffix, "labels": {"shop": name}}}, **fields)

    parts = [
        part(child("Secret", "-key"), name = "key", fill = {"data.key": generate.password()}),
        part(child("ConfigMap", "-first", data = {"n": str(n)}), name = "first"),
        part(child("ServiceAccount", "-last", automountServiceAccountToken = n % 2 == 0), name = "last", after = ["first"]),
    ]
    return parts + [part(child("ConfigMap", "-more-%d" % i, data = {"n": str(n)})) for i in range(n % 3)]

controller("shop", k8s.watch("chaos.example.net/v1", "Shop", namespaces = ["$SHOPS"]), shop,
           owns = [owns("v1", "Secret"), owns("v1", "ConfigMap"), owns("v1", "ServiceAccount")])
`}

var (
	shopResource = schema.GroupVersionResource{Group: "chaos.example.net", Version: "v1", Resource: "shops"}
	shopChildren = map[string]schema.GroupVersionResource{
		"ConfigMap":      {Version: "v1", Resource: "configmaps"},
		"Secret":         {Version: "v1", Resource: "secrets"},
		"ServiceAccount": {Version: "v1", Resource: "serviceaccounts"},
	}
)

// vandal changes parents and their children at random.
type vandal struct {
	t      *testing.T
	ns     string
	random *rand.Rand
	n      map[string]int // what spec.n of each parent should be, by name

	theirs map[string]bool // objects of the vandal: copies, and what has the name of a child
	unseen map[string]bool // children that have lost their label: one that is not wanted any more then stays
	lost   map[string]bool // children that have lost what says whose they are
	gone   map[string]bool // children that were deleted, on purpose or with their parents

	deeds []string // what it has done, with the time
	wrong string   // the parent that was not whole when somebody looked last
}

// tell prints what was done to the parent that is not whole.
func (v *vandal) tell() {
	for _, deed := range v.deeds {
		if v.t.Failed() && (strings.Contains(deed, " "+v.wrong+"-") || strings.Contains(deed, " "+v.wrong+" ")) {
			v.t.Log(deed)
		}
	}
}

func (v *vandal) did(what string, a ...any) {
	v.deeds = append(v.deeds, time.Now().UTC().Format("15:04:05.000 ")+fmt.Sprintf(what, a...)+" ")
}

func (v *vandal) client(kind string) dynamic.ResourceInterface {
	if kind == "Shop" {
		return shared.Dynamic.Resource(shopResource).Namespace(v.ns)
	}
	return shared.Dynamic.Resource(shopChildren[kind]).Namespace(v.ns)
}

// done ends the test at an error, but for those of others who were faster.
func (v *vandal) done(err error) bool {
	v.t.Helper()
	if err != nil && !apierrors.IsNotFound(err) && !apierrors.IsConflict(err) && !apierrors.IsAlreadyExists(err) {
		v.t.Fatal(err)
	}
	return err == nil
}

func (v *vandal) patch(kind, name, body string, sub ...string) bool {
	v.t.Helper()
	_, err := v.client(kind).Patch(v.t.Context(), name, types.MergePatchType, []byte(body), metav1.PatchOptions{FieldManager: "vandal"}, sub...)
	v.did("patch %s %s %s: %v", kind, name, body, err)
	return v.done(err)
}

func (v *vandal) delete(kind, name string) bool {
	v.t.Helper()
	err := v.client(kind).Delete(v.t.Context(), name, metav1.DeleteOptions{})
	v.did("delete %s %s: %v", kind, name, err)
	return v.done(err)
}

func one[T any](v *vandal, of ...T) T { return of[v.random.IntN(len(of))] }

func (v *vandal) parent() string { return one(v, slices.Sorted(maps.Keys(v.n))...) }

// child is one that some parent may have.
func (v *vandal) child() (kind, name string) {
	c := one(v, [2]string{"Secret", "-key"}, [2]string{"ConfigMap", "-first"}, [2]string{"ServiceAccount", "-last"}, [2]string{"ConfigMap", "-more-0"})
	return c[0], v.parent() + c[1]
}

func (v *vandal) make(name string) {
	v.t.Helper()
	_, err := v.client("Shop").Create(v.t.Context(), &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "chaos.example.net/v1", "kind": "Shop", "metadata": map[string]any{"name": name}, "spec": map[string]any{"n": int64(v.n[name])},
	}}, metav1.CreateOptions{})
	v.done(err)
}

// act makes one change.
func (v *vandal) act() {
	v.t.Helper()
	ctx, parent := v.t.Context(), v.parent()
	kind, name := v.child()
	key := kind + " " + name
	switch v.random.IntN(14) {
	case 0, 1:
		if v.delete(kind, name) {
			v.gone[key] = true
		}
	case 2, 3: // what the controller has set
		body := map[string]string{"ConfigMap": `{"data": {"n": "vandal"}}`, "ServiceAccount": `{"automountServiceAccountToken": null}`, "Secret": `{"metadata": {"labels": {"shop": null}}}`}
		v.patch(kind, name, body[kind])
	case 4: // what the child says of itself
		if v.patch(kind, name, fmt.Sprintf(`{"metadata": {"labels": {%q: %s}}}`, reconcile.ControllerLabel, one(v, "null", `"vandal"`))) {
			v.unseen[key] = true
		}
	case 5:
		mark := one(v, reconcile.ParentAnnotation, reconcile.OrderAnnotation)
		v.patch(kind, name, fmt.Sprintf(`{"metadata": {"annotations": {%q: %s}}}`, mark, one(v, "null", `"7"`, `"`+v.ns+"/"+v.parent()+`"`)))
	case 6: // then nobody knows it any more
		mark := one(v, reconcile.DesiredAnnotation, reconcile.ParentUIDAnnotation, reconcile.ChildAnnotation)
		if v.patch(kind, name, fmt.Sprintf(`{"metadata": {"annotations": {%q: %s}}}`, mark, one(v, "null", `"vandal"`))) {
			v.lost[key] = true
		}
	case 7: // a copy, with all that the child says of itself
		live, err := v.client(kind).Get(ctx, name, metav1.GetOptions{})
		if !v.done(err) {
			return
		}
		copied := &unstructured.Unstructured{Object: map[string]any{"apiVersion": "v1", "kind": kind}}
		copied.SetName(fmt.Sprintf("%s-copy-%d", name, v.random.IntN(1000)))
		copied.SetLabels(live.GetLabels())
		copied.SetAnnotations(live.GetAnnotations())
		_, err = v.client(kind).Create(ctx, copied, metav1.CreateOptions{FieldManager: "vandal"})
		if v.done(err) {
			v.theirs[kind+" "+copied.GetName()] = true
		}
	case 8: // an object of the vandal in the place of a child
		if !v.delete(kind, name) {
			return
		}
		v.gone[key] = true
		mine := &unstructured.Unstructured{Object: map[string]any{"apiVersion": "v1", "kind": kind}}
		mine.SetName(name)
		_, err := v.client(kind).Create(ctx, mine, metav1.CreateOptions{FieldManager: "vandal"})
		v.did("create %s %s: %v", kind, name, err)
		if v.done(err) {
			v.theirs[key] = true
		}
	case 9:
		v.patch("Shop", parent, fmt.Sprintf(`{"metadata": {"annotations": {%q: %s}}}`, reconcile.PausedAnnotation, one(v, "null", `"true"`)))
	case 10: // never of one that is on its way out: then its children stay, as nobody waits for them
		live, err := v.client("Shop").Get(ctx, parent, metav1.GetOptions{})
		if v.done(err) && live.GetDeletionTimestamp() == nil {
			v.patch("Shop", parent, fmt.Sprintf(`{"metadata": {"finalizers": null, "resourceVersion": %q}}`, live.GetResourceVersion()))
		}
	case 11:
		v.patch("Shop", parent, one(v, `{"status": null}`, `{"status": {"observedGeneration": 99}}`,
			`{"status": {"conditions": [{"type": "Ready", "status": "False", "reason": "Vandal", "message": "", "lastTransitionTime": "2026-01-01T00:00:00Z"}]}}`), "status")
	case 12:
		n := v.random.IntN(6)
		if v.patch("Shop", parent, fmt.Sprintf(`{"spec": {"n": %d}}`, n)) {
			v.n[parent] = n
		}
	case 13:
		live, err := v.client("Shop").Get(ctx, parent, metav1.GetOptions{})
		if apierrors.IsNotFound(err) {
			v.make(parent)
			return
		}
		if !v.done(err) || len(live.GetFinalizers()) == 0 {
			return
		}
		version := live.GetResourceVersion()
		if v.done(v.client("Shop").Delete(ctx, parent, metav1.DeleteOptions{Preconditions: &metav1.Preconditions{ResourceVersion: &version}})) {
			v.gone[parent] = true
			v.did("delete Shop %s", parent)
		}
	}
}

// repent takes back what nobody but the vandal can: it unpauses the parents, makes those that it has
// deleted, and deletes what is in the place of children.
func (v *vandal) repent() {
	v.t.Helper()
	for _, key := range slices.Sorted(maps.Keys(v.lost)) {
		kind, name, _ := strings.Cut(key, " ")
		v.delete(kind, name)
		v.gone[key] = true
	}
	for _, key := range slices.Sorted(maps.Keys(v.unseen)) {
		kind, name, _ := strings.Cut(key, " ")
		live, err := v.client(kind).Get(v.t.Context(), name, metav1.GetOptions{})
		if !v.done(err) {
			continue
		}
		if label := live.GetLabels()[reconcile.ControllerLabel]; label == "" || label == "vandal" {
			v.delete(kind, name)
			v.gone[key] = true
		}
	}
	for _, key := range slices.Sorted(maps.Keys(v.theirs)) {
		kind, name, _ := strings.Cut(key, " ")
		if strings.Contains(name, "-copy-") {
			continue
		}
		delete(v.theirs, key)
		live, err := v.client(kind).Get(v.t.Context(), name, metav1.GetOptions{})
		if !v.done(err) {
			continue // deleted by another change
		}
		if _, of := reconcile.ParentOf(live.Object); of == "" {
			v.delete(kind, name)
		}
	}
}

// forgive makes parents that are not there and unpauses others, and says what is left to be done.
func (v *vandal) forgive() (left error) {
	v.t.Helper()
	for _, name := range slices.Sorted(maps.Keys(v.n)) {
		live, err := v.client("Shop").Get(v.t.Context(), name, metav1.GetOptions{})
		switch {
		case apierrors.IsNotFound(err):
			v.make(name)
			left = fmt.Errorf("%s was not there", name)
		case !v.done(err) || live.GetDeletionTimestamp() != nil:
			left = fmt.Errorf("%s is on its way out: %v", name, err)
		case live.GetAnnotations()[reconcile.PausedAnnotation] != "":
			v.patch("Shop", name, fmt.Sprintf(`{"metadata": {"annotations": {%q: null}}}`, reconcile.PausedAnnotation))
			left = fmt.Errorf("%s was paused", name)
		}
	}
	return left
}

// picture is what there is, without what differs from one object to the next of the same name, and the
// versions of all that.
func (v *vandal) picture() (all, keys map[string]any, versions string, err error) {
	all, keys = map[string]any{}, map[string]any{}
	var seen []string
	for _, kind := range append(slices.Sorted(maps.Keys(shopChildren)), "Shop") {
		list, err := v.client(kind).List(v.t.Context(), metav1.ListOptions{})
		if err != nil {
			return nil, nil, "", err
		}
		for _, o := range list.Items {
			key := kind + " " + o.GetName()
			if v.theirs[key] || !strings.HasPrefix(o.GetName(), "shop-") { // Kubernetes puts some into each namespace
				continue
			}
			seen = append(seen, key+"="+o.GetResourceVersion())
			owners := o.GetOwnerReferences()
			for i := range owners {
				owners[i].UID = ""
			}
			marks := o.GetAnnotations()
			delete(marks, reconcile.ParentUIDAnnotation)
			delete(marks, effect.ChildSignature)
			if !strings.HasSuffix(o.GetName(), "-last") {
				delete(marks, reconcile.OrderAnnotation) // the controller sets none, so one stays that somebody else has set
			}
			shown := map[string]any{
				"labels": o.GetLabels(), "annotations": marks, "owners": owners, "finalizers": o.GetFinalizers(), "spec": o.Object["spec"],
				"data": o.Object["data"], "mounts": o.Object["automountServiceAccountToken"], "deleted": o.GetDeletionTimestamp(),
			}
			switch kind {
			case "Secret":
				data, _ := o.Object["data"].(map[string]any)
				keys[key], shown["data"] = string(o.GetUID())+fmt.Sprint(data["key"]), len(data)
			case "Shop":
				observed, _, _ := unstructured.NestedInt64(o.Object, "status", "observedGeneration")
				shown["behind"] = o.GetGeneration() - observed
				conditions, _, _ := unstructured.NestedSlice(o.Object, "status", "conditions")
				for _, c := range conditions {
					m, _ := c.(map[string]any)
					shown[fmt.Sprint(m["type"])] = fmt.Sprint(m["status"], m["reason"])
				}
			}
			all[key] = shown
		}
	}
	return all, keys, strings.Join(seen, " "), nil
}

// whole says whether each parent has its children, and is ready, and nothing else is there.
func (v *vandal) whole(all map[string]any) error {
	want := map[string]bool{}
	for name, n := range v.n {
		v.wrong = name
		shop, _ := all["Shop "+name].(map[string]any)
		spec, _ := shop["spec"].(map[string]any)
		if shop["Ready"] != "TrueReady" || shop["behind"] != int64(0) || len(shop["finalizers"].([]string)) != 1 || fmt.Sprint(spec["n"]) != fmt.Sprint(n) {
			return fmt.Errorf("%s, which should have n = %d: %v", name, n, shop)
		}
		names := []string{"Shop " + name, "Secret " + name + "-key", "ConfigMap " + name + "-first", "ServiceAccount " + name + "-last"}
		for i := range n % 3 {
			names = append(names, fmt.Sprintf("ConfigMap %s-more-%d", name, i))
		}
		for _, key := range names {
			want[key] = true
			child, _ := all[key].(map[string]any)
			if child == nil && key != "Shop "+name {
				return fmt.Errorf("%s is not there", key)
			}
			if wrong := broken(key, name, n, child); wrong != "" {
				return fmt.Errorf("%s has a wrong %s: %v", key, wrong, child)
			}
		}
	}
	for key := range all {
		if !want[key] {
			return fmt.Errorf("nobody wants %s: %v", key, all[key])
		}
	}
	return nil
}

// broken names what a child has otherwise than its parent wants it, or returns "".
func broken(key, parent string, n int, child map[string]any) string {
	data, _ := child["data"].(map[string]any)
	labels, _ := child["labels"].(map[string]string)
	switch kind, _, _ := strings.Cut(key, " "); {
	case kind == "Shop":
		return ""
	case labels["shop"] != parent:
		return "label"
	case kind == "ConfigMap" && data["n"] != fmt.Sprint(n):
		return "value"
	case kind == "ServiceAccount" && child["mounts"] != (n%2 == 0):
		return "field"
	}
	return ""
}

// Somebody edits, deletes, relabels and copies children of 200 parents, takes what says whose they are,
// pauses, changes and deletes parents, takes off finalizers and edits their status. Meanwhile Starling
// is stopped and killed, in turn. In the end all is as after a fresh start, nothing is left over, no
// Secret was made twice, and nothing is written any more. CONTROLLER_CHAOS says how long: by default 3s,
// with 40 parents.
func TestChaosOfControllers(t *testing.T) {
	t.Parallel()
	long, parents := 3*time.Second, 40
	if text := os.Getenv("CONTROLLER_CHAOS"); text != "" {
		var err error
		if long, err = time.ParseDuration(text); err != nil {
			t.Fatal(err)
		}
		parents = 200
	}
	v := &vandal{
		t: t, ns: shared.Namespace(t), random: rand.New(rand.NewPCG(1, uint64(long))), n: map[string]int{},
		theirs: map[string]bool{}, unseen: map[string]bool{}, lost: map[string]bool{}, gone: map[string]bool{},
	}
	t.Cleanup(v.tell)
	f := &fixture{t: t, ns: shared.Namespace(t), name: "starling", modules: t.TempDir()}
	for name, text := range shops {
		f.write(map[string]string{name: strings.ReplaceAll(text, "$SHOPS", v.ns)})
	}
	t.Cleanup(func() {
		_ = shared.Dynamic.Resource(definitions).Delete(context.Background(), "shops.chaos.example.net", metav1.DeleteOptions{})
	})
	f.grantPrinted()
	f.start()
	f.waitReady()
	for i := range parents {
		name := fmt.Sprintf("shop-%d", i)
		v.n[name] = v.random.IntN(6)
		v.make(name)
	}
	var all map[string]any
	rests := func() {
		t.Helper()
		before := ""
		f.eventually("each parent has its children, and nothing is written any more", func() (err error) {
			var versions string
			if all, _, versions, err = v.picture(); err != nil {
				return err
			}
			if err := errors.Join(v.forgive(), v.whole(all)); err != nil {
				return err
			}
			time.Sleep(1500 * time.Millisecond)
			if versions != before {
				before = versions
				return errors.New("something was written")
			}
			return nil
		})
	}
	began := time.Now()
	rests()
	t.Logf("%d parents were whole %s after the first", parents, time.Since(began).Round(time.Millisecond))
	_, made, _, err := v.picture()
	if err != nil {
		t.Fatal(err)
	}

	blows := []func(){
		func() {
			if code := f.process.Stop(); code != 0 && code != -1 { // -1: on a busy machine it had not begun
				t.Fatalf("stopped with exit code %d", code)
			}
		},
		func() { f.process.Kill(); f.freeLease() },
	}
	changes, struck, pause := 0, 0, min(long/4, 5*time.Second)
	for began, next := time.Now(), pause; time.Since(began) < long; changes++ {
		v.act()
		time.Sleep(20 * time.Millisecond)
		if since := time.Since(began); since > next {
			blows[struck%len(blows)]()
			for range 20 {
				v.act()
			}
			v.did("start")
			f.start()
			changes, struck, next = changes+20, struck+1, since+pause
		}
	}
	over := time.Now()
	v.repent()
	rests()
	t.Logf("%d changes, Starling stopped or killed %d times; whole again %s later", changes, struck, time.Since(over).Round(time.Millisecond))
	_, now, _, err := v.picture()
	if err != nil {
		t.Fatal(err)
	}
	kept := 0
	for key, value := range made {
		parent := strings.TrimSuffix(strings.TrimPrefix(key, "Secret "), "-key")
		if v.gone[key] || v.gone[parent] {
			continue
		}
		if kept++; now[key] != value {
			t.Errorf("%s was made anew, though nobody has deleted it", key)
		}
	}
	for key := range v.theirs {
		kind, name, _ := strings.Cut(key, " ")
		live, err := v.client(kind).Get(t.Context(), name, metav1.GetOptions{})
		others := func(e metav1.ManagedFieldsEntry) bool { return e.Manager != "vandal" }
		if err != nil || slices.ContainsFunc(live.GetManagedFields(), others) {
			t.Errorf("%s, which somebody has copied, is not left alone: %v %v", key, live, err)
		}
	}

	after := all
	f.stop()
	for kind := range shopChildren {
		if err := v.client(kind).DeleteCollection(t.Context(), metav1.DeleteOptions{}, metav1.ListOptions{}); err != nil {
			t.Fatal(err)
		}
	}
	f.start()
	rests()
	if !cmp.Equal(after, all) {
		t.Errorf("a fresh start leads to something else: %s", cmp.Diff(after, all))
	}
	t.Logf("%d Secrets were never made anew, %d objects of others left alone", kept, len(v.theirs))
}
