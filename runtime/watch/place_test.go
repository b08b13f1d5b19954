package watch

import (
	"fmt"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/starling-operator/starling/runtime/effect"
	"github.com/starling-operator/starling/runtime/sim/apitest"
	"go.starlark.net/starlark"
	"k8s.io/apimachinery/pkg/fields"
)

func namespace(name string, labels map[string]any) map[string]any {
	return map[string]any{"apiVersion": "v1", "kind": "Namespace", "metadata": map[string]any{"name": name, "labels": labels}}
}

// withNamespaces is a fixture whose server has the namespaces a and b of team blue,
// and c of team red, each with one ConfigMap x.
func withNamespaces(t *testing.T) *fixture {
	f := newFixture(t)
	for name, team := range map[string]any{"a": "blue", "b": "blue", "c": "red"} {
		f.api.Put(namespace(name, map[string]any{"team": team}))
		f.api.Put(configMap(name, "x", name+"1"))
	}
	return f
}

func ofTeam(id, team string) Spec {
	spec := configMaps(id)
	spec.NamespaceLabels = "team=" + team
	return spec
}

func TestNamespacesStartAndStopMatching(t *testing.T) {
	for _, streaming := range []bool{true, false} {
		t.Run(fmt.Sprintf("streamed=%v", streaming), func(t *testing.T) {
			f := withNamespaces(t)
			if !streaming {
				f.api.NoStreaming()
			}
			f.manager.Start(ofTeam("w", "blue"))
			f.await("w synced served=true")
			f.snapshot("w", `["a1" "b1"]`)
			f.api.Put(configMap("b", "y", "b2"))
			f.await(`w added b/y "b2"`)

			// c begins to match: its objects appear.
			f.api.Put(namespace("c", map[string]any{"team": "blue", "new": "yes"}))
			f.await(`w added c/x "c1"`)
			f.api.Put(configMap("c", "x", "c2"))
			f.await(`w modified c/x "c2"`)

			// b stops: its objects go, and are not followed any more.
			f.api.Put(namespace("b", map[string]any{"team": "red"}))
			f.await(`w deleted b/x "b1"`, `w deleted b/y "b2"`)
			f.api.Put(configMap("b", "x", "b3"))
			f.snapshot("w", `["a1" "c2"]`)

			// A namespace that is made, and one that is deleted with all it holds.
			f.api.Put(namespace("d", map[string]any{"team": "blue"}))
			f.api.Put(configMap("d", "x", "d1"))
			f.await(`w added d/x "d1"`)
			f.api.Remove("v1", "ConfigMap", "a", "x")
			f.await(`w deleted a/x "a1"`)
			f.api.Remove("v1", "Namespace", "", "a")

			// b comes back as it is now.
			f.api.Put(namespace("b", map[string]any{"team": "blue"}))
			f.await(`w added b/x "b3"`, `w added b/y "b2"`)
			f.snapshot("w", `["b3" "b2" "c2" "d1"]`)
			f.nothing()
		})
	}
}

func TestNamespacesAreFollowedAcrossCuts(t *testing.T) {
	f := withNamespaces(t)
	f.manager.Start(ofTeam("w", "blue"))
	f.await("w synced served=true")
	f.unseen(func() {
		f.api.Put(namespace("b", nil))
		f.api.Expire() // 410 Gone
	})
	f.await(`w deleted b/x "b1"`)
	f.nothing()
}

// Of namespaces that a watch follows their metadata is asked for, and nothing else.
func TestNamespacesAreFollowedByTheirMetadata(t *testing.T) {
	for _, streaming := range []bool{true, false} {
		t.Run(fmt.Sprintf("streamed=%v", streaming), func(t *testing.T) {
			f := withNamespaces(t)
			if !streaming {
				f.api.NoStreaming()
			}
			var mu sync.Mutex
			asked := map[bool]int{} // by whether it was for metadata
			f.api.OnRequest(func(r *http.Request) {
				if r.URL.Path == "/api/v1/namespaces" {
					mu.Lock()
					defer mu.Unlock()
					asked[strings.Contains(r.Header.Get("Accept"), "as=PartialObjectMetadata")]++
				}
			})
			f.manager.Start(ofTeam("w", "blue"))
			f.await("w synced served=true")
			f.snapshot("w", `["a1" "b1"]`)
			mu.Lock()
			defer mu.Unlock()
			if asked[false] > 0 || asked[true] == 0 {
				t.Errorf("%d requests for metadata, %d for whole namespaces", asked[true], asked[false])
			}
		})
	}
}

