package object

import (
	"iter"
	"maps"
	"math"
)

// CopyPlain returns a deep copy of plain data.
func CopyPlain(v any) any {
	switch v := v.(type) {
	case map[string]any:
		out := make(map[string]any, len(v))
		for k, e := range v {
			out[k] = CopyPlain(e)
		}
		return out
	case []any:
		out := make([]any, len(v))
		for i, e := range v {
			out[i] = CopyPlain(e)
		}
		return out
	}
	return v
}

// Change has change make something else of each value of plain data, of the inner ones first, and returns what it
// makes of the whole. Dicts and lists are changed themselves: see [CopyPlain].
func Change(v any, change func(any) any) any {
	switch v := v.(type) {
	case map[string]any:
		for k, e := range v {
			v[k] = Change(e, change)
		}
	case []any:
		for i, e := range v {
			v[i] = Change(e, change)
		}
	}
	return change(v)
}

// WithoutNulls returns a copy of an object without its fields that are null: these stand for "as the API server has it".
func WithoutNulls(obj map[string]any) map[string]any {
	return Change(CopyPlain(obj), func(v any) any {
		if dict, is := v.(map[string]any); is {
			maps.DeleteFunc(dict, func(_ string, e any) bool { return e == nil })
		}
		return v
	}).(map[string]any)
}

// All returns plain data and all values inside it, the outer ones first.
func All(v any) iter.Seq[any] { return func(yield func(any) bool) { each(v, yield) } }

func each(v any, yield func(any) bool) bool {
	if !yield(v) {
		return false
	}
	switch v := v.(type) {
	case map[string]any:
		for _, e := range v {
			if !each(e, yield) {
				return false
			}
		}
	case []any:
		for _, e := range v {
			if !each(e, yield) {
				return false
			}
		}
	}
	return true
}

// PlainSize returns the size of plain data in the unit of [MaxBytes].
func PlainSize(v any) int { return plainSize(v, math.MaxInt) }

// plainSize stops counting past most.
func plainSize(v any, most int) int {
	n := valueCost
	switch v := v.(type) {
	case string:
		n += len(v)
	case map[string]any:
		n += holderCost
		for k, e := range v {
			if n > most {
				break
			}
			n += len(k) + plainSize(e, most-n)
		}
	case []any:
		n += holderCost
		for _, e := range v {
			if n > most {
				break
			}
			n += plainSize(e, most-n)
		}
	}
	return n
}
