package migrate

import (
	"encoding/json"
	"errors"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/starling-operator/starling/runtime/message"
)

// goConfig reads the config of a Go hook out of its source: the literal that is given to
// sdk.RegisterFunc. Nothing is run. computed names its fields that are not literals, and that
// are left out; filters names the functions that filter, by the names of their watches.
func goConfig(source []byte) (c *config, computed []string, filters map[string]string, err error) {
	file, err := parser.ParseFile(token.NewFileSet(), "", source, parser.SkipObjectResolution)
	if err != nil {
		return nil, nil, nil, fmt.Errorf("it is no Go: %s", message.Line(err.Error()))
	}
	r := &goReader{constants: constants(file)}
	literal, err := r.hookLiteral(file)
	if err != nil {
		return nil, nil, nil, err
	}
	fields, is := r.value(literal, "").(map[string]any)
	if !is {
		return nil, nil, nil, errors.New("its config is computed; write hook(…) by hand")
	}
	raw, err := json.Marshal(hookFields(fields))
	if err != nil {
		return nil, nil, nil, err
	}
	c, unknown, err := parseConfig(string(raw)) // JSON is YAML
	r.computed = append(r.computed, unknown...)
	return c, r.computed, filterFunctions(fields), err
}

// hookLiteral finds the literal of the config, the only one of the file.
func (r *goReader) hookLiteral(file *ast.File) (*ast.CompositeLit, error) {
	var found []ast.Expr
	library := ""
	ast.Inspect(file, func(n ast.Node) bool {
		call, is := n.(*ast.CallExpr)
		if !is || len(call.Args) == 0 {
			return true
		}
		switch name := lastName(call.Fun); {
		case name == "RegisterFunc" || name == "Register":
			found = append(found, call.Args[0])
		case strings.HasPrefix(name, "Register"):
			library = name
		}
		return true
	})
	switch {
	case len(found) == 0 && library != "":
		return nil, fmt.Errorf("%s, a library, registers its hook; write hook(…) by hand", library)
	case len(found) != 1:
		return nil, fmt.Errorf("RegisterFunc is called %s in it; write hook(…) by hand", counted(len(found), "time"))
	}
	e := found[0]
	if name, is := e.(*ast.Ident); is && r.constants[name.Name] != nil {
		e = r.constants[name.Name]
	}
	if u, is := e.(*ast.UnaryExpr); is {
		e = u.X
	}
	if literal, is := e.(*ast.CompositeLit); is {
		return literal, nil
	}
	return nil, errors.New("its config is computed; write hook(…) by hand")
}

// lastName is RegisterFunc of sdk.RegisterFunc.
func lastName(e ast.Expr) string {
	switch e := e.(type) {
	case *ast.Ident:
		return e.Name
	case *ast.SelectorExpr:
		return e.Sel.Name
	}
	return ""
}

// constants are the constants and variables of the file with one value, by name.
func constants(file *ast.File) map[string]ast.Expr {
	out := map[string]ast.Expr{}
	for _, d := range file.Decls {
		decl, is := d.(*ast.GenDecl)
		if !is {
			continue
		}
		for _, s := range decl.Specs {
			v, is := s.(*ast.ValueSpec)
			for i := 0; is && i < len(v.Names) && len(v.Values) == len(v.Names); i++ {
				out[v.Names[i].Name] = v.Values[i]
			}
		}
	}
	return out
}

// goReader reads literals of Go as plain data.
type goReader struct {
	constants map[string]ast.Expr
	computed  []string
	unknowns  int // how often a part is computed, those of one name counted each time
	depth     int
	steps     int
}

