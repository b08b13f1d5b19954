package testrunner

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apiserver/pkg/authentication/serviceaccount"
	"k8s.io/apiserver/pkg/authentication/user"

	"github.com/starling-operator/starling/builtins"
	"github.com/starling-operator/starling/runtime/effect"
	"github.com/starling-operator/starling/runtime/generation"
	"github.com/starling-operator/starling/runtime/httpserver"
	"github.com/starling-operator/starling/runtime/sim/store"
)

// Tests ask hooks by these functions: reviews, conversions, HTTP.

// Admit has the hooks review a change, those that mutate first, as the API server does.
func (w *world) Admit(ctx context.Context, obj, old map[string]any, operation, subresource string, by builtins.ReviewUser) (builtins.TestReview, error) {
	by.Groups = groupsOf(by)
	out := builtins.TestReview{Allowed: true, Object: obj}
	k, subresource, err := w.resourceOf(obj, subresource)
	if err != nil {
		return out, fmt.Errorf("subresource: %w", err)
	}
	for _, mutate := range []bool{true, false} {
		for _, h := range w.w.AllHooks() {
			for i := range h.Bindings {
				b := h.Bindings[i].Admission
				if b == nil || b.Mutate != mutate || !w.reviews(b, k, subresource, out.Object, old, operation) {
					continue
				}
				meta := metaOf(out.Object)
				review := builtins.Review{
					UID: "test", Operation: operation, Object: out.Object, OldObject: old,
					Namespace: namespaceOf(k, meta), Name: text(meta, "name"), APIVersion: text(out.Object, "apiVersion"),
					Kind: text(out.Object, "kind"), Resource: k.Plural, ResourceAPIVersion: schema.GroupVersion{Group: k.Group, Version: k.Version}.String(),
					Subresource: subresource, User: by,
				}
				if operation == "DELETE" {
					review.Object, review.OldObject = nil, out.Object
				}
				if matches, err := w.matches(ctx, b, &review); err != nil {
					out.Allowed, out.Message, out.Code = false, err.Error(), http.StatusForbidden
					return out, nil
				} else if !matches {
					continue
				}
				answer, err := w.w.Ask(ctx, h, review.Request(h.Bindings[i].Name))
				if err != nil {
					return out, fmt.Errorf("hook %s: %w", h.ID, err)
				}
				out.Warnings = append(out.Warnings, answer.Warnings...)
				if answer.Denied != nil {
					out.Allowed, out.Message, out.Code = false, answer.Denied.Message, answer.Denied.Code
					return out, nil
				}
				if answer.Object != nil {
					out.Object = answer.Object
				}
			}
		}
	}
	return out, nil
}

// groupsOf are the groups of a user with those that the API server adds to every request:
// a request without any is one that no cluster knows.
func groupsOf(by builtins.ReviewUser) []string {
	groups := slices.Clone(by.Groups)
	if by.Name == user.Anonymous {
		groups = append(groups, user.AllUnauthenticated)
	}
	if namespace, _, err := serviceaccount.SplitUsername(by.Name); err == nil {
		groups = append(groups, serviceaccount.MakeGroupNames(namespace)...)
	}
	if !slices.Contains(groups, user.AllUnauthenticated) {
		groups = append(groups, user.AllAuthenticated)
	}
	seen := map[string]bool{}
	return slices.DeleteFunc(groups, func(g string) bool {
		again := seen[g]
		seen[g] = true
		return again
	})
}

// matches says whether the conditions of a binding hold, or why they cannot be looked
// at, which with the failure policy Fail refuses the change.
func (w *world) matches(ctx context.Context, b *builtins.AdmissionBinding, r *builtins.Review) (bool, error) {
	if len(b.Conditions) == 0 {
		return true, nil
	}
	conditions, err := w.o.conditions.Compile(b)
	if err != nil {
		return false, err
	}
	return conditions.Match(ctx, r)
}

func metaOf(obj map[string]any) map[string]any {
	meta, _ := obj["metadata"].(map[string]any)
	return meta
}

func text(m map[string]any, key string) string {
	s, _ := m[key].(string)
	return s
}

func (w *world) kindOf(obj map[string]any) store.Kind {
	gv, err := schema.ParseGroupVersion(text(obj, "apiVersion"))
	if err != nil {
		return store.Kind{}
	}
	k, ok := w.w.Store().KindOf(gv.WithKind(text(obj, "kind")))
	if !ok {
		k = store.Kind{Group: gv.Group, Version: gv.Version, Kind: text(obj, "kind"), Plural: strings.ToLower(text(obj, "kind")) + "s", Namespaced: text(metaOf(obj), "namespace") != ""}
	}
	return k
}