func TestNoNamespaceMatches(t *testing.T) {
	f := withNamespaces(t)
	f.manager.Start(ofTeam("w", "green"))
	f.await("w synced served=true")
	f.snapshot("w", "[]")
	f.api.Put(namespace("a", map[string]any{"team": "green"}))
	f.await(`w added a/x "a1"`)
	f.nothing()
}

func TestWatchesOnNamespacesShareStreams(t *testing.T) {
	f := withNamespaces(t)
	f.api.NoStreaming()
	f.manager.Start(ofTeam("one", "blue"))
	f.await("one synced served=true")
	f.manager.Start(ofTeam("two", "blue"))
	f.await("two synced served=true")
	if n := f.api.Count("list namespaces"); n != 1 {
		t.Errorf("%d lists of namespaces, want 1", n)
	}
	if n := f.api.Count("list configmaps"); n != 2 {
		t.Errorf("%d lists of ConfigMaps, want one for each of two namespaces", n)
	}
	// A namespace begins to match for both, and one of them ends.
	f.manager.Stop("one")
	f.api.Put(namespace("c", map[string]any{"team": "blue"}))
	f.await(`two added c/x "c1"`)
	f.manager.Stop("two")
	f.manager.mu.Lock()
	defer f.manager.mu.Unlock()
	if n, m := len(f.manager.subs), len(f.manager.streams); n+m > 0 {
		t.Errorf("%d watches and %d streams are left after the last stop", n, m)
	}
}

func TestNamespaceSelectorsTogether(t *testing.T) {
	f := withNamespaces(t)
	f.api.Put(namespace("d", map[string]any{"team": "blue"}))
	f.api.Put(configMap("d", "x", "d1"))
	spec := ofTeam("w", "blue")
	spec.Namespaces, spec.ExcludeNamespaces, spec.Names = []string{"a", "b", "c"}, []string{"a"}, []string{"x", "y"}
	f.manager.Start(spec)
	f.await("w synced served=true")
	f.snapshot("w", `["b1"]`)
	f.api.Put(namespace("c", map[string]any{"team": "blue"}))
	f.await(`w added c/x "c1"`)

	nodes := ofTeam("nodes", "blue")
	nodes.Kind, nodes.Filter = "Node", nameFilter // cluster-scoped: namespaces do not matter
	f.api.Put(map[string]any{"apiVersion": "v1", "kind": "Node", "metadata": map[string]any{"name": "n"}})
	f.manager.Start(nodes)
	f.await("nodes synced served=true")
	f.snapshot("nodes", `["n"]`)

	bad := ofTeam("bad", "blue,")
	bad.NamespaceLabels = "team in"
	f.manager.Start(bad)
	f.mustFail("bad", "of namespaces is not valid")
	f.nothing()
}

func TestNamespacesMayNotBeRead(t *testing.T) {
	f := withNamespaces(t)
	f.api.NoStreaming()
	f.api.Deny("list namespaces", 403)
	f.manager.Start(ofTeam("w", "blue"))
	f.mustFail("w", "not allowed to list namespaces")
	f.api.Deny("list namespaces", 0)
	f.await("w failed <nil>", "w synced served=true")
	// Known objects stay while one namespace cannot be read.
	f.api.Deny("list configmaps", 403)
	f.api.Put(namespace("c", map[string]any{"team": "blue"}))
	f.mustFail("w", "not allowed to list configmaps")
	f.snapshot("w", `["a1" "b1"]`)
	f.api.Deny("list configmaps", 0)
	f.skipTo(`w added c/x "c1"`)
	f.snapshot("w", `["a1" "b1" "c1"]`)
}

