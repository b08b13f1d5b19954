package drift

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"testing"
	"unique"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/starling-operator/starling/modules/release"
	"github.com/starling-operator/starling/modules/release/owned"
	"github.com/starling-operator/starling/runtime/effect"
	"github.com/starling-operator/starling/runtime/watch"
)

var web = release.Ref{Module: "web", Name: "web", Namespace: "shop"}

// world is a tracker with what it has asked for.
type world struct {
	*testing.T
	*Tracker
	watches []watch.Spec // that have begun, and have not ended
	news    []string
}

func newWorld(t *testing.T) *world {
	w := &world{T: t}
	w.Tracker = New(Options{
		Instance: "ops.starling", Manager: "starling",
		Start: func(s watch.Spec) { w.watches = append(w.watches, s) },
		Stop: func(id string) {
			w.watches = slices.DeleteFunc(w.watches, func(s watch.Spec) bool { return s.ID == id })
		},
		Changed: func(module string) { w.news = append(w.news, module) },
	})
	return w
}

func digest(n byte) owned.Digest { return owned.Digest{n} }

// left is a Deployment as Starling has left it.
func left(name string, version int, owned byte) release.Object {
	return release.Object{Key: effect.Ref{APIVersion: "apps/v1", Kind: "Deployment", Namespace: "shop", Name: name}, Version: fmt.Sprint(version), Owned: digest(owned)}
}

func all(seen ...release.Object) release.Objects {
	out := release.Objects{Of: "uid", Digest: release.DigestOf(seen, nil), Seen: seen}
	for _, o := range seen {
		out.Kinds = append(out.Kinds, release.Scope{APIVersion: o.APIVersion, Kind: o.Kind, Namespace: o.Namespace})
	}
	return out
}

// is is a Deployment as the watch shows it.
func is(name string, version int, owned byte, by ...string) watch.Entry {
	return watch.Entry{Namespace: "shop", Name: name, Result: &state{
		version: uint64(version), release: unique.Make(nameOf(web)), owned: digest(owned), known: true, by: unique.Make(strings.Join(by, "\n")),
	}}
}

// unowned is a Deployment of which Starling owns no field, with all else of the release.
func unowned(name string, version int) watch.Entry {
	return watch.Entry{Namespace: "shop", Name: name, Result: &state{version: uint64(version), release: unique.Make(nameOf(web)), by: unique.Make("")}}
}

func changes(e watch.Entry) []watch.Event {
	return []watch.Event{{Type: watch.Modified, Namespace: e.Namespace, Name: e.Name, Result: e.Result}}
}

func deleted(name string, version uint64) []watch.Event {
	return []watch.Event{{Type: watch.Deleted, Namespace: "shop", Name: name, Version: version}}
}

// id is that of the one watch.
func (w *world) id() string {
	w.Helper()
	if len(w.watches) != 1 {
		w.Fatalf("watches: %v", w.watches)
	}
	return w.watches[0].ID
}

// want says what differs, as "web changed by x", "web missing" or "verify", and whether there was news.
func (w *world) want(news bool, want ...string) {
	w.Helper()
	if (len(w.news) > 0) != news {
		w.Errorf("news: %v", w.news)
	}
	w.news = nil
	d := w.Drift("web")
	var got []string
	if d.Verify {
		got = append(got, "verify")
	}
	for _, o := range d.Objects {
		text := o.Name + " changed"
		if o.Missing {
			text = o.Name + " missing"
		}
		if len(o.By) > 0 {
			text += " by " + strings.Join(o.By, ", ")
		}
		got = append(got, text)
	}
	for _, k := range d.Going {
		got = append(got, k.Name+" going")
	}
	if d.Blind != "" {
		got = append(got, d.Blind)
	}
	if !slices.Equal(got, want) {
		w.Errorf("it differs in %q, want %q", got, want)
	}
}