// resourceOf is the kind whose resource, or subresource, is changed by obj.
func (w *world) resourceOf(obj map[string]any, given string) (k store.Kind, subresource string, err error) {
	resource, subresource, other := strings.Cut(given, "/")
	if !other {
		return w.kindOf(obj), given, nil
	}
	if resource == "" || subresource == "" || strings.Contains(subresource, "/") {
		return k, "", fmt.Errorf("%q is none; write \"status\" or, of another kind than that of obj, \"pods/eviction\"", given)
	}
	for _, k := range w.w.Store().Kinds() {
		if k.Plural == resource {
			return k, subresource, nil
		}
	}
	return k, "", fmt.Errorf("the cluster of the test serves no %q", resource)
}

// reviews says whether a binding is asked about a change of a kind's resource, or of its subresource.
func (w *world) reviews(b *builtins.AdmissionBinding, k store.Kind, subresource string, obj, old map[string]any, operation string) bool {
	meta := metaOf(obj)
	selected := selects(b.Labels, meta["labels"]) || old != nil && selects(b.Labels, metaOf(old)["labels"])
	if !selected || !matchesRules(b, k, subresource, operation) {
		return false
	}
	ns := namespaceOf(k, meta)
	if ns == "" {
		return true
	}
	named := slices.Contains(b.Namespaces, ns)
	if ns == namespace || ns == "kube-system" && !named || slices.Contains(b.ExcludeNamespaces, ns) || b.Namespaces != nil && !named {
		return false
	}
	if b.NamespaceLabels == "" {
		return true
	}
	if isNamespace(k) {
		return selects(b.NamespaceLabels, meta["labels"])
	}
	found, err := w.w.Get(effect.Ref{APIVersion: "v1", Kind: "Namespace", Name: ns})
	return err == nil && selects(b.NamespaceLabels, metaOf(found)["labels"])
}

// namespaceOf is the namespace of an object as the API server tells it in reviews: that of a
// Namespace is itself.
func namespaceOf(k store.Kind, meta map[string]any) string {
	switch {
	case isNamespace(k):
		return text(meta, "name")
	case k.Namespaced:
		return text(meta, "namespace")
	}
	return ""
}

func isNamespace(k store.Kind) bool { return k.Group == "" && k.Kind == "Namespace" }

func matchesRules(b *builtins.AdmissionBinding, k store.Kind, subresource, operation string) bool {
	has := func(list []string, s string) bool { return slices.Contains(list, "*") || slices.Contains(list, s) }
	if b.Rules == nil {
		gv, err := schema.ParseGroupVersion(b.APIVersion)
		return err == nil && subresource == "" && gv.Group == k.Group && b.Kind == k.Kind && has(b.Operations, operation)
	}
	covers := func(resource string) bool { // as the API server has it: "pods/*" are Pods, too, "*" no subresources
		name, sub, _ := strings.Cut(resource, "/")
		return (name == "*" || name == k.Plural) && (sub == "*" || sub == subresource)
	}
	return slices.ContainsFunc(b.Rules, func(r builtins.AdmissionRule) bool {
		return has(r.Groups, k.Group) && has(r.Versions, k.Version) && slices.ContainsFunc(r.Resources, covers) && has(r.Operations, operation)
	})
}

func selects(selector string, have any) bool {
	parsed, err := labels.Parse(selector)
	if err != nil {
		return false
	}
	set := labels.Set{}
	m, _ := have.(map[string]any)
	for k := range m {
		set[k] = text(m, k)
	}
	return parsed.Matches(set)
}

// Convert has a hook convert an object to another version of its kind.
func (w *world) Convert(ctx context.Context, obj map[string]any, to string) (map[string]any, error) {
	group, _, _ := strings.Cut(text(obj, "apiVersion"), "/")
	if !strings.Contains(to, "/") {
		to = group + "/" + to
	}
	h, binding := w.converter(obj, group)
	if h == nil {
		return nil, fmt.Errorf("no hook converts %s of %s", text(obj, "kind"), text(obj, "apiVersion"))
	}
	answer, err := w.w.Ask(ctx, h, &builtins.Request{Binding: binding, Objects: []map[string]any{obj}, To: to})
	if err != nil {
		return nil, err
	}
	if len(answer.Objects) != 1 {
		return nil, fmt.Errorf("hook %s has converted one object to %d", h.ID, len(answer.Objects))
	}
	return answer.Objects[0], nil
}

