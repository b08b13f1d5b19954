// Package apitest puts the simulated API server on a socket for tests, and gives it the
// faults of a real one: watches that end, refusals, a history that is
// forgotten, kinds that go away. Nothing collects garbage: a test sees what was written.
package apitest

import (
	"context"
	"encoding/json"
	"maps"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/rest"

	simrest "github.com/starling-operator/starling/runtime/sim/rest"
	"github.com/starling-operator/starling/runtime/sim/store"
)

// Kind is one kind that a [Server] serves.
type Kind struct {
	APIVersion, Kind, Resource string
	Namespaced                 bool
}

func (k Kind) gvr() schema.GroupVersionResource {
	return schema.FromAPIVersionAndKind(k.APIVersion, k.Kind).GroupVersion().WithResource(k.Resource)
}

// Server is an API server with faults. Its methods are safe for concurrent use.
type Server struct {
	t     testing.TB
	http  *httptest.Server
	store *store.Store
	api   *simrest.Server
	up    context.Context
	stop  func()

	mu       sync.Mutex
	cut      context.Context // of watches
	end      func()
	denied   map[string]int
	unserved map[schema.GroupVersionResource]bool
	noStream bool
	hook     func(*http.Request)
	requests []string
}

var builtins = sync.OnceValue(store.NewBuiltins)

// New starts a server that serves the built-in kinds of Kubernetes. The test stops it.
func New(t testing.TB) *Server {
	t.Helper()
	s := &Server{
		t: t, store: store.New(store.Options{Builtins: builtins(), MakeNamespaces: true}),
		denied: map[string]int{}, unserved: map[schema.GroupVersionResource]bool{},
	}
	s.up, s.stop = context.WithCancel(context.Background())
	s.cut, s.end = context.WithCancel(s.up)
	s.api = simrest.New(simrest.Options{Store: s.store})
	s.http = httptest.NewServer(s)
	t.Cleanup(s.Stop)
	return s
}

// Stop stops the server: connections are cut, and new ones refused. A watch that comes meanwhile ends, too.
func (s *Server) Stop() {
	s.stop()
	s.http.CloseClientConnections()
	s.http.Close()
}

// Config returns how to reach the server.
func (s *Server) Config() *rest.Config { return &rest.Config{Host: s.http.URL} }

// Serve adds a kind.
func (s *Server) Serve(k Kind) {
	gv := k.gvr().GroupVersion()
	s.store.Serve(store.Kind{Group: gv.Group, Version: gv.Version, Kind: k.Kind, Plural: k.Resource, Namespaced: k.Namespaced})
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.unserved[k.gvr()] { // what it had is gone, and nobody has seen that
		if _, err := s.store.DeleteCollection(store.Target{GVR: k.gvr()}, store.Selection{}, store.DeleteOptions{}); err != nil {
			s.t.Error(err)
		}
		s.store.Forget()
		delete(s.unserved, k.gvr())
	}
}

// Unserve takes a kind away with all its objects, as a deleted CRD does.
func (s *Server) Unserve(k Kind) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.unserved[k.gvr()] = true
	s.cutLocked()
}

// Put creates or changes an object and returns it as stored.
func (s *Server) Put(obj map[string]any) map[string]any {
	s.t.Helper()
	t := s.target(obj["apiVersion"], obj["kind"], obj)
	obj = maps.Clone(obj)
	meta := maps.Clone(obj["metadata"].(map[string]any))
	obj["metadata"] = meta
	write := s.store.Create
	delete(meta, "resourceVersion")
	if old, err := s.store.Get(t); err == nil {
		write = s.store.Update
		meta["resourceVersion"] = old["metadata"].(map[string]any)["resourceVersion"]
	}
	res, err := write(t, obj, store.WriteOptions{Manager: "test"})
	if err != nil {
		s.t.Errorf("the test server refuses %v: %v", t, err)
	}
	return res.Object
}

