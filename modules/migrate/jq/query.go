package jq

import "github.com/itchyny/gojq"

// stream translates a query whose input is in.
func (t *translator) stream(q *gojq.Query, in expr) (stream, error) {
	if t.depth++; t.depth > maxDepth {
		return stream{}, unsupported("a filter nested deeper than %d", maxDepth)
	}
	defer func() { t.depth-- }()
	s, err := t.query(q, in)
	if err != nil {
		return stream{}, err
	}
	// A pipe writes its left side for each dot of its right side: long texts would double.
	for _, c := range s.clauses {
		if err := c.of.fits(); err != nil {
			return stream{}, err
		}
	}
	return s, s.value.fits()
}

func (t *translator) query(q *gojq.Query, in expr) (stream, error) {
	switch {
	case len(q.FuncDefs) > 0:
		return stream{}, unsupported("def %s", q.FuncDefs[0].Name)
	case q.Term == nil && (q.Left == nil || q.Right == nil):
		return stream{}, unsupported("an empty filter")
	case len(q.Patterns) > 0:
		return stream{}, unsupported("a variable (as $name)")
	case q.Term != nil:
		return t.term(q.Term, in)
	case q.Op == gojq.OpPipe:
		return t.pipe(q, in)
	case q.Op == gojq.OpComma:
		return stream{}, unsupported("%s outside of a list", shown(q))
	}
	e, err := t.operator(q, in)
	return stream{value: e}, err
}

func (t *translator) pipe(q *gojq.Query, in expr) (stream, error) {
	left, err := t.stream(q.Left, in)
	if err != nil {
		return stream{}, err
	}
	right, err := t.stream(q.Right, left.value)
	if err != nil {
		return stream{}, err
	}
	return stream{append(left.clauses, right.clauses...), right.value}, nil
}

// operator translates a query of two sides with one value each.
func (t *translator) operator(q *gojq.Query, in expr) (expr, error) {
	a, err := t.scalar(q.Left, in)
	if err != nil {
		return expr{}, err
	}
	b, err := t.scalar(q.Right, in)
	if err != nil {
		return expr{}, err
	}
	switch q.Op {
	case gojq.OpAnd:
		return binary(truth(a), "and", truth(b), andPrec, boolKind), nil
	case gojq.OpOr:
		return binary(truth(a), "or", truth(b), orPrec, boolKind), nil
	case gojq.OpEq, gojq.OpNe:
		return same(a, b, q.Op == gojq.OpNe), nil
	case gojq.OpAlt:
		return alternative(a, b), nil
	}
	kinds := map[gojq.Operator][]kind{
		gojq.OpAdd: {numberKind, textKind, listKind},
		gojq.OpSub: {numberKind}, gojq.OpMul: {numberKind},
		gojq.OpLt: {numberKind, textKind}, gojq.OpLe: {numberKind, textKind},
		gojq.OpGt: {numberKind, textKind}, gojq.OpGe: {numberKind, textKind},
	}
	for _, k := range kinds[q.Op] {
		if a.kind != k || b.kind != k {
			continue
		}
		switch q.Op {
		case gojq.OpAdd, gojq.OpSub:
			return binary(a, q.Op.String(), b, addPrec, k), nil
		case gojq.OpMul:
			return binary(a, q.Op.String(), b, multiplyPrec, k), nil
		}
		return binary(a, q.Op.String(), b, comparePrec, boolKind), nil
	}
	// jq has rules for values of all types, Starlark for two of one type.
	return expr{}, unsupported("%s between values whose types are not known (%s)", q.Op, shown(q))
}

// same compares two values. Starlark's == is right unless both sides may be objects.
func same(a, b expr, not bool) expr {
	plain := func(k kind) bool { return k == nullKind || k == boolKind || k == numberKind || k == textKind }
	switch {
	case (plain(a.kind) || plain(b.kind)) && not:
		return binary(a, "!=", b, comparePrec, boolKind)
	case plain(a.kind) || plain(b.kind):
		return binary(a, "==", b, comparePrec, boolKind)
	}
	e := expr{text: "equal(" + a.text + ", " + b.text + ")", prec: primaryPrec, kind: boolKind}
	if not {
		return negate(e)
	}
	return e
}

func negate(e expr) expr { return expr{text: "not " + e.at(notPrec), prec: notPrec, kind: boolKind} }

// alternative is a // b. A default of get is evaluated always, so it must be one that cannot
// fail.
func alternative(a, b expr) expr {
	safe := b.text == "False" || b.text == "[]" || b.text == "{}" ||
		b.kind == numberKind && b.prec >= unaryPrec || b.kind == textKind && b.prec == primaryPrec
	if len(a.keys) > 0 && safe {
		e := constant(a.or(b.text), anyKind)
		if a.kind == b.kind || b.kind == listKind && a.isList() {
			e.kind = b.kind
		}
		e.objects = b.kind == listKind && a.isList() && b.text == "[]"
		return e
	}
	return choose(truth(a), a, b)
}
