package object

import (
	"errors"
	"fmt"
	"maps"
	"math"
	"math/big"
	"slices"
	"strconv"
	"time"
	"unicode/utf8"

	startime "go.starlark.net/lib/time"
	"go.starlark.net/starlark"
	"go.starlark.net/starlarkstruct"

	"github.com/starling-operator/starling/runtime/message"
)

const (
	// MaxDepth is how deep data may be nested.
	MaxDepth = 100
	// MaxBytes is how large plain data may be: the bytes of its strings and keys
	// plus 16 for each value and 48 more for each map or list. A list that holds
	// the same list a thousand times counts a thousand times, as it would in JSON.
	MaxBytes = 32 << 20

	valueCost  = 16
	holderCost = 48
)

// FromPlain returns plain data as frozen Starlark values: maps become dicts in
// sorted key order, slices lists. Integers of any Go type and *big.Int are
// exact. A value that is no plain data becomes its text.
func FromPlain(v any) starlark.Value {
	r := thaw(v)
	r.Freeze()
	return r
}

// thaw is FromPlain without the freezing.
func thaw(v any) starlark.Value {
	switch v := v.(type) {
	case map[string]any:
		d := starlark.NewDict(len(v))
		for _, k := range slices.Sorted(maps.Keys(v)) {
			_ = d.SetKey(starlark.String(k), thaw(v[k])) // a new dict takes any string
		}
		return d
	case []any:
		elems := make([]starlark.Value, len(v))
		for i, e := range v {
			elems[i] = thaw(e)
		}
		return starlark.NewList(elems)
	}
	return scalar(v)
}

func scalar(v any) starlark.Value {
	switch v := v.(type) {
	case nil:
		return starlark.None
	case bool:
		return starlark.Bool(v)
	case string:
		return starlark.String(v)
	case int64:
		return starlark.MakeInt64(v)
	case float64:
		return starlark.Float(v)
	case int:
		return starlark.MakeInt(v)
	case int32:
		return starlark.MakeInt64(int64(v))
	case uint64:
		return starlark.MakeUint64(v)
	case *big.Int:
		return starlark.MakeBigInt(v)
	}
	return starlark.String(fmt.Sprint(v))
}

// ToPlain returns v as fresh plain data that shares nothing with it. Dicts,
// objects and structs become maps; lists, tuples and sets slices; a time becomes
// its RFC 3339 text and a duration text like "1m30s".
//
// Anything else is an error that begins with the path below v, as are cycles,
// keys that are no strings, integers past 64 bits, floats that are no number,
// text that is no UTF-8, and data past [MaxDepth] or [MaxBytes].
func ToPlain(v starlark.Value) (any, error) { return (&converter{left: MaxBytes}).top(v) }

// ToPlainWithin is [ToPlain] for data that has no more than so many bytes.
func ToPlainWithin(v starlark.Value, most int) (any, error) {
	return (&converter{left: most, most: most}).top(v)
}

// ToPlainAt is [ToPlain] for a value that goes into an effect, at the keys at: paths in
// errors begin there. It is the way out for a [Secret], which becomes its text.
func ToPlainAt(v starlark.Value, at []string) (any, error) {
	return (&converter{left: MaxBytes, path: slices.Clone(at), reveal: true}).top(v)
}

// ToPlainMarked is [ToPlainAt]; secrets are the paths in the result, without at, at
// which a [Secret] stood.
func ToPlainMarked(v starlark.Value, at []string) (plain any, secrets [][]string, err error) {
	c := &converter{left: MaxBytes, path: slices.Clone(at), reveal: true}
	c.mark = func() { secrets = append(secrets, slices.Clone(c.path[len(at):])) }
	plain, err = c.top(v)
	return plain, secrets, err
}

// ToTree is [ToPlain], except that integers past 64 bits are kept, as *big.Int.
// It is for encoders of text.
func ToTree(v starlark.Value) (any, error) { return (&converter{left: MaxBytes, big: true}).top(v) }

func (c *converter) top(v starlark.Value) (any, error) {
	r, err := c.plain(v)
	if err != nil {
		if where := KeysText(c.path); where != "" {
			return nil, fmt.Errorf("%s: %w", where, err)
		}
		return nil, err
	}
	return r, nil
}

// converter walks one value. On an error its path stays where the error is.
type converter struct {
	path    []string
	parents []starlark.Value
	left    int
	most    int    // what left was at first, for errors; 0: [MaxBytes]
	big     bool   // keep integers past 64 bits
	reveal  bool   // secrets become their text
	mark    func() // nil, or told of each of them
}

