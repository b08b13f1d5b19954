package cluster

import (
	"context"
	"errors"
	"strings"

	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/restmapper"
)

// mapper answers what Helm asks for every object of every chart, kind and version
// to resource, from the client's own cache; a kind that is not there costs one
// small request. All other questions go to client-go's mapper.
type mapper struct {
	*restmapper.DeferredDiscoveryRESTMapper
	client *Client
}

// RESTMapping returns the resource of a kind. Without versions client-go's mapper
// picks the preferred one.
func (m *mapper) RESTMapping(gk schema.GroupKind, versions ...string) (*meta.RESTMapping, error) {
	given := false
	for _, version := range versions {
		if version == "" {
			continue
		}
		given = true
		gvk := gk.WithVersion(version)
		ctx, cancel := context.WithTimeout(context.Background(), requestTimeout)
		found, err := m.client.Mapping(ctx, gvk.GroupVersion().String(), gk.Kind)
		cancel()
		switch {
		case errors.Is(err, ErrNotServed):
			continue
		case err != nil:
			return nil, err
		}
		scope := meta.RESTScopeRoot
		if found.Namespaced {
			scope = meta.RESTScopeNamespace
		}
		return &meta.RESTMapping{Resource: found.GVR, GroupVersionKind: gvk, Scope: scope}, nil
	}
	if given {
		for _, version := range versions {
			if list := m.list(gk.WithVersion(version)); list != nil {
				return list, nil
			}
		}
		return nil, &meta.NoKindMatchError{GroupKind: gk, SearchedVersions: versions}
	}
	return m.DeferredDiscoveryRESTMapper.RESTMapping(gk)
}

// list returns the mapping of a list of objects, "List" or "ConfigMapList", which charts
// may render: Helm looks it up before it takes the objects out, and it is nowhere served.
func (m *mapper) list(gvk schema.GroupVersionKind) *meta.RESTMapping {
	of, is := strings.CutSuffix(gvk.Kind, "List")
	if !is {
		return nil
	}
	if of != "" {
		ctx, cancel := context.WithTimeout(context.Background(), requestTimeout)
		defer cancel()
		if _, err := m.client.Mapping(ctx, gvk.GroupVersion().String(), of); err != nil {
			return nil
		}
	}
	plural, _ := meta.UnsafeGuessKindToResource(gvk)
	return &meta.RESTMapping{Resource: plural, GroupVersionKind: gvk, Scope: meta.RESTScopeRoot}
}

// Reset forgets which kinds there are.
func (m *mapper) Reset() { m.client.Refresh() }