// Remove deletes an object, if it is there.
func (s *Server) Remove(apiVersion, kind, namespace, name string) {
	s.t.Helper()
	t := s.target(apiVersion, kind, map[string]any{"metadata": map[string]any{"namespace": namespace, "name": name}})
	if _, err := s.store.Delete(t, store.DeleteOptions{}); err != nil && !apierrors.IsNotFound(err) {
		s.t.Error(err)
	}
}

// Object returns a stored object, or nil.
func (s *Server) Object(apiVersion, kind, namespace, name string) map[string]any {
	s.t.Helper()
	obj, err := s.store.Get(s.target(apiVersion, kind, map[string]any{"metadata": map[string]any{"namespace": namespace, "name": name}}))
	if err != nil {
		return nil
	}
	return obj
}

// Snapshot returns what fn makes of all objects of a kind, sorted by namespace and
// name.
func (s *Server) Snapshot(apiVersion, kind string, fn func(map[string]any) any) []any {
	s.t.Helper()
	list, err := s.store.List(s.target(apiVersion, kind, nil), store.ListOptions{})
	if err != nil {
		s.t.Error(err)
	}
	out := []any{}
	for _, obj := range list.Items {
		out = append(out, fn(obj))
	}
	return out
}

// target names an object, or all of its kind; injected errors of the store spare it.
func (s *Server) target(apiVersion, kind any, obj map[string]any) store.Target {
	s.t.Helper()
	k, found := s.store.KindOf(schema.FromAPIVersionAndKind(apiVersion.(string), kind.(string)))
	if !found {
		s.t.Fatalf("the test server does not serve %v %v", apiVersion, kind)
	}
	t := store.Target{GVR: k.GVR(), Spared: true}
	if meta, _ := obj["metadata"].(map[string]any); meta != nil {
		t.Namespace, _ = meta["namespace"].(string)
		t.Name, _ = meta["name"].(string)
	}
	return t
}

// Requests returns what was asked so far: "list configmaps", "watch nodes",
// "patch secrets", "discover v1".
func (s *Server) Requests() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.requests)
}

// Count says how often something was asked.
func (s *Server) Count(what string) int {
	n := 0
	for _, r := range s.Requests() {
		if r == what {
			n++
		}
	}
	return n
}

// Status writes an error as the API server does.
func Status(w http.ResponseWriter, code int, reason, message string, details map[string]any) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(code)
	_ = json.NewEncoder(w).Encode(map[string]any{
		"kind": "Status", "apiVersion": "v1", "status": "Failure", "code": code,
		"reason": reason, "message": message, "details": details,
	})
}

// asked is a request as [Server.Requests] names it.
type asked struct {
	verb, namespace string
	gvr             schema.GroupVersionResource
	subresource     string
}

func (a asked) String() string {
	what := a.verb + " " + a.gvr.Resource
	if a.subresource != "" {
		what += "/" + a.subresource
	}
	return what
}

// parse finds out what a request asks for.
func parse(r *http.Request) (a asked, ok bool) {
	parts := strings.Split(strings.Trim(r.URL.Path, "/"), "/")
	switch {
	case parts[0] == "api" && len(parts) > 1:
		a.gvr.Version, parts = parts[1], parts[2:]
	case parts[0] == "apis" && len(parts) > 2:
		a.gvr.Group, a.gvr.Version, parts = parts[1], parts[2], parts[3:]
	default:
		return a, false
	}
	if len(parts) > 2 && parts[0] == "namespaces" {
		a.namespace, parts = parts[1], parts[2:]
	}
	a.verb = strings.ToLower(r.Method)
	switch len(parts) {
	case 0:
		a.verb, a.gvr.Resource = "discover", a.gvr.GroupVersion().String()
		return a, true
	case 1:
		switch {
		case r.Method == http.MethodPost:
			a.verb = "create"
		case r.URL.Query().Get("watch") != "":
			a.verb = "watch"
		case r.Method == http.MethodGet:
			a.verb = "list"
		}
	default:
		a.subresource = strings.Join(parts[2:], "/")
	}
	a.gvr.Resource = parts[0]
	return a, true
}