// released has Helm leave objects, and the watch show them.
func (w *world) released(seen ...release.Object) {
	w.Helper()
	w.Begin(web, nil)
	w.Expect(web, all(seen...))
	entries := []watch.Entry{}
	for _, o := range seen {
		entries = append(entries, is(o.Name, int(watch.Version(o.Version)), o.Owned[0]))
	}
	w.Synced(w.id(), entries, nil)
	w.want(false)
}

func TestWhatOthersChange(t *testing.T) {
	w := newWorld(t)
	w.released(left("a", 10, 1), left("b", 11, 2))
	w.Changed(w.id(), changes(is("a", 12, 1, "kubectl"))) // beside our fields
	w.want(false)
	w.Changed(w.id(), changes(is("a", 13, 7, "kubectl")))
	w.want(true, "a changed by kubectl")
	w.Changed(w.id(), deleted("b", 14))
	w.want(true, "a changed by kubectl", "b missing")
	w.Changed(w.id(), changes(is("a", 15, 1))) // as it was
	w.want(true, "b missing")
	w.Changed(w.id(), changes(is("b", 16, 9, "kubectl"))) // by somebody else
	w.want(false, "b changed by kubectl")
	w.Changed(w.id(), changes(is("c", 17, 3))) // one that says that it belongs to the release
	w.want(false, "b changed by kubectl")
}

// The watch may show our own writes late, or early.
func TestOurOwnWritesAreNoDrift(t *testing.T) {
	w := newWorld(t)
	w.released(left("a", 10, 1))
	w.Begin(web, nil)
	w.Changed(w.id(), changes(is("a", 20, 2)))
	w.Changed(w.id(), changes(is("a", 21, 3)))
	w.want(false)
	w.Expect(web, all(left("a", 22, 4)))
	w.want(false)
	w.Changed(w.id(), changes(is("a", 22, 4)))
	w.want(false)
	w.Changed(w.id(), changes(is("a", 23, 3)))
	w.want(true, "a changed")
	w.Repaired(web, Repair{Asked: []effect.Ref{{APIVersion: "apps/v1", Kind: "Deployment", Namespace: "shop", Name: "a"}}, Objects: release.Objects{Seen: []release.Object{left("a", 24, 4)}}, Ended: true})
	w.want(true)
	w.Changed(w.id(), changes(is("a", 24, 4)))
	w.want(false)
}

// An object that is made anew by Helm is not missing, one that goes right after that is.
func TestObjectsThatAreMadeAnew(t *testing.T) {
	w := newWorld(t)
	w.released(left("a", 10, 1))
	w.Begin(web, nil)
	w.Changed(w.id(), deleted("a", 12))
	w.Expect(web, all(left("a", 20, 1)))
	w.want(false)
	w.Begin(web, nil)
	w.Changed(w.id(), deleted("a", 31))
	w.Expect(web, all(left("a", 30, 1)))
	w.want(true, "a missing")
	w.Repaired(web, Repair{Asked: []effect.Ref{{APIVersion: "apps/v1", Kind: "Deployment", Namespace: "shop", Name: "a"}}, Objects: release.Objects{Seen: []release.Object{left("a", 32, 1)}}, Ended: true})
	w.want(true)
	w.Changed(w.id(), deleted("a", 33))
	w.want(true, "a missing")
	// Nobody makes it anew, such as a Job that has a time to live.
	w.Repaired(web, Repair{Asked: []effect.Ref{{APIVersion: "apps/v1", Kind: "Deployment", Namespace: "shop", Name: "a"}}, Ended: true})
	w.want(true)
}

// Objects that are being deleted are looked at once they are gone; Jobs that have ended may go.
func TestObjectsOnTheirWayOut(t *testing.T) {
	w := newWorld(t)
	w.released(left("a", 10, 1), left("job", 10, 1))
	going := is("a", 11, 5)
	going.Result.(*state).deleting = true
	w.Changed(w.id(), changes(going))
	w.want(true, "a going")
	w.Changed(w.id(), deleted("a", 12))
	w.want(true, "a missing")
	ended := is("job", 13, 1)
	ended.Result.(*state).finished = true
	w.Changed(w.id(), changes(ended))
	w.Changed(w.id(), deleted("job", 14))
	w.want(false, "a missing")
}

