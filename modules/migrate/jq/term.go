package jq

import (
	"regexp"
	"strings"
	"unicode/utf8"

	"github.com/itchyny/gojq"
)

var (
	plainNumber = regexp.MustCompile(`^(0|[1-9][0-9]{0,14})(\.[0-9]{1,15})?$`)
	plainIndex  = regexp.MustCompile(`^(0|[1-9][0-9]{0,5})$`)
)

func (t *translator) term(term *gojq.Term, in expr) (stream, error) {
	s, err := t.base(term, in)
	for i := 0; i < len(term.SuffixList) && err == nil; i++ {
		suffix := term.SuffixList[i]
		optional := i+1 < len(term.SuffixList) && term.SuffixList[i+1].Optional
		switch {
		case suffix.Iter:
			var next stream
			if next, err = t.iterate(s.value, optional); err == nil {
				s = stream{append(s.clauses, next.clauses...), next.value}
			}
			if optional {
				i++
			}
		case suffix.Index != nil && !optional:
			s.value, err = index(suffix.Index, s.value)
		default:
			err = unsupported("? after a path")
		}
	}
	return s, err
}

// base translates a term without its suffixes.
func (t *translator) base(term *gojq.Term, in expr) (stream, error) {
	one := func(e expr, err error) (stream, error) { return stream{value: e}, err }
	switch term.Type {
	case gojq.TermTypeIdentity:
		return stream{value: in}, nil
	case gojq.TermTypeNull:
		return stream{value: constant("None", nullKind)}, nil
	case gojq.TermTypeTrue:
		return stream{value: constant("True", boolKind)}, nil
	case gojq.TermTypeFalse:
		return stream{value: constant("False", boolKind)}, nil
	case gojq.TermTypeIndex:
		return one(index(term.Index, in))
	case gojq.TermTypeFunc:
		return t.function(term.Func, in)
	case gojq.TermTypeObject:
		return one(t.object(term.Object, in))
	case gojq.TermTypeArray:
		return one(t.array(term.Array, in))
	case gojq.TermTypeNumber:
		return one(number(term.Number))
	case gojq.TermTypeUnary:
		return one(t.unary(term.Unary))
	case gojq.TermTypeString:
		return one(t.text(term.Str, in))
	case gojq.TermTypeIf:
		return t.choice(term.If, in)
	case gojq.TermTypeQuery:
		return t.stream(term.Query, in)
	}
	return stream{}, unsupported("%s", map[gojq.TermType]string{
		gojq.TermTypeRecurse: "..", gojq.TermTypeFormat: term.Format, gojq.TermTypeTry: "try",
		gojq.TermTypeReduce: "reduce", gojq.TermTypeForeach: "foreach", gojq.TermTypeLabel: "label",
		gojq.TermTypeBreak: "break",
	}[term.Type])
}

// index translates .name, ."name", .["name"] and .[0].
func index(i *gojq.Index, in expr) (expr, error) {
	switch {
	case i.IsSlice:
		return expr{}, unsupported("a slice")
	case i.Name != "":
		return in.below(i.Name)
	case i.Str != nil:
		key, err := literal(i.Str)
		if err != nil {
			return expr{}, err
		}
		return in.below(key)
	}
	start := i.Start
	switch {
	case start == nil || start.Term == nil || len(start.Term.SuffixList) > 0:
	case start.Term.Type == gojq.TermTypeString:
		key, err := literal(start.Term.Str)
		if err != nil {
			return expr{}, err
		}
		return in.below(key)
	case start.Term.Type == gojq.TermTypeNumber && plainIndex.MatchString(start.Term.Number) && in.isList():
		return in.below(start.Term.Number)
	}
	return expr{}, unsupported("an index that is computed, counts from the end, or belongs to what may be a map")
}

// literal is a text without parts that are computed.
func literal(s *gojq.String) (string, error) {
	if len(s.Queries) > 0 {
		return "", unsupported("a name that is computed")
	}
	if !utf8.ValidString(s.Str) {
		return "", unsupported("a text that is no UTF-8")
	}
	return s.Str, nil
}

func number(digits string) (expr, error) {
	if !plainNumber.MatchString(digits) {
		return expr{}, unsupported("the number %s", digits)
	}
	return constant(digits, numberKind), nil
}

