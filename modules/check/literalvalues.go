package check

import (
	"fmt"
	"math/big"
	"regexp"
	"strings"

	"go.starlark.net/starlark"
	"go.starlark.net/syntax"

	"github.com/starling-operator/starling/builtins"
	"github.com/starling-operator/starling/builtins/spec"
	"github.com/starling-operator/starling/runtime/script"
)

// argument holds an argument that is written out to what its parameter takes.
func (c *checker) argument(s *source, call *syntax.CallExpr, decl spec.Spec, param string, e syntax.Expr) {
	v := s.literal(e)
	if v == nil {
		return
	}
	if problem := builtins.ArgumentProblem(&decl, param, v); problem != "" {
		pos, _ := e.Span()
		c.ofCall(call, pos, problem, "")
	}
}

// literal is the value of an expression that is written out, a dict without what it holds; nil for any other.
func (s *source) literal(e syntax.Expr) starlark.Value {
	switch e := e.(type) {
	case *syntax.ParenExpr:
		return s.literal(e.X)
	case *syntax.Literal:
		switch v := e.Value.(type) {
		case string:
			if e.Token == syntax.BYTES {
				return starlark.Bytes(v)
			}
			return starlark.String(v)
		case int64:
			return starlark.MakeInt64(v)
		case *big.Int:
			return starlark.MakeBigInt(v)
		case float64:
			return starlark.Float(v)
		}
	case *syntax.Ident:
		switch {
		case s.bound[e.Name]:
		case e.Name == "None":
			return starlark.None
		case e.Name == "True" || e.Name == "False":
			return starlark.Bool(e.Name == "True")
		}
	case *syntax.ListExpr:
		elems := make([]starlark.Value, len(e.List))
		for i, x := range e.List {
			if elems[i] = s.literal(x); elems[i] == nil {
				return nil
			}
		}
		return starlark.NewList(elems)
	case *syntax.DictExpr:
		return starlark.NewDict(0)
	}
	return nil
}

// conversion is one of a text before %, up to its letter; of {} with a width or a precision.
var (
	conversion = regexp.MustCompile(`%(?:\([^)]*\))?(.)`)
	formatSpec = regexp.MustCompile(`\{\w*:[^{}]*\}`)
)

// formats looks at texts with places for values, and at layouts of times, that are written out.
func (c *checker) formats(s *source) {
	syntax.Walk(s.file, func(n syntax.Node) bool {
		switch n := n.(type) {
		case *syntax.BinaryExpr:
			format, ok := script.TextOf(n.X)
			if n.Op != syntax.PERCENT || !ok {
				break
			}
			for _, m := range conversion.FindAllStringSubmatch(format, -1) {
				if strings.Contains("sriodxXeEfFgGc%", m[1]) {
					continue
				}
				pos, _ := n.Span()
				message, hint := script.Reworded("unknown conversion %" + m[1])
				c.named(pos, message, hint)
				break
			}
		case *syntax.CallExpr:
			if expectsAnError(n) {
				return false
			}
			c.formatted(s, n)
		}
		return true
	})
}

// formatted looks at a call of .format, of a text or of a time.
func (c *checker) formatted(s *source, call *syntax.CallExpr) {
	dot, ok := call.Fn.(*syntax.DotExpr)
	if !ok || dot.Name.Name != "format" {
		return
	}
	pos, _ := call.Span()
	if of, ok := script.TextOf(dot.X); ok {
		of = strings.NewReplacer("{{", "", "}}", "").Replace(of)
		if spec := formatSpec.FindString(of); spec != "" {
			_, spec, _ = strings.Cut(strings.TrimSuffix(spec, "}"), ":")
			message, hint := script.Reworded("format spec features not supported in replacement fields: " + spec)
			c.named(pos, message, hint)
		}
		return
	}
	layout, ok := script.TextOf(script.ArgumentOf(call, 0, "format"))
	if !ok || len(call.Args) != 1 {
		return
	}
	isText, sure := s.isText(dot.X)
	if isText {
		return
	}
	if goes := goLayout(layout); goes != layout {
		at, _ := call.Args[0].Span()
		severity := Error
		if !sure {
			severity = Warning
		}
		c.at(severity, "names", at, fmt.Sprintf("%q is no layout of a time: it comes out as it stands", layout), fmt.Sprintf("write %q: the time that Go's layouts show", goes))
	}
}

// isText says that an expression is a text, or a name to which the file gives one. It is sure unless the name has
// values that the file does not show, as parameters do.
func (s *source) isText(e syntax.Expr) (is, sure bool) {
	id, ok := e.(*syntax.Ident)
	if !ok {
		return s.typeOf(e) == "string", true
	}
	assigned := 0
	syntax.Walk(s.file, func(n syntax.Node) bool {
		if a, ok := n.(*syntax.AssignStmt); ok {
			if to, ok := a.LHS.(*syntax.Ident); ok && to.Name == id.Name {
				assigned++
				is = is || s.typeOf(a.RHS) == "string"
			}
		}
		return true
	})
	return is, assigned == s.times[id.Name]
}

// strftime are the parts of layouts of C and Python.
var strftime = strings.NewReplacer(
	"%Y", "2006", "%y", "06", "%m", "01", "%d", "02", "%e", "_2", "%H", "15", "%I", "03", "%M", "04", "%S", "05", "%F", "2006-01-02", "%T", "15:04:05",
	"%f", "000000", "%p", "PM", "%b", "Jan", "%B", "January", "%a", "Mon", "%A", "Monday", "%j", "002", "%z", "-0700", "%Z", "MST", "%%", "%",
)

// letters are those of layouts of Java and of many others.
var letters = strings.NewReplacer("YYYY", "2006", "yyyy", "2006", "MM", "01", "DD", "02", "dd", "02", "HH", "15", "hh", "03", "mm", "04", "ss", "05")

// goLayout is a layout of another language as Go writes it; any other stays as it is.
func goLayout(layout string) string {
	switch {
	case strings.Contains(layout, "%Y") || strings.Contains(layout, "%H") || strings.Contains(layout, "%d") && strings.Contains(layout, "%m") || strings.Contains(layout, "%F") || strings.Contains(layout, "%T"):
		return strftime.Replace(layout)
	case strings.Contains(layout, "YYYY") || strings.Contains(layout, "yyyy") || strings.Contains(layout, "HH:mm"):
		return letters.Replace(layout)
	}
	return layout
}