// After a restart the digest of the record tells whether all is as it was, without a request.
func TestAProcessLearnsByTheDigest(t *testing.T) {
	was := all(left("a", 10, 1), left("b", 11, 2))
	was.Seen = nil
	for _, test := range []struct {
		name string
		have []watch.Entry
		want []string
	}{
		{"as it was", []watch.Entry{is("a", 50, 1), is("b", 60, 2)}, nil},
		{"with a copy of somebody's", []watch.Entry{is("a", 50, 1), is("b", 60, 2), unowned("copy", 61)}, nil},
		{"cleared", []watch.Entry{is("a", 50, 1), unowned("b", 60)}, []string{"verify"}},
		{"changed", []watch.Entry{is("a", 50, 1), is("b", 60, 3)}, []string{"verify"}},
		{"deleted", []watch.Entry{is("a", 50, 1)}, []string{"verify"}},
	} {
		t.Run(test.name, func(t *testing.T) {
			w := newWorld(t)
			w.Begin(web, nil)
			w.Expect(web, was)
			w.want(false) // nothing is known before the watch is synced
			w.Synced(w.id(), test.have, nil)
			w.want(test.want != nil, test.want...)
			if test.want != nil {
				w.Repaired(web, Repair{Objects: all(left("a", 70, 1), left("b", 71, 2)), Ended: true})
				w.want(true)
				return
			}
			w.Changed(w.id(), changes(is("b", 70, 9, "kubectl")))
			w.Changed(w.id(), deleted("copy", 71))
			w.want(true, "b changed by kubectl")
			w.Begin(web, nil) // a pass that changes nothing leaves it so
			w.Expect(web, was)
			w.want(true, "b changed by kubectl")
		})
	}
	w := newWorld(t)
	w.Expect(web, release.Objects{Of: "uid"}) // an earlier version of Starling has released it
	w.want(true, "verify")
	if len(w.watches) > 0 {
		t.Errorf("watches: %v", w.watches)
	}
}

// Watches are those of all kinds, of the namespaces of their releases, and go on until others
// that have more of them are synced.
func TestWatches(t *testing.T) {
	w := newWorld(t)
	w.released(left("a", 10, 1))
	first := w.watches[0]
	if first.Labels != "starling.dev/released-by=ops.starling" || !first.Metadata || !slices.Equal(first.Namespaces, []string{"shop"}) || !IsWatch(first.ID) {
		t.Errorf("%+v", first)
	}
	for i := range maxNamespaces {
		ref := release.Ref{Module: fmt.Sprint("m", i), Name: "x", Namespace: fmt.Sprint("ns", i)}
		o := left("x", 10, 1)
		o.Namespace = ref.Namespace
		w.Expect(ref, all(o))
	}
	if len(w.watches) != 2 || w.watches[0].ID != first.ID || w.watches[1].Namespaces != nil {
		t.Fatalf("watches: %+v", w.watches)
	}
	w.Changed(first.ID, changes(is("a", 11, 3)))
	if d := w.Drift("web"); len(d.Objects) != 1 {
		t.Errorf("%+v", d)
	}
	w.Synced(w.watches[1].ID, []watch.Entry{is("a", 12, 1)}, nil)
	if len(w.watches) != 1 {
		t.Errorf("watches: %+v", w.watches)
	}
	if d := w.Drift("web"); len(d.Objects) != 0 {
		t.Errorf("%+v", d)
	}
	if d := w.Drift("m3"); len(d.Objects) != 1 || !d.Objects[0].Missing {
		t.Errorf("%+v", d)
	}
	w.Tracker.Failed(w.id(), fmt.Errorf("gone away"))
	if d := w.Drift("web"); d.Blind != "1 of kind Deployment: gone away" {
		t.Errorf("%+v", d)
	}
	before := w.id()
	forbidden := apierrors.NewForbidden(schema.GroupResource{Resource: "deployments"}, "", nil)
	w.Tracker.Failed(before, forbidden) // all namespaces: they are watched one by one
	if len(w.watches) != 2 || len(w.watches[1].Namespaces) != maxNamespaces+1 {
		t.Fatalf("watches: %+v", w.watches)
	}
	w.Synced(w.watches[1].ID, nil, nil)
	w.Tracker.Failed(w.id(), forbidden)
	if d := w.Drift("web"); d.Blind != "1 of kind Deployment: "+forbidden.Error() || w.id() == before {
		t.Errorf("%+v", d)
	}
	w.Forget(web)
	for i := range maxNamespaces {
		w.Forget(release.Ref{Module: fmt.Sprint("m", i), Name: "x", Namespace: fmt.Sprint("ns", i)})
	}
	if n := len(w.watches) + len(w.releases) + len(w.kinds) + len(w.byID); n > 0 {
		t.Errorf("%d things stay: %v %v", n, w.releases, w.kinds)
	}
}

