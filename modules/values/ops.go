package values

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"math"
	"reflect"
	"slices"

	kjson "sigs.k8s.io/json"

	"github.com/starling-operator/starling/runtime/effect"
)

// maxOpsBytes is the size up to which stored operations are read: far above
// what fits into Secrets, far below what hurts.
const maxOpsBytes = 64 << 20

// Canonical returns the operations in the form in which they are kept: defaults
// first, then all others, each in the order of their paths; an operation on the
// same or on a containing path has superseded an earlier one, merges are taken
// apart into what they set and remove, whole floats are integers (JSON does not
// tell them apart), and positions and origins are gone, see [Located]. Two runs that ask for the same give
// results that are deeply equal. Canonical of canonical changes nothing.
func Canonical(ops []effect.ValueOp) []effect.ValueOp {
	upper, defaults := fold(ops)
	return marked(slices.Concat(defaults.ops(nil, effect.OpDefault), upper.ops(nil, effect.OpSet)), ops)
}

// Equal says whether two lists of operations ask for the same.
func Equal(a, b []effect.ValueOp) bool { return reflect.DeepEqual(Canonical(a), Canonical(b)) }

// EncodeOps writes operations as JSON with sorted keys, in canonical form. It
// fails on what JSON cannot hold (NaN, infinity).
func EncodeOps(ops []effect.ValueOp) ([]byte, error) {
	ops = Canonical(ops)
	if ops == nil {
		ops = []effect.ValueOp{}
	}
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	if err := enc.Encode(ops); err != nil {
		return nil, errors.New("these values cannot be written as JSON: a number is infinite or not a number")
	}
	return bytes.TrimSuffix(b.Bytes(), []byte("\n")), nil
}

// DecodeOps reads what [EncodeOps] wrote. Integers stay int64. Anything that is
// not a list of sound operations is an error.
func DecodeOps(data []byte) ([]effect.ValueOp, error) {
	if len(data) > maxOpsBytes {
		return nil, fmt.Errorf("stored values are larger than %d MiB", maxOpsBytes>>20)
	}
	var ops []effect.ValueOp
	strict, err := kjson.UnmarshalStrict(data, &ops)
	if err == nil {
		err = errors.Join(strict...)
	}
	if err != nil {
		return nil, errors.New("stored values are not a JSON list of operations, or hold unknown or doubled fields")
	}
	for i, op := range ops {
		if err := soundOp(op); err != nil {
			return nil, fmt.Errorf("stored values: operation %d: %w", i, err)
		}
	}
	return Canonical(ops), nil
}

func soundOp(op effect.ValueOp) error {
	if len(op.Path) == 0 {
		return errors.New("its path is empty")
	}
	switch op.Op {
	case effect.OpSet, effect.OpDefault:
		return nil
	case effect.OpMerge:
		if _, ok := op.Value.(map[string]any); !ok {
			return fmt.Errorf("merge at %s needs a map", PathString(op.Path))
		}
		return nil
	case effect.OpRemove:
		if op.Value != nil {
			return fmt.Errorf("remove of %s takes no value", PathString(op.Path))
		}
		return nil
	}
	return fmt.Errorf("%q is not one of set, default, merge, remove", op.Op)
}

// maxExact is the largest integer up to which a float64 holds every integer.
const maxExact = 1 << 53

// normal returns plain data as it looks after a way through JSON: whole floats
// become int64. A value that needs no change is returned as it is, not copied.
func normal(v any) any {
	switch v := v.(type) {
	case float64:
		if v == math.Trunc(v) && math.Abs(v) <= maxExact {
			return int64(v)
		}
	case int:
		return int64(v)
	case map[string]any:
		var out map[string]any
		for k, e := range v {
			if n := normal(e); !same(n, e) {
				if out == nil {
					out = make(map[string]any, len(v))
					maps.Copy(out, v)
				}
				out[k] = n
			}
		}
		if out != nil {
			return out
		}
		if v == nil {
			return map[string]any{}
		}
	case []any:
		var out []any
		for i, e := range v {
			if n := normal(e); !same(n, e) {
				if out == nil {
					out = slices.Clone(v)
				}
				out[i] = n
			}
		}
		if out != nil {
			return out
		}
		if v == nil {
			return []any{}
		}
	}
	return v
}

// same says whether two values are one: the same dict or list in memory, or equal scalars.
func same(a, b any) bool {
	switch a := a.(type) {
	case map[string]any:
		b, ok := b.(map[string]any)
		return ok && b != nil && reflect.ValueOf(a).Pointer() == reflect.ValueOf(b).Pointer()
	case []any:
		b, ok := b.([]any)
		return ok && b != nil && len(a) == len(b) && (len(a) == 0 || &a[0] == &b[0])
	}
	return a == b
}
