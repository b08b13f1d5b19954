package check

import (
	"fmt"
	"slices"
	"strings"

	"go.starlark.net/starlark"
	"go.starlark.net/syntax"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/starling-operator/starling/builtins"
	"github.com/starling-operator/starling/builtins/spec"
	"github.com/starling-operator/starling/modules/chart"
	"github.com/starling-operator/starling/runtime/generation"
	"github.com/starling-operator/starling/runtime/script"
	"github.com/starling-operator/starling/runtime/sim/store"
)

// Kinds that are written out: whether there are such, and whether grants cover them.

// verbs are what the calls of k8s need in a grant.
var verbs = map[string]string{
	"k8s.get": "get", "k8s.list": "list", "k8s.secret": "get", "k8s.apply": "apply", "k8s.create": "create", "k8s.apply_set": "apply",
	"k8s.patch": "patch", "k8s.status": "patch", "k8s.delete": "delete", "k8s.evict": "delete", "k8s.event": "create",
	"k8s.exec": "exec", "k8s.logs": "logs", "k8s.ask": "create", "k8s.token": "token",
}

// literal is a kind that is written out.
type literal struct {
	apiVersion, kind string
	pos              syntax.Position
	// namespaces are written out in the grant; nil: the module's own where own says so, else nobody knows.
	namespaces []string
	own        bool
}

// objectsOf are the kinds that a call is about, as far as they are written out.
func objectsOf(name string, call *syntax.CallExpr) []literal {
	pos, _ := call.Span()
	written := func(version, kind, namespaces syntax.Expr) []literal {
		v, ok1 := script.TextOf(version)
		k, ok2 := script.TextOf(kind)
		if !ok1 || !ok2 {
			return nil
		}
		return []literal{{v, k, pos, textsOf(namespaces), unsaid(call, namespaces)}}
	}
	of := func(kind string, namespace syntax.Expr) []literal {
		return []literal{{"v1", kind, pos, textsOf(namespace), unsaid(call, namespace)}}
	}
	switch name {
	case "k8s.get":
		return written(script.ArgumentOf(call, 0, "api_version"), script.ArgumentOf(call, 1, "kind"), script.ArgumentOf(call, 3, "namespace"))
	case "k8s.list":
		return written(script.ArgumentOf(call, 0, "api_version"), script.ArgumentOf(call, 1, "kind"), script.ArgumentOf(call, 2, "namespaces"))
	case "k8s.watch":
		return written(script.ArgumentOf(call, 0, "api_version"), script.ArgumentOf(call, 1, "kind"), nil)
	case "k8s.secret":
		return of("Secret", script.ArgumentOf(call, 2, "namespace"))
	case "k8s.event":
		return []literal{{"v1", "Event", pos, nil, false}} // where the object is
	case "k8s.exec", "k8s.logs":
		return of("Pod", script.ArgumentOf(call, -1, "namespace"))
	case "k8s.token":
		return of("ServiceAccount", script.ArgumentOf(call, -1, "namespace"))
	case "k8s.apply", "k8s.create", "k8s.ask":
		return identity(script.ArgumentOf(call, 0, "obj"))
	case "k8s.apply_set":
		var out []literal
		if list, ok := script.ArgumentOf(call, 1, "objs").(*syntax.ListExpr); ok {
			for _, e := range list.List {
				out = append(out, identity(e)...)
			}
		}
		return out
	case "k8s.patch", "k8s.status", "k8s.delete", "k8s.evict":
		first := script.ArgumentOf(call, 0, "ref")
		if found := identity(first); found != nil {
			return found
		}
		return written(first, script.ArgumentOf(call, 1, "kind"), script.ArgumentOf(call, 3, "namespace"))
	}
	return nil
}

// unsaid says that a call names no namespace: it means that of the module.
func unsaid(call *syntax.CallExpr, namespace syntax.Expr) bool {
	return namespace == nil && !slices.ContainsFunc(call.Args, func(arg syntax.Expr) bool {
		u, is := arg.(*syntax.UnaryExpr)
		return is && (u.Op == syntax.STAR || u.Op == syntax.STARSTAR)
	})
}

// textsOf are the texts of a literal, or of a list of nothing else.
func textsOf(e syntax.Expr) []string {
	if one, is := script.TextOf(e); is && one != "" {
		return []string{one}
	}
	texts, _ := script.TextsOf(e)
	return texts
}

