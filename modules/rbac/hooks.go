package rbac

import (
	"slices"

	"github.com/starling-operator/starling/builtins"
	"github.com/starling-operator/starling/runtime/effect"
	"github.com/starling-operator/starling/runtime/generation"
	"github.com/starling-operator/starling/runtime/watch"
)

const (
	definitionsGroup = "apiextensions.k8s.io"
	definitions      = "customresourcedefinitions"
)

// definitions adds the kinds of all crds/, and the right to apply them.
func (b *builder) definitions() {
	for _, m := range b.gen.All() {
		for _, f := range m.Tree.CRDs {
			b.definition(m, f.Data, true)
		}
	}
}

func (b *builder) definition(m *generation.Module, data []byte, applied bool) {
	for name, r := range b.kinds.addCRDs(data, applied) {
		why := "crds/ of " + m.Name
		rule := Rule{Group: definitionsGroup, Resource: definitions, Verbs: []string{"list"}, Why: []string{why}}
		b.add("", rule)
		rule.Names, rule.Verbs = []string{name}, []string{"get", "create", "patch"}
		b.add("", rule)
		b.defines(why, r)
	}
}

// defines needs to see the objects of a kind, for they have to pass an update of its definition.
func (b *builder) defines(why string, r resource) {
	rule := r.rule("list")
	rule.Why = []string{why}
	b.add("", rule)
}

// hooks needs what hooks watch, what grants allow, and what bindings take.
func (b *builder) hooks() {
	for _, m := range b.gen.All() {
		for _, h := range m.Hooks {
			for _, binding := range h.Bindings {
				b.binding(m, h, binding)
			}
			if h.Cleans() {
				b.cleanup(h)
			}
			if h.Controller != nil {
				b.children(m, h)
				if h.Decides() {
					b.fields(h)
				}
			}
		}
		for _, g := range m.Decl.Grants {
			if g.Verbs = g.Calls(); len(g.Verbs) == 0 {
				continue // a power needs no right here: bindings say which
			}
			b.grant(m, g)
		}
		for _, s := range m.Decl.HostSources {
			b.hosts(m, s)
		}
		if len(m.Decl.Config) > 0 {
			b.userConfig(m)
		}
	}
	b.webhooks()
}

// hosts need to list the objects in which they are written.
func (b *builder) hosts(m *generation.Module, s builtins.HostSource) {
	if s.Kind == "" {
		return
	}
	r, namespaces := b.resource(s.APIVersion, s.Kind), s.Namespaces
	if namespaces == nil {
		namespaces = []string{b.namespace(m)}
	}
	rule := r.rule("list")
	rule.Why = []string{"hosts of " + m.Name}
	for _, namespace := range places(r, namespaces) {
		b.add(namespace, rule)
	}
}

// userConfig needs to change the user's ConfigMap, or the Module object that stands in its place.
func (b *builder) userConfig(m *generation.Module) {
	why := []string{"config.set of " + m.Name}
	b.add(b.o.Namespace, Rule{Resource: "configmaps", Names: []string{b.o.Name}, Verbs: []string{"get", "patch"}, Why: why})
	if !m.Global {
		b.add("", Rule{Group: "starling.dev", Resource: "modules", Names: []string{m.Name}, Verbs: []string{"get", "patch"}, Why: why})
	}
}

// resource looks a kind up, and says when it is guessed.
func (b *builder) resource(apiVersion, kind string) resource {
	r := b.kinds.of(apiVersion, kind)
	if r.guessed {
		b.lack("neither Kubernetes nor the tree has the kind %s %s: that its resource is %s, of namespaces, is guessed", apiVersion, kind, r.plural)
	}
	return r
}

// places returns where rights on a resource are needed; none: in the whole cluster.
func places(r resource, namespaces []string) []string {
	if !r.namespaced || len(namespaces) == 0 || slices.Contains(namespaces, "*") {
		return []string{""}
	}
	return sorted(namespaces)
}

func (b *builder) binding(m *generation.Module, h *generation.Hook, binding builtins.Binding) {
	why := []string{"hook " + h.ID}
	if r := binding.Receive; r != nil && r.Secret != nil {
		namespace := r.Secret.Namespace
		if namespace == "" {
			namespace = b.namespace(m)
		}
		b.add(namespace, Rule{Resource: "secrets", Names: []string{r.Secret.Name}, Verbs: []string{"get"}, Why: why})
	}
	w := binding.Watch
	if w == nil {
		return
	}
	r := b.resource(w.APIVersion, w.Kind)
	if r.namespaced && w.NamespaceLabels != "" {
		b.add("", Rule{Resource: "namespaces", Verbs: []string{"list", "watch"}, Why: why})
	}
	rule := r.rule("list", "watch")
	rule.Why = why
	if len(w.Names) <= watch.MaxNames { // else they are selected by Starling
		rule.Names = w.Names
	}
	for _, namespace := range watched(r, w) {
		b.add(namespace, rule)
	}
}