// skipTo waits for a line and forgets it with all that came before.
func (f *fixture) skipTo(want string) {
	f.t.Helper()
	deadline := time.After(2 * time.Minute)
	for {
		f.mu.Lock()
		more, lines := f.more, f.lines
		at := slices.Index(lines, want)
		if at >= 0 {
			f.lines = lines[at+1:]
		}
		f.mu.Unlock()
		if at >= 0 {
			return
		}
		select {
		case <-more:
		case <-deadline:
			f.t.Fatalf("waiting for %q, the sink was told %q", want, lines)
		}
	}
}

func TestKindComesAndGoesInMatchingNamespaces(t *testing.T) {
	f := withNamespaces(t)
	widget := apitest.Kind{APIVersion: "example.com/v1", Kind: "Widget", Resource: "widgets", Namespaced: true}
	put := func(namespace, d string) {
		obj := configMap(namespace, "w", d)
		obj["apiVersion"], obj["kind"] = "example.com/v1", "Widget"
		f.api.Put(obj)
	}
	spec := ofTeam("w", "blue")
	spec.APIVersion, spec.Kind = "example.com/v1", "Widget"
	f.manager.Start(spec)
	f.await("w synced served=false")
	for range 2 {
		f.api.Serve(widget)
		put("a", "1")
		put("c", "3")
		f.manager.Kick()
		f.await("w synced served=true")
		f.snapshot("w", `["1"]`)
		f.api.Put(namespace("c", map[string]any{"team": "blue"}))
		f.await(`w added c/w "3"`)
		f.api.Unserve(widget)
		f.await(`w deleted a/w "1"`, `w deleted c/w "3"`, "w synced served=false")
		// Meanwhile a namespace stops to match; a watch on these that shares the stream
		// tells when that is known.
		f.manager.Start(Spec{ID: "blue", APIVersion: "v1", Kind: "Namespace", Metadata: true,
			Filter: func(obj map[string]any) (starlark.Value, bool, error) {
				_, _, set := identity(obj)
				return starlark.None, set["team"] == "blue", nil
			}})
		f.await("blue synced served=true")
		f.api.Put(namespace("c", nil))
		f.await("blue deleted c None")
		f.manager.Stop("blue")
	}
	f.nothing()
}

func TestExcludedNamespaces(t *testing.T) {
	f := withNamespaces(t)
	all := configMaps("all")
	all.ExcludeNamespaces = []string{"b", "a"}
	f.manager.Start(all)
	f.await("all synced served=true")
	f.snapshot("all", `["c1"]`)
	f.api.Put(configMap("a", "x", "bad")) // its filter would fail
	ref := effect.Ref{APIVersion: "v1", Kind: "ConfigMap", Namespace: "b", Name: "own"}
	f.manager.Observe(ref, f.api.Put(configMap("b", "own", "own")), nil, time.Now())
	f.api.Put(configMap("c", "x", "c2"))
	f.await(`all modified c/x "c2"`)

	// The stream is shared with those that exclude other namespaces, or none.
	other := configMaps("other")
	other.ExcludeNamespaces = []string{"a"}
	f.manager.Start(other)
	f.await("other synced served=true")
	f.snapshot("other", `["own" "b1" "c2"]`)
	f.snapshot("all", `["c2"]`)
	if n := f.api.Count("watch configmaps"); n != 1 {
		t.Errorf("%d watches, want 1", n)
	}

	some := configMaps("some")
	some.Namespaces, some.ExcludeNamespaces = []string{"b", "c"}, []string{"b"}
	f.manager.Start(some)
	f.await("some synced served=true")
	f.snapshot("some", `["c2"]`)
	none := configMaps("none")
	none.Namespaces, none.ExcludeNamespaces = []string{"b"}, []string{"b"}
	f.manager.Start(none)
	f.await("none synced served=true")
	f.snapshot("none", "[]")
	f.nothing()
}

