package check

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"go.starlark.net/syntax"

	"github.com/starling-operator/starling/builtins"
	"github.com/starling-operator/starling/builtins/docs"
	"github.com/starling-operator/starling/builtins/spec"
	"github.com/starling-operator/starling/runtime/generation"
	"github.com/starling-operator/starling/runtime/message"
	"github.com/starling-operator/starling/runtime/script"
)

// These checks compare calls with the table of builtins: members, arguments.

// table is what is known of builtins.
type table struct {
	specs map[string]spec.Spec
	// members are those of namespaces: "k8s" has "apply", "t.cluster" has "get".
	members map[string][]string
}

func newTable() table {
	t := table{specs: map[string]spec.Spec{}, members: map[string][]string{}}
	for _, s := range builtins.Table() {
		t.specs[s.Name] = s
		for name := s.Name; ; {
			i := strings.LastIndexByte(name, '.')
			if i < 0 {
				break
			}
			space, member := name[:i], name[i+1:]
			if !slices.Contains(t.members[space], member) {
				t.members[space] = append(t.members[space], member)
			}
			name = space
		}
	}
	t.members["ctx"] = nil
	for _, f := range docs.CtxMembers("", "ctx") {
		t.members["ctx"] = append(t.members["ctx"], strings.TrimPrefix(f.Path, "ctx."))
	}
	delete(t.members, "expect")
	return t
}

// calls looks at all members and calls of a file.
func (c *checker) calls(s *source) {
	c.names(s, s.file, func(e syntax.Expr) string { return s.builtin(e) })
	if !strings.HasSuffix(s.path, "_test.star") {
		return
	}
	for _, def := range s.functions {
		if strings.HasPrefix(def.Name.Name, "test_") && len(def.Params) == 1 {
			c.parameter(s, def, "t")
		}
	}
}

// opened are the first parameter of a function, nil without one, and its body.
func opened(fn syntax.Node) (first *syntax.Ident, body []syntax.Stmt) {
	var params []syntax.Expr
	switch fn := fn.(type) {
	case *syntax.DefStmt:
		params, body = fn.Params, fn.Body
	case *syntax.LambdaExpr:
		params, body = fn.Params, []syntax.Stmt{&syntax.ExprStmt{X: fn.Body}}
	}
	if len(params) > 0 {
		first, _ = params[0].(*syntax.Ident)
	}
	return first, body
}

// parameter looks at the members of a function's first parameter, which is t or ctx.
func (c *checker) parameter(s *source, fn syntax.Node, is string) {
	id, body := opened(fn)
	if id == nil {
		return
	}
	for _, stmt := range body {
		if binds(stmt, id.Name) {
			return // it means something else in a part of it
		}
	}
	for _, stmt := range body {
		c.names(s, stmt, func(e syntax.Expr) string {
			name := script.NameOf(e)
			if name == id.Name || strings.HasPrefix(name, id.Name+".") {
				return is + strings.TrimPrefix(name, id.Name)
			}
			return ""
		})
	}
}

// binds says whether a name gets a meaning in a statement.
func binds(stmt syntax.Node, name string) bool {
	s := &source{at: map[place]syntax.Node{}, bound: map[string]bool{}, times: map[string]int{}}
	syntax.Walk(stmt, func(n syntax.Node) bool {
		s.bind(n)
		return true
	})
	return s.bound[name]
}

// names looks at the members and calls below a node; name says which builtin an
// expression is. Calls that a test expects to fail are left out.
func (c *checker) names(s *source, node syntax.Node, name func(syntax.Expr) string) {
	syntax.Walk(node, func(n syntax.Node) bool {
		switch n := n.(type) {
		case *syntax.CallExpr:
			if expectsAnError(n) {
				return false
			}
			of := name(n.Fn)
			if decl, ok := c.table.specs[of]; ok && !decl.Constant() {
				c.arguments(s, n, decl)
			} else if !ok && len(c.table.members[of]) > 0 {
				start, _ := n.Span()
				c.named(start, of+" is no function", script.CallHint(of))
			}
		case *syntax.DotExpr:
			space := name(n.X)
			members := c.table.members[space]
			if decl, ok := c.table.specs[space]; ok && len(members) == 0 && !decl.Constant() {
				hint := cmp.Or(script.MemberHint("builtin_function_or_method", n.Name.Name), "it is a function: call it, "+space+"(…)")
				c.named(n.Name.NamePos, space+" has no "+n.Name.Name, hint)
			}
			if len(members) == 0 || slices.Contains(members, n.Name.Name) {
				return true
			}
			slices.Sort(members)
			hint := script.MemberHint(space, n.Name.Name)
			if near := message.Nearest(n.Name.Name, members); hint == "" && near != "" {
				hint = "did you mean " + space + "." + near + "?"
			} else if hint == "" && len(members) <= 12 {
				hint = "it has " + strings.Join(members, ", ")
			}
			c.named(n.Name.NamePos, fmt.Sprintf("%s has no %s", space, n.Name.Name), hint)
		}
		return true
	})
}

