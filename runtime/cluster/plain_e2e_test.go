//go:build e2e

package cluster

import (
	"context"
	"fmt"
	"io"
	"maps"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	e2e "github.com/starling-operator/starling/e2e/cluster"
	"github.com/starling-operator/starling/runtime/effect"
	"github.com/starling-operator/starling/runtime/sim/store"
)

// Behind the real API server, an aggregated one that has no server-side apply has members of sets, and children.
func TestKindsWithoutApplyReal(t *testing.T) {
	t.Parallel()
	w := newRealWorld(t)
	group := w.ns + ".aggregated.example.com"
	api := &plainAPI{farAPI: newFarAPI(), resource: "gears", code: http.StatusUnsupportedMediaType}
	api.store.Serve(store.Kind{Group: group, Version: "v1", Kind: "Gear", Plural: "gears", Namespaced: true})
	server := httptest.NewUnstartedServer(http.HandlerFunc(func(rw http.ResponseWriter, r *http.Request) {
		answer, err := api.RoundTrip(r)
		if err != nil {
			http.Error(rw, err.Error(), http.StatusInternalServerError)
			return
		}
		defer answer.Body.Close()
		maps.Copy(rw.Header(), answer.Header)
		rw.WriteHeader(answer.StatusCode)
		_, _ = io.Copy(rw, answer.Body)
	}))
	// A controller of the cluster may watch the kind, as long as it is answered.
	server.Config.BaseContext = func(net.Listener) context.Context { return t.Context() }
	server.StartTLS()
	t.Cleanup(server.Close)
	port := server.URL[strings.LastIndexByte(server.URL, ':')+1:]
	for _, text := range []string{
		"apiVersion: v1\nkind: Service\nmetadata: {name: gears, namespace: " + w.ns + "}\nspec: {type: ExternalName, externalName: localhost}\n",
		fmt.Sprintf("apiVersion: apiregistration.k8s.io/v1\nkind: APIService\nmetadata: {name: v1.%s}\nspec: {group: %s, version: v1, groupPriorityMinimum: 100, "+
			"versionPriority: 100, insecureSkipTLSVerify: true, service: {namespace: %s, name: gears, port: %s}}\n", group, group, w.ns, port),
	} {
		obj := parse(t, text)
		ref := effect.RefOf(obj)
		w.write(effect.Write{Kind: effect.WriteApply, Ref: ref, Object: obj})
		t.Cleanup(func() { w.write(effect.Write{Kind: effect.WriteDelete, Ref: ref}) })
	}
	gear := func(count int64) map[string]any {
		return map[string]any{"apiVersion": group + "/v1", "kind": "Gear", "metadata": map[string]any{"name": "x", "namespace": w.ns}, "spec": map[string]any{"count": count}}
	}
	ref := effect.RefOf(gear(1))
	e2e.Eventually(t, 3*time.Minute, "the kind is served", func() error {
		_, err := w.client.List(t.Context(), ref.APIVersion, ref.Kind, []string{w.ns}, "", "")
		return err
	})
	set := func(objects ...map[string]any) {
		t.Helper()
		w.write(effect.Write{Kind: effect.WriteSet, Ref: effect.Ref{Kind: "set", Name: "gears"}, Set: &effect.Set{Name: "gears", Members: appliesOf(objects)}})
	}
	set(gear(1))
	w.write(effect.Write{Kind: effect.WritePatch, Ref: ref, Patch: &effect.Patch{Type: effect.PatchMerge, Body: map[string]any{"spec": map[string]any{"count": 2}}}})
	set(gear(1))
	w.expect(ref, int64(1), "spec", "count")
	version := versionOf(w.get(ref))
	if set(gear(1)); versionOf(w.get(ref)) != version {
		t.Error("a member that stands is written")
	}
	if set(); w.get(ref) != nil {
		t.Error("a member stays that is listed no more")
	}

	w.client.UseSeal(newSeal())
	for _, obj := range []map[string]any{gear(1), configMap(w.ns, "x")} {
		ref := effect.RefOf(obj)
		set(obj)
		copied := copyOf(w.get(ref))
		w.write(effect.Write{Kind: effect.WriteDelete, Ref: ref})
		w.write(effect.Write{Kind: effect.WriteCreate, Ref: ref, Object: copied}) // under the hook's own name
		if set(); w.get(ref) == nil {
			t.Errorf("a copy of %s goes that somebody has put in the place of a member", ref)
		}
		w.write(effect.Write{Kind: effect.WriteDelete, Ref: ref})
	}

	child := func(count int64) (same bool) {
		t.Helper()
		obj := childOf("u1", "x", fmt.Sprint(count))
		obj["apiVersion"], obj["kind"], obj["metadata"].(map[string]any)["namespace"] = ref.APIVersion, ref.Kind, w.ns
		m := appliesOf([]map[string]any{obj})[0]
		if live := w.get(ref); live != nil {
			m.Unchanged = &effect.Unchanged{UID: uidOf(live)}
		}
		w.write(effect.Write{Kind: effect.WriteChildren, Children: []effect.Write{m}})
		return Same(obj, w.get(ref), "starling/web/f", "")
	}
	if !child(1) || !child(2) {
		t.Errorf("a child is not as it was written: %v", w.get(ref))
	}
	w.write(effect.Write{Kind: effect.WriteChildren, Children: []effect.Write{{Kind: effect.WriteDelete, Ref: ref, Unchanged: &effect.Unchanged{UID: uidOf(w.get(ref))}}}})
	if w.get(ref) != nil {
		t.Error("a child stays")
	}
}
