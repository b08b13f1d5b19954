package repl

import (
	"fmt"
	"slices"
	"strings"

	"go.starlark.net/starlark"

	"github.com/starling-operator/starling/builtins"
	"github.com/starling-operator/starling/builtins/docs"
	"github.com/starling-operator/starling/runtime/message"
)

// defineHelp gives the session its own builtin, help. Files know none, so it is not in
// the table of builtins.
func (s *Session) defineHelp() {
	s.scope.Define("help", starlark.NewBuiltin("help", func(_ *starlark.Thread, _ *starlark.Builtin, args starlark.Tuple, kwargs []starlark.Tuple) (starlark.Value, error) {
		if len(kwargs) > 0 || len(args) > 1 {
			return nil, fmt.Errorf("help: takes what to tell about, or nothing")
		}
		if len(args) == 0 {
			s.out.result(s.families())
			return starlark.None, nil
		}
		text, err := s.helpValue(args[0])
		if err != nil {
			return nil, err
		}
		s.out.result(text)
		return starlark.None, nil
	}), false)
}

// families lists the builtins by the name that comes before the dot.
func (s *Session) families() string {
	var rows [][2]string
	for _, f := range families() {
		rows = append(rows, [2]string{f.name, strings.Join(f.members, " ")})
	}
	return "Builtins; help(\"k8s.apply\") tells more about one, help(k8s) about a family:\n\n" + wrapped(rows)
}

type family struct {
	name    string
	members []string
}

// families are the namespaces of the table, and last the builtins that are in none.
func families() []family {
	var out []family
	var alone []string
	for _, spec := range builtins.Table() {
		name, member, dotted := strings.Cut(spec.Name, ".")
		if forTests(name) {
			continue
		}
		if !dotted {
			alone = append(alone, name)
			continue
		}
		i := slices.IndexFunc(out, func(f family) bool { return f.name == name })
		if i < 0 {
			i = len(out)
			out = append(out, family{name: name})
		}
		out[i].members = append(out[i].members, member)
	}
	slices.SortFunc(out, func(a, b family) int { return strings.Compare(a.name, b.name) })
	return append(out, family{members: alone})
}

// forTests reports whether a family is there for tests alone.
func forTests(name string) bool { return name == "t" || name == "expect" || name == "assert" }

// wrapped writes rows of a name and words, which go on in lines below.
func wrapped(rows [][2]string) string {
	longest := 0
	for _, r := range rows {
		longest = max(longest, len(r[0]))
	}
	var b strings.Builder
	for _, r := range rows {
		line := fmt.Sprintf("  %-*s ", longest, r[0])
		for word := range strings.FieldsSeq(r[1]) {
			if len(line)+1+len(word) > width {
				b.WriteString(line + "\n")
				line = strings.Repeat(" ", longest+3)
			}
			line += " " + word
		}
		b.WriteString(line + "\n")
	}
	return strings.TrimRight(b.String(), "\n")
}

// helpValue tells about what a value is.
func (s *Session) helpValue(v starlark.Value) (string, error) {
	switch v := v.(type) {
	case starlark.String:
		return s.helpName(string(v))
	case *starlark.Function:
		return helpFunction(v), nil
	case *starlark.Builtin:
		if v.Receiver() == nil {
			return s.helpName(v.Name())
		}
		return fmt.Sprintf("%s is a method of a %s.", v.Name(), v.Receiver().Type()), nil
	}
	if v.Type() == "ctx" {
		return s.helpName("ctx")
	}
	if v.Type() == "module" {
		name := strings.TrimSuffix(strings.TrimPrefix(v.String(), "<module "), ">")
		return s.helpName(name)
	}
	text := "a value of type " + v.Type()
	if n := starlark.Len(v); n >= 0 {
		text += fmt.Sprintf(", length %d", n)
	}
	if o, ok := v.(starlark.HasAttrs); ok {
		text += "; it has\n\n" + wrapped([][2]string{{"", strings.Join(o.AttrNames(), " ")}})
	}
	return text, nil
}

// helpFunction shows where a function is and what its text says.
func helpFunction(f *starlark.Function) string {
	text := fmt.Sprintf("%s(%s)\n    %s", f.Name(), strings.Join(functionParams(f), ", "), f.Position())
	if doc := strings.TrimSpace(f.Doc()); doc != "" {
		text += "\n\n" + docs.Dedent(doc)
	}
	return text
}

func functionParams(f *starlark.Function) []string {
	var out []string
	named := f.NumParams()
	if f.HasVarargs() {
		named--
	}
	if f.HasKwargs() {
		named--
	}
	for i := range named {
		name, _ := f.Param(i)
		if dflt := f.ParamDefault(i); dflt != nil {
			name += "=" + message.Cut(show(dflt), maxQuoted)
		}
		out = append(out, name)
	}
	rest := named
	if f.HasVarargs() {
		name, _ := f.Param(rest)
		out = append(out, "*"+name)
		rest++
	}
	if f.HasKwargs() {
		name, _ := f.Param(rest)
		out = append(out, "**"+name)
	}
	return out
}

// maxQuoted bounds text that help repeats.
const maxQuoted = 40

// helpName tells about a builtin, a family of them, ctx, or a name of the session.
func (s *Session) helpName(name string) (string, error) {
	if text, found := docs.Help(name); found {
		return text, nil
	}
	switch v, own := s.scope.Lookup(name); {
	case name == "help":
		return "help(x)\n\nTells about a builtin, a function or a value; help() lists the builtins, help(\"ctx\") the fields of ctx.", nil
	case own:
		return s.helpValue(v)
	case v != nil:
		return name + " is of the language: https://github.com/google/starlark-go/blob/master/doc/spec.md", nil
	}
	return "", fmt.Errorf("there is nothing of the name %q%s", message.Cut(name, maxQuoted), didYouMean(name, "", docs.HelpNames()))
}