// Objects of a kind that may not be watched are looked at once.
func TestKindsThatMayNotBeWatched(t *testing.T) {
	forbidden := apierrors.NewForbidden(schema.GroupResource{Resource: "deployments"}, "", nil)
	w := newWorld(t)
	noted := all(left("a", 10, 1), left("b", 10, 1))
	seen := noted.Seen
	noted.Seen = nil
	w.Expect(web, noted)
	w.Tracker.Failed(w.id(), fmt.Errorf("gone away"))
	w.want(true, "those of kind Deployment: gone away")
	w.Tracker.Failed(w.id(), forbidden)
	w.want(true, "verify", "those of kind Deployment: "+forbidden.Error())
	noted.Seen = seen
	w.Repaired(web, Repair{Objects: noted, Ended: true})
	w.want(true, "2 of kind Deployment: "+forbidden.Error())
}

// Objects that go before a watch has shown them are missed by its next list.
func TestObjectsThatNobodyHasSeen(t *testing.T) {
	w := newWorld(t)
	w.released(left("a", 10, 1))
	w.Begin(web, nil)
	w.Expect(web, all(left("a", 10, 1), left("b", 20, 1), left("c", 30, 1)))
	w.want(false)
	list := []watch.Entry{is("a", 10, 1)}
	w.Synced(w.id(), list, watch.Positions{"shop": 25})
	w.want(true, "b missing")
	w.Changed(w.id(), changes(is("c", 30, 1)))
	w.want(false, "b missing")
	// A server that was restored from a backup counts anew.
	w.Synced(w.id(), []watch.Entry{is("a", 5, 1), is("b", 6, 2)}, watch.Positions{"shop": 7})
	w.want(true, "b changed", "c missing")
}

// Of kinds whose API server keeps no managed fields, each write of others has the object looked at,
// and so has each start.
func TestKindsWithoutManagedFields(t *testing.T) {
	of := func(version int) watch.Entry { return unowned("a", version) }
	asked := []effect.Ref{{APIVersion: "apps/v1", Kind: "Deployment", Namespace: "shop", Name: "a"}}
	seen := all(left("a", 10, 0))
	w := newWorld(t)
	w.Expect(web, seen)
	w.Synced(w.id(), []watch.Entry{of(10)}, nil)
	w.want(false)
	w.Changed(w.id(), changes(of(11)))
	w.want(true, "a changed")
	w.Repaired(web, Repair{Asked: asked, Objects: release.Objects{Seen: []release.Object{left("a", 11, 0)}}, Ended: true})
	w.want(true)
	w.Changed(w.id(), deleted("a", 12))
	w.want(true, "a missing")

	w, seen.Seen = newWorld(t), nil // after a restart
	w.Expect(web, seen)
	w.Synced(w.id(), []watch.Entry{of(11)}, nil)
	w.want(true, "verify")
	w.Repaired(web, Repair{Objects: all(left("a", 11, 0)), Ended: true})
	w.want(true)
	w.Changed(w.id(), changes(of(11)))
	w.want(false)
	w.Changed(w.id(), deleted("a", 12))
	w.want(true, "a missing")
}

