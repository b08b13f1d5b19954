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
	"strings"
	"time"

	"github.com/starling-operator/starling/runtime/message"
)

// goConfig reads the config of a Go hook out of its source: the literal that is given to
// sdk.RegisterFunc. Nothing is run. computed names its fields that are not literals, and that
// are left out; filters names the functions that filter, by the names of their watches. The hook lies
// in a folder of the module.
func goConfig(source []byte, folder string, folders *goFolders) (c *config, computed []string, filters map[string]string, err error) {
	file, err := parser.ParseFile(token.NewFileSet(), "", source, parser.SkipObjectResolution)
	if err != nil {
		return nil, nil, nil, fmt.Errorf("it is no Go: line %s", message.Line(err.Error()))
	}
	of := &goPackage{map[string]goConstant{}}
	if folders != nil {
		of = folders.folder(folder)
	}
	r := &goReader{folders: folders, at: of.add(file)}
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
	var library *libraryHook
	ast.Inspect(file, func(n ast.Node) bool {
		call, is := n.(*ast.CallExpr)
		if !is {
			return true
		}
		switch name := lastName(call.Fun); {
		case len(call.Args) > 0 && (name == "RegisterFunc" || name == "Register"):
			found = append(found, call.Args[0])
		case strings.HasPrefix(name, "Register"):
			if h := r.libraryCall(call); library == nil {
				library = h
			} else {
				library.more++
			}
		}
		return true
	})
	switch {
	case len(found) == 0 && library != nil:
		return nil, library
	case len(found) != 1:
		return nil, fmt.Errorf("RegisterFunc is called %s in it; write hook(…) by hand", message.Count(len(found), "time"))
	}
	e := found[0]
	if name, is := e.(*ast.Ident); is {
		if c, is := r.constant(name.Name); is {
			e, r.at = c.value, c.at
		}
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
