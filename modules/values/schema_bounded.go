package values

import (
	"fmt"
	"regexp/syntax"

	"k8s.io/kube-openapi/pkg/validation/spec"
	"k8s.io/kube-openapi/pkg/validation/strfmt"
	"k8s.io/kube-openapi/pkg/validation/validate"
)

// The caller waits for the check, and the validator takes no context: it goes
// through all values, each text takes as long as its pattern is large, and the validator
// compares each mistake with all it found before. It would look at a field of a pattern three
// times, which is 3^n times for patterns below patterns. So a check counts what it does, and
// stops; it goes from value to value by itself, and the validator sees one at a time.

const (
	// maxProblems is how many problems of values are reported.
	maxProblems = 100
	// maxWork is what one check may do, in steps of some 5 ns: two seconds.
	maxWork = 400_000_000
	// visitWork is the work of looking at one value.
	visitWork = 1000
	// patternWork is the work of one instruction of a pattern for one byte.
	patternWork = 3
)

// tooMuch is the problem of values that take more than maxWork.
const tooMuch = "there is too much to check: these values are too many for the schema, or some texts too long for " +
	"its patterns; make them fewer or shorter, bound texts with maxLength, or let others be with x-kubernetes-preserve-unknown-fields"

// check is one validation of some values.
type check struct {
	patterns map[string]keyPattern
	work     int
	mistakes int
}

// validate returns what is wrong with v.
func (c *check) validate(s *spec.Schema, v any) []Problem {
	ps := resultProblems(c.value(s, v, ""))
	if c.work > maxWork {
		return []Problem{{Message: tooMuch}}
	}
	return ps
}

func (c *check) over() bool { return c.work > maxWork || c.mistakes >= maxProblems }

// value validates one value, unless the check has done enough.
func (c *check) value(s *spec.Schema, v any, path string) *validate.Result {
	if !c.over() {
		c.keywords(s, v)
	}
	if c.over() {
		return &validate.Result{}
	}
	before := c.mistakes
	r := validate.NewSchemaValidator(alone(s), nil, path, strfmt.Default).Validate(v)
	switch v := v.(type) {
	case []any:
		for i, e := range v {
			if s.Items != nil && s.Items.Schema != nil {
				r.Merge(c.value(s.Items.Schema, e, joinIndex(path, i)))
			}
		}
	case map[string]any:
		c.fields(s, v, path, r)
	}
	if v != nil && !c.over() {
		c.alternatives(s, v, path, r)
	}
	c.mistakes = max(c.mistakes, before+len(r.Errors)) // those of items and fields have counted
	return r
}

// keywords counts the work that is for one value alone.
func (c *check) keywords(s *spec.Schema, v any) {
	c.work += visitWork + len(s.Required)*len(s.Required)
	for _, e := range s.Enum { // the message of a mistake holds all of them
		text, _ := e.(string)
		c.work += visitWork/10 + len(text)
	}
	if text, ok := v.(string); ok && (s.MaxLength == nil || int64(len(text)) <= *s.MaxLength*4) {
		c.work += len(text) * (1 + patternWork*c.patterns[s.Pattern].size)
		if s.Format != "" {
			c.work += len(text) * visitWork / 10
		}
	}
}

// patternSize is about how many instructions a pattern compiles to; 0 where it is none. For
// each character of a text each of them may be carried out.
func patternSize(pattern string) int {
	re, err := syntax.Parse(pattern, syntax.Perl)
	if err != nil {
		return 0
	}
	return instructions(re)
}

func instructions(re *syntax.Regexp) int {
	n := 1 + len(re.Rune)/8
	for _, sub := range re.Sub {
		n += instructions(sub)
	}
	if re.Op == syntax.OpRepeat {
		n *= max(re.Min, re.Max, 1)
	}
	return n
}

// capped cuts problems to as many as somebody reads.
func capped(ps []Problem) []Problem {
	if len(ps) < maxProblems {
		return ps
	}
	return append(ps[:maxProblems-1:maxProblems-1], Problem{Message: fmt.Sprintf("and more: only %d problems are looked for at once", maxProblems-1)})
}
