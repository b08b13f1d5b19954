// Package jq turns jq filters into Starlark lambdas, where both mean the same. All other
// filters are refused with the construct that stands in the way: k8s.watch takes them as they
// are.
//
// Two cases differ. Where a filter of jq fails because a path leads below a text or a number,
// the lambda finds None. And `.x // "text"` takes the other side for a false in jq only: a
// field that is either false or a text is none of Kubernetes.
package jq

import (
	"errors"
	"fmt"
	"slices"

	"github.com/itchyny/gojq"

	"github.com/starling-operator/starling/runtime/message"
)

const (
	// maxProgram is that of filters of k8s.watch.
	maxProgram = 16 << 10
	// maxLambda is how long a lambda may get: past that the filter is easier to read.
	maxLambda = 2 << 10
	// maxDepth bounds how deep a filter may be nested.
	maxDepth = 100
)

// argument is the name of the object in a lambda.
const argument = "o"

// Unsupported says why a filter has no lambda.
type Unsupported struct {
	// Construct is the part of jq, as people call it: "reduce", "the function sort".
	Construct string
}

func (u *Unsupported) Error() string { return u.Construct + " has no translation" }

func unsupported(format string, args ...any) error { return &Unsupported{fmt.Sprintf(format, args...)} }

// Lambda returns the lambda that keeps of an object what the filter keeps of it. Of a filter
// without output the lambda gives None. An error is [*Unsupported], or says why the text is no
// filter.
func Lambda(program string) (string, error) {
	if len(program) > maxProgram {
		return "", fmt.Errorf("the filter is longer than %d KiB", maxProgram>>10)
	}
	query, err := gojq.Parse(program)
	if err != nil {
		return "", errors.New("this is no jq: " + message.Line(err.Error()))
	}
	if query.Meta != nil || len(query.Imports) > 0 {
		return "", unsupported("a module of jq")
	}
	t := &translator{}
	s, err := t.stream(query, cluster(argument))
	if err != nil {
		return "", err
	}
	if s.loops() {
		return "", unsupported("a filter with several outputs")
	}
	body := s.value
	if cond, ok := s.condition(); ok {
		body = choose(cond, body, constant("None", nullKind))
	}
	if err := body.fits(); err != nil {
		return "", err
	}
	return "lambda " + argument + ": " + body.text, nil
}

// translator translates one filter.
type translator struct {
	variables int
	depth     int
}

// variable returns a name for the element of a loop.
func (t *translator) variable() string {
	t.variables++
	if t.variables == 1 {
		return "v"
	}
	return fmt.Sprintf("v%d", t.variables)
}

// stream is all that a query gives for one input: a value, for each turn of its loops, if its
// conditions hold.
type stream struct {
	clauses []clause
	value   expr
}

// clause is one loop, or one condition, of a comprehension.
type clause struct {
	variable string // "" for a condition
	of       expr
}

func (c clause) String() string {
	if c.variable == "" {
		return "if " + c.of.at(orPrec)
	}
	return "for " + c.variable + " in " + c.of.at(orPrec)
}

// loops reports whether there may be more than one value.
func (s stream) loops() bool {
	return slices.ContainsFunc(s.clauses, func(c clause) bool { return c.variable != "" })
}

// condition joins the conditions before the first loop; false when there are none.
func (s stream) condition() (expr, bool) {
	var cond expr
	for i, c := range s.clauses {
		switch {
		case c.variable != "":
			return cond, i > 0
		case i == 0:
			cond = c.of
		default:
			cond = binary(cond, "and", c.of, andPrec, boolKind)
		}
	}
	return cond, len(s.clauses) > 0
}

func (s stream) list() expr {
	text := "[" + s.value.at(ternaryPrec)
	first := len(s.clauses)
	for i, c := range s.clauses {
		if c.variable != "" {
			first = i
			break
		}
	}
	for _, c := range s.clauses[first:] {
		text += " " + c.String()
	}
	all := expr{text: text + "]", prec: primaryPrec, kind: listKind}
	if cond, ok := s.condition(); ok {
		return choose(cond, all, constant("[]", listKind))
	}
	return all
}

// scalar translates a query that has exactly one output.
func (t *translator) scalar(q *gojq.Query, in expr) (expr, error) {
	s, err := t.stream(q, in)
	if err != nil {
		return expr{}, err
	}
	if len(s.clauses) > 0 {
		return expr{}, unsupported("%s in a place that takes one value", shown(q))
	}
	return s.value, nil
}

// cond translates a query to a condition, by jq's rules of truth.
func (t *translator) cond(q *gojq.Query, in expr) (expr, error) {
	e, err := t.scalar(q, in)
	return truth(e), err
}

// shown is a query in an error.
func shown(q *gojq.Query) string { return message.Cut(message.Line(q.String()), 60) }
