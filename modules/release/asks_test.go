package release

import (
	"fmt"
	"io"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"k8s.io/client-go/discovery"
	"k8s.io/client-go/discovery/cached/memory"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/restmapper"

	"github.com/starling-operator/starling/builtins"
	"github.com/starling-operator/starling/modules/chart"
	"github.com/starling-operator/starling/runtime/effect"
)

// discoveryServer is an API server that answers discovery.
type discoveryServer struct {
	mu       sync.Mutex
	version  string
	groups   map[string]string // group → Current or Stale
	down     bool
	text     string // of ConfigMap a in namespace a; "": there is none
	requests []string
}

func (s *discoveryServer) set(change func()) {
	s.mu.Lock()
	defer s.mu.Unlock()
	change()
}

func (s *discoveryServer) RoundTrip(r *http.Request) (*http.Response, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	resp := &http.Response{StatusCode: http.StatusOK, Status: "200 OK", Proto: "HTTP/1.1", Header: http.Header{}, Request: r}
	body := ""
	const typ = "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList"
	switch {
	case s.down:
		resp.StatusCode, resp.Status = http.StatusServiceUnavailable, "503 Service Unavailable"
	case r.URL.Path == "/version":
		body = fmt.Sprintf(`{"major":"1","minor":"37","gitVersion":%q}`, s.version)
	case r.URL.Path == "/api":
		body = `{"kind":"APIGroupDiscoveryList","apiVersion":"apidiscovery.k8s.io/v2","items":[{"metadata":{"name":""},"versions":[{"version":"v1","freshness":"Current","resources":[{"resource":"configmaps","responseKind":{"group":"","version":"v1","kind":"ConfigMap"},"scope":"Namespaced","singularResource":"configmap","verbs":["get"]}]}]}]}`
		resp.Header.Set("Content-Type", typ)
	case r.URL.Path == "/apis":
		var items []string
		for group, fresh := range s.groups {
			items = append(items, fmt.Sprintf(`{"metadata":{"name":%q},"versions":[{"version":"v1","freshness":%q,"resources":[{"resource":"things","responseKind":{"group":%q,"version":"v1","kind":"Thing"},"scope":"Namespaced","singularResource":"thing","verbs":["get"]}]}]}`, group, fresh, group))
		}
		slices.Sort(items)
		body = `{"kind":"APIGroupDiscoveryList","apiVersion":"apidiscovery.k8s.io/v2","items":[` + strings.Join(items, ",") + `]}`
		resp.Header.Set("Content-Type", typ)
		tag := fmt.Sprintf("%q", chart.Digest(body))
		if resp.Header.Set("ETag", tag); r.Header.Get("If-None-Match") == tag {
			resp.StatusCode, resp.Status, body = http.StatusNotModified, "304 Not Modified", ""
		}
	case s.text == "":
		resp.StatusCode, resp.Status = http.StatusNotFound, "404 Not Found"
		body = `{"kind":"Status","apiVersion":"v1","status":"Failure","reason":"NotFound","code":404}`
		resp.Header.Set("Content-Type", "application/json")
	default:
		body = fmt.Sprintf(`{"kind":"ConfigMap","apiVersion":"v1","metadata":{"name":"a","namespace":"a"},"data":{"text":%q}}`, s.text)
		resp.Header.Set("Content-Type", "application/json")
	}
	s.requests = append(s.requests, fmt.Sprint(r.URL.Path, " ", resp.StatusCode))
	resp.Body = io.NopCloser(strings.NewReader(body))
	return resp, nil
}