func TestFieldSelectors(t *testing.T) {
	f := newFixture(t)
	secret := func(name, typ string) map[string]any {
		return map[string]any{"apiVersion": "v1", "kind": "Secret", "type": typ,
			"metadata": map[string]any{"namespace": "a", "name": name}}
	}
	f.api.Put(secret("one", "tls"))
	f.api.Put(secret("two", "other"))
	f.api.Put(secret("three", "tls"))
	spec := Spec{ID: "tls", APIVersion: "v1", Kind: "Secret", Filter: nameFilter, FilterID: "name", Fields: "type=tls,metadata.name!=three"}
	f.manager.Start(spec)
	f.await("tls synced served=true")
	f.snapshot("tls", `["one"]`)
	named := spec
	named.ID, named.Names = "named", []string{"two", "three"}
	named.Fields = "type!=other"
	f.manager.Start(named)
	f.await("named synced served=true")
	f.snapshot("named", `["three"]`)
	f.manager.Stop("named")

	// Our own writes are selected as the server does.
	ref := func(name string) effect.Ref {
		return effect.Ref{APIVersion: "v1", Kind: "Secret", Namespace: "a", Name: name}
	}
	f.unseen(func() {
		f.manager.Observe(ref("four"), f.api.Put(secret("four", "tls")), nil, time.Now())
		f.await(`tls added a/four "four"`)
		f.manager.Observe(ref("five"), f.api.Put(secret("five", "other")), nil, time.Now())
		f.manager.Observe(ref("six"), f.api.Put(secret("six", "")), nil, time.Now())
		f.snapshot("tls", `["four" "one"]`)
	})

	bad := spec
	bad.ID, bad.Fields = "bad", "type in (a)"
	f.manager.Start(bad)
	f.mustFail("bad", "field selector")
	f.nothing()
}

func TestFieldsOfOurOwnWrites(t *testing.T) {
	pod := map[string]any{"kind": "Pod", "metadata": map[string]any{"name": "p"}, "spec": map[string]any{"nodeName": "n", "hostNetwork": false}}
	for _, tc := range []struct {
		selector       string
		obj            map[string]any
		matches, known bool
	}{
		{"", pod, true, true},
		{"spec.nodeName=n,metadata.name==p", pod, true, true},
		{"spec.nodeName!=n", pod, false, true},
		{"spec.nodeName!=m", pod, true, true},
		{"metadata.name=q,spec.none=x", pod, false, true},
		{"spec.none=x", pod, false, false},
		{"spec.hostNetwork=false", pod, false, false},
		{"status.phase.x=y", pod, false, false},
		{"reason=x", map[string]any{"kind": "Event", "reason": "x"}, false, false},
		{"spec.nodeName=n", nil, true, true},
	} {
		selector, err := fields.ParseSelector(tc.selector)
		if err != nil {
			t.Fatal(err)
		}
		if matches, known := matchFields(selector, tc.obj); matches != tc.matches || known != tc.known {
			t.Errorf("%q: matches=%v known=%v, want %v, %v", tc.selector, matches, known, tc.matches, tc.known)
		}
	}
}

func TestKeepsObjectsBesideResults(t *testing.T) {
	for _, streaming := range []bool{true, false} {
		t.Run(fmt.Sprintf("streamed=%v", streaming), func(t *testing.T) {
			f := newFixture(t)
			if !streaming {
				f.api.NoStreaming()
			}
			put := func(name, d, noise string) {
				obj := configMap("a", name, d)
				obj["data"].(map[string]any)["noise"] = noise
				f.api.Put(obj)
			}
			put("x", "1", "old")
			spec := configMaps("w")
			spec.KeepObject = true
			f.manager.Start(spec)
			f.await("w synced served=true")
			f.snapshot("w", `["1"]`)
			// Without the objects, and with: two views on one stream.
			f.manager.Start(configMaps("plain"))
			f.await("plain synced served=true")
			f.manager.Stop("plain")

			put("x", "1", "new") // same results: no event, but the object is kept
			put("y", "2", "loud")
			f.await(`w added a/y "2" of loud`)
			put("x", "3", "newer")
			f.await(`w modified a/x "3" of newer`)
			put("x", "3", "newest")
			f.api.Remove("v1", "ConfigMap", "a", "x")
			f.await(`w deleted a/x "3" of newest`)
			f.snapshot("w", `["2"]`)
			f.nothing()
		})
	}
}

func TestKeepsWholeObjectsOnce(t *testing.T) {
	for _, keep := range []bool{true, false} {
		out := newView(Spec{KeepObject: keep}).run(configMap("a", "x", "1"))
		if out.value == nil || (out.object == out.value) != keep {
			t.Errorf("KeepObject %v: kept %v beside %v", keep, out.object, out.value)
		}
	}
}
