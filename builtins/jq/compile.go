package jq

import (
	"errors"
	"fmt"
	"math/big"
	"reflect"
	"regexp"
	"slices"
	"strings"

	"github.com/itchyny/gojq"

	"github.com/starling-operator/starling/builtins/spec"
)

// A jq program can be stopped between two steps, but not within one. In jq a value may hold the same value a thousand
// times, so that one step over a small value may take for ever or all memory: [.,.] forty times, then tojson.
// Programs are therefore rewritten before they are compiled: what looks at a value as a whole weighs it first. The
// rest grows by some factor per step, which limits on a run's memory see.

const (
	// maxValue bounds a value in the unit of object.MaxBytes.
	maxValue = 32 << 20
	// maxDepth bounds how deep it may be nested.
	maxDepth = 1000
	// maxText bounds a text that is taken to pieces, each of which is a value.
	maxText = 1 << 20
	// maxMatched bounds a text in which all places of an expression are looked for: the
	// time that takes grows with its square, in one step.
	maxMatched = 32 << 10
	// maxIndex bounds indexes: setting one makes the list that long.
	maxIndex = 1_000_000
	// maxBits bounds the bits of a product of integers.
	maxBits = 1 << 16
)

// compile compiles a program for [run].
func compile(text string) (*gojq.Code, error) {
	if len(text) > maxProgram {
		return nil, fmt.Errorf("longer than %d KiB", maxProgram>>10)
	}
	if strings.Contains(text, weighed) {
		return nil, fmt.Errorf("names may not hold %s", weighed)
	}
	query, err := gojq.Parse(text)
	if hint := jsonPathHint(text); err != nil && hint != "" {
		return nil, errors.New(hint)
	}
	if err != nil {
		if parse, ok := errors.AsType[*gojq.ParseError](err); ok {
			return nil, fmt.Errorf("character %d: %w", max(parse.Offset-len(parse.Token), 0)+1, err)
		}
		return nil, err
	}
	if err := rewrite(reflect.ValueOf(query)); err != nil {
		return nil, err
	}
	return gojq.Compile(query,
		gojq.WithFunction(weighed, 0, 0, func(v any, _ []any) any {
			left := maxValue
			if err := weigh(v, &left, 0); err != nil {
				return fmt.Errorf("a value is %w", err)
			}
			return v
		}),
		gojq.WithFunction(weighed+"_text", 0, 0, func(v any, _ []any) any {
			if s, ok := v.(string); ok && len(s) > maxText {
				return fmt.Errorf("a text is larger than %d MiB", maxText>>20)
			}
			return v
		}),
		gojq.WithFunction(weighed+"_matched", 0, 0, func(v any, _ []any) any {
			if s, ok := v.(string); ok && len(s) > maxMatched {
				return fmt.Errorf("a text to be matched is larger than %d KiB", maxMatched>>10)
			}
			return v
		}),
		gojq.WithFunction(weighed+"_index", 0, 0, checkIndex),
		gojq.WithFunction(weighed+"_path", 0, 0, checkPath),
		gojq.WithFunction(weighed+"_transpose", 0, 0, checkTranspose),
		gojq.WithFunction(weighed+"_join", 1, 1, checkJoin),
		gojq.WithFunction(weighed+"_product", 2, 2, checkProduct),
	)
}

// weighed is the name of the function that weighs its input, and how the names of
// all that is added to programs begin.
const weighed = "__weighed"

// weigh takes the size of v, with all that it holds more than once, from left.
func weigh(v any, left *int, depth int) error {
	if depth > maxDepth {
		return fmt.Errorf("nested deeper than %d", maxDepth)
	}
	const value, holder = 16, 48
	*left -= value
	switch v := v.(type) {
	case string:
		*left -= len(v)
	case *big.Int:
		*left -= v.BitLen() / 3
	case []any:
		*left -= holder
		for _, e := range v {
			if err := weigh(e, left, depth+1); err != nil {
				return err
			}
		}
	case map[string]any:
		*left -= holder
		for k, e := range v {
			*left -= len(k)
			if err := weigh(e, left, depth+1); err != nil {
				return err
			}
		}
	}
	if *left < 0 {
		return fmt.Errorf("larger than %d MiB", maxValue>>20)
	}
	return nil
}

// checkIndex is asked for each index that a list may be made as long as.
func checkIndex(v any, _ []any) any {
	if n, ok := gojq.ToFloat64(v); ok && n > maxIndex {
		return fmt.Errorf("an index is larger than %d", maxIndex)
	}
	return v
}