func (c *converter) plain(v starlark.Value) (any, error) {
	if err := c.pay(valueCost); err != nil {
		return nil, err
	}
	switch v := v.(type) {
	case nil, starlark.NoneType:
		return nil, nil
	case starlark.Bool:
		return bool(v), nil
	case starlark.String:
		return c.text(string(v))
	case starlark.Int:
		i, ok := v.Int64()
		if !ok && c.big {
			return v.BigInt(), c.pay(digits(v))
		}
		if !ok && digits(v) > maxWritten {
			return nil, errors.New("an integer does not fit into 64 bits; write it as a string")
		}
		if !ok {
			return nil, fmt.Errorf("integer %s does not fit into 64 bits; write it as a string", message.Cut(v.String(), maxQuoted))
		}
		return i, nil
	case starlark.Float:
		if f := float64(v); math.IsNaN(f) || math.IsInf(f, 0) {
			return nil, fmt.Errorf("%v is no JSON number", v)
		}
		return float64(v), nil
	case startime.Time:
		return time.Time(v).Format(time.RFC3339Nano), nil
	case startime.Duration:
		return time.Duration(v).String(), nil
	case *Object:
		return c.copyMap(v.m)
	case *starlark.List, starlark.Tuple, *starlark.Set:
		return c.list(v.(starlark.Sequence))
	case *starlarkstruct.Struct:
		return c.fields(v)
	case starlark.IterableMapping:
		return c.mapping(v)
	case *Secret:
		if !c.reveal {
			return nil, errors.New("a secret cannot go here; reveal(…) gives its text")
		}
		if c.mark != nil {
			c.mark()
		}
		return c.text(v.text)
	case starlark.Bytes:
		return nil, fmt.Errorf("bytes cannot be stored as JSON; use base64.encode")
	}
	return nil, fmt.Errorf("a %s cannot be stored as JSON", v.Type())
}

func (c *converter) list(v starlark.Sequence) (any, error) {
	if err := c.enter(v); err != nil {
		return nil, err
	}
	out := make([]any, 0, min(v.Len(), c.left/valueCost))
	it := v.Iterate()
	defer it.Done()
	var e starlark.Value
	for it.Next(&e) {
		p, err := c.below(strconv.Itoa(len(out)), e)
		if err != nil {
			return nil, err
		}
		out = append(out, p)
	}
	c.leave()
	return out, nil
}

func (c *converter) mapping(v starlark.IterableMapping) (any, error) {
	if err := c.enter(v); err != nil {
		return nil, err
	}
	out := make(map[string]any, max(0, min(starlark.Len(v), c.left/valueCost)))
	if dict, is := v.(*starlark.Dict); is { // without a tuple for each item
		it := dict.Iterate()
		defer it.Done()
		var key starlark.Value
		for it.Next(&key) {
			e, _, _ := dict.Get(key) // it is there
			if err := c.item(out, key, e); err != nil {
				return nil, err
			}
		}
	} else {
		for _, item := range v.Items() {
			if err := c.item(out, item[0], item[1]); err != nil {
				return nil, err
			}
		}
	}
	c.leave()
	return out, nil
}

// item puts one item of a mapping into out.
func (c *converter) item(out map[string]any, key, v starlark.Value) (err error) {
	k, ok := starlark.AsString(key)
	if !ok {
		return fmt.Errorf("key %s: got %s, want string", message.Cut(key.String(), maxQuoted), key.Type())
	}
	if err := c.valid(k); err != nil {
		return fmt.Errorf("key %s: %w", strconv.Quote(message.Cut(k, maxQuoted)), err)
	}
	out[k], err = c.below(k, v)
	return err
}

func (c *converter) fields(v *starlarkstruct.Struct) (any, error) {
	if err := c.enter(v); err != nil {
		return nil, err
	}
	out := map[string]any{}
	for name, field := range v.Entries() {
		p, err := c.below(name, field)
		if err != nil {
			return nil, err
		}
		out[name] = p
	}
	c.leave()
	return out, nil
}

// copyMap copies the map of an object, which is plain data already.
func (c *converter) copyMap(m map[string]any) (any, error) {
	n := plainSize(m, c.left)
	if err := c.pay(n); err != nil {
		return nil, err
	}
	return CopyPlain(m), nil
}

func (c *converter) below(key string, v starlark.Value) (any, error) {
	c.path = append(c.path, key)
	p, err := c.plain(v)
	if err == nil {
		c.path = c.path[:len(c.path)-1]
	}
	return p, err
}

func (c *converter) enter(v starlark.Value) error {
	for _, p := range c.parents {
		if same(p, v) {
			return fmt.Errorf("a %s that holds itself cannot be stored as JSON", v.Type())
		}
	}
	if len(c.parents) >= MaxDepth {
		return fmt.Errorf("nested deeper than %d", MaxDepth)
	}
	c.parents = append(c.parents, v)
	return c.pay(holderCost)
}

func (c *converter) leave() { c.parents = c.parents[:len(c.parents)-1] }

// same reports whether a and b are one value that can hold itself. Tuples are no
// comparable Go values; a cycle never consists of tuples alone.
func same(a, b starlark.Value) bool {
	if _, ok := a.(starlark.Tuple); ok {
		return false
	}
	if _, ok := b.(starlark.Tuple); ok {
		return false
	}
	return a == b
}

func (c *converter) text(s string) (any, error) {
	if err := c.valid(s); err != nil {
		return nil, err
	}
	return s, nil
}

// valid counts a text, and makes sure that JSON can hold it.
func (c *converter) valid(s string) error {
	if err := c.pay(len(s)); err != nil {
		return err
	}
	if !utf8.ValidString(s) {
		return errors.New("text is not valid UTF-8; use base64.encode")
	}
	return nil
}

func (c *converter) pay(n int) error {
	if c.left -= n; c.left < 0 {
		if c.most > 0 {
			return fmt.Errorf("larger than %d bytes", c.most)
		}
		return fmt.Errorf("larger than %d MiB", MaxBytes>>20)
	}
	return nil
}

// maxQuoted bounds text that goes into an error.
const maxQuoted = 40
