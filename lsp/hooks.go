package lsp

import (
	"fmt"
	"slices"
	"strings"

	"go.starlark.net/starlark"
	"go.starlark.net/syntax"

	"github.com/starling-operator/starling/builtins/docs"
	"github.com/starling-operator/starling/runtime/generation"
	"github.com/starling-operator/starling/runtime/script"
)

// The fields that a function of a hook finds in its argument hang on how it is registered: as the file says that, and as
// the last check has loaded it.

// snapshot is one of the watches of a hook.
type snapshot struct{ name, of string }

// snapshotsAt are the watches of the hooks whose function is around a place.
func (s *Server) snapshotsAt(d *document, offset int) (out []snapshot) {
	add := func(name, of string) {
		if name != "" && !slices.ContainsFunc(out, func(s snapshot) bool { return s.name == name }) {
			out = append(out, snapshot{name, of})
		}
	}
	for _, def := range enclosing(d.text, offset) {
		if d.parsed != nil {
			for _, w := range d.parsed.watchesOf(def.name) {
				add(w.name, w.of)
			}
		}
		for _, h := range s.hooksWith(d, def.name) {
			for _, b := range h.Bindings {
				if b.Watch != nil && b.Watch.Read == "" {
					add(b.Name, b.Watch.APIVersion+" "+b.Watch.Kind)
				}
			}
		}
	}
	return out
}

// watchesOf are the watches with which the file registers a function.
func (p *parsedText) watchesOf(function string) (out []snapshot) {
	syntax.Walk(p.file, func(n syntax.Node) bool {
		hook, ok := n.(*syntax.CallExpr)
		if !ok || script.NameOf(hook.Fn) != "hook" || len(hook.Args) == 0 || script.NameOf(hook.Args[0]) != function {
			return true
		}
		syntax.Walk(hook, func(n syntax.Node) bool {
			watch, ok := n.(*syntax.CallExpr)
			if !ok || script.NameOf(watch.Fn) != "k8s.watch" {
				return true
			}
			kind := textOf(script.ArgumentOf(watch, 1, "kind"))
			name := textOf(script.ArgumentOf(watch, -1, "name"))
			if name == "" {
				name = strings.ToLower(kind)
			}
			out = append(out, snapshot{name, strings.TrimSpace(textOf(script.ArgumentOf(watch, 0, "api_version")) + " " + kind)})
			return true
		})
		return true
	})
	return out
}

// hooksWith are the hooks that the last check has loaded with a function of a document.
func (s *Server) hooksWith(d *document, function string) []*generation.Hook {
	if d.folder == nil || d.folder.gen == nil {
		return nil
	}
	return hooksOf(d.folder.gen, d.inTree, function)
}

// hooksOf are the hooks with a function of a file.
func hooksOf(gen *generation.Generation, file, function string) (out []*generation.Hook) {
	for _, h := range gen.Hooks() {
		fn, ok := h.Fn.(*starlark.Function)
		if ok && fn.Name() == function && fn.Position().Filename() == file {
			out = append(out, h)
		}
	}
	return out
}

// isSnapshots says whether a name stands for the snapshots of the hook that a place is in.
func (s *Server) isSnapshots(d *document, offset int, name string) bool {
	name = s.renamed(d, offset, name)
	return name == "ctx.snapshots" || name == "ctx.synced"
}

func (s *Server) docOfSnapshot(d *document, offset int, name string) string {
	for _, w := range s.snapshotsAt(d, offset) {
		if w.name == name {
			return fmt.Sprintf("The results of the watch `%s` of %s, sorted by namespace and name.", name, w.of)
		}
	}
	return ""
}

// callbacksOf are the kinds of functions that a function of a document is, by how the file hands it on.
func (s *Server) callbacksOf(d *document, function string) (out []string) {
	add := func(name string) {
		if c := docs.CallbackOf(name); c != nil && c.Ctx() && !slices.Contains(out, name) {
			out = append(out, name)
		}
	}
	if d.parsed == nil {
		return nil
	}
	syntax.Walk(d.parsed.file, func(n syntax.Node) bool {
		call, ok := n.(*syntax.CallExpr)
		if !ok {
			return true
		}
		name := script.NameOf(call.Fn)
		for i, p := range s.builtin.specs[name].Params {
			if p.Keyword {
				i = -1
			}
			if script.NameOf(script.ArgumentOf(call, i, p.Name)) != function {
				continue
			}
			if add(name + "(" + p.Name + ")"); name == "hook" && p.Name == "fn" {
				if script.ArgumentOf(call, -1, "for_each") != nil {
					add("hook(for_each)")
				}
				syntax.Walk(call, func(n syntax.Node) bool {
					if trigger, ok := n.(*syntax.CallExpr); ok {
						add(script.NameOf(trigger.Fn))
					}
					return true
				})
			}
		}
		return true
	})
	return out
}

// ctxMembers are the fields one level below a path in ctx, as the function has them that a place is in.
func (s *Server) ctxMembers(d *document, offset int, path string) (out []docs.CtxField) {
	var callbacks []string
	for _, def := range enclosing(d.text, offset) {
		callbacks = append(callbacks, s.callbacksOf(d, def.name)...)
	}
	if len(callbacks) == 0 {
		callbacks = []string{""}
	}
	for _, callback := range callbacks {
		for _, f := range docs.CtxMembers(callback, path) {
			if !slices.ContainsFunc(out, func(have docs.CtxField) bool { return have.Path == f.Path }) {
				out = append(out, f)
			}
		}
	}
	return out
}

// ctxField explains a field of ctx; ok is false for any other name.
func (s *Server) ctxField(d *document, offset int, name string) (doc string, ok bool) {
	name = s.renamed(d, offset, name)
	i := strings.LastIndexByte(name, '.')
	if i < 0 || !strings.HasPrefix(name, "ctx.") {
		return "", false
	}
	for _, f := range s.ctxMembers(d, offset, name[:i]) {
		if f.Path == name {
			return docOfCtx(f), true
		}
	}
	return "", false
}

func docOfCtx(f docs.CtxField) string {
	doc := fmt.Sprintf("`%s`: %s\n\n%s", f.Path, f.Type, f.Doc)
	if f.Example != "" {
		doc += fmt.Sprintf("\n\nFor example `%s`", f.Example)
	}
	return doc + "\n\n*In: " + strings.Join(f.In, ", ") + "*"
}

// argumentName is where a call names an argument; nil when it does not.
func argumentName(call *syntax.CallExpr, name string) *syntax.Ident {
	for _, arg := range call.Args {
		if b, ok := arg.(*syntax.BinaryExpr); ok && b.Op == syntax.EQ {
			if id, ok := b.X.(*syntax.Ident); ok && id.Name == name {
				return id
			}
		}
	}
	return nil
}

// textOf is the text that an expression is; "" for none.
func textOf(e syntax.Expr) string {
	text, _ := script.TextOf(e)
	return text
}
