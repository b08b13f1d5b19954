package cluster

import (
	"context"
	"errors"
	"slices"

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
	versions = slices.DeleteFunc(slices.Clone(versions), func(version string) bool { return version == "" })
	for _, version := range versions {
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
	if len(versions) > 0 {
		return nil, &meta.NoKindMatchError{GroupKind: gk, SearchedVersions: versions}
	}
	return m.DeferredDiscoveryRESTMapper.RESTMapping(gk)
}

// Reset forgets which kinds there are.
func (m *mapper) Reset() { m.client.Refresh() }
