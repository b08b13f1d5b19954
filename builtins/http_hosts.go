package builtins

import (
	"errors"
	"fmt"
	"maps"
	"math"
	"slices"

	"go.starlark.net/starlark"

	"github.com/starling-operator/starling/builtins/spec"
	"github.com/starling-operator/starling/runtime/effect"
	"github.com/starling-operator/starling/runtime/object"
)

// HostSource says where the hosts are written that module(http = […]) does not list itself.
type HostSource struct {
	// Config is a path of the user's config, as dotted text; "": they stand in objects.
	Config string
	// APIVersion and Kind are those of the objects. Pods and Services give their addresses and
	// names, others what stands at Field.
	APIVersion, Kind string
	Field            string
	// Namespaces: nil means the module's own only; ["*"] means all.
	Namespaces []string
	// Labels is a label selector as kubectl takes it; empty means all.
	Labels string
	// Port is the only one that may be asked; 0: any.
	Port uint16
}

// maxFound bounds the hosts that are found for one run.
const maxFound = 2000

func hostSpecs() []spec.Spec {
	namespaces := spec.Keyword("namespaces", spec.Strings, "None")
	labels := spec.Keyword("labels", spec.Selector, "None")
	port := spec.Keyword("port", spec.Int, "None")
	return []spec.Spec{
		declare("http.pods", spec.InLoad, spec.NoEffect, callHostSource("v1", "Pod"), labels, namespaces, port),
		declare("http.services", spec.InLoad, spec.NoEffect, callHostSource("v1", "Service"), labels, namespaces, port),
		declare("http.objects", spec.InLoad, spec.NoEffect, callHostSource("", ""),
			spec.Required("api_version", spec.String), spec.Required("kind", spec.String), spec.Required("field", spec.String),
			labels, namespaces),
		declare("http.from_config", spec.InLoad, spec.NoEffect, callHostsOfConfig, spec.Required("path", spec.String)),
	}
}

func callHostSource(apiVersion, kind string) func(*call) (starlark.Value, error) {
	return func(c *call) (starlark.Value, error) {
		s := HostSource{APIVersion: apiVersion, Kind: kind, Namespaces: c.Strings("namespaces")}
		if kind == "" {
			s.APIVersion, s.Kind, s.Field = c.Str("api_version"), c.Str("kind"), c.Str("field")
			switch err := checkKind(s.APIVersion, s.Kind); {
			case err != nil:
				return nil, err
			case s.Field == "":
				return nil, errors.New("field: the path is empty")
			case s.APIVersion == "v1" && s.Kind == "Secret":
				return nil, errors.New("kind: the host of a request is shown, so it cannot come from Secrets")
			}
		} else if c.Arg("port") != nil {
			port := c.IntOr("port", 0)
			if port < 1 || port > math.MaxUint16 {
				return nil, fmt.Errorf("port: %d is not 1 to 65535", port)
			}
			s.Port = uint16(port)
		}
		if err := checkNamespaces(s.Namespaces); err != nil {
			return nil, err
		}
		var err error
		if s.Labels, err = c.labelSelector("labels"); err != nil {
			return nil, err
		}
		return &declared[HostSource]{"hosts", s}, nil
	}
}

func callHostsOfConfig(c *call) (starlark.Value, error) {
	s := HostSource{Config: c.Str("path")}
	if s.Config == "" {
		return nil, errors.New("path: it is empty")
	}
	return &declared[HostSource]{"hosts", s}, nil
}

// listedHosts reads http= of module().
func (c *call) listedHosts() (hosts effect.Hosts, sources []HostSource, err error) {
	list, ok := c.Arg("http").(starlark.Indexable)
	if !ok {
		return nil, nil, nil
	}
	var entries []string
	for i := range list.Len() {
		switch e := list.Index(i).(type) {
		case starlark.String:
			entries = append(entries, string(e))
		case *declared[HostSource]:
			sources = append(sources, e.val)
		default:
			return nil, nil, fmt.Errorf("element %d: got %s, want string or http.pods(…), http.services(…), http.objects(…), http.from_config(…)", i, e.Type())
		}
	}
	hosts, err = effect.ParseHosts(entries)
	return hosts, sources, err
}

