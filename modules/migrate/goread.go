package migrate

import (
	"go/ast"
	"go/token"
	"slices"
	"strconv"
	"strings"
	"time"
)

// goReader reads literals of Go as plain data.
type goReader struct {
	folders  *goFolders
	at       *goFile // in which what is read stands
	computed []string
	unknowns int // how often a part is computed, those of one name counted each time
	depth    int
	steps    int
}

const (
	// maxSteps bounds constants that name constants that name constants.
	maxSteps = 20_000
	// maxText is the longest text that is put together of others.
	maxText = 4 << 10
)

// value returns plain data, or nil for what is computed, which it notes.
func (r *goReader) value(e ast.Expr, path string) any {
	r.steps++
	r.depth++
	defer func() { r.depth-- }()
	if r.depth > 64 || r.steps > maxSteps { // a constant may name itself
		return r.unknown(path)
	}
	switch e := e.(type) {
	case *ast.ParenExpr:
		return r.value(e.X, path)
	case *ast.UnaryExpr:
		if e.Op == token.AND {
			return r.value(e.X, path)
		}
	case *ast.BasicLit:
		return r.literal(e, path)
	case *ast.CompositeLit:
		return r.composite(e, path)
	case *ast.Ident:
		switch e.Name {
		case "true", "false":
			return e.Name == "true"
		case "nil":
			return nil
		}
		if c, is := r.constant(e.Name); is {
			return r.constantValue(c, path)
		}
		return goName(e.Name)
	case *ast.SelectorExpr:
		return r.selected(e, path)
	case *ast.BinaryExpr:
		return r.binary(e, path)
	case *ast.CallExpr: // go_hook.Bool(true), ptr.To(true), string(x)
		switch name := lastName(e.Fun); {
		case len(e.Args) == 1 && slices.Contains([]string{"Bool", "BoolPtr", "To", "Ptr", "ptr", "Pointer", "string"}, name):
			return r.value(e.Args[0], path)
		case len(e.Args) == 1 && name == "DefaultSANs":
			return r.value(e.Args[0], path)
		case len(e.Args) == 1 && domainPrefixes[name] != "":
			if host, is := r.value(e.Args[0], path).(string); is {
				return domainPrefixes[name] + host
			}
		case name == "Sprintf" && len(e.Args) > 0:
			return r.sprintf(e.Args, path)
		}
	}
	return r.unknown(path)
}

// goName is the name of a function or of a type: no data, and not computed either.
type goName string

// placeholder stands for a selector that is computed, or a part of it: without it the watch, and
// its grant, would reach further than the old one. It is nil for other fields.
func placeholder(field string) any {
	names := map[string]any{"MatchNames": []any{"todo"}}
	switch field {
	case "NameSelector":
		return names
	case "NamespaceSelector":
		return map[string]any{"NameSelector": names}
	case "LabelSelector":
		return map[string]any{"MatchLabels": map[string]any{"todo": "todo"}}
	case "FieldSelector":
		return map[string]any{"MatchExpressions": []any{map[string]any{"Field": "metadata.name", "Operator": "Equals", "Value": "todo"}}}
	}
	return nil
}

func (r *goReader) unknown(path string) any {
	r.unknowns++
	if !slices.Contains(r.computed, path) {
		r.computed = append(r.computed, path)
	}
	return nil
}

func (r *goReader) literal(e *ast.BasicLit, path string) any {
	switch e.Kind {
	case token.STRING:
		if s, err := strconv.Unquote(e.Value); err == nil {
			return s
		}
	case token.INT, token.FLOAT:
		if f, err := strconv.ParseFloat(e.Value, 64); err == nil {
			return f
		}
	}
	return r.unknown(path)
}

func (r *goReader) composite(e *ast.CompositeLit, path string) any {
	if len(e.Elts) == 0 {
		if _, is := e.Type.(*ast.ArrayType); is {
			return []any{}
		}
		return map[string]any{}
	}
	if _, is := e.Elts[0].(*ast.KeyValueExpr); !is {
		list := make([]any, 0, len(e.Elts))
		for _, element := range e.Elts {
			switch v := r.value(element, path).(type) {
			case nil:
			case goName:
				r.unknown(path)
			default:
				list = append(list, v)
			}
		}
		return list
	}
	fields := map[string]any{}
	for _, element := range e.Elts {
		kv, is := element.(*ast.KeyValueExpr)
		if !is {
			return r.unknown(path)
		}
		name := lastName(kv.Key)
		if _, isMap := e.Type.(*ast.MapType); isMap || name == "" {
			name, _ = r.value(kv.Key, path).(string)
		}
		place := strings.TrimPrefix(path+"."+name, ".")
		before := r.unknowns
		v := r.value(kv.Value, place)
		if todo := placeholder(name); todo != nil && r.unknowns > before {
			v = todo
		}
		if _, is := v.(goName); is && name != "FilterFunc" {
			v = r.unknown(place)
		}
		if v != nil {
			fields[name] = v
		}
	}
	return fields
}

// sprintf puts a text together, of texts alone.
func (r *goReader) sprintf(args []ast.Expr, path string) any {
	format, is := r.value(args[0], path).(string)
	if !is {
		return r.unknown(path)
	}
	format = strings.ReplaceAll(format, "%%", "\x00")
	parts := strings.Split(strings.ReplaceAll(format, "%v", "%s"), "%s")
	if len(parts) != len(args) || strings.Contains(strings.Join(parts, ""), "%") {
		return r.unknown(path)
	}
	text := parts[0]
	for i, arg := range args[1:] {
		s, is := r.value(arg, path).(string)
		if !is || len(text)+len(s) > maxText {
			return r.unknown(path)
		}
		text += s + parts[i+1]
	}
	return strings.ReplaceAll(text, "\x00", "%")
}

// selected reads constants of other packages that configs are made of.
func (r *goReader) selected(e *ast.SelectorExpr, path string) any {
	name := e.Sel.Name
	if p := r.folders.imported(r.at.imports[lastName(e.X)]); p != nil {
		if c, is := p.constants[name]; is {
			return r.constantValue(c, path)
		}
		return goName(name) // a function
	}
	for _, prefix := range []string{"LabelSelectorOp", "WatchEvent", "Event"} { // metav1.LabelSelectorOpIn
		if rest, is := strings.CutPrefix(name, prefix); is && rest != "" {
			return rest
		}
	}
	if text, is := wellKnown(name); is {
		return text
	}
	units := map[string]time.Duration{"Millisecond": time.Millisecond, "Second": time.Second, "Minute": time.Minute, "Hour": time.Hour}
	if unit := units[name]; unit > 0 {
		return unit
	}
	return r.unknown(path)
}

// binary reads 5 * time.Second, and texts that are put together.
func (r *goReader) binary(e *ast.BinaryExpr, path string) any {
	a, b := r.value(e.X, path), r.value(e.Y, path)
	switch x := a.(type) {
	case float64:
		if unit, is := b.(time.Duration); is && e.Op == token.MUL {
			return time.Duration(x * float64(unit))
		}
	case time.Duration:
		if n, is := b.(float64); is && e.Op == token.MUL {
			return time.Duration(n * float64(x))
		}
	case string:
		if y, is := b.(string); is && e.Op == token.ADD && len(x)+len(y) <= maxText {
			return x + y
		}
	}
	return r.unknown(path)
}
