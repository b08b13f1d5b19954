package cluster

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/rs/zerolog"
	"github.com/starling-operator/starling/runtime/effect"
	"github.com/starling-operator/starling/runtime/sim/apitest"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/rest"
)

func newClient(t *testing.T, api *apitest.Server, wraps ...func(http.RoundTripper) http.RoundTripper) *Client {
	t.Helper()
	config := api.Config()
	for _, wrap := range wraps {
		config.Wrap(wrap)
	}
	c, err := New(Options{Config: config, Log: zerolog.Nop()})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(c.Close)
	return c
}

// finished ends with its context no request that is under way: none comes after those of the next process.
func finished(next http.RoundTripper) http.RoundTripper {
	return roundTripper(func(r *http.Request) (*http.Response, error) {
		if err := r.Context().Err(); err != nil {
			return nil, err
		}
		return next.RoundTrip(r.WithContext(context.WithoutCancel(r.Context())))
	})
}

func configMap(namespace, name string) map[string]any {
	return map[string]any{
		"apiVersion": "v1", "kind": "ConfigMap",
		"metadata": map[string]any{"namespace": namespace, "name": name},
		"data":     map[string]any{"n": "1"},
	}
}

var widget = apitest.Kind{APIVersion: "example.com/v1", Kind: "Widget", Resource: "widgets", Namespaced: true}

func TestMappingAsksForOneGroupVersion(t *testing.T) {
	api := apitest.New(t)
	c := newClient(t, api)
	ctx := context.Background()
	got, err := c.Mapping(ctx, "v1", "Node")
	if err != nil || got.GVR.Resource != "nodes" || got.Namespaced {
		t.Fatalf("mapping of Node is %+v, %v", got, err)
	}
	if _, err := c.Mapping(ctx, "v1", "ConfigMap"); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]string{"discover v1"}, api.Requests()); diff != "" {
		t.Errorf("requests (-want +got):\n%s", diff)
	}
	if _, err := c.Mapping(ctx, "example.com/v1", "Widget"); !errors.Is(err, ErrNotServed) {
		t.Fatalf("an unknown group gives %v, want ErrNotServed", err)
	}
	if _, err := c.Mapping(ctx, "v1", "Unicorn"); !errors.Is(err, ErrNotServed) {
		t.Fatalf("an unknown kind gives %v, want ErrNotServed", err)
	}
	api.Serve(widget)
	if _, err := c.Mapping(ctx, "example.com/v1", "Widget"); err != nil {
		t.Fatalf("a kind that has appeared: %v", err)
	}
	for _, bad := range []string{"", "a/b/c", "..", "../v1"} {
		if _, err := c.Mapping(ctx, bad, "X"); err == nil || errors.Is(err, ErrNotServed) {
			t.Errorf("apiVersion %q gives %v, want an error that says so", bad, err)
		}
	}
}

// Discovery takes no context: its requests are bounded by the client.
func TestDiscoveryIsBounded(t *testing.T) {
	c := newClient(t, apitest.New(t))
	if got := c.Discovery().RESTClient().(*rest.RESTClient).Client.Timeout; got != requestTimeout {
		t.Errorf("a request may take %s, want %s", got, requestTimeout)
	}
	if got := c.rest.Client.Timeout; got != 0 {
		t.Errorf("a watch ends after %s", got)
	}
}

func TestMapperServesHelm(t *testing.T) {
	api := apitest.New(t)
	c := newClient(t, api)
	got, err := c.Mapper().RESTMapping(schema.GroupKind{Kind: "ConfigMap"}, "v1")
	if err != nil || got.Resource.Resource != "configmaps" || got.Scope.Name() != meta.RESTScopeNameNamespace {
		t.Fatalf("mapping is %+v, %v", got, err)
	}
	if _, err := c.Mapper().RESTMapping(schema.GroupKind{Group: "example.com", Kind: "Widget"}, "v1"); !meta.IsNoMatchError(err) {
		t.Fatalf("an unknown kind gives %v, want what Helm understands", err)
	}
	api.Serve(widget)
	if _, err := c.Mapper().RESTMapping(schema.GroupKind{Group: "example.com", Kind: "Widget"}, "v1"); err != nil {
		t.Fatal(err)
	}
}