func (t *translator) unary(u *gojq.Unary) (expr, error) {
	if u.Term.Type != gojq.TermTypeNumber || len(u.Term.SuffixList) > 0 {
		return expr{}, unsupported("a sign before anything but a number")
	}
	e, err := number(u.Term.Number)
	if u.Op == gojq.OpSub {
		e.text, e.prec = "-"+e.text, unaryPrec
	}
	return e, err
}

// text translates a text, with values in it that are known to be texts.
func (t *translator) text(s *gojq.String, in expr) (expr, error) {
	if len(s.Queries) == 0 {
		plain, err := literal(s)
		return text(plain), err
	}
	var sum expr
	for i, q := range s.Queries {
		e, err := t.scalar(q, in)
		if err != nil {
			return expr{}, err
		}
		if e.kind != textKind {
			return expr{}, unsupported(`\(%s) in a text, which may be another type than text,`, shown(q))
		}
		if i == 0 {
			sum = e
		} else {
			sum = binary(sum, "+", e, addPrec, textKind)
		}
	}
	return sum, nil
}

func (t *translator) object(o *gojq.Object, in expr) (expr, error) {
	var pairs []string
	names := map[string]bool{}
	for _, kv := range o.KeyVals {
		name := kv.Key
		if kv.KeyString != nil {
			var err error
			if name, err = literal(kv.KeyString); err != nil {
				return expr{}, err
			}
		}
		if kv.KeyQuery != nil || strings.HasPrefix(kv.Key, "$") {
			return expr{}, unsupported("a name that is computed")
		}
		if names[name] { // a dict of Starlark refuses it; jq takes the last
			return expr{}, unsupported("the name %s given twice", name)
		}
		names[name] = true
		var e expr
		var err error
		if kv.Val == nil {
			e, err = in.below(name)
		} else {
			e, err = t.scalar(kv.Val, in)
		}
		if err != nil {
			return expr{}, err
		}
		pairs = append(pairs, text(name).text+": "+e.text)
	}
	return constant("{"+strings.Join(pairs, ", ")+"}", mapKind), nil
}

func (t *translator) array(a *gojq.Array, in expr) (expr, error) {
	if a.Query == nil {
		return constant("[]", listKind), nil
	}
	var sum expr
	var plain []string
	for i, q := range commas(a.Query) {
		s, err := t.stream(q, in)
		if err != nil {
			return expr{}, err
		}
		if len(s.clauses) == 0 {
			plain = append(plain, s.value.text)
		}
		if i == 0 {
			sum = s.list()
		} else {
			sum = binary(sum, "+", s.list(), addPrec, listKind)
		}
	}
	if len(plain) == len(commas(a.Query)) {
		return constant("["+strings.Join(plain, ", ")+"]", listKind), nil
	}
	return sum, nil
}

// commas returns the parts of a, b, c.
func commas(q *gojq.Query) []*gojq.Query {
	if q.Term == nil && q.Op == gojq.OpComma && len(q.FuncDefs) == 0 {
		return append(commas(q.Left), commas(q.Right)...)
	}
	return []*gojq.Query{q}
}

// choice translates if, then, elif and else.
func (t *translator) choice(c *gojq.If, in expr) (stream, error) {
	if len(c.Elif) == 0 && c.Else != nil && isEmpty(c.Else) { // select, spelled out
		cond, err := t.cond(c.Cond, in)
		if err != nil {
			return stream{}, err
		}
		s, err := t.stream(c.Then, in)
		return stream{append([]clause{{of: cond}}, s.clauses...), s.value}, err
	}
	other := in
	if c.Else != nil {
		var err error
		if other, err = t.scalar(c.Else, in); err != nil {
			return stream{}, err
		}
	}
	branches := append([]*gojq.IfElif{{Cond: c.Cond, Then: c.Then}}, c.Elif...)
	for i := len(branches) - 1; i >= 0; i-- {
		cond, err := t.cond(branches[i].Cond, in)
		if err != nil {
			return stream{}, err
		}
		then, err := t.scalar(branches[i].Then, in)
		if err != nil {
			return stream{}, err
		}
		other = choose(cond, then, other)
	}
	return stream{value: other}, nil
}

func isEmpty(q *gojq.Query) bool {
	return q.Term != nil && len(q.FuncDefs) == 0 && q.Term.Type == gojq.TermTypeFunc && q.Term.Func.Name == "empty" && len(q.Term.SuffixList) == 0
}
