// Package apitest is a small API server for tests: lists with pages, watches with
// bookmarks, streamed lists, writes (server-side apply without ownership), and the
// faults that a real one shows. Objects have increasing resourceVersions across kinds.
package apitest

import (
	"encoding/json"
	"fmt"
	"maps"
	"net/http"
	"net/http/httptest"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"

	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/client-go/rest"
)

// Kind is one kind that a [Server] serves.
type Kind struct {
	APIVersion, Kind, Resource string
	Namespaced                 bool
}

// change is one entry of the server's history.
type change struct {
	version  int
	typ      string
	resource string // "v1/configmaps"
	object   map[string]any
}

// Server is a fake API server. Its methods are safe for concurrent use.
type Server struct {
	http *httptest.Server

	mu       sync.Mutex
	version  int
	oldest   int // watches from before are 410 Gone
	kinds    []Kind
	objects  map[string]map[string]any // by URL path
	history  []change
	changed  chan struct{} // closed at each change
	epoch    int           // watches of an older one are cut
	denied   map[string]int
	deaf     bool
	noStream bool
	hook     func(*http.Request)
	requests []string
}

// New starts a server that serves ConfigMaps, Secrets, and Nodes. The test stops
// it.
func New(t testing.TB) *Server {
	t.Helper()
	s := &Server{version: 100, objects: map[string]map[string]any{}, changed: make(chan struct{}), denied: map[string]int{}}
	s.kinds = []Kind{
		{"v1", "ConfigMap", "configmaps", true},
		{"v1", "Secret", "secrets", true},
		{"v1", "Node", "nodes", false},
	}
	s.http = httptest.NewServer(s)
	t.Cleanup(s.Stop)
	return s
}

// Stop stops the server: connections are cut, and new ones refused.
func (s *Server) Stop() {
	s.Cut()
	s.http.CloseClientConnections()
	s.http.Close()
}

// Snapshot returns what fn makes of all objects of a kind, sorted by namespace and
// name.
func (s *Server) Snapshot(apiVersion, kind string, fn func(map[string]any) any) []any {
	s.mu.Lock()
	defer s.mu.Unlock()
	k := s.kindOf(map[string]any{"apiVersion": apiVersion, "kind": kind})
	out := []any{}
	for _, obj := range s.found(k, selection{labels: labels.Everything(), fields: fields.Everything()}) {
		out = append(out, fn(obj))
	}
	return out
}

// Config returns how to reach the server.
func (s *Server) Config() *rest.Config { return &rest.Config{Host: s.http.URL} }

// Serve adds a kind.
func (s *Server) Serve(k Kind) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.kinds = append(s.kinds, k)
}

// Unserve takes a kind away with all its objects, as a deleted CRD does.
func (s *Server) Unserve(k Kind) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.kinds = slices.DeleteFunc(s.kinds, func(o Kind) bool { return o == k })
	for path := range s.objects {
		if strings.Contains(path, "/"+k.Resource+"/") {
			delete(s.objects, path)
		}
	}
	s.cutLocked()
}

// Put creates or changes an object and returns it as stored.
func (s *Server) Put(obj map[string]any) map[string]any {
	s.mu.Lock()
	defer s.mu.Unlock()
	k := s.kindOf(obj)
	meta := obj["metadata"].(map[string]any)
	namespace, _ := meta["namespace"].(string)
	return s.putLocked(k, objectPath(k, namespace, meta["name"].(string)), obj)
}

func (s *Server) putLocked(k Kind, path string, obj map[string]any) map[string]any {
	stored := maps.Clone(obj)
	meta := maps.Clone(obj["metadata"].(map[string]any))
	stored["metadata"] = meta
	typ := "ADDED"
	if s.objects[path] != nil {
		typ = "MODIFIED"
	}
	s.version++
	if old := s.objects[path]; old != nil {
		meta["uid"] = old["metadata"].(map[string]any)["uid"]
	} else {
		meta["uid"] = fmt.Sprintf("uid-%d", s.version)
	}
	meta["resourceVersion"] = strconv.Itoa(s.version)
	s.objects[path] = stored
	s.recordLocked(typ, k, stored)
	return stored
}

// Remove deletes an object.
func (s *Server) Remove(apiVersion, kind, namespace, name string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	k := s.kindOf(map[string]any{"apiVersion": apiVersion, "kind": kind})
	s.removeLocked(k, objectPath(k, namespace, name))
}

func (s *Server) removeLocked(k Kind, path string) {
	obj := s.objects[path]
	if obj == nil {
		return
	}
	delete(s.objects, path)
	s.version++
	last := maps.Clone(obj)
	last["metadata"] = maps.Clone(obj["metadata"].(map[string]any))
	last["metadata"].(map[string]any)["resourceVersion"] = strconv.Itoa(s.version)
	s.recordLocked("DELETED", k, last)
}

