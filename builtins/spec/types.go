package spec

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

// Check says why a value cannot be given.
func (p Param) Check(v starlark.Value) error {
	if err := p.Type.Check(v); err != nil {
		return err
	}
	if i, is := v.(starlark.Int); is && p.most > 0 {
		if n, _ := i.Int64(); n < int64(p.least) || n > int64(p.most) {
			return fmt.Errorf("%d is not between %d and %d", n, p.least, p.most)
		}
	}
	if p.longest > 0 {
		if d, _ := DurationOf(v); d == 0 || d > p.longest {
			return fmt.Errorf("%s is not between 0 and %s", d, p.longest)
		}
	}
	return nil
}

// Check returns an error like "got int, want string" when v is not of the type.
func (t Type) Check(v starlark.Value) error {
	_, callable := v.(starlark.Callable)
	ok := true
	switch t {
	case Any:
	case String:
		ok = IsString(v)
	case Text:
		ok = IsText(v)
	case Bool:
		_, ok = v.(starlark.Bool)
	case Int:
		return checkInt(v)
	case Number:
		_, ok = starlark.AsFloat(v)
	case Strings:
		return t.checkStrings(v)
	case List:
		ok = IsList(v)
	case Dict:
		ok = IsDict(v)
	case Function:
		ok = callable
	case Path:
		if ok = IsString(v) || IsList(v); ok {
			_, err := object.ParsePath(v)
			return err
		}
	case Duration:
		_, err := DurationOf(v)
		return err
	case Selector:
		ok = IsString(v) || IsList(v) || IsDict(v)
	case Filter:
		ok = callable || IsList(v) || IsString(v)
	case Wakes:
		ok = callable || IsString(v)
	case Conditions:
		ok = IsList(v) || IsDict(v)
	case Ref, Pod:
		ok = IsString(v) || IsDict(v)
	case Retry, Secret, SecretRef: // whose values are of no other package's type
		ok = v.Type() == string(t)
	case SecretText:
		_, ok = OpenText(v)
	case Time:
		_, ok = v.(startime.Time)
	}
	switch {
	case ok:
		return nil
	case t == List:
		return fmt.Errorf("got %s, want list; put it into brackets: [%s]", v.Type(), shown(v))
	case t == Bool && IsString(v):
		word := "False"
		if text, _ := starlark.AsString(v); slices.Contains([]string{"true", "yes", "on", "1"}, strings.ToLower(text)) {
			word = "True"
		}
		return fmt.Errorf("got string, want bool; write %s", word)
	case v.Type() == "bool" && t == Number:
		return fmt.Errorf("got bool, want %s; write 1 if x else 0", t)
	case IsString(v) && t == Dict:
		return fmt.Errorf("got string, want %s; yaml.decode(text) makes a dict of it", t)
	case t == Function && IsString(v):
		text, _ := starlark.AsString(v)
		return fmt.Errorf("got string, want function; write %s without quotes", Clip(text))
	}
	return fmt.Errorf("got %s, want %s", v.Type(), t)
}

// shown is a value as it is written, or three dots for one that is long or no text.
func shown(v starlark.Value) string {
	if IsString(v) {
		return Clip(v.String())
	}
	if v, ok := v.(interface{ Written() string }); ok {
		return v.Written()
	}
	return "…"
}