// checkPath is asked for paths, and for the events of a stream, which begin with one.
func checkPath(v any, _ []any) any {
	path, _ := v.([]any)
	for _, e := range path {
		if inner, ok := e.([]any); ok {
			for _, e := range inner {
				if err, failed := checkIndex(e, nil).(error); failed {
					return err
				}
			}
		}
		if err, failed := checkIndex(e, nil).(error); failed {
			return err
		}
	}
	return v
}

func checkTranspose(v any, _ []any) any {
	rows, _ := v.([]any)
	longest := 0
	for _, row := range rows {
		if r, ok := row.([]any); ok {
			longest = max(longest, len(r))
		}
	}
	if longest*len(rows) > maxValue/16 {
		return errors.New("transpose: the result is too large")
	}
	return v
}

func checkJoin(v any, args []any) any {
	list, _ := v.([]any)
	sep, _ := args[0].(string)
	if len(list)*len(sep) > maxValue {
		return errors.New("join: the result is too large")
	}
	return v
}

// checkProduct is asked before $a * $b and $a / $b.
func checkProduct(v any, args []any) any {
	bits := 0
	for i, arg := range args {
		switch arg := arg.(type) {
		case *big.Int:
			bits += arg.BitLen()
		case string:
			if n, ok := gojq.ToFloat64(args[1-i]); ok && n*float64(len(arg)) > maxValue {
				return errors.New("a repeated text is too large")
			}
			if _, ok := args[1-i].(string); ok && len(arg) > maxText {
				return fmt.Errorf("a text is larger than %d MiB", maxText>>20)
			}
		}
	}
	if bits > maxBits {
		return fmt.Errorf("a number has more than %d bits", maxBits)
	}
	return v
}

// Functions that look at their input and arguments as a whole, and those that take
// a text to pieces. Constructors, not variables: nobody can change them.
func weighing() []string {
	return strings.Fields(`add flatten tojson tostring contains inside indices index rindex unique unique_by group_by
		min max min_by max_by sort sort_by implode bsearch IN INDEX JOIN setpath delpaths transpose join error`)
}

func pieces() []string { return strings.Fields("explode split test tonumber fromjson") }

// matching are those that look for places of a regular expression; split does so with flags.
func matching() []string { return strings.Fields("splits match capture scan sub gsub") }

// outside are functions that see more than the program's input, or act.
func outside() []string {
	return strings.Fields(`input inputs input_filename input_line_number debug stderr env $ENV now localtime strflocaltime
		halt halt_error modulemeta get_search_list`)
}

// rewrite rewrites a syntax tree, leaves first.
func rewrite(v reflect.Value) error {
	switch v.Kind() {
	case reflect.Pointer:
		if v.IsNil() {
			return nil
		}
		if err := rewrite(v.Elem()); err != nil {
			return err
		}
		switch node := v.Interface().(type) {
		case *gojq.Import:
			return errors.New("import and include are not available")
		case *gojq.Query:
			rewriteQuery(node)
		case *gojq.Term:
			return rewriteTerm(node)
		case *gojq.Index:
			if q := node.Start; q != nil && !node.IsSlice && !smallIndex(q) {
				node.Start = pipe(q, weighed+"_index")
			}
		case *gojq.String:
			for i, q := range node.Queries {
				if q.Term.Str == nil { // interpolated, and not a piece of the text
					node.Queries[i] = &gojq.Query{Term: &gojq.Term{Type: gojq.TermTypeQuery, Query: weighedQuery(q)}}
				}
			}
		}
	case reflect.Struct:
		for i := range v.NumField() {
			if err := rewrite(v.Field(i)); err != nil {
				return err
			}
		}
	case reflect.Slice:
		for i := range v.Len() {
			if err := rewrite(v.Index(i)); err != nil {
				return err
			}
		}
	}
	return nil
}

func rewriteQuery(q *gojq.Query) {
	switch q.Op {
	case gojq.OpAdd, gojq.OpSub, gojq.OpEq, gojq.OpNe, gojq.OpLt, gojq.OpGt, gojq.OpLe, gojq.OpGe:
		q.Left, q.Right = weighedQuery(q.Left), weighedQuery(q.Right)
	case gojq.OpMul, gojq.OpDiv:
		// The right side is the outer loop, as in jq.
		t := parsed("0 as $__weighed_r | 0 as $__weighed_l | __weighed_product($__weighed_l; $__weighed_r) | $__weighed_l * $__weighed_r")
		t.Left, t.Right.Left = weighedQuery(q.Right), weighedQuery(q.Left)
		t.Right.Right.Right.Op = q.Op
		t.FuncDefs = q.FuncDefs
		*q = *t
	case gojq.OpUpdateAdd, gojq.OpUpdateSub, gojq.OpUpdateMul, gojq.OpUpdateDiv:
		t := parsed("0 as $__weighed_r | 0 |= (__weighed | __weighed_product(.; $__weighed_r) | . * $__weighed_r)")
		t.Left, t.Right.Left = weighedQuery(q.Right), q.Left
		op := map[gojq.Operator]gojq.Operator{
			gojq.OpUpdateAdd: gojq.OpAdd, gojq.OpUpdateSub: gojq.OpSub,
			gojq.OpUpdateMul: gojq.OpMul, gojq.OpUpdateDiv: gojq.OpDiv,
		}[q.Op]
		t.Right.Right.Term.Query.Right.Right.Op = op
		t.FuncDefs = q.FuncDefs
		*q = *t
	case gojq.OpAssign, gojq.OpModify:
		q.Right = weighedQuery(q.Right)
	}
}