func (s *Server) recordLocked(typ string, k Kind, obj map[string]any) {
	s.history = append(s.history, change{s.version, typ, k.APIVersion + "/" + k.Resource, obj})
	close(s.changed)
	s.changed = make(chan struct{})
}

// Cut ends all watches.
func (s *Server) Cut() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.cutLocked()
}

func (s *Server) cutLocked() {
	s.epoch++
	close(s.changed)
	s.changed = make(chan struct{})
}

// Expire forgets the history: watches are cut and cannot go on where they were.
func (s *Server) Expire() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.version++
	s.oldest = s.version
	s.cutLocked()
}

// Deafen makes watches stay open and say nothing; false ends that for new ones.
func (s *Server) Deafen(on bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.deaf = on
}

// NoStreaming refuses streamed lists, as older servers do.
func (s *Server) NoStreaming() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.noStream = true
}

// Deny answers a verb on a resource ("list configmaps") with a status code until
// the code is 0.
func (s *Server) Deny(what string, code int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.denied[what] = code
	s.cutLocked()
}

// OnRequest calls fn at the beginning of each request.
func (s *Server) OnRequest(fn func(*http.Request)) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.hook = fn
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

// Object returns a stored object, or nil.
func (s *Server) Object(apiVersion, kind, namespace, name string) map[string]any {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.objects[objectPath(s.kindOf(map[string]any{"apiVersion": apiVersion, "kind": kind}), namespace, name)]
}

func (s *Server) kindOf(obj map[string]any) Kind {
	for _, k := range s.kinds {
		if k.APIVersion == obj["apiVersion"] && k.Kind == obj["kind"] {
			return k
		}
	}
	panic(fmt.Sprintf("the test server does not serve %v %v", obj["apiVersion"], obj["kind"]))
}

func groupPath(apiVersion string) string {
	if strings.Contains(apiVersion, "/") {
		return "/apis/" + apiVersion
	}
	return "/api/" + apiVersion
}

func objectPath(k Kind, namespace, name string) string {
	path := groupPath(k.APIVersion)
	if k.Namespaced {
		path += "/namespaces/" + namespace
	}
	return path + "/" + k.Resource + "/" + name
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

// ServeHTTP implements http.Handler.
func (s *Server) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	s.mu.Lock()
	hook := s.hook
	s.mu.Unlock()
	if hook != nil {
		hook(r)
	}
	for _, k := range s.all() {
		base := groupPath(k.APIVersion)
		if r.URL.Path == base {
			s.discover(w, k.APIVersion)
			return
		}
		rest, ok := strings.CutPrefix(r.URL.Path, base+"/")
		if !ok {
			continue
		}
		namespace := ""
		parts := strings.Split(rest, "/")
		if len(parts) >= 3 && parts[0] == "namespaces" {
			namespace, parts = parts[1], parts[2:]
		}
		if parts[0] != k.Resource {
			continue
		}
		if len(parts) == 1 {
			s.collection(w, r, k, namespace)
			return
		}
		s.single(w, r, k, namespace, parts[1:])
		return
	}
	s.note("miss " + r.URL.Path)
	http.Error(w, "404 page not found", http.StatusNotFound)
}

func (s *Server) all() []Kind {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.kinds)
}

func (s *Server) note(what string) int {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.requests = append(s.requests, what)
	return s.denied[what]
}

func (s *Server) discover(w http.ResponseWriter, apiVersion string) {
	s.note("discover " + apiVersion)
	list := []any{}
	for _, k := range s.all() {
		if k.APIVersion == apiVersion {
			list = append(list, map[string]any{"name": k.Resource, "kind": k.Kind, "namespaced": k.Namespaced, "verbs": []string{"get"}})
		}
	}
	reply(w, map[string]any{"kind": "APIResourceList", "groupVersion": apiVersion, "resources": list})
}

func reply(w http.ResponseWriter, v any) {
	w.Header().Set("Content-Type", "application/json")
	_ = json.NewEncoder(w).Encode(v)
}

// refuse answers as the Deny of this verb says.
func refuse(w http.ResponseWriter, k Kind, verb, namespace string, code int) {
	switch code {
	case http.StatusForbidden:
		Status(w, code, "Forbidden", fmt.Sprintf("%s is forbidden: User \"system:serviceaccount:starling:starling\" cannot %s resource %q in API group \"\" in the namespace %q", k.Resource, verb, k.Resource, namespace),
			map[string]any{"kind": k.Resource})
	case http.StatusNotFound: // of a path that the server does not know
		http.Error(w, "404 page not found", code)
	case http.StatusGone:
		Status(w, code, "Expired", "too old resource version", nil)
	case http.StatusTooManyRequests:
		Status(w, code, "TooManyRequests", "not now", nil)
	default:
		Status(w, code, "InternalError", "it broke", nil)
	}
}
