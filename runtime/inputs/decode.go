package inputs

import (
	"encoding"
	"errors"
	"fmt"
	"maps"
	"reflect"
	"slices"

	"github.com/fxamacker/cbor/v2"
	"go.starlark.net/starlark"

	"github.com/starling-operator/starling/builtins"
	"github.com/starling-operator/starling/runtime/codec"
	"github.com/starling-operator/starling/runtime/engine"
	"github.com/starling-operator/starling/runtime/generation"
	"github.com/starling-operator/starling/runtime/hook"
)

// decoder is the reverse of plain, for all that inputs hold.
type decoder struct {
	// generation is the one that inputs with a generation bring.
	generation *generation.Generation
}

var (
	typeOfGeneration = reflect.TypeFor[*generation.Generation]()
	typeOfSeen       = reflect.TypeFor[*hook.Seen]()
	typeOfRequest    = reflect.TypeFor[*builtins.Request]()
	typeOfValue      = reflect.TypeFor[starlark.Value]()
	typeOfError      = reflect.TypeFor[error]()
	typeOfAny        = reflect.TypeFor[any]()
)

// input makes an input of its data.
func (d *decoder) input(kind string, data cbor.RawMessage) (engine.Input, error) {
	for _, one := range kinds {
		if kindOf(one) != kind {
			continue
		}
		v := reflect.New(reflect.TypeOf(one)).Elem()
		if err := d.into(data, v); err != nil {
			return nil, fmt.Errorf("%s%w", kind, err)
		}
		return v.Interface().(engine.Input), nil
	}
	return nil, fmt.Errorf("this version knows no input %q", kind)
}

func (d *decoder) read(data []byte, into any) error {
	if codec.Read(data, into) != nil {
		return errData
	}
	return nil
}

var errData = errors.New(" is broken")

// into reads data into a value, which is zero.
func (d *decoder) into(data cbor.RawMessage, v reflect.Value) error {
	if len(data) == 1 && data[0] == 0xf6 { // null
		return nil
	}
	switch v.Type() {
	case typeOfGeneration:
		v.Set(reflect.ValueOf(d.generation))
		return nil
	case typeOfSeen:
		v.Set(reflect.ValueOf(hook.NewSeen()))
		return nil
	case typeOfRequest:
		var r *codec.Request
		err := d.read(data, &r)
		v.Set(reflect.ValueOf(r.Request()))
		return err
	case typeOfValue:
		var row *codec.Value
		err := d.read(data, &row)
		if row != nil {
			v.Set(reflect.ValueOf(row.Starlark()))
		}
		return err
	case typeOfError:
		f := &failure{}
		v.Set(reflect.ValueOf(f))
		return d.read(data, f)
	case typeOfAny:
		return d.read(data, v.Addr().Interface())
	}
	if _, text := v.Addr().Interface().(encoding.TextUnmarshaler); text {
		return d.read(data, v.Addr().Interface())
	}
	switch v.Kind() {
	case reflect.Pointer:
		v.Set(reflect.New(v.Type().Elem()))
		return d.into(data, v.Elem())
	case reflect.Struct:
		return d.intoStruct(data, v)
	case reflect.Slice:
		if v.Type().Elem().Kind() == reflect.Uint8 {
			break
		}
		var all []cbor.RawMessage
		if err := d.read(data, &all); err != nil {
			return err
		}
		v.Set(reflect.MakeSlice(v.Type(), len(all), len(all)))
		for i, one := range all {
			if err := d.into(one, v.Index(i)); err != nil {
				return fmt.Errorf("[%d]%w", i, err)
			}
		}
		return nil
	case reflect.Map:
		var all map[string]cbor.RawMessage
		if err := d.read(data, &all); err != nil {
			return err
		}
		v.Set(reflect.MakeMapWithSize(v.Type(), len(all)))
		for key, one := range all {
			e := reflect.New(v.Type().Elem()).Elem()
			if err := d.into(one, e); err != nil {
				return fmt.Errorf("[%q]%w", key, err)
			}
			v.SetMapIndex(reflect.ValueOf(key).Convert(v.Type().Key()), e)
		}
		return nil
	case reflect.Interface, reflect.Func, reflect.Chan, reflect.UnsafePointer:
		return errNotCarried
	}
	return d.read(data, v.Addr().Interface())
}

func (d *decoder) intoStruct(data cbor.RawMessage, v reflect.Value) error {
	var all map[string]cbor.RawMessage
	if err := d.read(data, &all); err != nil {
		return err
	}
	for _, name := range slices.Sorted(maps.Keys(all)) {
		field, known := v.Type().FieldByName(name)
		if !known || len(field.Index) != 1 || !field.IsExported() {
			return fmt.Errorf(".%s is not known to this version", name)
		}
		if err := d.into(all[name], v.FieldByIndex(field.Index)); err != nil {
			return fmt.Errorf(".%s%w", name, err)
		}
	}
	return nil
}