// named takes a finding, which leaveOut drops when loading has stopped at that line: then it is told of.
func (c *checker) named(pos syntax.Position, message, hint string) {
	c.at(Error, "names", pos, message, hint)
}

// ofCall takes a finding about an argument. It is dropped when loading has stopped at the call.
func (c *checker) ofCall(call *syntax.CallExpr, pos syntax.Position, message, hint string) {
	start, _ := call.Span()
	c.add(Finding{
		Severity: Error, Check: "names", File: pos.Filename(), Line: int(pos.Line), Col: int(pos.Col),
		Message: message, Hint: hint, call: int(start.Line),
	})
}

// expectsAnError says whether a call is of a test that expects one.
func expectsAnError(call *syntax.CallExpr) bool {
	dot, ok := call.Fn.(*syntax.DotExpr)
	return ok && (dot.Name.Name == "expect_error" || dot.Name.Name == "fails")
}

// refParts are what a reference takes that is written out.
var refParts = []string{"kind", "name", "namespace"}

// arguments holds those of a call to the parameters of a builtin.
func (c *checker) arguments(s *source, call *syntax.CallExpr, decl spec.Spec) {
	var names, required []string
	most, rest, others := 0, false, false
	for _, p := range decl.Params {
		switch {
		case strings.HasPrefix(p.Name, "**"):
			others = true
			continue
		case strings.HasPrefix(p.Name, "*"):
			rest = true
			continue
		case !p.Keyword && !rest:
			most++
		}
		names = append(names, p.Name)
		if p.Default == "" {
			required = append(required, p.Name)
		}
	}
	byRef := len(decl.Params) > 0 && decl.Params[0].Type == spec.Ref
	given, positional, spread, parts := map[string]bool{}, 0, false, false
	for _, arg := range call.Args {
		switch arg := arg.(type) {
		case *syntax.UnaryExpr:
			if arg.Op == syntax.STAR || arg.Op == syntax.STARSTAR {
				spread = true
				continue
			}
		case *syntax.BinaryExpr:
			id, ok := arg.X.(*syntax.Ident)
			if arg.Op != syntax.EQ || !ok {
				break
			}
			given[id.Name] = true
			if !others && !slices.Contains(names, id.Name) && !(byRef && slices.Contains(refParts, id.Name)) {
				c.unexpected(call, id, decl.Name, names)
			}
			c.argument(s, call, decl, id.Name, arg.Y)
			continue
		}
		if _, written := script.TextOf(arg); positional == 0 && byRef {
			parts = written || decl.Name != "k8s.event" // of others all that follows goes by keyword
		}
		if !spread && !parts && positional < most {
			c.argument(s, call, decl, decl.Params[positional].Name, arg)
		}
		positional++
	}
	start, _ := call.Span()
	if len(call.Args) > 0 && len(decl.Params) > 0 && decl.Params[0].Type == spec.Path {
		if path, ok := script.TextOf(call.Args[0]); ok {
			if hint := spec.PathHint(decl.Name, path); hint != "" {
				c.named(start, decl.Name+": "+hint, "")
			}
		}
	}
	if spread || byRef { // of a reference that is written out the parts go by position
		return
	}
	if positional > most && !rest {
		hint := "the others have their names: " + strings.Join(names, ", ")
		switch {
		case strings.HasPrefix(decl.Name, "log."):
			hint = fmt.Sprintf(`write %s("n: %%d" %% n), or %s("counted", n = n)`, decl.Name, decl.Name)
		case len(names) == most:
			hint = "it takes " + strings.Join(names, ", ")
		}
		c.named(start, fmt.Sprintf("%s takes %d by position, this gives %d", decl.Name, most, positional), hint)
		return
	}
	for i, p := range names {
		if slices.Contains(required, p) && i >= positional && !given[p] {
			first := ""
			if len(call.Args) > 0 {
				first, _ = script.TextOf(call.Args[0])
			}
			c.named(start, decl.Name+": argument "+p+" is missing", spec.MissingHint(p, first))
			return
		}
	}
}

