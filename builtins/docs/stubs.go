package docs

import (
	"cmp"
	"fmt"
	"strings"

	"github.com/starling-operator/starling/builtins/spec"
)

// Stubs returns what editors read to complete and explain the builtins of all families:
// stub files in the syntax of Python, by their path. A name is in __init__.py, the
// members of a namespace in a file of its name: k8s.py, ctx/state.py.
func Stubs() map[string]string {
	const head = "# Made by starling docs --stubs; do not edit it.\n"
	files := map[string]*strings.Builder{}
	open := func(file string) *strings.Builder {
		if files[file] == nil {
			files[file] = &strings.Builder{}
			files[file].WriteString(head)
		}
		return files[file]
	}
	for _, s := range Documented() {
		file, name := "__init__.py", s.Name
		if i := strings.LastIndexByte(s.Name, '.'); i >= 0 {
			file, name = strings.ReplaceAll(s.Name[:i], ".", "/")+".py", s.Name[i+1:]
		}
		stub(open(file), &s, name)
	}
	for _, f := range CtxFields() {
		path := strings.Split(strings.TrimPrefix(f.Path, "ctx."), ".")
		if strings.Contains(f.Path, "[]") || strings.Contains(f.Path, ".NAME.") {
			continue // of a list, which has no file
		}
		name := path[len(path)-1]
		file := strings.Join(append([]string{"ctx"}, path[:len(path)-1]...), "/") + ".py"
		if len(path) == 1 {
			file = "ctx/__init__.py"
		}
		b := open(file)
		if entry := "\n" + name + ": "; !strings.Contains(b.String(), entry) {
			fmt.Fprintf(b, "%s%s = ...\n\"\"\"%s\"\"\"\n", entry, constantType(f.Type), stubText(f.Doc+" "+f.where()))
		}
	}
	out := make(map[string]string, len(files))
	for file, b := range files {
		out[file] = b.String()
	}
	return out
}

func stub(b *strings.Builder, s *spec.Spec, name string) {
	if s.Constant() {
		fmt.Fprintf(b, "\n%s: %s = ...\n\"\"\"%s\"\"\"\n", name, constantType(s.Value.Type()), stubText(s.Doc))
		return
	}
	result := ""
	if s.Returns == "" {
		result = " -> None"
	}
	fmt.Fprintf(b, "\ndef %s%s%s:\n    \"\"\"%s\n", name, s.List(stubParam), result, stubText(s.Doc))
	fmt.Fprintf(b, "\n    Phases: %s. Effect: %s.\n", s.Phases, s.Effect)
	if len(s.Params) > 0 {
		b.WriteString("\n    Args:\n")
		for _, p := range s.Params {
			fmt.Fprintf(b, "        %s: %s\n", strings.TrimLeft(p.Name, "*"), stubText(p.Doc))
		}
	}
	if s.Returns != "" {
		fmt.Fprintf(b, "\n    Returns:\n        %s\n", stubText(s.Returns))
	}
	b.WriteString("    \"\"\"\n    ...\n")
}

func stubParam(p spec.Param) string {
	kind := cmp.Or(pythonTypes[p.Type], "Any")
	if p.Default == "None" && kind != "Any" {
		kind += " | None"
	}
	return strings.TrimSuffix(p.Name+": "+kind+" = "+p.Default, " = ")
}

// constantType is how Python calls the type of a constant.
func constantType(kind string) string {
	switch kind {
	case "float", "int", "bool", "list":
		return kind
	case "string":
		return "str"
	case "list of strings":
		return "list[str]"
	}
	if strings.HasPrefix(kind, "dict ") {
		return "dict"
	}
	return "Any"
}

// pythonTypes are the types as Python calls them; Any is what it does not know.
var pythonTypes = map[spec.Type]string{
	spec.String: "str", spec.Text: "str | bytes", spec.Bool: "bool", spec.Int: "int", spec.Number: "int | float",
	spec.Strings: "list[str]", spec.List: "list", spec.Dict: "dict", spec.Function: "Callable",
	spec.Path: "str | list[str]", spec.Duration: "str | int | float", spec.Selector: "str | list[str] | dict",
	spec.Filter: "Callable | list[str] | str", spec.Wakes: "Callable | str", spec.Ref: "dict | str",
	spec.Pod: "dict | str", spec.Conditions: "dict | list[dict]",
}

// stubText keeps a text from ending the doc string that it stands in.
func stubText(text string) string {
	text = strings.ReplaceAll(strings.ReplaceAll(text, `\`, `\\`), `"""`, `\"\"\"`)
	if strings.HasSuffix(text, `"`) {
		text += " "
	}
	return text
}