func TestGetAndList(t *testing.T) {
	api := apitest.New(t)
	c := newClient(t, api)
	ctx := context.Background()
	for i := range PageSize + 3 {
		api.Put(configMap([]string{"b", "a"}[i%2], fmt.Sprintf("n%04d", i)))
	}
	all, err := c.List(ctx, "v1", "ConfigMap", nil, "", "")
	if err != nil || len(all) != PageSize+3 {
		t.Fatalf("%d objects, %v", len(all), err)
	}
	if n := api.Count("list configmaps"); n != 2 {
		t.Errorf("%d requests, want two pages", n)
	}
	if first := effect.RefOf(all[0]); first.Namespace != "a" || first.Name != "n0001" || first.Kind != "ConfigMap" || first.APIVersion != "v1" {
		t.Errorf("first is %+v: want sorted, with kind and apiVersion", first)
	}
	some, err := c.List(ctx, "v1", "ConfigMap", []string{"b", "b", "none"}, "", "metadata.name=n0000")
	if err != nil || len(some) != 1 {
		t.Errorf("%d objects, %v, want 1", len(some), err)
	}
	obj, err := c.Get(ctx, effect.Ref{APIVersion: "v1", Kind: "ConfigMap", Namespace: "b", Name: "n0000"})
	if err != nil || obj == nil {
		t.Errorf("get: %v, %v", obj, err)
	}
	obj, err = c.Get(ctx, effect.Ref{APIVersion: "v1", Kind: "ConfigMap", Namespace: "b", Name: "none"})
	if err != nil || obj != nil {
		t.Errorf("get of what is not there: %v, %v, want nil, nil", obj, err)
	}
	for name, ref := range map[string]effect.Ref{
		"no name":      {APIVersion: "v1", Kind: "ConfigMap", Namespace: "b"},
		"no namespace": {APIVersion: "v1", Kind: "ConfigMap", Name: "x"},
		"a path":       {APIVersion: "v1", Kind: "ConfigMap", Namespace: "b", Name: "../../nodes"},
	} {
		if _, err := c.Get(ctx, ref); err == nil {
			t.Errorf("%s: no error", name)
		}
	}
}

func TestWriteIsOneRequest(t *testing.T) {
	api := apitest.New(t)
	c := newClient(t, api)
	ctx := context.Background()
	ref := effect.Ref{APIVersion: "v1", Kind: "ConfigMap", Namespace: "a", Name: "x"}
	if _, err := c.Mapping(ctx, "v1", "ConfigMap"); err != nil {
		t.Fatal(err)
	}
	before := len(api.Requests())
	answer, err := c.Write(ctx, "", effect.Write{Kind: effect.WriteApply, Ref: ref, Object: configMap("a", "x"), Force: true})
	if err != nil || effect.RefOf(answer).Name != "x" {
		t.Fatalf("apply: %v, %v", answer, err)
	}
	del := effect.Write{Kind: effect.WriteDelete, Ref: ref, Propagation: "background"}
	if answer, err := c.Write(ctx, "", del); err != nil || answer != nil {
		t.Fatalf("delete: %v, %v", answer, err)
	}
	if answer, err := c.Write(ctx, "", del); err != nil || answer != nil {
		t.Fatalf("delete of what is gone: %v, %v", answer, err)
	}
	if diff := cmp.Diff([]string{"patch configmaps", "delete configmaps", "delete configmaps"}, api.Requests()[before:]); diff != "" {
		t.Errorf("requests (-want +got):\n%s", diff)
	}
	api.Deny("patch configmaps", 403)
	_, err = c.Write(ctx, "", effect.Write{Kind: effect.WriteApply, Ref: ref, Object: configMap("a", "x")})
	if want := `not allowed to patch configmaps in namespace a: give Starling's ServiceAccount this right (apiGroups: [""], resources: ["configmaps"], verbs: ["patch"]; it acts as system:serviceaccount:starling:starling)`; err == nil || err.Error() != want {
		t.Errorf("forbidden is\n%v, want\n%s", err, want)
	}
	if !apierrors.IsForbidden(err) {
		t.Error("the status error cannot be found in it")
	}
	if !unreadable(err) {
		t.Error("what is forbidden counts as readable")
	}
	_, err = c.Write(ctx, "", effect.Write{Kind: effect.WriteApply, Ref: effect.Ref{APIVersion: "example.com/v1", Kind: "Widget", Name: "x", Namespace: "a"}})
	if !errors.Is(err, ErrNotServed) || !unreadable(err) {
		t.Errorf("an unknown kind gives %v", err)
	}
	if unreadable(&Error{err: errors.New("down")}) {
		t.Error("a server that is down counts as one that forbids")
	}
}