// identity is the kind of an object that is written out as a dict.
func identity(e syntax.Expr) []literal {
	dict, ok := e.(*syntax.DictExpr)
	if !ok {
		return nil
	}
	out := literal{own: true}
	for _, entry := range dict.List {
		entry, ok := entry.(*syntax.DictEntry)
		if !ok {
			continue
		}
		key, _ := script.TextOf(entry.Key)
		value, isText := script.TextOf(entry.Value)
		switch {
		case key == "apiVersion" && isText:
			out.apiVersion = value
		case key == "kind" && isText:
			out.kind = value
			out.pos, _ = entry.Value.Span()
		case key == "namespace":
			out.namespaces, out.own = textsOf(entry.Value), false
		case key == "metadata":
			metadata, is := entry.Value.(*syntax.DictExpr)
			if out.own = false; is {
				namespace := valueOf(metadata, "namespace")
				out.namespaces, out.own = textsOf(namespace), namespace == nil
			}
		}
	}
	if out.apiVersion == "" || out.kind == "" {
		return nil
	}
	return []literal{out}
}

// valueOf is what a dict holds under a key that is written out.
func valueOf(dict *syntax.DictExpr, key string) syntax.Expr {
	for _, entry := range dict.List {
		if entry, is := entry.(*syntax.DictEntry); is {
			if k, _ := script.TextOf(entry.Key); k == key {
				return entry.Value
			}
		}
	}
	return nil
}

// literalKinds looks at all kinds that a file writes out. Tests may make kinds up: of
// theirs only the case counts.
func (c *checker) literalKinds(s *source) {
	test := strings.HasSuffix(s.path, "_test.star")
	syntax.Walk(s.file, func(n syntax.Node) bool {
		var found []literal
		switch n := n.(type) {
		case *syntax.CallExpr:
			if expectsAnError(n) {
				return false
			}
			if name := s.builtin(n.Fn); name != "k8s.watch" { // hooks that load tell of those
				if found = objectsOf(name, n); len(found) > 0 && identity(script.ArgumentOf(n, 0, "obj")) != nil {
					found = nil // the dict is looked at by itself
				}
			}
		case *syntax.DictExpr:
			found = identity(n)
		}
		for _, l := range found {
			if hint, swapped := spec.IsKind(l.apiVersion); swapped {
				c.named(l.pos, fmt.Sprintf("%q is no api version", l.apiVersion), hint)
				continue
			}
			message, near, sure := c.kinds.unknown(l.apiVersion, l.kind)
			if message == "" || test && !strings.EqualFold(near, l.apiVersion+" "+l.kind) {
				continue
			}
			severity, hint := Warning, ""
			if !sure {
				severity = Note
			}
			if near != "" {
				hint = "did you mean " + near + "?"
			}
			c.at(severity, "kinds", l.pos, message, hint)
		}
		return true
	})
}

// functionOf is where a function of the tree stands.
func functionOf(fn any) (function, bool) {
	f, ok := fn.(*starlark.Function)
	if !ok || f == nil {
		return function{}, false
	}
	pos := f.Position()
	return function{pos.Filename(), place{pos.Line, pos.Col}}, true
}

// grants looks for calls, in what hooks run, on kinds that no grant of their module
// covers.
func (c *checker) grants() {
	for _, m := range c.modules {
		if m.Err != nil {
			continue // its grants are not known
		}
		seen := map[function]bool{}
		for _, h := range m.Hooks {
			for _, fn := range []any{h.Fn, h.Cleanup} {
				at, ok := functionOf(fn)
				if !ok || c.files[at.file] == nil {
					continue
				}
				for _, f := range c.reachable(at) {
					if !seen[f] {
						seen[f] = true
						c.granted(m, c.files[f.file], c.files[f.file].at[f.place])
					}
				}
			}
		}
	}
}

func (c *checker) granted(m *generation.Module, s *source, fn syntax.Node) {
	syntax.Walk(fn, func(n syntax.Node) bool {
		call, ok := n.(*syntax.CallExpr)
		if !ok {
			return true
		}
		name := s.builtin(call.Fn)
		if strings.HasPrefix(name, "http.") && len(m.Decl.HostSources) == 0 {
			c.listed(m, call, name)
		}
		verb := verbs[name]
		if verb == "" {
			return true
		}
		for _, l := range objectsOf(name, call) {
			if _, swapped := spec.IsKind(l.apiVersion); swapped {
				continue // literalKinds says so
			}
			c.covered(m, call, name, verb, l)
		}
		return true
	})
}

