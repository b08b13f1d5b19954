package check

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"go.starlark.net/syntax"

	"github.com/starling-operator/starling/builtins"
	"github.com/starling-operator/starling/modules/tree"
	"github.com/starling-operator/starling/modules/values"
	"github.com/starling-operator/starling/runtime/generation"
	"github.com/starling-operator/starling/runtime/message"
	"github.com/starling-operator/starling/runtime/object"
	"github.com/starling-operator/starling/runtime/script"
)

// exported are the values below global.exports that are there before any hook has run.
func (c *checker) exported() map[string]any {
	out := map[string]any{}
	for _, name := range c.gen.Names {
		m := c.gen.Modules[name]
		if len(m.Decl.Exports) == 0 || c.values[name].broken {
			continue
		}
		own, all := c.values[name].composer.Compose(), map[string]any{}
		for _, text := range m.Decl.Exports {
			path := object.Dotted(text).Resolve(own)
			if v, _ := object.Get(own, path); v != nil {
				all = values.Merge(all, nested(path, v))
			}
		}
		out[m.Key] = all
	}
	return out
}

// nested is v below the keys of path.
func nested(path []string, v any) map[string]any {
	for _, key := range slices.Backward(path) {
		v = map[string]any{key: v}
	}
	out, _ := v.(map[string]any)
	return out
}

// exportCall holds a call of values.of that is written out to what the other module exports.
func (c *checker) exportCall(s *source, n syntax.Node) {
	call, ok := n.(*syntax.CallExpr)
	if !ok || s.builtin(call.Fn) != "values.of" {
		return
	}
	arg := script.ArgumentOf(call, 0, "module")
	name, ok := script.TextOf(arg)
	if !ok {
		return
	}
	pos, _ := arg.Span()
	other := c.gen.Modules[name]
	if c.gen.Elsewhere[name] {
		c.at(Warning, "values", pos, c.gen.NotHere(name)+"; nothing of its values is known here", "")
		return
	}
	if other == nil {
		c.at(Warning, "values", pos, "there is no module "+name, message.DidYouMean(name, c.gen.Names, ""))
		return
	}
	path, ok := script.TextOf(script.ArgumentOf(call, 1, "path"))
	if !ok || c.isExported(other, path) {
		return
	}
	c.at(Error, "values", pos, "module "+name+" does not export "+path, "add it to module(exports = […]) of "+other.Tree.Dir+"/module.star")
}

// configCall holds a call of config.set or config.remove that is written out to module(config = […]), and one of
// config.get to the defaults of the schema, which it does not see.
func (c *checker) configCall(m *generation.Module, s *source, n syntax.Node) {
	call, ok := n.(*syntax.CallExpr)
	if !ok {
		return
	}
	name := s.builtin(call.Fn)
	arg := script.ArgumentOf(call, 0, "path")
	path, ok := script.TextOf(arg)
	if name == "config.get" && ok && script.ArgumentOf(call, 1, "default") == nil {
		c.configDefault(m, call, path)
	}
	if name != "config.set" && name != "config.remove" {
		return
	}
	if !ok || covered(m.Decl.Config, path) {
		return
	}
	pos, _ := arg.Span()
	c.at(Error, "values", pos, "hooks of "+m.Name+" may not change "+path+" in the user's config", "add it to module(config = […]) of "+m.Tree.Dir+"/module.star")
}

// configDefault warns of a value that users need not set, because the schema has a default.
func (c *checker) configDefault(m *generation.Module, call *syntax.CallExpr, text string) {
	of, path := c.values[m.Name], strings.Split(text, ".")
	if path[0] == values.GlobalKey {
		of, path = c.values[values.GlobalKey], path[1:]
	}
	for _, schema := range []*values.Schema{of.config, of.schema} {
		if f, ok := schema.Field(path); ok && f.Default != nil {
			pos, _ := call.Span()
			c.at(Warning, "values", pos, "config.get does not see the default that the schema gives "+text+": it is None until the user sets it", fmt.Sprintf("write values.get(%q), or give config.get a default=", text))
			return
		}
	}
}

// covered says whether one of some paths is this one, or holds it.
func covered(paths []string, path string) bool {
	return slices.ContainsFunc(paths, func(p string) bool { return p == path || strings.HasPrefix(path, p+".") })
}

// exportRead says what is wrong with a path below global.exports that a template names, or "".
func (c *checker) exportRead(path []string) string {
	if len(path) == 0 {
		return ""
	}
	for _, name := range c.gen.Names {
		if m := c.gen.Modules[name]; m.Key == path[0] {
			if len(path) == 1 || c.isExported(m, strings.Join(path[1:], ".")) {
				return ""
			}
			return "module " + name + " does not export " + strings.Join(path[1:], ".")
		}
	}
	for name := range c.gen.Elsewhere {
		if tree.Key(name) == path[0] {
			return c.gen.NotHere(name) + "; nothing of its values is known here"
		}
	}
	return "no module of the tree has the key " + path[0]
}

// isExported says whether a module exports a path, something that holds it, or something in it.
func (c *checker) isExported(m *generation.Module, path string) bool {
	return covered(m.Decl.Exports, path) || slices.ContainsFunc(m.Decl.Exports, func(e string) bool { return strings.HasPrefix(e, path+".") })
}

// withDerived are the global values with those that Starling puts there.
func (c *checker) withDerived(global map[string]any) map[string]any {
	out := maps.Clone(global)
	if _, set := global[values.EnabledModules]; !set && c.gen.Lists {
		out[values.EnabledModules] = []any{}
	}
	if exported := c.exported(); len(exported) > 0 {
		out[builtins.ExportsKey] = exported
	}
	return out
}
