//go:build e2e

package cluster

import (
	"net/http"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/rs/zerolog"
	"github.com/starling-operator/starling/builtins"
	"github.com/starling-operator/starling/runtime/effect"
	"k8s.io/client-go/rest"
)

// counted notes the requests for objects that go to the real API server.
type counted struct {
	next http.RoundTripper

	mu           sync.Mutex
	asked        []string
	active, most int
}

func (c *counted) RoundTrip(r *http.Request) (*http.Response, error) {
	if !strings.Contains(r.URL.Path, "/namespaces/") {
		return c.next.RoundTrip(r)
	}
	c.mu.Lock()
	c.asked = append(c.asked, r.Method+" "+r.URL.Path[strings.LastIndex(r.URL.Path, "/")+1:])
	c.active++
	c.most = max(c.most, c.active)
	c.mu.Unlock()
	defer func() { c.mu.Lock(); c.active--; c.mu.Unlock() }()
	return c.next.RoundTrip(r)
}

// A new set of 200 costs a request per member, up to 8 at a time; one that stands costs one
// list, and what differs.
func TestRealSetCosts(t *testing.T) {
	w := newRealWorld(t)
	count := &counted{}
	config := rest.CopyConfig(shared.Config)
	config.Wrap(func(next http.RoundTripper) http.RoundTripper { count.next = next; return count })
	client, err := New(Options{Config: config, Log: zerolog.Nop()})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(client.Close)
	o := w.writer.o
	o.Client, o.JQ = client, builtins.PatchJQ
	w.writer = NewWriter(o)
	apply := func(objects []map[string]any) []string {
		t.Helper()
		count.mu.Lock()
		count.asked, count.most = nil, 0
		count.mu.Unlock()
		w.write(effect.Write{Kind: effect.WriteSet, Set: &effect.Set{Name: "children", Members: appliesOf(objects)}})
		return count.asked
	}
	expect := func(what string, got []string, want ...string) {
		t.Helper()
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("%s (-want +got):\n%s", what, diff)
		}
	}
	const n = 200
	objects := configMaps(n, w.ns)
	if asked := apply(objects); len(asked) > n+3 || count.most > 8 || count.most < 2 {
		t.Errorf("%d requests, %d at a time", len(asked), count.most)
	}
	expect("nothing differs", apply(objects), "GET configmaps")
	objects[77] = changed(objects[77], "2")
	expect("one differs", apply(objects), "GET configmaps", "PATCH m077")
	w.writer = NewWriter(o)
	objects[78] = changed(objects[78], "2")
	id := "starling-set-" + w.writer.setID("starling/web/f", "children")
	expect("one differs after a restart", apply(objects), "GET "+id, "GET configmaps", "PATCH m078")
	w.write(effect.Write{Kind: effect.WritePatch, Ref: identityOf(objects[5]), Patch: &effect.Patch{Type: effect.PatchMerge,
		Body: map[string]any{"data": map[string]any{"n": "theirs"}, "metadata": map[string]any{"labels": nil}}}})
	expect("another's change", apply(objects), "GET configmaps", "PATCH m005", "GET m005", "PATCH m005")
	w.expect(identityOf(objects[5]), "1", "data", "n")

	web, service := parse(t, deployment), parse(t, service)
	web["metadata"].(map[string]any)["namespace"], service["metadata"].(map[string]any)["namespace"] = w.ns, w.ns
	apply([]map[string]any{web, service})
	expect("what the API server fills in", apply([]map[string]any{web, service}), "GET x", "GET x")
}