func watched(r resource, w *builtins.WatchBinding) []string {
	return slices.DeleteFunc(places(r, w.Namespaces), func(ns string) bool { return ns != "" && slices.Contains(w.ExcludeNamespaces, ns) })
}

// cleanup needs to put a finalizer on objects and to take it off, wherever there may be
// one.
func (b *builder) cleanup(h *generation.Hook) {
	w := h.Binding(h.ForEach).Watch
	r := b.resource(w.APIVersion, w.Kind)
	for _, namespace := range watched(r, w) {
		rule := r.rule("get", "patch")
		rule.Why = []string{"finalizers of hook " + h.ID}
		b.add(namespace, rule)
	}
	rule := r.rule("list")
	rule.Why = []string{"finalizers of hook " + h.ID}
	b.add("", rule)
}

// children need what a controller does about them, in all namespaces: parts say theirs as they come. Parents
// may have a status.
func (b *builder) children(m *generation.Module, h *generation.Hook) {
	if h.WritesStatus {
		w := h.Binding(h.ForEach).Watch
		r := b.resource(w.APIVersion, w.Kind)
		for _, namespace := range watched(r, w) {
			rule := r.rule("patch")
			rule.Resource += "/status"
			rule.Why = []string{"status of the parents of controller " + h.Controls()}
			b.add(namespace, rule)
		}
	}
	if !h.Decides() {
		return
	}
	for _, k := range h.Controller.Owns {
		r := b.resource(k.APIVersion, k.Kind)
		rule := r.rule("get", "create", "patch", "delete")
		rule.Why = []string{"children of controller " + h.ID}
		b.add("", rule)
		b.gives(m, r, nil)
	}
}

// fields need what a controller does about fields of objects of others.
func (b *builder) fields(h *generation.Hook) {
	for _, k := range h.Controller.Fields {
		rule := b.resource(k.APIVersion, k.Kind).rule("patch")
		rule.Why = []string{"fields that controller " + h.ID + " sets"}
		b.add("", rule)
		rule.Resource += "/status"
		b.add("", rule)
	}
}

// grant turns a grant into rules.
func (b *builder) grant(m *generation.Module, g builtins.Grant) {
	r, called := b.resource(g.APIVersion, g.Kind), b.calls[m.Name]
	namespaces := g.Namespaces
	if namespaces == nil {
		namespaces = []string{b.namespace(m)}
	}
	why := []string{"grant of " + m.Name}
	verbs := verbsOf(g, called)
	if g.Kind == "Event" && g.APIVersion == "v1" && called.event && slices.Contains(verbs, "create") {
		verbs = append(verbs, "get", "patch") // one that is there is counted
	}
	if called.wait && granted(verbs, "delete") {
		verbs = append(verbs, "get") // it is looked for until it is gone
	}
	if called.set && granted(verbs, "create") && granted(verbs, "patch") && granted(verbs, "delete") {
		verbs = append(verbs, "get")
		if g.Names == nil { // a list cannot be held to names: such members are read one by one
			verbs = append(verbs, "list")
		}
	}
	all, named := verbs, []string(nil)
	if g.Names != nil {
		// An apply names what it makes, a create does not.
		all, named = nil, verbs
		if called.create && slices.Contains(verbs, "create") {
			all = []string{"create"}
		}
	}
	patches := granted(verbs, "patch")
	if patches || granted(verbs, "create") {
		b.gives(m, r, namespaces)
	}
	for _, namespace := range places(r, namespaces) {
		if len(all) > 0 {
			b.add(namespace, Rule{Group: r.group, Resource: r.plural, Verbs: all, Why: why})
		}
		if len(named) > 0 {
			b.add(namespace, Rule{Group: r.group, Resource: r.plural, Names: g.Names, Verbs: named, Why: why})
		}
		for sub, kinds := range called.subresources {
			if patches && b.writes(m, g.Kind, sub, kinds, r) {
				b.add(namespace, Rule{Group: r.group, Resource: r.plural + "/" + sub, Names: g.Names, Verbs: []string{"patch"}, Why: why})
				b.approves(m, r, sub, called.signers)
			}
		}
		if called.evict && r.group == "" && r.plural == "pods" && granted(verbs, "delete") {
			b.add(namespace, Rule{Resource: "pods/eviction", Names: g.Names, Verbs: []string{"create"}, Why: why})
		}
		for _, verb := range g.Verbs {
			if sub, is := subresources[verb]; is {
				b.add(namespace, Rule{Resource: sub.Resource, Names: g.Names, Verbs: sub.Verbs, Why: why})
			}
		}
	}
}

