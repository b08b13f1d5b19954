package check

import (
	"fmt"
	"slices"
	"strings"

	"go.starlark.net/syntax"

	"github.com/starling-operator/starling/modules/values"
	"github.com/starling-operator/starling/runtime/object"
	"github.com/starling-operator/starling/runtime/script"
)

// made are universal functions by the type of what they return.
var made = map[string]string{"str": "string", "repr": "string", "len": "integer", "int": "integer", "bool": "boolean", "sorted": "array", "list": "array", "dict": "object"}

// typeOf returns the type of what an expression always makes, in the words of JSON
// schemas; "" where it is not certain.
func (s *source) typeOf(e syntax.Expr) string {
	switch e := e.(type) {
	case *syntax.ParenExpr:
		return s.typeOf(e.X)
	case *syntax.Literal:
		switch e.Token {
		case syntax.STRING:
			return "string"
		case syntax.INT:
			return "integer"
		case syntax.FLOAT:
			if f, ok := e.Value.(float64); ok && f != float64(int64(f)) { // 2.0 may be an integer
				return "number"
			}
		}
	case *syntax.Ident:
		if (e.Name == "True" || e.Name == "False") && !s.bound[e.Name] {
			return "boolean"
		}
	case *syntax.ListExpr, *syntax.TupleExpr:
		return "array"
	case *syntax.DictExpr:
		return "object"
	case *syntax.Comprehension:
		if _, isDict := e.Body.(*syntax.DictEntry); isDict {
			return "object"
		}
		return "array"
	case *syntax.CondExpr:
		if t := s.typeOf(e.True); t == s.typeOf(e.False) {
			return t
		}
	case *syntax.UnaryExpr:
		switch e.Op {
		case syntax.NOT:
			return "boolean"
		case syntax.MINUS:
			return s.typeOf(e.X)
		}
	case *syntax.BinaryExpr:
		switch e.Op {
		case syntax.EQL, syntax.NEQ, syntax.LT, syntax.GT, syntax.LE, syntax.GE, syntax.IN, syntax.NOT_IN:
			return "boolean"
		case syntax.PERCENT, syntax.PLUS:
			if t := s.typeOf(e.X); t == "string" {
				return t
			}
		}
	case *syntax.CallExpr:
		return made[s.builtin(e.Fn)]
	}
	return ""
}

// typesOf holds what an expression makes to the schema at path, with what is in dicts
// and lists that are written out. name is how messages call the path.
func (c *checker) typesOf(s *source, e syntax.Expr, schema *values.Schema, path []string, name string) {
	if p, ok := e.(*syntax.ParenExpr); ok {
		e = p.X
	}
	got, want := s.typeOf(e), schema.Types(path)
	if got != "" && want != nil && !slices.Contains(want, got) && !(got == "integer" && slices.Contains(want, "number")) {
		pos, _ := e.Span()
		c.at(Error, "values", pos, fmt.Sprintf("%s must be %s, this is %s", name, inWords(want), inWords([]string{got})), "")
		return
	}
	switch e := e.(type) {
	case *syntax.ListExpr:
		for i, x := range e.List {
			c.typesOf(s, x, schema, append(slices.Clip(path), values.Items), fmt.Sprintf("%s[%d]", name, i))
		}
	case *syntax.DictExpr:
		for _, x := range e.List {
			entry, ok := x.(*syntax.DictEntry)
			if !ok {
				continue
			}
			if key, ok := script.TextOf(entry.Key); ok {
				below := object.KeysText([]string{key})
				if !strings.HasPrefix(below, "[") {
					below = "." + below
				}
				c.typesOf(s, entry.Value, schema, append(slices.Clip(path), key), name+below)
			}
		}
	}
}

// inWords names types as people do.
func inWords(types []string) string {
	var out []string
	for _, t := range types {
		switch t {
		case "object":
			t = "a dict"
		case "array":
			t = "a list"
		case "integer":
			t = "an integer"
		default:
			t = "a " + t
		}
		out = append(out, t)
	}
	return strings.Join(out, " or ")
}