// Ignored fields and objects are no drift. When that changes, the watches begin anew.
func TestWhatIsIgnored(t *testing.T) {
	w := newWorld(t)
	w.released(left("a", 10, 1), left("b", 10, 1))
	obj := func(name string) map[string]any {
		out := decode(t, metadata)
		out["metadata"].(map[string]any)["name"] = name
		return out
	}
	keeps := func(name string) *state {
		v, keep, err := w.watches[len(w.watches)-1].Filter(obj(name))
		if err != nil || !keep {
			return nil
		}
		return v.(*state)
	}
	before, first := keeps("a"), w.watches[0]
	path, err := owned.ParsePath("spec.paused")
	if err != nil {
		t.Fatal(err)
	}
	w.Begin(web, []owned.Ignore{{Kind: "Deployment", Name: "b"}, {Path: path}})
	if len(w.watches) != 2 || w.watches[1].FilterID == first.FilterID {
		t.Fatalf("watches: %+v", w.watches)
	}
	if keeps("b") != nil || keeps("a") == nil || keeps("a").owned == before.owned {
		t.Error("what is ignored is kept")
	}
	w.Expect(web, release.Objects{Of: "uid", Kinds: all(left("a", 0, 0)).Kinds, Digest: "of both"})
	w.want(false)
	w.Synced(w.watches[1].ID, []watch.Entry{is("a", 10, 3)}, nil)
	w.want(true, "verify")
	noted := w.Repaired(web, Repair{Objects: all(left("a", 10, 3)), Ended: true})
	noted.Seen = nil // as the record has it
	w.want(true)
	w.Begin(web, []owned.Ignore{{Kind: "Deployment", Name: "b"}, {Path: path}})
	w.Expect(web, release.Objects{Of: "uid"})
	w.want(false)
	if len(w.watches) != 1 {
		t.Errorf("watches: %+v", w.watches)
	}
	// Starling owns the same with another order of the list, and looks at nothing.
	w.Begin(web, []owned.Ignore{{Path: path}, {Kind: "Deployment", Name: "b"}})
	w.Expect(web, noted)
	w.Synced(w.watches[1].ID, []watch.Entry{is("a", 10, 3)}, nil)
	w.want(false)
	// Somebody has changed what was ignored, so Starling owns the same without the list. The values tell.
	w.Begin(web, nil)
	w.Expect(web, noted)
	w.Synced(w.watches[1].ID, []watch.Entry{is("a", 10, 3)}, nil)
	w.want(true, "verify")
	noted = w.Repaired(web, Repair{Objects: all(left("a", 11, 1)), Ended: true})
	noted.Seen = nil
	w.want(true)

	w = newWorld(t) // the list was changed while nobody looked
	w.Begin(web, []owned.Ignore{{Path: path}})
	w.Expect(web, noted)
	w.Synced(w.id(), []watch.Entry{is("a", 11, 1)}, nil)
	w.want(true, "verify")
}

// A storm is told of once, until somebody asks.
func TestAStormIsOneNews(t *testing.T) {
	w := newWorld(t)
	var seen []release.Object
	for i := range 500 {
		seen = append(seen, left(fmt.Sprint("x", i), 10, 1))
	}
	w.released(seen...)
	for i := range seen {
		w.Changed(w.id(), deleted(seen[i].Name, uint64(20+i)))
	}
	if len(w.news) != 1 {
		t.Errorf("%d news", len(w.news))
	}
	if d := w.Drift("web"); len(d.Objects) != len(seen) || !slices.IsSortedFunc(d.Objects, func(a, b engineObject) int { return cmp.Compare(a.Name, b.Name) }) {
		t.Errorf("%d objects", len(d.Objects))
	}
}