// unreadable is how a hook's default= tells errors apart.
func unreadable(err error) bool {
	var kind interface{ Unreadable() bool }
	return errors.As(err, &kind) && kind.Unreadable()
}

func TestErrorsDoNotQuoteTheObject(t *testing.T) {
	tests := []struct {
		name, kind, reason, message string
		code                        int
		causes                      []any
		want                        string
	}{
		{
			name: "invalid", kind: "ConfigMap", code: 422, reason: "Invalid", message: `x is invalid: "hunter2"`,
			causes: []any{map[string]any{"reason": "FieldValueInvalid", "field": "data[a]", "message": `Invalid value: "hunter2: x": must be short`}},
			want:   "cannot apply ConfigMap a/x: data[a]: invalid value: must be short",
		},
		{
			name: "invalid map", kind: "ConfigMap", code: 422, reason: "Invalid",
			causes: []any{map[string]any{"reason": "FieldValueInvalid", "field": "data", "message": `Invalid value: {"a":"hunter2: x"}: must be short`}},
			want:   "cannot apply ConfigMap a/x: data: invalid value: must be short",
		},
		{
			name: "secret", kind: "Secret", code: 422, reason: "Invalid",
			causes: []any{map[string]any{"reason": "FieldValueInvalid", "field": "data[a]", "message": `Odd value: hunter2: must be short`}},
			want:   "cannot apply Secret a/x: data[a]: invalid",
		},
		{
			name: "typed patch", kind: "Secret", code: 500, reason: "InternalError",
			message: "failed to create typed patch object (a/x; /v1, Kind=Secret): .data.pass: expected string, got &value.valueUnstructured{hunter2}",
			want:    "cannot apply Secret a/x: data.pass must be a text, not another type: write str(x)",
		},
		{
			name: "typed patch of no secret", kind: "ConfigMap", code: 500, reason: "InternalError",
			message: "failed to create typed patch object: .data.pass: expected string, got &value.valueUnstructured{hunter2}",
			want:    "cannot apply ConfigMap a/x: data.pass must be a text, not another type: write str(x)",
		},
		{
			name: "unknown field", kind: "ConfigMap", code: 500, reason: "InternalError",
			message: "failed to create typed patch object (a/x; /v1, Kind=ConfigMap): .metadata.ownerReferences[uid=\"a\"].contoller: field not declared in schema",
			want:    `cannot apply ConfigMap a/x: the kind has no field metadata.ownerReferences[uid="a"].contoller (did you mean controller?)`,
		},
		{
			name: "conflict", kind: "ConfigMap", code: 409, reason: "Conflict", message: "Apply failed",
			causes: []any{map[string]any{"reason": "FieldManagerConflict", "field": ".data.a", "message": `conflict with "helm" using v1`}},
			want:   "cannot apply ConfigMap a/x: other managers own fields of it (.data.a: helm): use force=True to take them over, or leave these fields out",
		},
		{
			name: "rights of others", kind: "ConfigMap", code: 403, reason: "Forbidden",
			message: `rolebindings.rbac.authorization.k8s.io "x" is forbidden: user "system:serviceaccount:s:s" (groups=["a"]) is attempting to grant RBAC permissions not currently held:` + "\n" + `{APIGroups:[""], Resources:["pods"], Verbs:["get"]}`,
			want:    `cannot apply ConfigMap a/x: it gives rights that Starling lacks, and nobody may give those: give Starling's ServiceAccount the verb bind on the role (resources: ["clusterroles"] or ["roles"], verbs: ["bind"], apiGroups: ["rbac.authorization.k8s.io"]; it acts as system:serviceaccount:s:s), or what it lacks: {APIGroups:[""], Resources:["pods"], Verbs:["get"]}`,
		},
		{
			name: "namespace", kind: "ConfigMap", code: 404, reason: "NotFound", message: `namespaces "a" not found`,
			want: `cannot apply ConfigMap a/x: namespaces "a" not found`,
		},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			api := apitest.New(t)
			server := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				if r.Method != http.MethodPatch {
					api.ServeHTTP(w, r)
					return
				}
				apitest.Status(w, test.code, test.reason, test.message, map[string]any{"name": "a", "causes": test.causes})
			})
			c := newClientFor(t, server)
			_, err := c.Write(context.Background(), "", effect.Write{Kind: effect.WriteApply,
				Ref: effect.Ref{APIVersion: "v1", Kind: test.kind, Namespace: "a", Name: "x"}, Object: configMap("a", "x")})
			if err == nil || err.Error() != test.want {
				t.Errorf("error is\n%v, want\n%s", err, test.want)
			}
		})
	}
}

