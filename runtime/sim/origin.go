package sim

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/version"
	"k8s.io/client-go/discovery"

	"github.com/starling-operator/starling/modules/helm"
	"github.com/starling-operator/starling/runtime/cluster"
	"github.com/starling-operator/starling/runtime/effect"
	"github.com/starling-operator/starling/runtime/sim/store"
)

// Live is a real cluster as the origin of worlds. It only reads: discovery, and what the
// world asks for, until ctx ends.
func Live(ctx context.Context, client *cluster.Client) store.Origin {
	return live{ctx, client, &early{}}
}

type live struct {
	ctx    context.Context
	client *cluster.Client
	early  *early
}

func (l live) Kinds() ([]store.Kind, error) {
	_, lists, err := l.client.Discovery().ServerGroupsAndResources()
	var unavailable store.Unavailable
	if failed := new(discovery.ErrGroupDiscoveryFailed); errors.As(err, &failed) {
		unavailable = store.Unavailable(failed.Groups)
	} else if err != nil {
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
	if len(unavailable) > 0 {
		return out, unavailable
	}
	return out, nil
}

// answered tells errors of an API server that answers from those of one that does not,
// or that wants to be left alone: with the latter, nothing more can be found out.
func answered(err error) error {
	status := apierrors.APIStatus(nil)
	if err == nil || errors.As(err, &status) && !apierrors.IsUnauthorized(err) && !apierrors.IsTooManyRequests(err) {
		return err
	}
	return &store.Lost{Err: err}
}

func (l live) Get(k store.Kind, namespace, name string) (map[string]any, error) {
	if a, is := l.early.take(store.Read{Kind: k, Namespace: namespace, Name: name}); is {
		return a.one, a.err
	}
	obj, err := l.client.Get(l.ctx, effect.Ref{APIVersion: k.APIVersion(), Kind: k.Kind, Namespace: namespace, Name: name})
	if errors.Is(err, cluster.ErrNotServed) {
		return nil, nil
	}
	return obj, answered(err)
}

func (l live) List(k store.Kind, namespace string, sel store.Selection) ([]map[string]any, error) {
	if a, is := l.early.take(store.Read{Kind: k, Namespace: namespace, Selection: sel}); is {
		return a.all, a.err
	}
	var namespaces []string
	if namespace != "" {
		namespaces = []string{namespace}
	}
	found, err := l.client.List(l.ctx, k.APIVersion(), k.Kind, namespaces, sel.Labels, sel.Fields)
	if errors.Is(err, cluster.ErrNotServed) {
		return nil, nil
	}
	return found, answered(err)
}

// Discovery is what the API server says that it serves.
func (l live) Discovery() discovery.CachedDiscoveryInterface { return l.client.Discovery() }

// discoverer is an origin whose API server says more of itself than its kinds.
type discoverer interface {
	Discovery() discovery.CachedDiscoveryInterface
}

// Fork makes a world that lies over this one: what happens there changes nothing here.
// It has no process yet.
func (w *World) Fork() (*World, error) {
	o := w.o
	o.Now, o.Seed, o.Patient, o.Log, o.Record = w.now, 0, false, nil, nil
	o.makeNamespaces = w.o.Origin == nil || w.o.makeNamespaces
	o.Origin = forked{w.store.AsOrigin(), w}
	return New(o)
}

type forked struct {
	store.Origin
	w *World
}

func (f forked) Discovery() discovery.CachedDiscoveryInterface { return f.w.capabilities() }

// Later is [store.Store.Later] of this world and of the worlds under it.
func (w *World) Later() []string {
	later := w.store.Later()
	if f, is := w.o.Origin.(forked); is {
		later = append(later, f.w.Later()...)
	}
	return later
}

// Capabilities are what charts see of the API server as .Capabilities.
func (w *World) Capabilities() (*helm.Capabilities, error) {
	caps, _, err := helm.CapabilitiesOf(w.capabilities(), nil)
	return caps, err
}

// capabilities are what charts see of the API server: what the origin says, and what
// the world has beyond that.
func (w *World) capabilities() discovery.CachedDiscoveryInterface {
	if d, ok := w.o.Origin.(discoverer); ok {
		return capabilities{w.client.Discovery(), d.Discovery()}
	}
	return w.client.Discovery()
}

type capabilities struct {
	discovery.CachedDiscoveryInterface
	origin discovery.CachedDiscoveryInterface
}

func (c capabilities) ServerVersion() (*version.Info, error) { return c.origin.ServerVersion() }

func (c capabilities) ServerGroupsAndResources() ([]*metav1.APIGroup, []*metav1.APIResourceList, error) {
	groups, lists, err := c.origin.ServerGroupsAndResources()
	if err != nil {
		return groups, lists, err
	}
	ownGroups, ownLists, err := c.CachedDiscoveryInterface.ServerGroupsAndResources()
	if err != nil {
		return groups, lists, err
	}
	known := map[string]bool{}
	for _, g := range groups {
		known[g.Name] = true
	}
	for _, l := range lists {
		for _, r := range l.APIResources {
			known[l.GroupVersion+"/"+r.Kind] = true
		}
	}
	groups, lists = slices.Clone(groups), slices.Clone(lists)
	for _, g := range ownGroups {
		if !known[g.Name] {
			groups = append(groups, g)
		}
	}
	for _, l := range ownLists {
		more := &metav1.APIResourceList{TypeMeta: l.TypeMeta, GroupVersion: l.GroupVersion}
		for _, r := range l.APIResources {
			if !known[l.GroupVersion+"/"+r.Kind] {
				more.APIResources = append(more.APIResources, r)
			}
		}
		if len(more.APIResources) > 0 {
			lists = append(lists, more)
		}
	}
	return groups, lists, nil
}
