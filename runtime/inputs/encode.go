package inputs

import (
	"encoding"
	"errors"
	"fmt"
	"reflect"
	"strings"
	"time"

	"github.com/fxamacker/cbor/v2"
	"go.starlark.net/starlark"

	"github.com/starling-operator/starling/builtins"
	"github.com/starling-operator/starling/runtime/codec"
	"github.com/starling-operator/starling/runtime/engine/layers"
	"github.com/starling-operator/starling/runtime/generation"
	"github.com/starling-operator/starling/runtime/hook"
	"github.com/starling-operator/starling/runtime/lane"
)

// failure is an error: its text, and what the engine looks for in it.
type failure struct {
	Text    string
	Fail    *builtins.FailError
	Passing bool // it is a [lane.Passing]
	Race    bool // and says so
	Awaits  lane.Awaited
}

func (f *failure) Error() string { return f.Text }

// Unwrap gives what the engine looks for.
func (f *failure) Unwrap() (found []error) {
	if f.Fail != nil {
		found = append(found, f.Fail)
	}
	if f.Passing {
		found = append(found, &lane.Passing{Err: errors.New(f.Text), Race: f.Race})
	}
	if f.Awaits != "" {
		found = append(found, &lane.Awaits{Err: errors.New(f.Text), For: f.Awaits})
	}
	return found
}

func failureOf(err error) *failure {
	f := &failure{Text: err.Error(), Awaits: lane.AwaitedBy(err)}
	errors.As(err, &f.Fail)
	if passing, is := errors.AsType[*lane.Passing](err); is {
		f.Passing, f.Race = true, passing.Race
	}
	return f
}

// plain turns inputs, actions and what they hold into data that a codec writes. Zero fields
// are left out.
func plain(v reflect.Value) (any, error) {
	switch {
	case v.Type() == typeOfAny:
		return v.Interface(), checkPlain(v.Interface())
	case (v.Kind() == reflect.Interface || v.Kind() == reflect.Pointer) && v.IsNil():
		return nil, nil
	}
	switch x := v.Interface().(type) {
	case *generation.Generation:
		return map[string]any{"number": x.Number, "digest": x.Tree.Digest, "held": x.Held, "unfit": x.Unfit}, nil
	case *generation.Module:
		return x.Name, nil
	case *generation.Hook:
		return x.ID + " " + x.Digest, nil
	case *builtins.WatchBinding:
		return strings.TrimSpace(x.Pos + " " + x.FilterID + " " + x.WakesID), nil
	case *hook.Seen: // the engine only hands it on
		return true, nil
	case *layers.Sight:
		m, err := x.Compose(nil)
		if err != nil {
			return err.Error(), nil
		}
		return m, nil
	case layers.Secrets:
		return x.Texts(), nil
	case *builtins.Request:
		return codec.RequestOf(x), nil
	case time.Time:
		return x.UTC().Format(time.RFC3339Nano), nil
	case starlark.Value:
		return codec.ValueOf(x)
	case error:
		return failureOf(x), nil
	case encoding.TextMarshaler:
		return x, nil
	}
	switch v.Kind() {
	case reflect.Pointer:
		return plain(v.Elem())
	case reflect.Struct:
		return plainStruct(v)
	case reflect.Slice:
		if v.IsNil() || v.Type().Elem().Kind() == reflect.Uint8 {
			return v.Interface(), nil
		}
		out := make([]any, v.Len())
		for i := range out {
			var err error
			if out[i], err = plain(v.Index(i)); err != nil {
				return nil, fmt.Errorf("[%d]%w", i, err)
			}
		}
		return out, nil
	case reflect.Map:
		if v.IsNil() {
			return nil, nil
		}
		if v.Type().Key().Kind() != reflect.String {
			return nil, errNotCarried
		}
		out := make(map[string]any, v.Len())
		for key, e := range v.Seq2() {
			var err error
			if out[key.String()], err = plain(e); err != nil {
				return nil, fmt.Errorf("[%q]%w", key, err)
			}
		}
		return out, nil
	case reflect.Bool, reflect.String, reflect.Float64,
		reflect.Int, reflect.Int8, reflect.Int16, reflect.Int32, reflect.Int64,
		reflect.Uint, reflect.Uint8, reflect.Uint16, reflect.Uint32, reflect.Uint64:
		return v.Interface(), nil
	}
	return nil, errNotCarried
}

func plainStruct(v reflect.Value) (any, error) {
	out := map[string]any{}
	for i := range v.NumField() {
		f := v.Type().Field(i)
		if !f.IsExported() {
			return nil, fmt.Errorf(".%s%w", f.Name, errNotCarried)
		}
		if v.Field(i).IsZero() {
			continue
		}
		var err error
		if out[f.Name], err = plain(v.Field(i)); err != nil {
			return nil, fmt.Errorf(".%s%w", f.Name, err)
		}
	}
	return out, nil
}

var errNotCarried = errors.New(" cannot be written down; teach runtime/inputs how")

// checkPlain refuses all but plain data: it would come back as something else.
func checkPlain(v any) error {
	switch v := v.(type) {
	case nil, bool, int64, float64, string:
	case []any:
		for i, e := range v {
			if err := checkPlain(e); err != nil {
				return fmt.Errorf("[%d]%w", i, err)
			}
		}
	case map[string]any:
		for key, e := range v {
			if err := checkPlain(e); err != nil {
				return fmt.Errorf("[%q]%w", key, err)
			}
		}
	default:
		return errNotCarried
	}
	return nil
}

// raw is what a codec makes of a value.
func raw(v any) (cbor.RawMessage, error) {
	data, err := plain(reflect.ValueOf(v))
	if err != nil {
		return nil, fmt.Errorf("%s%w", kindOf(v), err)
	}
	return codec.Write(data)
}

// kindOf is the name of an input or action.
func kindOf(v any) string { return reflect.TypeOf(v).Name() }
