package drift

import (
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"

	"go.starlark.net/starlark"
	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/starling-operator/starling/modules/release"
	"github.com/starling-operator/starling/modules/release/owned"
	"github.com/starling-operator/starling/runtime/effect"
	"github.com/starling-operator/starling/runtime/watch"
)

// maxNamespaces is how many namespaces of a kind are watched one by one; past it all are.
const maxNamespaces = 20

// prefix begins the ids of the watches.
const prefix = "drift "

// IsWatch says whether a watch of this id is one of a tracker.
func IsWatch(id string) bool { return strings.HasPrefix(id, prefix) }

type kindKey struct{ apiVersion, kind string }

// kind is one that some release has objects of, and its watch.
type kind struct {
	kindKey
	objects map[place]*object
	uses    map[string]map[*tracked]bool // the releases that have some in each namespace; "" for kinds that are in none

	id     string   // of the watch; "" without one
	before string   // an earlier watch, of fewer namespaces, that goes on until the other one is synced
	all    bool     // the watch is of all namespaces
	narrow bool     // that is forbidden
	covers []string // the namespaces of which it was begun, in order; "" of a kind that is in none
	synced bool
	until  watch.Positions // how far it had come when it was synced last
	failed error           // why the watch does not work
}

// use notes in which scopes a release has objects, in the place of those before.
func (t *Tracker) use(r *tracked, scopes []release.Scope) {
	touched := t.kindsOf(slices.Concat(r.scopes, scopes))
	for _, at := range r.scopes {
		uses := t.kind(at.APIVersion, at.Kind).uses
		if delete(uses[at.Namespace], r); len(uses[at.Namespace]) == 0 {
			delete(uses, at.Namespace)
		}
	}
	r.scopes = scopes
	for _, at := range scopes {
		uses := t.kind(at.APIVersion, at.Kind).uses
		if uses[at.Namespace] == nil {
			uses[at.Namespace] = map[*tracked]bool{}
		}
		uses[at.Namespace][r] = true
	}
	for _, k := range touched {
		t.watch(k)
	}
}

func (t *Tracker) kind(apiVersion, name string) *kind {
	key := kindKey{apiVersion, name}
	k := t.kinds[key]
	if k == nil {
		k = &kind{kindKey: key, objects: map[place]*object{}, uses: map[string]map[*tracked]bool{}}
		t.kinds[key] = k
	}
	return k
}

// watch has a kind watched where releases have objects of it.
func (t *Tracker) watch(k *kind) {
	if len(k.uses) == 0 { // what the watch has shown is forgotten
		for _, id := range []string{k.before, k.id} {
			if id != "" {
				t.stop(id)
			}
		}
		delete(t.kinds, k.kindKey)
		for _, o := range k.objects {
			t.drop(o)
		}
	}
	for namespace := range k.uses {
		if !k.covered(namespace) {
			t.begin(k)
			return
		}
	}
}

// begin begins a watch in the place of the one that there is, if there is one.
func (t *Tracker) begin(k *kind) {
	switch {
	case k.synced:
		k.before = k.id
	case k.id != "":
		t.stop(k.id)
	}
	t.started++
	k.id, k.synced, k.until, k.failed = fmt.Sprintf("%s%s %s %d", prefix, k.apiVersion, k.kind, t.started), false, nil, nil
	k.covers = slices.Sorted(maps.Keys(k.uses))
	k.all = slices.Contains(k.covers, "") || len(k.covers) > maxNamespaces && !k.narrow
	spec := watch.Spec{
		ID: k.id, APIVersion: k.apiVersion, Kind: k.kind, Labels: effect.ReleasedByLabel + "=" + t.o.Instance, Metadata: true, Lists: true,
		Filter: func(obj map[string]any) (starlark.Value, bool, error) {
			s := read(obj, k.kind == "Job" && strings.HasPrefix(k.apiVersion, "batch/"), t.o.Manager, func(in name, object string) ([]owned.Path, bool) {
				return owned.Ignored(t.ignoredOf(in), k.apiVersion, k.kind, object)
			})
			if s == nil {
				return nil, false, nil
			}
			return s, true, nil
		},
		FilterID: fmt.Sprint("drift ", t.filters), // watches of one kind share what it gives
	}
	if !k.all {
		spec.Namespaces = k.covers
	}
	t.byID[k.id] = k
	t.o.Start(spec)
}

// ignoredOf is what of a release is left to others.
func (t *Tracker) ignoredOf(at name) []owned.Ignore {
	list, _ := t.ignored.Load(at)
	ignore, _ := list.([]owned.Ignore)
	return ignore
}

// ignore notes what of a release is left to others. Its objects are looked at anew, and have
// to be compared with what it holds.
func (t *Tracker) ignore(r *tracked, ignore []owned.Ignore) {
	if last := t.ignoredOf(r.at); reflect.DeepEqual(last, ignore) || len(last)+len(ignore) == 0 {
		return
	}
	t.ignored.Store(r.at, ignore)
	t.filters++
	r.exact = false
	for _, k := range t.kindsOf(r.scopes) {
		t.begin(k)
	}
}

// shows says that the watch shows what is in a namespace.
func (k *kind) shows(namespace string) bool {
	return k.synced && k.failed == nil && k.covered(namespace)
}

// covered says that the watch is of a namespace.
func (k *kind) covered(namespace string) bool {
	_, is := slices.BinarySearch(k.covers, namespace)
	return k.all || is
}

func (t *Tracker) stop(id string) {
	delete(t.byID, id)
	t.o.Stop(id)
}

// Synced takes in all objects that a watch has, after each list. Until is how far it had come before
// they were read; nil when that is not known.
func (t *Tracker) Synced(id string, entries []watch.Entry, until watch.Positions) {
	t.mu.Lock()
	defer t.mu.Unlock()
	k := t.byID[id]
	if k == nil {
		return
	}
	for namespace, at := range k.until {
		if id == k.id && until[namespace] < at { // the API server was restored from a backup: versions begin anew
			for _, o := range k.objects {
				o.have, o.version, o.goneAt = nil, 0, 0
			}
			break
		}
	}
	there := make(map[place]bool, len(entries))
	for _, e := range entries {
		at := place{e.Namespace, e.Name}
		there[at] = true
		t.show(k, at, e.Result)
	}
	if id != k.id {
		return
	}
	k.synced, k.until = true, until
	if k.before != "" {
		t.stop(k.before)
		k.before = ""
	}
	for at, o := range k.objects {
		if !there[at] && k.covered(at.namespace) {
			t.lose(o, until.In(at.namespace))
		}
	}
	t.learnAll(k)
}

// Changed takes in changes of the objects of a watch.
func (t *Tracker) Changed(id string, events []watch.Event) {
	t.mu.Lock()
	defer t.mu.Unlock()
	k := t.byID[id]
	if k == nil {
		return
	}
	for _, ev := range events {
		at := place{ev.Namespace, ev.Name}
		if ev.Type != watch.Deleted {
			t.show(k, at, ev.Result)
		} else if o := k.objects[at]; o != nil {
			t.lose(o, ev.Version)
		}
	}
}

// Failed takes in why a watch does not work as it should; nil: all is well.
func (t *Tracker) Failed(id string, err error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	k := t.byID[id]
	if k == nil || id != k.id {
		return
	}
	if apierrors.IsForbidden(err) && k.all && !slices.Contains(k.covers, "") {
		k.narrow = true
		t.begin(k)
		return
	}
	k.failed = err
	t.learnAll(k)
	for _, releases := range k.uses {
		for r := range releases {
			t.tell(r)
		}
	}
}