// newClientFor makes a client whose requests go to a handler.
func newClientFor(t *testing.T, h http.Handler) *Client {
	t.Helper()
	c, err := New(Options{Config: &rest.Config{Host: "http://cluster.test", Transport: handlerTransport{h}}, Log: zerolog.Nop()})
	if err != nil {
		t.Fatal(err)
	}
	return c
}

func TestFence(t *testing.T) {
	api := apitest.New(t)
	c := newClient(t, api)
	ctx := context.Background()
	w := effect.Write{Kind: effect.WriteApply, Ref: effect.Ref{APIVersion: "v1", Kind: "ConfigMap", Namespace: "a", Name: "x"}, Object: configMap("a", "x")}

	arrived, goOn := make(chan struct{}), make(chan struct{})
	api.OnRequest(func(r *http.Request) {
		if r.Method == http.MethodPatch {
			close(arrived)
			<-goOn
		}
	})
	written := make(chan error)
	go func() {
		_, err := c.Write(ctx, "", w)
		written <- err
	}()
	<-arrived
	ended, cancel := context.WithCancel(ctx)
	cancel()
	if err := c.Fence(ended); !errors.Is(err, context.Canceled) {
		t.Errorf("the fence does not wait for the write under way: %v", err)
	}
	close(goOn)
	if err := <-written; err != nil {
		t.Errorf("the write under way: %v", err)
	}
	if err := c.Fence(ctx); err != nil {
		t.Errorf("fence: %v", err)
	}
	if _, err := c.Write(ctx, "", w); !errors.Is(err, ErrFenced) || !strings.HasPrefix(err.Error(), "cannot apply ConfigMap a/x: starling has lost the lease") {
		t.Errorf("a write after the fence: %v", err)
	}
	if _, err := c.List(ctx, "v1", "ConfigMap", nil, "", ""); err != nil {
		t.Errorf("reads go on, but: %v", err)
	}
	if n := api.Count("patch configmaps"); n != 1 {
		t.Errorf("%d writes reached the server, want 1", n)
	}
}

// A stream that is compressed holds 40 KiB for its window, also when nothing comes.
func TestWatchesAskForNoCompression(t *testing.T) {
	var asked string
	c := newClientFor(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { asked = r.Header.Get("Accept-Encoding") }))
	body, err := c.Watch(t.Context(), Mapping{GVR: schema.GroupVersionResource{Version: "v1", Resource: "configmaps"}, Kind: "ConfigMap", Namespaced: true}, "", metav1.ListOptions{})
	if err != nil {
		t.Fatal(err)
	}
	body.Close()
	if asked != "identity" {
		t.Errorf("asks for %q", asked)
	}
}

// A client in a simulated cluster has no limit: nothing is waited for there, and a limit costs time.
func TestNoLimitOfRequests(t *testing.T) {
	for qps, waits := range map[float32]bool{0: false, 0.001: true, -1: false} {
		c, err := New(Options{Config: &rest.Config{Host: "http://none"}, QPS: qps})
		if err != nil {
			t.Fatal(err)
		}
		c.config.RateLimiter.TryAccept()
		if got := !c.config.RateLimiter.TryAccept(); got != waits {
			t.Errorf("QPS %v: the second request waits: %v", qps, got)
		}
	}
}