func TestFollow(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &discoveryServer{version: "v1.37.1", groups: map[string]string{"apps": "Current", "away.org": "Current"}}
		config := &rest.Config{Host: "http://api", Transport: s, QPS: -1}
		cached := memory.NewMemCacheClient(discovery.NewDiscoveryClientForConfigOrDie(config))
		m, err := New(Options{Config: config, Discovery: cached, Mapper: restmapper.NewDeferredDiscoveryRESTMapper(cached)})
		if err != nil {
			t.Fatal(err)
		}
		var told []string
		go m.Follow(t.Context(), func(module string) { told = append(told, module) })
		want := func(what string, within time.Duration, modules ...string) {
			t.Helper()
			time.Sleep(within)
			synctest.Wait()
			if !slices.Equal(told, modules) {
				t.Errorf("%s: told of %q, want %q", what, told, modules)
			}
			told = nil
		}
		wantRequests := func(what string, requests ...string) {
			t.Helper()
			s.set(func() {
				if !slices.Equal(s.requests, requests) {
					t.Errorf("%s: %q, want %q", what, s.requests, requests)
				}
				s.requests = nil
			})
		}
		want("nobody asks", time.Hour)
		wantRequests("nobody asks")

		one := chart.Facts{Asks: true, Has: "example.org/v1/Thing"}
		for module, f := range map[string]chart.Facts{"one": one, "all": {Asks: true, All: true}, "none": {}} {
			if err := m.ask(Ref{Module: module, Name: module}, f); err != nil {
				t.Fatal(err)
			}
		}
		want("no change", time.Minute)
		s.set(func() { s.requests = nil })
		want("no change", 10*time.Second)
		wantRequests("no change", "/version 200", "/apis 304")
		s.set(func() { s.groups["example.com"] = "Current" })
		want("another kind", 10*time.Second, "all")
		s.set(func() { s.groups["example.org"] = "Current" })
		want("the kind", 10*time.Second, "all", "one")
		s.set(func() { s.down = true })
		want("the API server is away", time.Minute)
		s.set(func() { s.down = false })
		want("it is back", time.Minute)
		s.set(func() { s.groups["example.org"] = "Stale" })
		want("the server of the kind is away", time.Minute)
		if err := m.ask(Ref{Module: "one", Name: "one"}, one); err == nil || !strings.Contains(err.Error(), "example.org/v1") {
			t.Errorf("asked while it is away: %v", err)
		}
		s.set(func() { s.groups["example.org"] = "Current" })
		want("it is back", time.Minute, "one") // which has got an error meanwhile
		s.set(func() { delete(s.groups, "example.org") })
		want("the kind goes", 10*time.Second, "all", "one")
		s.set(func() { s.version = "v1.38.0" })
		want("another version", 10*time.Second, "all", "one")
		s.set(func() { s.groups["example.org"] = "Current" })
		m.ResetDiscovery()
		want("Starling has brought it", 0, "all", "one")
		s.set(func() { s.text = "one" })
		r := &reconcile{m: m, t: Target{Input: chart.Input{Module: "looks", Name: "looks", Lookup: []builtins.Grant{{APIVersion: "v1", Kind: "ConfigMap", Verbs: []string{"get"}, Namespaces: []string{"a"}}}}}}
		l := &lookups{m: m, target: r.t}
		if _, err := l.find(t.Context(), effect.Ref{APIVersion: "v1", Kind: "ConfigMap", Namespace: "a", Name: "a"}); err != nil {
			t.Fatal(err)
		}
		r.follow(rendering{answers: l.answers}, true)
		want("what was looked up is the same", 2*time.Minute)
		s.set(func() { s.text = "two" })
		want("it has changed", 70*time.Second, "looks")
		s.set(func() { s.down, s.text = true, "" })
		want("the API server is away", 2*time.Minute)
		s.set(func() { s.down = false })
		want("it is gone", 70*time.Second, "looks")
		r.follow(rendering{answers: l.answers}, false)
		want("the chart renders by chance", 2*time.Minute)
		m.Forget("all")
		m.Forget("one")
		want("they have gone", time.Minute)
		s.set(func() { s.requests = nil })
		want("they have gone", time.Hour)
		wantRequests("they have gone")
	})
}