func rewriteTerm(t *gojq.Term) error {
	if t.Type == gojq.TermTypeFormat && t.Str == nil {
		become(t, "__weighed | .", gojq.Term{Type: t.Type, Format: t.Format})
		return nil
	}
	if t.Type != gojq.TermTypeFunc {
		return nil
	}
	name, fn := t.Func.Name, gojq.Term{Type: t.Type, Func: t.Func}
	switch {
	case slices.Contains(outside(), name):
		return fmt.Errorf("%s is not available", name)
	case slices.Contains(matching(), name), name == "split" && len(fn.Func.Args) == 2:
		become(t, "__weighed_matched | .", fn)
	case slices.Contains(pieces(), name):
		become(t, "__weighed_text | .", fn)
	case (name == "getpath" || name == "fromstream") && len(fn.Func.Args) == 1:
		fn.Func.Args[0] = pipe(fn.Func.Args[0], weighed+"_path")
	case slices.Contains(weighing(), name):
		if name == "setpath" && len(fn.Func.Args) == 2 {
			fn.Func.Args[0] = pipe(fn.Func.Args[0], weighed+"_path")
		}
		for i, arg := range fn.Func.Args {
			fn.Func.Args[i] = weighedQuery(arg)
		}
		switch {
		case name == "transpose":
			become(t, "__weighed | __weighed_transpose | .", fn)
		case name == "join" && len(fn.Func.Args) == 1:
			// Each output of the argument is one call.
			join := parsed("0 as $__weighed_r | __weighed_join($__weighed_r) | join($__weighed_r)")
			join.Left = fn.Func.Args[0]
			become(t, "__weighed | .", gojq.Term{Type: gojq.TermTypeQuery, Query: join})
		default:
			become(t, "__weighed | .", fn)
		}
	}
	return nil
}

// become replaces the term, but for its suffixes, by a template that ends in the new term.
func become(t *gojq.Term, template string, last gojq.Term) {
	q := parsed(template)
	end := q
	for end.Op == gojq.OpPipe {
		end = end.Right
	}
	end.Term = &last
	*t = gojq.Term{Type: gojq.TermTypeQuery, Query: q, SuffixList: t.SuffixList}
}

func weighedQuery(q *gojq.Query) *gojq.Query { return pipe(q, weighed) }

// pipe returns q | function.
func pipe(q *gojq.Query, function string) *gojq.Query {
	t := parsed("0 | " + function)
	t.Left = q
	return t
}

// smallIndex reports whether q is written out and small.
func smallIndex(q *gojq.Query) bool {
	return q.Term != nil && (q.Term.Type == gojq.TermTypeString || q.Term.Type == gojq.TermTypeNumber && len(q.Term.Number) < 6 && !strings.ContainsAny(q.Term.Number, "eE"))
}

// parsed parses what the rewriting puts into programs.
func parsed(text string) *gojq.Query {
	q, err := gojq.Parse(text)
	if err != nil {
		panic("builtins: " + text + ": " + err.Error())
	}
	return q
}

// jsonPath is what JSONPath has and jq does not.
var jsonPath = regexp.MustCompile(`^\s*\{\s*(?:\.|[$@]\.)|^\s*\$\.|\[\*\]|\[\?\(`)

// jsonPathHint says of a program that jq does not take, for it is JSONPath, how it is written; "" for any other.
func jsonPathHint(text string) string {
	if !jsonPath.MatchString(text) {
		return ""
	}
	path := strings.TrimSpace(text)
	if strings.HasPrefix(path, "{") && strings.HasSuffix(path, "}") {
		path = strings.TrimSpace(path[1 : len(path)-1])
	}
	path = strings.TrimPrefix(strings.TrimPrefix(path, "$"), "@")
	if many := strings.ReplaceAll(path, "[*]", "[]"); many != path {
		path = "[" + many + "]"
	}
	if _, err := gojq.Parse(path); err != nil {
		path = "[.spec.containers[].image]"
	}
	return fmt.Sprintf("this is JSONPath, jq is wanted: %q", spec.Clip(path))
}