// covered tells when a call needs a grant that is not there, with the line that a run would ask for, too.
func (c *checker) covered(m *generation.Module, call *syntax.CallExpr, name, verb string, l literal) {
	own, places := m.Decl.Namespace, slices.Clone(l.namespaces) // own is "": the operator's, which nobody knows here
	if i := slices.Index(places, own); i >= 0 {
		places, l.own = slices.Delete(places, i, i+1), true
	}
	switch namespaced, known := c.namespaced(l); {
	case known && !namespaced:
		places, l.own = nil, false
	case name == "k8s.list" && known && script.ArgumentOf(call, 2, "namespaces") == nil:
		places, l.own = []string{"*"}, false
	case !known:
		l.own = false
	}
	granted := func(verb string) bool {
		if !builtins.Granted(m.Decl.Grants, verb, l.apiVersion, l.kind) {
			return false
		}
		return !slices.ContainsFunc(places, func(ns string) bool {
			return !builtins.GrantedIn(m.Decl.Grants, verb, l.apiVersion, l.kind, ns)
		}) && (!l.own || builtins.Granted(ownGrants(m), verb, l.apiVersion, l.kind))
	}
	if name == "k8s.apply_set" && granted(verb) {
		verb = "delete" // of what the set no longer lists
	}
	if granted(verb) {
		return
	}
	where, more := "", ""
	if len(places) > 0 {
		where, more = " in namespace "+strings.Join(places, ", "), fmt.Sprintf(`, namespaces = ["%s"]`, strings.Join(places, `", "`))
		if places[0] == "*" {
			where = " in all namespaces"
		}
	}
	if len(places) == 0 && l.own && builtins.Granted(m.Decl.Grants, verb, l.apiVersion, l.kind) {
		where = " in its own namespace"
	}
	severity := Error
	if own == "" && where != "" && !slices.Contains(places, "*") && builtins.Granted(m.Decl.Grants, verb, l.apiVersion, l.kind) {
		severity, where = Warning, where+", if that is not where Starling runs"
		if len(places) == 0 {
			where = " in the namespace in which Starling runs, which is its own"
		}
	}
	pos, _ := call.Span()
	f := Finding{Severity: severity, Check: "grants", Module: m.Name, File: pos.Filename(), Line: int(pos.Line), Col: int(pos.Col),
		Message: fmt.Sprintf("%s: no grant of module %s lets it %s %s %s%s", name, m.Name, verb, l.apiVersion, l.kind, where),
		Hint:    fmt.Sprintf("add to module(grants = […]): grant(%q, %q, verbs = [%q]%s)", l.apiVersion, l.kind, verb, more)}
	for _, g := range m.Decl.Grants {
		if strings.EqualFold(g.Kind, l.kind) && g.Kind != l.kind && builtins.Granted([]builtins.Grant{g}, verb, g.APIVersion, g.Kind) {
			f.Hint = fmt.Sprintf("did you mean %s? that is what its grant says", g.Kind)
		}
	}
	c.add(f)
}

// ownGrants are those of a module for the namespace of the module.
func ownGrants(m *generation.Module) []builtins.Grant {
	return slices.DeleteFunc(slices.Clone(m.Decl.Grants), func(g builtins.Grant) bool {
		return g.Namespaces != nil && !slices.Contains(g.Namespaces, "*") && (m.Decl.Namespace == "" || !slices.Contains(g.Namespaces, m.Decl.Namespace))
	})
}

// namespaced says whether objects of a kind of Kubernetes are in namespaces.
func (c *checker) namespaced(l literal) (is, known bool) {
	k, known := store.New(store.Options{Builtins: c.cache.builtins()}).KindOf(schema.FromAPIVersionAndKind(l.apiVersion, l.kind))
	return k.Namespaced, known
}

// clusterWide says whether objects of a kind of Kubernetes are in none.
func (c *checker) clusterWide(o chart.Object) bool {
	is, known := c.namespaced(literal{apiVersion: o.APIVersion, kind: o.Kind})
	return known && !is
}

// urlAt is where a call has its URL.
var urlAt = map[string]int{"http.get": 0, "http.request": 1, "http.send": 1}

// listed tells of a request to a host, written out, that module(http = […]) does not list.
func (c *checker) listed(m *generation.Module, call *syntax.CallExpr, name string) {
	at, ok := urlAt[name]
	if !ok {
		return
	}
	e := script.ArgumentOf(call, at, "url")
	if b, ok := e.(*syntax.BinaryExpr); ok && (b.Op == syntax.PLUS || b.Op == syntax.PERCENT) {
		e = b.X
	}
	url, ok := script.TextOf(e)
	if !ok {
		return
	}
	if e != script.ArgumentOf(call, at, "url") { // of the rest only the host is certain, when a path follows
		scheme, rest, _ := strings.Cut(url, "://")
		host, _, path := strings.Cut(rest, "/")
		if !path || strings.ContainsAny(host, "%{") {
			return
		}
		url = scheme + "://" + host + "/"
	}
	if problem := builtins.URLProblem(url, m.Decl.Hosts); problem != "" {
		pos, _ := e.Span()
		c.add(Finding{Severity: Error, Check: "grants", Module: m.Name, File: pos.Filename(), Line: int(pos.Line), Col: int(pos.Col), Message: name + ": " + problem})
	}
}
