package sim

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/discovery"

	"github.com/starling-operator/starling/runtime/cluster"
	"github.com/starling-operator/starling/runtime/effect"
	"github.com/starling-operator/starling/runtime/sim/store"
)

// Live is a real cluster as the origin of worlds. It only reads: discovery, and what the
// world asks for, until ctx ends.
func Live(ctx context.Context, client *cluster.Client) store.Origin { return live{ctx, client} }

type live struct {
	ctx    context.Context
	client *cluster.Client
}

func (l live) Kinds() ([]store.Kind, error) {
	_, lists, err := l.client.Discovery().ServerGroupsAndResources()
	if failed := new(discovery.ErrGroupDiscoveryFailed); err != nil && !errors.As(err, &failed) {
		return nil, fmt.Errorf("the kinds of the cluster: %w", err)
	}
	var out []store.Kind
	for _, list := range lists {
		gv, err := schema.ParseGroupVersion(list.GroupVersion)
		if err != nil {
			continue
		}
		of := map[string]*store.Kind{}
		var plurals []string
		for _, r := range list.APIResources {
			plural, sub, nested := strings.Cut(r.Name, "/")
			switch k := of[plural]; {
			case !nested && !slices.Contains(r.Verbs, "list"):
			case !nested:
				of[plural] = &store.Kind{
					Group: gv.Group, Version: gv.Version, Kind: r.Kind, Plural: r.Name, Singular: r.SingularName,
					Namespaced: r.Namespaced, ShortNames: r.ShortNames, Categories: r.Categories,
				}
				plurals = append(plurals, plural)
			case k == nil:
			case sub == "status":
				k.Status = true
			case sub == "scale":
				k.Scale = true
			}
		}
		for _, plural := range plurals {
			out = append(out, *of[plural])
		}
	}
	return out, nil
}

func (l live) Get(k store.Kind, namespace, name string) (map[string]any, error) {
	obj, err := l.client.Get(l.ctx, effect.Ref{APIVersion: k.APIVersion(), Kind: k.Kind, Namespace: namespace, Name: name})
	if errors.Is(err, cluster.ErrNotServed) {
		return nil, nil
	}
	return obj, err
}

func (l live) List(k store.Kind, namespace string, sel store.Selection) ([]map[string]any, error) {
	var namespaces []string
	if namespace != "" {
		namespaces = []string{namespace}
	}
	found, err := l.client.List(l.ctx, k.APIVersion(), k.Kind, namespaces, sel.Labels, sel.Fields)
	if errors.Is(err, cluster.ErrNotServed) {
		return nil, nil
	}
	return found, err
}
