package cluster

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"sync"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// ErrNotServed says that the API server serves no such kind (any more, or yet).
// Find it with errors.Is.
var ErrNotServed error = notServedError{}

type notServedError struct{}

// Error says so.
func (notServedError) Error() string { return "the API server does not serve this kind" }

// Unreadable is for readers of hooks: no object of the kind can be read.
func (notServedError) Unreadable() bool { return true }

// errNoSubresource says that a kind is served, but not the subresource.
var errNoSubresource = errors.New("the kind has no such subresource")

// Mapping says where the objects of a kind are.
type Mapping struct {
	// GVR is the resource, as in the URL: {apps v1 deployments}.
	GVR schema.GroupVersionResource
	// Kind is the kind, as in the objects: Deployment.
	Kind string
	// Namespaced is false for cluster-scoped kinds.
	Namespaced bool
	// Metadata has lists and watches bring the metadata of objects alone.
	Metadata bool
}

// APIVersion returns "apps/v1", or "v1" for the core group.
func (m Mapping) APIVersion() string { return m.GVR.GroupVersion().String() }

// groupVersion is what we know of one group-version. Its mutex is held while the
// API server is asked, so that many who miss at once ask once.
type groupVersion struct {
	asking  sync.Mutex
	reports reports // while asking is held

	mu    sync.Mutex
	kinds map[string]Mapping
}

func (g *groupVersion) get(kind string) (Mapping, bool) {
	g.mu.Lock()
	defer g.mu.Unlock()
	m, ok := g.kinds[kind]
	return m, ok
}

func (c *Client) group(apiVersion string) *groupVersion {
	c.mu.Lock()
	defer c.mu.Unlock()
	g := c.groups[apiVersion]
	if g == nil {
		g = &groupVersion{}
		c.groups[apiVersion] = g
	}
	return g
}

// Mapping returns where the objects of a kind are. A kind that was found once is not
// asked again; a miss asks for that one group-version, never for all of
// discovery. errors.Is(err, ErrNotServed) holds when the API server serves no
// such kind; every other error means that it could not say.
func (c *Client) Mapping(ctx context.Context, apiVersion, kind string) (Mapping, error) {
	g := c.group(apiVersion)
	if m, ok := g.get(kind); ok {
		return m, nil
	}
	g.asking.Lock()
	defer g.asking.Unlock()
	if m, ok := g.get(kind); ok {
		return m, nil
	}
	kinds, err := c.ask(ctx, g, apiVersion)
	if err != nil {
		return Mapping{}, err
	}
	m, ok := kinds[kind]
	if !ok {
		return Mapping{}, notServed(apiVersion, kind)
	}
	return m, nil
}

// Served asks the API server now which kinds it serves in a group-version, by
// kind, and remembers the answer for [Client.Mapping]. A group-version that is
// not served at all gives an empty map and no error.
func (c *Client) Served(ctx context.Context, apiVersion string) (map[string]Mapping, error) {
	g := c.group(apiVersion)
	g.asking.Lock()
	defer g.asking.Unlock()
	return c.ask(ctx, g, apiVersion)
}

// ask is called with g.asking held.
func (c *Client) ask(ctx context.Context, g *groupVersion, apiVersion string) (map[string]Mapping, error) {
	gv, err := schema.ParseGroupVersion(apiVersion)
	if err != nil || gv.Version == "" || !validSegment(gv.Group) || !validSegment(gv.Version) {
		return nil, fmt.Errorf("%q is no apiVersion: write \"v1\" or \"group/version\"", apiVersion)
	}
	body, err := c.do(ctx, c.rest.Verb(http.MethodGet).AbsPath(apiPath(gv)...))
	kinds := map[string]Mapping{}
	switch {
	case apierrors.IsNotFound(err):
	case err != nil:
		return nil, c.explain(err, action{word: "discover", what: "the kinds of " + apiVersion})
	default:
		var list metav1.APIResourceList
		if err := json.Unmarshal(body, &list); err != nil {
			return nil, fmt.Errorf("the API server's answer about %s cannot be read: it is no JSON of a resource list", apiVersion)
		}
		for _, r := range list.APIResources {
			if strings.Contains(r.Name, "/") || kinds[r.Kind].Kind != "" {
				continue
			}
			kinds[r.Kind] = Mapping{GVR: gv.WithResource(r.Name), Kind: r.Kind, Namespaced: r.Namespaced}
		}
	}
	g.mu.Lock()
	old := g.kinds
	g.kinds = kinds
	g.mu.Unlock()
	// Discovery that was read before a kind appeared must not outlive that: the
	// charts' capabilities come from it.
	for kind := range kinds {
		if _, known := old[kind]; old != nil && !known {
			c.discovery.forget()
			c.mapper.DeferredDiscoveryRESTMapper.Reset()
			break
		}
	}
	return kinds, nil
}

// forgetKind takes a kind out of the cache: its URL has just answered 404.
func (c *Client) forgetKind(m Mapping) {
	g := c.group(m.APIVersion())
	g.mu.Lock()
	defer g.mu.Unlock()
	m.Metadata = false // as it was found
	if g.kinds[m.Kind] == m {
		kinds := make(map[string]Mapping, len(g.kinds))
		for k, v := range g.kinds {
			if k != m.Kind {
				kinds[k] = v
			}
		}
		g.kinds = kinds
	}
}

func notServed(apiVersion, kind string) error {
	return fmt.Errorf("%s %s: %w: install its CRD, or correct apiVersion and kind", apiVersion, kind, ErrNotServed)
}

// apiPath returns the path of a group-version, in segments.
func apiPath(gv schema.GroupVersion) []string {
	if gv.Group == "" {
		return []string{"/api", gv.Version}
	}
	return []string{"/apis", gv.Group, gv.Version}
}