// approves needs what the API server asks of those that approve certificate requests: a right for each signer.
func (b *builder) approves(m *generation.Module, r resource, sub string, signers []string) {
	switch {
	case sub != "approval" || r.group != "certificates.k8s.io" || r.plural != "certificatesigningrequests":
	case len(signers) == 0:
		b.lack("module %s approves certificate requests, and its code names no signer: add the verb approve on the resource signers of certificates.k8s.io, with the name of the signer", m.Name)
	default:
		b.add("", Rule{Group: r.group, Resource: "signers", Names: signers, Verbs: []string{"approve"}, Why: []string{"certificate requests that " + m.Name + " approves"}})
	}
}

// subresources are the rights of verbs that RBAC knows as subresources. A command runs over
// a WebSocket, which is a get, and since Kubernetes 1.35 must be allowed to create, too.
var subresources = map[string]Rule{
	"exec": {Resource: "pods/exec", Verbs: []string{"create", "get"}},
	"logs": {Resource: "pods/log", Verbs: []string{"get"}},
	// The ServiceAccount is named, so that names= of the grant hold.
	"token": {Resource: "serviceaccounts/token", Verbs: []string{"create"}},
}

func granted(verbs []string, verb string) bool {
	return slices.Contains(verbs, verb) || slices.Contains(verbs, "*")
}

// verbsOf returns RBAC's verbs of a grant.
func verbsOf(g builtins.Grant, called calls) []string {
	var out []string
	for _, verb := range g.Verbs {
		switch verb {
		case "apply":
			out = append(out, "create", "patch")
		case "write":
			out = append(out, "create", "patch", "delete")
		case "exec", "logs":
			out = append(out, "get") // the Pod is looked at first
		case "token":
			if g.Labels != "" || g.Owned {
				out = append(out, "get")
			}
		default:
			out = append(out, verb)
		}
	}
	writes := slices.ContainsFunc(out, func(v string) bool { return v == "create" || v == "patch" || v == "delete" })
	if writes && (g.Labels != "" || g.Owned || mayBeOthers(&g)) {
		out = append(out, "get") // the object is looked at first
	}
	if called.jq && slices.Contains(out, "patch") {
		out = append(out, "get", "update")
	}
	return sorted(out)
}

// mayBeOthers says whether a grant is for names that objects of another Starling may have.
func mayBeOthers(g *builtins.Grant) bool {
	names := g.Names
	if names == nil {
		names = []string{""}
	}
	return slices.ContainsFunc(names, func(name string) bool {
		return effect.MayBeOthers(effect.Ref{APIVersion: g.APIVersion, Kind: g.Kind, Name: name}) != ""
	})
}

// writes says whether a module may write a subresource of a kind: one that the call
// names or, where it does not, the kind of for_each, or else any that has it.
func (b *builder) writes(m *generation.Module, kind, sub string, named []string, r resource) bool {
	switch {
	case slices.Contains(named, kind):
		return true
	case !slices.Contains(named, "") || !slices.Contains(r.subresources, sub):
		return false
	}
	var each []string
	for _, h := range m.Hooks {
		if h.ForEach != "" {
			each = append(each, h.Binding(h.ForEach).Watch.Kind)
		}
	}
	granted := slices.ContainsFunc(m.Decl.Grants, func(g builtins.Grant) bool { return slices.Contains(each, g.Kind) })
	return !granted || slices.Contains(each, kind)
}

// webhooks needs what registers hooks that take requests of the API server.
func (b *builder) webhooks() {
	const group = "admissionregistration.k8s.io"
	used, why := map[bool]bool{false: true}, []string{} // for Module objects, too
	any := false
	for _, h := range b.gen.Hooks() {
		for _, binding := range h.Bindings {
			if a := binding.Admission; a != nil {
				any, used[a.Mutate], why = true, true, append(why, "hook "+h.ID)
			}
			if c := binding.Convert; c != nil {
				any, why = true, append(why, "hook "+h.ID)
				b.add("", Rule{Group: definitionsGroup, Resource: definitions, Names: []string{c.CRD}, Verbs: []string{"list", "watch", "patch"}, Why: []string{"hook " + h.ID}})
			}
		}
	}
	if !any {
		return
	}
	for mutate, plural := range map[bool]string{false: "validatingwebhookconfigurations", true: "mutatingwebhookconfigurations"} {
		verbs := []string{"list", "watch", "delete"} // those of a hook that is gone
		if used[mutate] {
			verbs = append(verbs, "create", "patch")
		}
		b.add("", Rule{Group: group, Resource: plural, Verbs: verbs, Why: why})
	}
	b.add(b.o.Namespace, Rule{Resource: "secrets", Names: []string{b.o.Name + "-webhooks"}, Verbs: []string{"get"}, Why: []string{"certificates of webhooks"}})
}
