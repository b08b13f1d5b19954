package e2e

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// grows makes members in a server, one step after the other; $HOST is its address.
const grows = `
URL = "http://$HOST/"

def look(ctx, o):
    return http.request("POST", URL + "list", json = {}, reads = True).json()

def cluster(ctx, o):
    if ctx.observed == None:
        return waiting("the first look")
    if len(ctx.observed) < o.spec.size:
        progressing("%d of %d members" % (len(ctx.observed), o.spec.size))
    return [part({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name}}) for name in ctx.observed]

def step(ctx, o):
    name = o.get("status.adding")
    if not name and len(ctx.observed) < o.spec.size:
        name = "m%d" % o.get("status.next", 1)
    if name:
        return call(
            {"method": "POST", "url": URL + "add", "json": {"name": name}},
            first = {"adding": name, "next": int(name[1:]) + 1},
            done = lambda answer: answer.ok or answer.status == 409,
            then = lambda answer: {"adding": None},
        )
    return None

controller("grows", k8s.watch("$NS.example.com/v1", "Ring", namespaces = ["$NS"]), cluster, observe = look, every = "1s", act = step,
           owns = [owns("v1", "ConfigMap")])
`

// A process is killed before and after each write of a step outside of the API: each member is made once, and before it
// is made the status says so.
func TestKilledAtEachWriteOfAStep(t *testing.T) {
	t.Parallel()
	for _, after := range []bool{false, true} {
		t.Run(fmt.Sprintf("written %t", after), func(t *testing.T) {
			t.Parallel()
			testKilledAtEachWriteOfAStep(t, after)
		})
	}
}

func testKilledAtEachWriteOfAStep(t *testing.T, after bool) {
	ns := shared.Namespace(t)
	rings := shared.Dynamic.Resource(schema.GroupVersionResource{Group: ns + ".example.com", Version: "v1", Resource: "rings"}).Namespace(ns)
	status := func() map[string]any {
		o, err := rings.Get(context.Background(), "r", metav1.GetOptions{})
		if err != nil {
			return nil
		}
		status, _, _ := unstructured.NestedMap(o.Object, "status")
		return status
	}
	var mu sync.Mutex
	var members []string
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		mu.Lock()
		defer mu.Unlock()
		var asked struct{ Name string }
		body, _ := io.ReadAll(r.Body)
		if err := json.Unmarshal(body, &asked); err != nil {
			t.Error(err)
		}
		switch {
		case asked.Name == "":
			_ = json.NewEncoder(w).Encode(append([]string{}, members...))
		case slices.Contains(members, asked.Name):
			w.WriteHeader(http.StatusConflict)
		default:
			if before := status()["adding"]; before != asked.Name {
				t.Errorf("%s is made, and the status says %v", asked.Name, before)
			}
			members = append(members, asked.Name)
		}
	}))
	t.Cleanup(server.Close)
	host := server.Listener.Addr().String()
	f := &fixture{t: t, ns: ns, name: "starling", modules: t.TempDir()}
	t.Cleanup(func() {
		err := shared.Dynamic.Resource(definitions).Delete(context.Background(), "rings."+ns+".example.com", metav1.DeleteOptions{})
		if err != nil && !apierrors.IsNotFound(err) {
			t.Error(err)
		}
	})
	f.write(map[string]string{
		"ring/module.star": `module(enabled = True, http = ["` + host + `"])
crd("$NS.example.com/v1", "Ring", {"size": "integer"}, status = {"next": "integer", "adding": "string"})
`,
		"ring/hooks/grows.star": strings.ReplaceAll(grows, "$HOST", host),
	})
	f.grantPrinted()
	r := newKiller(t, f, func(path string) bool { return strings.HasSuffix(path, "/rings/r/status") })
	f.start()
	f.waitReady()
	whole := func() error {
		mu.Lock()
		defer mu.Unlock()
		now := status()
		if ready, adding := readyOf(now), now["adding"]; !slices.Equal(members, []string{"m1", "m2"}) || ready != "True" || adding != nil {
			return fmt.Errorf("members %v, Ready %q, adding %v", members, ready, adding)
		}
		return nil
	}
	for at, killed := 1, true; killed; at++ {
		mu.Lock()
		members = nil
		mu.Unlock()
		before := r.KillAt(at, after, func() {
			shared.Apply(t, fmt.Sprintf("{apiVersion: %[1]s.example.com/v1, kind: Ring, metadata: {name: r, namespace: %[1]s}, spec: {size: 2}}", ns))
		})
		f.eventually("there are two members, or the process is killed", func() error {
			if r.Killed() > before {
				return nil
			}
			return whole()
		})
		if killed = r.Spare() > before; killed {
			f.process.Kill()
			f.freeLease()
			f.start()
			f.waitReady()
		}
		f.eventually("there are two members", whole)
		if err := rings.Delete(t.Context(), "r", metav1.DeleteOptions{}); err != nil {
			t.Fatal(err)
		}
		f.eventually("the parent goes with its children", func() error {
			if _, err := rings.Get(t.Context(), "r", metav1.GetOptions{}); !apierrors.IsNotFound(err) {
				return fmt.Errorf("%w, or it is there", err)
			}
			return r.Rests(300 * time.Millisecond)
		})
	}
	t.Logf("killed at %q", r.At())
	if len(r.At()) < 4 { // two steps of two writes each
		t.Errorf("%d processes were killed, want one at each write at least", len(r.At()))
	}
}

// readyOf is the status of the condition Ready.
func readyOf(status map[string]any) string {
	conditions, _, _ := unstructured.NestedSlice(status, "conditions")
	for _, c := range conditions {
		if m, _ := c.(map[string]any); m["type"] == "Ready" {
			text, _ := m["status"].(string)
			return text
		}
	}
	return ""
}