// maxSteps bounds constants that name constants that name constants.
const maxSteps = 20_000

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
		if of, is := r.constants[e.Name]; is {
			return r.value(of, path)
		}
		return goName(e.Name)
	case *ast.SelectorExpr:
		return r.selected(e, path)
	case *ast.BinaryExpr:
		return r.binary(e, path)
	case *ast.CallExpr: // go_hook.Bool(true), ptr.To(true), string(x)
		if name := lastName(e.Fun); len(e.Args) == 1 && slices.Contains([]string{"Bool", "BoolPtr", "To", "Ptr", "string"}, name) {
			return r.value(e.Args[0], path)
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

// selected reads constants of other packages that configs are made of.
func (r *goReader) selected(e *ast.SelectorExpr, path string) any {
	name := e.Sel.Name
	for _, prefix := range []string{"LabelSelectorOp", "WatchEvent", "Event"} { // metav1.LabelSelectorOpIn
		if rest, is := strings.CutPrefix(name, prefix); is && rest != "" {
			return rest
		}
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
		if y, is := b.(string); is && e.Op == token.ADD {
			return x + y
		}
	}
	return r.unknown(path)
}

// hookFields gives the fields of Go the names of configs, and each binding the queue of the
// hook.
func hookFields(in map[string]any) map[string]any {
	out := map[string]any{"configVersion": "v1"}
	for from, to := range map[string]string{
		"OnStartup": "onStartup", "OnBeforeHelm": "beforeHelm", "OnAfterHelm": "afterHelm", "OnBeforeAll": "beforeAll",
		"OnAfterAll": "afterAll", "OnBeforeDeleteHelm": "beforeDeleteHelm", "OnAfterDeleteHelm": "afterDeleteHelm",
	} {
		if stage, is := in[from].(map[string]any); is {
			order, _ := stage["Order"].(float64)
			out[to] = order
		}
	}
	for from, to := range map[string]string{"Kubernetes": "kubernetes", "Schedule": "schedule"} {
		list, _ := in[from].([]any)
		bindings := make([]any, 0, len(list))
		for _, b := range list {
			fields, is := renamed(b).(map[string]any)
			if !is {
				continue
			}
			if queue, is := in["Queue"].(string); is && fields["queue"] == nil {
				fields["queue"] = queue
			}
			if in["AllowFailure"] == true {
				fields["allowFailure"] = true
			}
			bindings = append(bindings, fields)
		}
		if len(bindings) > 0 {
			out[to] = bindings
		}
	}
	if s, is := in["Settings"].(map[string]any); is {
		settings := map[string]any{}
		if d, is := s["ExecutionMinInterval"].(time.Duration); is {
			settings["executionMinInterval"] = d.String()
		}
		if burst, is := s["ExecutionBurst"]; is {
			settings["executionBurst"] = burst
		}
		out["settings"] = settings
	}
	return out
}

// renamed gives the fields of bindings the names that configs have for them. Keys of labels
// stay: they stand below MatchLabels.
func renamed(v any) any {
	switch v := v.(type) {
	case []any:
		out := make([]any, len(v))
		for i, e := range v {
			out[i] = renamed(e)
		}
		return out
	case map[string]any:
		out := map[string]any{}
		for _, name := range slices.Sorted(maps.Keys(v)) {
			switch value := v[name]; name {
			case "FilterFunc":
			case "MatchLabels":
				out["matchLabels"] = value
			case "NamespaceSelector":
				out["namespace"] = renamed(value)
			case "ExecuteHookOnEvents": // true is the default
				if value == false {
					out["executeHookOnEvent"] = []any{}
				}
			default:
				out[strings.ToLower(name[:min(1, len(name))])+name[min(1, len(name)):]] = renamed(value)
			}
		}
		return out
	}
	return v
}

// filterFunctions are the filters by the names of their watches.
func filterFunctions(in map[string]any) map[string]string {
	out := map[string]string{}
	list, _ := in["Kubernetes"].([]any)
	for _, b := range list {
		fields, _ := b.(map[string]any)
		name, _ := fields["Name"].(string)
		if fn, is := fields["FilterFunc"].(goName); is {
			out[name] = string(fn)
		}
	}
	return out
}
