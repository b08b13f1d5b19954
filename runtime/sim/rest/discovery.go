package rest

import (
	"net/http"
	"slices"
	"strings"

	"github.com/starling-operator/starling/runtime/sim/store"
	apidiscoveryv2 "k8s.io/api/apidiscovery/v2"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	apiversion "k8s.io/apimachinery/pkg/util/version"
	"k8s.io/apimachinery/pkg/version"
)

const aggregatedType = "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList"

func versionInfo() version.Info {
	v := apiversion.MustParseGeneric(Version)
	return version.Info{
		Major: "1", Minor: strings.Split(v.String(), ".")[1], GitVersion: Version, GitTreeState: "clean",
		BuildDate: "1970-01-01T00:00:00Z", Platform: "linux/amd64", Compiler: "gc", GoVersion: "go1.26",
	}
}

// served are the kinds of one group, by version, the preferred one first.
type served struct {
	group    string
	versions []string
	kinds    map[string][]store.Kind
}

// groups returns what is served, core group first.
func (s *Server) groups() []served {
	var out []served
	for _, k := range s.o.Store.Kinds() {
		at := slices.IndexFunc(out, func(g served) bool { return g.group == k.Group })
		if at < 0 {
			at = len(out)
			out = append(out, served{group: k.Group, kinds: map[string][]store.Kind{}})
		}
		if out[at].kinds[k.Version] == nil {
			out[at].versions = append(out[at].versions, k.Version)
		}
		out[at].kinds[k.Version] = append(out[at].kinds[k.Version], k)
	}
	for _, g := range out {
		slices.SortFunc(g.versions, func(a, b string) int { return version.CompareKubeAwareVersionStrings(b, a) })
	}
	return out
}

// discover answers /api and /apis.
func (s *Server) discover(r *http.Request, named bool) (*answer, error) {
	groups := slices.DeleteFunc(s.groups(), func(g served) bool { return (g.group != "") != named })
	accept := r.Header.Get("Accept")
	if strings.Contains(accept, "g=apidiscovery.k8s.io") && strings.Contains(accept, "v=v2;") {
		return &answer{code: http.StatusOK, typ: aggregatedType, body: aggregated(groups)}, nil
	}
	if !named {
		return ok(metav1.APIVersions{
			TypeMeta: metav1.TypeMeta{Kind: "APIVersions"}, Versions: []string{"v1"},
			ServerAddressByClientCIDRs: []metav1.ServerAddressByClientCIDR{{ClientCIDR: "0.0.0.0/0", ServerAddress: "127.0.0.1:443"}},
		}), nil
	}
	list := metav1.APIGroupList{TypeMeta: metav1.TypeMeta{Kind: "APIGroupList", APIVersion: "v1"}, Groups: []metav1.APIGroup{}}
	for _, g := range groups {
		list.Groups = append(list.Groups, g.asGroup())
	}
	return ok(list), nil
}

func (g served) asGroup() metav1.APIGroup {
	out := metav1.APIGroup{Name: g.group}
	for _, v := range g.versions {
		out.Versions = append(out.Versions, metav1.GroupVersionForDiscovery{GroupVersion: schema.GroupVersion{Group: g.group, Version: v}.String(), Version: v})
	}
	out.PreferredVersion = out.Versions[0]
	return out
}

// group answers /apis/GROUP.
func (s *Server) group(name string) (*answer, error) {
	for _, g := range s.groups() {
		if g.group == name && name != "" {
			out := g.asGroup()
			out.TypeMeta = metav1.TypeMeta{Kind: "APIGroup", APIVersion: "v1"}
			return ok(out), nil
		}
	}
	return nowhere(), nil
}

