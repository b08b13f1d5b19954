package object

import (
	"maps"
	"math"
	"slices"
	"strings"

	"go.starlark.net/starlark"
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

// writePlain writes plain data as Starlark writes dicts and lists, keys sorted.
func writePlain(b *strings.Builder, v any) {
	switch v := v.(type) {
	case map[string]any:
		b.WriteByte('{')
		for i, k := range slices.Sorted(maps.Keys(v)) {
			if i > 0 {
				b.WriteString(", ")
			}
			b.WriteString(starlark.String(k).String() + ": ")
			writePlain(b, v[k])
		}
		b.WriteByte('}')
	case []any:
		b.WriteByte('[')
		for i, e := range v {
			if i > 0 {
				b.WriteString(", ")
			}
			writePlain(b, e)
		}
		b.WriteByte(']')
	default:
		b.WriteString(scalar(v).String())
	}
}