func (c *checker) unexpected(call *syntax.CallExpr, id *syntax.Ident, of string, names []string) {
	hint := ""
	if hint = spec.ParamHint(of, id.Name, names); hint == "" && len(names) > 0 {
		hint = "it takes " + strings.Join(names, ", ")
	}
	c.ofCall(call, id.NamePos, fmt.Sprintf("%s takes no argument %s", of, id.Name), hint)
}

// contexts looks at what the functions of hooks take from ctx.
func (c *checker) contexts() {
	snapshots := map[syntax.Node][]string{}
	files := map[syntax.Node]*source{}
	for _, m := range c.modules {
		for _, h := range m.Hooks {
			if h.Controller != nil {
				continue // it is called with another ctx
			}
			c.withoutRequest(m, h)
			for _, fn := range []any{h.Fn, h.Cleanup} {
				s, node := c.nodeOf(fn)
				if node == nil {
					continue
				}
				files[node] = s
				for _, b := range h.Bindings {
					if b.Watch != nil {
						snapshots[node] = append(snapshots[node], b.Name)
					}
				}
			}
		}
	}
	for node, s := range files {
		c.parameter(s, node, "ctx")
		c.snapshots(node, slices.Compact(slices.Sorted(slices.Values(snapshots[node]))))
	}
}

// nodeOf is a function of the tree as it is written, and its file: nil for any other.
func (c *checker) nodeOf(fn any) (*source, syntax.Node) {
	at, ok := functionOf(fn)
	if s := c.files[at.file]; ok && s != nil {
		return s, s.at[at.place]
	}
	return nil, nil
}

// snapshots looks at ctx.snapshots["name"] and ctx.synced["name"].
func (c *checker) snapshots(fn syntax.Node, names []string) {
	ctx, _ := opened(fn)
	if ctx == nil {
		return
	}
	syntax.Walk(fn, func(n syntax.Node) bool {
		if dot, ok := n.(*syntax.DotExpr); ok {
			if of := script.NameOf(dot.X); of == ctx.Name+".snapshots" || of == ctx.Name+".synced" {
				member := strings.TrimPrefix(of, ctx.Name+".")
				c.named(dot.Name.NamePos, member+" has no ."+dot.Name.Name, script.MemberHint(member, dot.Name.Name))
			}
		}
		index, ok := n.(*syntax.IndexExpr)
		if !ok {
			return true
		}
		of := script.NameOf(index.X)
		if of != ctx.Name+".snapshots" && of != ctx.Name+".synced" {
			return true
		}
		name, ok := script.TextOf(index.Y)
		if !ok || slices.Contains(names, name) {
			return true
		}
		hint := "the hook watches nothing under a name"
		if near := message.Nearest(name, names); near != "" {
			hint = fmt.Sprintf("did you mean %q?", near)
		} else if len(names) > 0 {
			hint = "it has " + strings.Join(names, ", ")
		}
		pos, _ := index.Y.Span()
		c.named(pos, fmt.Sprintf("the hook has no snapshot %q", name), hint)
		return true
	})
}

// withoutRequest warns of watches that run a hook which takes requests: in such a run there is none. A function that
// asks for it is fine.
func (c *checker) withoutRequest(m *generation.Module, h *generation.Hook) {
	if !slices.ContainsFunc(h.Bindings, func(b builtins.Binding) bool { return b.Admission != nil || b.Receive != nil }) {
		return
	}
	_, node := c.nodeOf(h.Fn)
	first, _ := opened(node)
	if first == nil {
		return // it reads no request
	}
	ctx, reads, asks := first.Name, false, false
	syntax.Walk(node, func(n syntax.Node) bool {
		dot, is := n.(*syntax.DotExpr)
		if !is {
			return true
		}
		if x, is := dot.X.(*syntax.DotExpr); is && script.NameOf(x) == ctx+".request" {
			reads = true
			return false
		}
		asks = asks || slices.Contains([]string{ctx + ".request", ctx + ".events"}, script.NameOf(dot))
		return true
	})
	if !reads || asks {
		return
	}
	for _, b := range h.Bindings {
		w := b.Watch
		if w == nil || w.Quiet && w.Events != nil && len(w.Events) == 0 {
			continue
		}
		what, add := "when it has seen all there is", "sync = False"
		switch {
		case w.Quiet:
			what, add = "when an object changes", "events = []"
		case w.Events == nil || len(w.Events) > 0:
			what, add = "when it has seen all there is, and when an object changes", "sync = False, events = []"
		}
		c.addAt(Warning, "phases", m.Name, w.Pos, fmt.Sprintf("k8s.watch: it runs hook %s %s, without a request, "+
			"so ctx.request is None", h.HookDecl.ID, what), "add "+add+", or ask whether there is a ctx.request")
	}
}