func (t Type) checkStrings(v starlark.Value) error {
	if !IsList(v) {
		return fmt.Errorf("got %s, want %s; put it into brackets: [%s]", v.Type(), t, shown(v))
	}
	list := v.(starlark.Indexable)
	for i := range list.Len() {
		if e := list.Index(i); !IsString(e) {
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

// IsString tells a text that is no bytes from all else.
func IsString(v starlark.Value) bool { _, ok := v.(starlark.String); return ok }

// IsText tells a text, or bytes, from all else.
func IsText(v starlark.Value) bool {
	switch v.(type) {
	case starlark.String, starlark.Bytes:
		return true
	}
	return false
}

// IsList tells a list or tuple from all else.
func IsList(v starlark.Value) bool {
	switch v.(type) {
	case *starlark.List, starlark.Tuple:
		return true
	}
	return false
}

// IsDict tells a dict or an object of the cluster from all else.
func IsDict(v starlark.Value) bool {
	switch v.(type) {
	case *starlark.Dict, *object.Object:
		return true
	}
	return false
}

// StringsOf returns the elements of a checked list of strings; never nil.
func StringsOf(v starlark.Value) []string {
	list := v.(starlark.Indexable)
	out := make([]string, list.Len())
	for i := range out {
		s, _ := starlark.AsString(list.Index(i))
		out[i] = s
	}
	return out
}

// DurationOf reads a duration: "1h30m", seconds as a number, or a value of the time module. Negative ones are errors.
func DurationOf(v starlark.Value) (time.Duration, error) {
	var d time.Duration
	switch v := v.(type) {
	case starlark.String:
		var err error
		if d, err = time.ParseDuration(string(v)); err != nil {
			return 0, fmt.Errorf(`%s is no duration; write %s`, Clip(v.String()), durationExample(v.String()))
		}
	case startime.Duration:
		d = time.Duration(v)
	case starlark.Int, starlark.Float:
		f, _ := starlark.AsFloat(v)
		if f *= float64(time.Second); math.IsNaN(f) || math.Abs(f) >= math.MaxInt64 {
			return 0, fmt.Errorf("%s seconds are out of range", Clip(v.String()))
		}
		d = time.Duration(f)
	default:
		return 0, fmt.Errorf("got %s, want %s", v.Type(), Duration)
	}
	if d < 0 {
		return 0, fmt.Errorf("%s is negative", d)
	}
	return d, nil
}

// DurationOr returns a duration argument.
func (c *Call) DurationOr(name string, dflt time.Duration) time.Duration {
	if v := c.Arg(name); v != nil {
		d, _ := DurationOf(v) // checked by Bind
		return d
	}
	return dflt
}

// Path returns a path argument.
func (c *Call) Path(name string) object.Path {
	p, _ := object.ParsePath(c.Arg(name)) // checked by Bind
	return p
}

// Clip cuts what a user wrote before it goes into an error.
func Clip(s string) string { return message.Cut(s, 60) }

// OpenText returns the text of a string, bytes or secret.
func OpenText(v starlark.Value) (string, bool) {
	switch v := v.(type) {
	case starlark.String:
		return string(v), true
	case starlark.Bytes:
		return string(v), true
	case *object.Secret:
		return v.Reveal(), true
	}
	return "", false
}

// Text returns the text of a [SecretText] argument, "" when not given.
func (c *Call) Text(name string) string {
	s, _ := OpenText(c.Arg(name))
	return s
}

// Hidden says that an argument is a secret.
func (c *Call) Hidden(name string) bool {
	_, is := c.Arg(name).(*object.Secret)
	return is
}

// Member returns a field of a dict, struct or the like, nil when there is none.
func Member(v starlark.Value, key string) starlark.Value {
	switch v := v.(type) {
	case starlark.Mapping:
		if e, found, err := v.Get(starlark.String(key)); found && err == nil {
			return e
		}
	case starlark.HasAttrs:
		if e, err := v.Attr(key); err == nil {
			return e
		}
	}
	return nil
}

// Opaque is the name of a type whose values show nothing of what they hold: it has all methods of [starlark.Value].
type Opaque string

func (o Opaque) String() string        { return "<" + string(o) + ">" }
func (o Opaque) Type() string          { return string(o) }
func (Opaque) Freeze()                 {}
func (Opaque) Truth() starlark.Bool    { return true }
func (o Opaque) Hash() (uint32, error) { return 0, fmt.Errorf("unhashable type: %s", string(o)) }
