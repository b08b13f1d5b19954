// Package codec writes down what runs and the engine are given, as CBOR: unlike JSON it keeps 1 and 1.0 apart, as
// Starlark does, and takes any text.
package codec

import (
	"errors"
	"fmt"
	"reflect"

	"github.com/fxamacker/cbor/v2"
	"go.starlark.net/starlark"

	"github.com/starling-operator/starling/runtime/object"
)

const (
	// maxNested is deeper than data of a run can be.
	maxNested = 2*object.MaxDepth + 20
	// maxItems bounds a list or a map that is read.
	maxItems = 1 << 24
)

// modes write the same bytes for the same data, and read them back as they were.
var modes = func() (m struct {
	write cbor.EncMode
	read  cbor.DecMode
	show  cbor.DiagMode
}) {
	e := cbor.CoreDetEncOptions()
	e.ShortestFloat = cbor.ShortestFloatNone
	e.NaNConvert, e.InfConvert = cbor.NaNConvertNone, cbor.InfConvertNone
	e.TextMarshaler = cbor.TextMarshalerTextString
	var errs [3]error
	m.write, errs[0] = e.EncMode()
	m.read, errs[1] = cbor.DecOptions{
		DefaultMapType:   reflect.TypeFor[map[string]any](),
		IntDec:           cbor.IntDecConvertSignedOrFail,
		UTF8:             cbor.UTF8DecodeInvalid,
		TextUnmarshaler:  cbor.TextUnmarshalerTextString,
		MaxNestedLevels:  maxNested,
		MaxArrayElements: maxItems,
		MaxMapPairs:      maxItems,
	}.DecMode()
	m.show, errs[2] = cbor.DiagOptions{ByteStringText: true, MaxNestedLevels: 1000, MaxArrayElements: maxItems, MaxMapPairs: maxItems}.DiagMode()
	if err := errors.Join(errs[:]...); err != nil {
		panic(err) // the options are constants
	}
	return m
}()

// Write returns the same bytes for the same data. It fails for what has no form in CBOR, such as a function.
func Write(v any) ([]byte, error) {
	out, err := modes.write.Marshal(v)
	if err != nil {
		return nil, fmt.Errorf("cannot be written down: %w", err)
	}
	return out, nil
}

// Read is the reverse of [Write]. It fails for what Write has not written.
func Read(data []byte, into any) error {
	if err := modes.read.Unmarshal(data, into); err != nil {
		return errors.New("it is no record, or a broken one")
	}
	return nil
}

// Plain makes plain data of anything that [Write] takes.
func Plain(v any) (out any, err error) {
	data, err := Write(v)
	if err != nil {
		return nil, err
	}
	return out, Read(data, &out)
}

// Text shows people what [Write] has written.
func Text(data []byte) string {
	text, err := modes.show.Diagnose(data)
	if err != nil { // a text that is no UTF-8
		return fmt.Sprintf("%x", data)
	}
	return text
}

// Value is a Starlark value of a snapshot or an event, for [Write]: what a watch keeps.
type Value struct {
	// Lazy means an object, as the cluster has it; else what a filter has returned.
	Lazy  bool `cbor:"o,omitempty"`
	Plain any  `cbor:"v"`
}

// ValueOf returns nil for no value. It fails for what no watch keeps.
func ValueOf(v starlark.Value) (*Value, error) {
	switch v := v.(type) {
	case nil:
		return nil, nil
	case *object.Object:
		return &Value{true, v.Map()}, nil
	}
	plain, err := object.ToPlain(v)
	if err != nil {
		return nil, err
	}
	return &Value{false, plain}, nil
}

// ValuesOf is [ValueOf] of each.
func ValuesOf(list []starlark.Value) (out []*Value, err error) {
	out = make([]*Value, len(list))
	for i, v := range list {
		if out[i], err = ValueOf(v); err != nil {
			return nil, err
		}
	}
	return out, nil
}

// PlainOf is the data of a value that [ValueOf] takes, nil for no value.
func PlainOf(v starlark.Value) any {
	one, err := ValueOf(v)
	if err != nil || one == nil {
		return nil
	}
	return one.Plain
}

// Starlark is the reverse of [ValueOf].
func (v *Value) Starlark() starlark.Value {
	if v == nil {
		return nil
	}
	if m, ok := v.Plain.(map[string]any); ok && v.Lazy {
		return object.New(m)
	}
	return object.FromPlain(v.Plain)
}