// resources answers /api/v1 and /apis/GROUP/VERSION.
func (s *Server) resources(gv schema.GroupVersion) (*answer, error) {
	list := metav1.APIResourceList{TypeMeta: metav1.TypeMeta{Kind: "APIResourceList", APIVersion: "v1"}, GroupVersion: gv.String()}
	for _, g := range s.groups() {
		if g.group != gv.Group {
			continue
		}
		for _, k := range g.kinds[gv.Version] {
			list.APIResources = append(list.APIResources, metav1.APIResource{
				Name: k.Plural, SingularName: k.Singular, Namespaced: k.Namespaced, Kind: k.Kind, Verbs: k.Verbs(), ShortNames: k.ShortNames, Categories: k.Categories,
			})
			for _, sub := range subresources(k) {
				r := metav1.APIResource{Name: k.Plural + "/" + sub.name, Namespaced: k.Namespaced, Kind: sub.kind.Kind, Verbs: sub.verbs}
				if sub.kind.GroupVersion() != gv {
					r.Group, r.Version = sub.kind.Group, sub.kind.Version
				}
				list.APIResources = append(list.APIResources, r)
			}
		}
	}
	if list.APIResources == nil {
		if err := s.o.Store.Unavailable(gv); err != nil {
			return nil, err
		}
		return nowhere(), nil
	}
	return ok(list), nil
}

type subresource struct {
	name  string
	kind  schema.GroupVersionKind
	verbs []string
}

func subresources(k store.Kind) []subresource {
	var out []subresource
	if k.Builtin && k.Group == "certificates.k8s.io" && k.Plural == "certificatesigningrequests" {
		out = append(out, subresource{"approval", k.GVK(), []string{"get", "patch", "update"}})
	}
	if k.Builtin && k.Group == "" && k.Plural == "pods" {
		out = append(out, subresource{"eviction", schema.GroupVersionKind{Group: "policy", Version: "v1", Kind: "Eviction"}, []string{"create"}})
	}
	if k.Scale {
		out = append(out, subresource{"scale", schema.GroupVersionKind{Group: "autoscaling", Version: "v1", Kind: "Scale"}, []string{"get", "patch", "update"}})
	}
	if k.Status {
		out = append(out, subresource{"status", k.GVK(), []string{"get", "patch", "update"}})
	}
	if !k.Builtin {
		slices.Reverse(out)
	}
	return out
}

func aggregated(groups []served) apidiscoveryv2.APIGroupDiscoveryList {
	list := apidiscoveryv2.APIGroupDiscoveryList{
		TypeMeta: metav1.TypeMeta{Kind: "APIGroupDiscoveryList", APIVersion: "apidiscovery.k8s.io/v2"}, Items: []apidiscoveryv2.APIGroupDiscovery{},
	}
	shown := func(gvk schema.GroupVersionKind) *metav1.GroupVersionKind {
		return &metav1.GroupVersionKind{Group: gvk.Group, Version: gvk.Version, Kind: gvk.Kind}
	}
	for _, g := range groups {
		item := apidiscoveryv2.APIGroupDiscovery{ObjectMeta: metav1.ObjectMeta{Name: g.group}}
		for _, v := range g.versions {
			version := apidiscoveryv2.APIVersionDiscovery{Version: v, Freshness: apidiscoveryv2.DiscoveryFreshnessCurrent}
			for _, k := range g.kinds[v] {
				r := apidiscoveryv2.APIResourceDiscovery{
					Resource: k.Plural, ResponseKind: shown(k.GVK()), Scope: apidiscoveryv2.ScopeCluster, SingularResource: k.Singular,
					Verbs: k.Verbs(), ShortNames: k.ShortNames, Categories: k.Categories,
				}
				if k.Namespaced {
					r.Scope = apidiscoveryv2.ScopeNamespace
				}
				for _, sub := range subresources(k) {
					r.Subresources = append(r.Subresources, apidiscoveryv2.APISubresourceDiscovery{Subresource: sub.name, ResponseKind: shown(sub.kind), Verbs: sub.verbs})
				}
				version.Resources = append(version.Resources, r)
			}
			item.Versions = append(item.Versions, version)
		}
		list.Items = append(list.Items, item)
	}
	return list
}
