package builtins

import (
	"fmt"
	"strings"
)

// Stubs returns what editors read to complete and explain the builtins of [Table]:
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
		s.stub(open(file), name)
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

func (s *Spec) stub(b *strings.Builder, name string) {
	if s.Constant() {
		fmt.Fprintf(b, "\n%s: %s = ...\n\"\"\"%s\"\"\"\n", name, constantType(s.value.Type()), stubText(s.Doc))
		return
	}
	var params []string
	keyword := false
	for _, p := range s.Params {
		if p.Keyword && !keyword {
			keyword = true
			params = append(params, "*")
		}
		keyword = keyword || strings.HasPrefix(p.Name, "*")
		params = append(params, p.stub())
	}
	result := ""
	if s.Returns == "" {
		result = " -> None"
	}
	fmt.Fprintf(b, "\ndef %s(%s)%s:\n    \"\"\"%s\n", name, strings.Join(params, ", "), result, stubText(s.Doc))
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

func (p *Param) stub() string {
	text := p.Name
	kind := p.Type.python()
	if p.Default == "None" && kind != "Any" {
		kind += " | None"
	}
	text += ": " + kind
	if p.Default != "" {
		text += " = " + p.Default
	}
	return text
}

// constantType is how Python calls the type of a constant.
func constantType(kind string) string {
	switch kind {
	case "float", "int", "bool":
		return kind
	case "string":
		return "str"
	case "list of strings":
		return "list[str]"
	case "list":
		return kind
	}
	if strings.HasPrefix(kind, "dict ") {
		return "dict"
	}
	return "Any"
}

// python is how Python calls a type; Any for what it does not know.
func (t Type) python() string {
	switch t {
	case TypeString:
		return "str"
	case TypeText:
		return "str | bytes"
	case TypeBool:
		return "bool"
	case TypeInt:
		return "int"
	case TypeNumber:
		return "int | float"
	case TypeStrings:
		return "list[str]"
	case TypeList:
		return "list"
	case TypeDict:
		return "dict"
	case TypeFunction:
		return "Callable"
	case TypePath:
		return "str | list[str]"
	case TypeDuration:
		return "str | int | float"
	case TypeSelector:
		return "str | list[str] | dict"
	case TypeFilter:
		return "Callable | list[str] | str"
	case TypeWakes:
		return "Callable | str"
	case TypeRef, TypePod:
		return "dict | str"
	case TypeConditions:
		return "dict | list[dict]"
	}
	return "Any"
}

// stubText keeps a text from ending the doc string that it stands in.
func stubText(text string) string {
	text = strings.ReplaceAll(strings.ReplaceAll(text, `\`, `\\`), `"""`, `\"\"\"`)
	if strings.HasSuffix(text, `"`) {
		text += " "
	}
	return text
}