// converter is the hook that converts the kind of an object, and its binding. Of a kind
// whose CustomResourceDefinition is not there it is the only one of the group.
func (w *world) converter(obj map[string]any, group string) (hook *generation.Hook, binding string) {
	crd := w.kindOf(obj).Plural + "." + group
	gv, err := schema.ParseGroupVersion(text(obj, "apiVersion"))
	_, served := w.w.Store().KindOf(gv.WithKind(text(obj, "kind")))
	others := 0
	for _, h := range w.w.AllHooks() {
		for _, b := range h.Bindings {
			switch {
			case err != nil || !b.Converts():
			case b.Convert.CRD == crd:
				return h, b.Name
			case !served && strings.HasSuffix(b.Convert.CRD, "."+group):
				others++
				hook, binding = h, b.Name
			}
		}
	}
	if others > 1 {
		return nil, ""
	}
	return hook, binding
}

// Request sends an HTTP request to the hook at a path. Signatures are not looked at; all else of the request reaches
// the hook as from the port of http.receive.
func (w *world) Request(ctx context.Context, method, target, body string, headers map[string]string) (builtins.Reply, error) {
	r, err := http.NewRequestWithContext(ctx, method, target, nil)
	if err != nil {
		return builtins.Reply{}, err
	}
	for k, v := range headers {
		r.Header.Set(k, v)
	}
	path := r.URL.Path
	var hook *generation.Hook
	var binding string
	var paths []string
	for _, h := range w.w.AllHooks() {
		for _, b := range h.Bindings {
			if b.Receive == nil {
				continue
			}
			paths = append(paths, b.Receive.Path)
			if b.Receive.Path == path {
				hook, binding = h, b.Name
				switch {
				case !slices.Contains(b.Receive.Methods, method):
					return builtins.Reply{Status: http.StatusMethodNotAllowed}, nil
				case len(body) > b.Receive.MaxBytes:
					return builtins.Reply{Status: http.StatusRequestEntityTooLarge}, nil
				}
			}
		}
	}
	if hook == nil {
		if len(paths) == 0 {
			return builtins.Reply{}, fmt.Errorf("no hook receives at %q, and at no other path: none that is loaded has http.receive", path)
		}
		return builtins.Reply{}, fmt.Errorf("no hook receives at %q; hooks receive at %s", path, strings.Join(paths, ", "))
	}
	answer, err := w.w.Ask(ctx, hook, httpserver.Received(r, []byte(body)).Request(binding))
	if err != nil {
		return builtins.Reply{}, err
	}
	if answer.Reply == nil {
		return builtins.Reply{Status: 200}, nil
	}
	return *answer.Reply, nil
}

// HTTP has a function answer the requests of runs to a host.
func (w *world) HTTP(host string, answer func(effect.Request) (builtins.Fetched, error)) {
	w.hosts[host] = answer
}

// Env has hooks read an environment variable.
func (w *world) Env(name, text string) { w.env[name] = text }

func (w *world) lookEnv(name string) (string, error) {
	text, given := w.env[name]
	if !given {
		return "", fmt.Errorf("the test gives no %s; give it: t.env(%q, \"…\")", name, name)
	}
	return text, nil
}

// Gather implements [builtins.Fetcher].
func (w *world) Gather(_ context.Context, requests []effect.Request, _ int) []builtins.Gathered {
	return builtins.InTurn(requests, w.fetch)
}

func (w *world) fetch(r effect.Request) (builtins.Fetched, error) {
	where, err := r.Host()
	if err != nil {
		return builtins.Fetched{}, err
	}
	if answer := w.hosts[where]; answer != nil {
		w.asked[where] = true
		return answer(r)
	}
	known := slices.Sorted(maps.Keys(w.hosts))
	if len(known) == 0 {
		return builtins.Fetched{}, errors.New("nobody answers in a test; say who does: t.http(" + fmt.Sprintf("%q", where) + ", fn)")
	}
	return builtins.Fetched{}, fmt.Errorf("nobody answers at %s in this test; t.http has %s", where, strings.Join(known, ", "))
}

// Sent are the messages of http.send so far.
func (w *world) Sent() []builtins.SentMessage {
	var out []builtins.SentMessage
	for _, s := range w.w.Sent {
		for _, m := range s.Messages {
			out = append(out, builtins.SentMessage{Hook: s.Hook, Method: m.Method, URL: m.URL, Key: m.Key, Headers: m.Headers, Body: string(m.Body)})
		}
	}
	return out
}

// unasked logs which functions of t.http have been waiting for messages: nothing else of a test says so.
func (w *world) unasked() {
	for _, s := range w.w.Sent {
		for _, m := range s.Messages {
			host, err := m.Host()
			if err != nil || w.hosts[host] == nil || w.asked[host] {
				continue
			}
			w.asked[host] = true // once is enough
			w.say(format(builtins.LevelWarn, "", "", fmt.Sprintf("t.http(%q, fn) was never asked: http.send is not answered by t.http; t.sent() has its messages", host), nil))
		}
	}
}
