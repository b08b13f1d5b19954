package jq

import (
	"fmt"
	"regexp"
	"strings"

	"github.com/itchyny/gojq"
)

func (t *translator) function(f *gojq.Func, in expr) (stream, error) {
	one := func(e expr, err error) (stream, error) { return stream{value: e}, err }
	switch fmt.Sprintf("%s/%d", f.Name, len(f.Args)) {
	case "select/1":
		cond, err := t.cond(f.Args[0], in)
		return stream{[]clause{{of: cond}}, in}, err
	case "map/1":
		s, err := t.each(f.Args[0], in)
		return stream{value: s.list()}, err
	case "length/0":
		return one(length(in))
	case "keys/0":
		if in.isMap() {
			return stream{value: constant("sorted("+in.text+")", listKind)}, nil
		}
		return stream{}, unsupported("keys of what may be a list")
	case "not/0":
		return stream{value: negate(truth(in))}, nil
	case "has/1":
		return one(t.has(f.Args[0], in))
	case "any/0", "all/0", "any/1", "all/1", "any/2", "all/2":
		return one(t.quantifier(f, in))
	case "startswith/1", "endswith/1":
		arg, err := argumentText(f)
		return stream{value: constant(in.at(primaryPrec)+"."+f.Name+"("+text(arg).text+")", boolKind)}, err
	case "test/1":
		return one(matches(f, in))
	case "tostring/0":
		if in.kind == textKind {
			return stream{value: in}, nil
		}
		return stream{}, unsupported("tostring of what may be no text")
	}
	if strings.HasPrefix(f.Name, "$") {
		return stream{}, unsupported("the variable %s", f.Name)
	}
	return stream{}, unsupported("the function %s", f.Name)
}

// iterate is .[], or .[]? when optional.
func (t *translator) iterate(in expr, optional bool) (stream, error) {
	objects := in.objects
	switch {
	case in.isList():
		objects = true
		if optional {
			in = constant(in.or("[]"), listKind)
		}
	case in.kind == listKind:
	default:
		return stream{}, unsupported(".[] of what may be a map")
	}
	v := t.variable()
	element := constant(v, anyKind)
	if objects {
		element = cluster(v)
	}
	return stream{[]clause{{v, in}}, element}, nil
}

// each is .[] | q.
func (t *translator) each(q *gojq.Query, in expr) (stream, error) {
	all, err := t.iterate(in, false)
	if err != nil {
		return stream{}, err
	}
	s, err := t.stream(q, all.value)
	return stream{append(all.clauses, s.clauses...), s.value}, err
}

func length(in expr) (expr, error) {
	switch {
	case in.isList():
		return constant("len("+in.or("[]")+")", numberKind), nil
	case in.isMap():
		return constant("len("+in.or("{}")+")", numberKind), nil
	case in.kind == listKind || in.kind == mapKind:
		return constant("len("+in.text+")", numberKind), nil
	}
	// Of a text jq counts characters, and Starlark bytes.
	return expr{}, unsupported("length of what may be a text or a number")
}

// has is has("name") of a map.
func (t *translator) has(arg *gojq.Query, in expr) (expr, error) {
	name, err := t.scalar(arg, in)
	if err != nil {
		return expr{}, err
	}
	whole := in.text == argument
	if name.kind != textKind || !in.isMap() && !whole {
		return expr{}, unsupported("has of what may be a list")
	}
	return binary(name, "in", in, comparePrec, boolKind), nil
}

// quantifier is any and all: of the input, with a condition, or of a stream with one.
func (t *translator) quantifier(f *gojq.Func, in expr) (expr, error) {
	var s stream
	var err error
	if len(f.Args) == 2 {
		s, err = t.stream(f.Args[0], in)
	} else {
		s, err = t.iterate(in, false)
	}
	if err != nil {
		return expr{}, err
	}
	if len(f.Args) > 0 {
		if s.value, err = t.cond(f.Args[len(f.Args)-1], s.value); err != nil {
			return expr{}, err
		}
	}
	s.value = truth(s.value)
	return constant(f.Name+"("+s.list().text+")", boolKind), nil
}

// matches is test("pattern").
func matches(f *gojq.Func, in expr) (expr, error) {
	pattern, err := argumentText(f)
	if err != nil {
		return expr{}, err
	}
	if _, err := regexp.Compile(pattern); err != nil || strings.Contains(pattern, "(?") {
		return expr{}, unsupported("the pattern %q", pattern)
	}
	found := constant("re.search("+text(pattern).text+", "+in.text+")", anyKind)
	return binary(found, "!=", constant("None", nullKind), comparePrec, boolKind), nil
}

// argumentText is the one argument of a function, a text.
func argumentText(f *gojq.Func) (string, error) {
	arg := f.Args[0]
	if arg.Term == nil || arg.Term.Type != gojq.TermTypeString || len(arg.Term.SuffixList) > 0 {
		return "", unsupported("%s with an argument that is computed", f.Name)
	}
	return literal(arg.Term.Str)
}