// hosts are those that requests of the run may go to. The sources are looked at once.
func (c *call) hosts() (effect.Hosts, error) {
	r := c.run
	if len(r.HostSources) == 0 || r.found != nil {
		return append(slices.Clip(r.Hosts), r.found...), nil
	}
	found := effect.Hosts{}
	for _, s := range r.HostSources {
		more, err := c.hostsOf(s)
		if err != nil {
			return nil, err
		}
		if found = append(found, more...); len(found) > maxFound {
			return nil, fmt.Errorf("module(http = […]) leads to more than %d hosts; say less with labels, namespaces", maxFound)
		}
	}
	r.found = found
	return append(slices.Clip(r.Hosts), found...), nil
}

func (c *call) hostsOf(s HostSource) (out effect.Hosts, err error) {
	r := c.run
	if s.Config != "" {
		config := r.Config
		if r.Defaults != nil {
			config = r.Defaults(config)
		}
		v, _ := object.Dotted(s.Config).Get(config)
		for _, text := range textsIn(v) {
			h, err := effect.FoundText(text)
			if err != nil {
				return nil, fmt.Errorf("%s of the user's config names no host that may be reached: %w", s.Config, err)
			}
			out = append(out, h)
		}
		return out, nil
	}
	if r.Reader == nil { // nobody answers without a cluster
		return nil, nil
	}
	namespaces, namespaced := s.Namespaces, true
	if r.Scope != nil {
		if namespaced, err = r.Scope(s.APIVersion, s.Kind); err != nil {
			return nil, err
		}
	}
	switch {
	case !namespaced || contains(namespaces, "*"):
		namespaces = nil
	case namespaces == nil:
		namespaces = []string{r.Namespace}
	}
	objects, err := r.Reader.List(r.context(), s.APIVersion, s.Kind, namespaces, s.Labels, "")
	if err != nil {
		return nil, fmt.Errorf("the hosts of module(http = […]) cannot be found: %w", err)
	}
	for _, obj := range objects {
		if !r.Instance.OwnsObject(s.APIVersion, s.Kind, obj) {
			out = append(out, s.hostsIn(obj)...)
		}
	}
	return out, nil
}

// hostsIn are the hosts that one object gives.
func (s HostSource) hostsIn(obj map[string]any) (out effect.Hosts) {
	at := func(path ...string) []string {
		v, _ := object.Get(obj, path)
		return textsIn(v)
	}
	addresses := func(texts []string) {
		slices.Sort(texts)
		for _, text := range slices.Compact(texts) {
			if h, ok := effect.FoundAddress(text, s.Port); ok {
				out = append(out, h)
			}
		}
	}
	switch {
	case s.Field != "":
		v, _ := object.Dotted(s.Field).Get(obj)
		for _, text := range textsIn(v) {
			if h, err := effect.FoundText(text); err == nil {
				out = append(out, h)
			}
		}
	case s.Kind == "Pod":
		// A Pod in the network of its Node has the address of the kubelet, and one that has ended
		// may share its own with another one.
		phase, _ := object.Get(obj, []string{"status", "phase"})
		inNode, _ := object.Get(obj, []string{"spec", "hostNetwork"})
		if phase == "Succeeded" || phase == "Failed" || inNode == true {
			return nil
		}
		own, hosts := slices.Concat(at("status", "podIP"), at("status", "podIPs")), slices.Concat(at("status", "hostIP"), at("status", "hostIPs"))
		addresses(slices.DeleteFunc(own, func(ip string) bool { return contains(hosts, ip) }))
	default:
		addresses(slices.Concat(at("spec", "clusterIP"), at("spec", "clusterIPs")))
		ref := effect.RefOf(obj)
		for _, end := range []string{"", ".svc", ".svc.cluster.local"} {
			if h, ok := effect.FoundName(ref.Name+"."+ref.Namespace+end, s.Port); ok {
				out = append(out, h)
			}
		}
	}
	return out
}

// textsIn are the texts of a text, a list or a dict; empty ones are left out.
func textsIn(v any) (out []string) {
	switch v := v.(type) {
	case string:
		if v != "" {
			out = append(out, v)
		}
	case []any:
		for _, e := range v {
			out = append(out, textsIn(e)...)
		}
	case map[string]any:
		for _, key := range slices.Sorted(maps.Keys(v)) {
			out = append(out, textsIn(v[key])...)
		}
	}
	return out
}
