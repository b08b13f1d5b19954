package builtins

import (
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"
	"time"

	startime "go.starlark.net/lib/time"
	"go.starlark.net/starlark"

	"github.com/starling-operator/starling/runtime/message"
	"github.com/starling-operator/starling/runtime/object"
)

// check returns an error like "got int, want string" when v is not of the type.
func (t Type) check(v starlark.Value) error {
	ok := true
	switch t {
	case TypeAny:
	case TypeString:
		_, ok = v.(starlark.String)
	case TypeText:
		ok = isText(v)
	case TypeBool:
		_, ok = v.(starlark.Bool)
	case TypeInt:
		return checkInt(v)
	case TypeNumber:
		_, ok = starlark.AsFloat(v)
	case TypeStrings:
		return t.checkStrings(v)
	case TypeList:
		ok = isList(v)
	case TypeDict:
		ok = isDict(v)
	case TypeFunction:
		_, ok = v.(starlark.Callable)
	case TypePath:
		if ok = isString(v) || isList(v); ok {
			_, err := object.ParsePath(v)
			return err
		}
	case TypeDuration:
		_, err := durationOf(v)
		return err
	case TypeSelector:
		ok = isString(v) || isList(v) || isDict(v)
	case TypeFilter:
		_, callable := v.(starlark.Callable)
		ok = callable || isList(v) || isString(v)
	case TypeWakes:
		_, callable := v.(starlark.Callable)
		ok = callable || isString(v)
	case TypeConditions:
		ok = isList(v) || isDict(v)
	case TypeRef, TypePod:
		ok = isString(v) || isDict(v)
	case TypeRetry:
		_, ok = v.(*declared[Retry])
	case TypeSecret:
		_, ok = v.(*object.Secret)
	case TypeSecretRef:
		_, ok = v.(*declared[SecretRef])
	case TypeSecretText:
		_, ok = openText(v)
	case TypeTime:
		_, ok = v.(startime.Time)
	}
	switch {
	case ok:
		return nil
	case t == TypeList:
		return fmt.Errorf("got %s, want list; put it into brackets: [%s]", v.Type(), shown(v))
	case t == TypeBool && isString(v):
		word := "False"
		if text, _ := starlark.AsString(v); slices.Contains([]string{"true", "yes", "on", "1"}, strings.ToLower(text)) {
			word = "True"
		}
		return fmt.Errorf("got string, want bool; write %s", word)
	case v.Type() == "bool" && t == TypeNumber:
		return fmt.Errorf("got bool, want %s; write 1 if x else 0", t)
	case isString(v) && t == TypeDict:
		return fmt.Errorf("got string, want %s; yaml.decode(text) makes a dict of it", t)
	case t == TypeFunction && isString(v):
		text, _ := starlark.AsString(v)
		return fmt.Errorf("got string, want function; write %s without quotes", clip(text))
	}
	return fmt.Errorf("got %s, want %s", v.Type(), t)
}

// shown is a value as it is written, or three dots for one that is long or no text.
func shown(v starlark.Value) string {
	if isString(v) {
		return clip(v.String())
	}
	if d, ok := v.(*declared[Binding]); ok && d.val.Startup != nil {
		return "startup()"
	}
	return "…"
}

func (t Type) checkStrings(v starlark.Value) error {
	if !isList(v) {
		return fmt.Errorf("got %s, want %s; put it into brackets: [%s]", v.Type(), t, shown(v))
	}
	list := v.(starlark.Indexable)
	for i := range list.Len() {
		if e := list.Index(i); !isString(e) {
			return fmt.Errorf("element %d: got %s, want string", i, e.Type())
		}
	}
	return nil
}

func checkInt(v starlark.Value) error {
	i, ok := v.(starlark.Int)
	if _, is := v.(starlark.Bool); is {
		return errors.New("got bool, want int; write 1 if x else 0")
	}
	if !ok {
		return fmt.Errorf("got %s, want int", v.Type())
	}
	if n, ok := i.Int64(); !ok || n < math.MinInt32 || n > math.MaxInt32 {
		return errors.New("the number is out of range")
	}
	return nil
}

func isString(v starlark.Value) bool { _, ok := v.(starlark.String); return ok }

func isText(v starlark.Value) bool {
	switch v.(type) {
	case starlark.String, starlark.Bytes:
		return true
	}
	return false
}

func isList(v starlark.Value) bool {
	switch v.(type) {
	case *starlark.List, starlark.Tuple:
		return true
	}
	return false
}

func isDict(v starlark.Value) bool {
	switch v.(type) {
	case *starlark.Dict, *object.Object:
		return true
	}
	return false
}

// stringsOf returns the elements of a checked list of strings; never nil.
func stringsOf(v starlark.Value) []string {
	list := v.(starlark.Indexable)
	out := make([]string, list.Len())
	for i := range out {
		s, _ := starlark.AsString(list.Index(i))
		out[i] = s
	}
	return out
}

// durationOf reads a duration: "1h30m", seconds as a number, or a value of the
// time module. Negative ones are errors.
func durationOf(v starlark.Value) (time.Duration, error) {
	var d time.Duration
	switch v := v.(type) {
	case starlark.String:
		var err error
		if d, err = time.ParseDuration(string(v)); err != nil {
			return 0, fmt.Errorf(`%s is no duration; write %s`, clip(v.String()), durationExample(v.String()))
		}
	case startime.Duration:
		d = time.Duration(v)
	case starlark.Int, starlark.Float:
		f, _ := starlark.AsFloat(v)
		if f *= float64(time.Second); math.IsNaN(f) || math.Abs(f) >= math.MaxInt64 {
			return 0, fmt.Errorf("%s seconds are out of range", clip(v.String()))
		}
		d = time.Duration(f)
	default:
		return 0, fmt.Errorf("got %s, want %s", v.Type(), TypeDuration)
	}
	if d < 0 {
		return 0, fmt.Errorf("%s is negative", d)
	}
	return d, nil
}

// durationOr returns a duration argument.
func (c *call) durationOr(name string, dflt time.Duration) time.Duration {
	if v := c.arg(name); v != nil {
		d, _ := durationOf(v) // checked by bind
		return d
	}
	return dflt
}

// path returns a path argument.
func (c *call) path(name string) object.Path {
	p, _ := object.ParsePath(c.arg(name)) // checked by bind
	return p
}

// clip cuts what a user wrote before it goes into an error.
func clip(s string) string { return message.Cut(s, 60) }
