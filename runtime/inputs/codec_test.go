package inputs

import (
	"bytes"
	"encoding"
	"errors"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"path/filepath"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/starling-operator/starling/builtins"
	"github.com/starling-operator/starling/runtime/effect"
	"github.com/starling-operator/starling/runtime/engine"
	"github.com/starling-operator/starling/runtime/hook"
	"github.com/starling-operator/starling/runtime/lane"
	"github.com/starling-operator/starling/runtime/object"
)

// A new field of an input comes here by itself: it is carried, or this test fails.
func TestEveryInputIsCarriedWhole(t *testing.T) {
	gen := compile(t, quiet, 1, nil)
	for _, zero := range kinds {
		t.Run(kindOf(zero), func(t *testing.T) {
			v := reflect.New(reflect.TypeOf(zero)).Elem()
			fill(t, v, 0)
			set(v, gen)
			in := v.Interface().(engine.Input)
			data, err := raw(in)
			if err != nil {
				t.Fatal(err)
			}
			back, err := (&decoder{generation: gen}).input(kindOf(in), data)
			if err != nil {
				t.Fatal(err)
			}
			whole(t, kindOf(in), reflect.ValueOf(back), 0)
			if again, err := raw(back); err != nil || !bytes.Equal(data, again) {
				t.Errorf("%v: it comes back as %+v", err, back)
			}
		})
	}
}

func TestEveryInputIsKnown(t *testing.T) {
	var want, have []string
	for _, file := range sources(t, "../engine") {
		parsed, err := parser.ParseFile(token.NewFileSet(), file, nil, 0)
		if err != nil {
			t.Fatal(err)
		}
		for _, decl := range parsed.Decls {
			if f, is := decl.(*ast.FuncDecl); is && f.Recv != nil && f.Name.Name == "input" {
				want = append(want, fmt.Sprint(f.Recv.List[0].Type))
			}
		}
	}
	for _, one := range kinds {
		have = append(have, kindOf(one))
	}
	slices.Sort(want)
	slices.Sort(have)
	if !slices.Equal(want, have) {
		t.Errorf("the inputs of the engine are %v, and this package knows %v", want, have)
	}
}

// The engine may look for nothing else in an error: that would not come back.
func TestErrorsCarryAllThatTheEngineLooksFor(t *testing.T) {
	looks := regexp.MustCompile(`errors\.(Is|As|AsType)\b[^\n]*`)
	for _, dir := range []string{"../engine", "../engine/*", "../lane"} {
		for _, file := range sources(t, dir) {
			text, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			for _, look := range looks.FindAllString(string(text), -1) {
				name := regexp.MustCompile(`As\(\w+, &(\w+)\)`).FindStringSubmatch(look)
				if strings.Contains(look, "AsType[*builtins.FailError]") || strings.Contains(look, "AsType[*Passing]") || strings.Contains(look, "AsType[*Awaits]") ||
					name != nil && regexp.MustCompile(`\b`+name[1]+`\s+\*builtins\.FailError\b`).Match(text) {
					continue
				}
				t.Errorf("%s: %s: failure in encode.go does not carry this", file, look)
			}
		}
	}
	in := engine.RunDone{Err: fmt.Errorf("a.star:3: %w", &builtins.FailError{Msg: "no", RetryAfter: time.Minute, Permanent: true, Keep: true})}
	var failed *builtins.FailError
	if back := carried(t, in).Err; back.Error() != in.Err.Error() || !errors.As(back, &failed) || failed.RetryAfter != time.Minute || !failed.Permanent || !failed.Keep {
		t.Errorf("%v comes back as %v", in.Err, back)
	}
	if back := carried(t, engine.RunDone{Err: errors.New("plain")}).Err; errors.As(back, &failed) || passing(back) || back.Error() != "plain" {
		t.Errorf("it comes back as %v", back)
	}
	if back := carried(t, engine.Released{Err: fmt.Errorf("crds: %w", &lane.Passing{Err: errors.New("busy")})}).Err; !passing(back) || back.Error() != "crds: busy" {
		t.Errorf("it comes back as %v", back)
	}
	if back := carried(t, engine.Released{Err: fmt.Errorf("x: %w", &lane.Awaits{Err: errors.New("y"), For: lane.AwaitsTree})}).Err; lane.AwaitedBy(back) != lane.AwaitsTree || passing(back) || back.Error() != "x: y" {
		t.Errorf("it comes back as %v", back)
	}
}

func passing(err error) bool {
	_, is := errors.AsType[*lane.Passing](err)
	return is
}

// Data that Starlark tells apart stays apart.
func TestDataComesBackAsItWas(t *testing.T) {
	in := engine.RunDone{Run: 1 << 63}
	in.Effects.State = map[string]any{
		"int": int64(1), "float": 1.0, "none": nil, "bytes": "\xff\xfe", "big": int64(1 << 62), "list": []any{}, "map": map[string]any{},
	}
	in.Response.Warnings = []string{}
	if back := carried(t, in); !reflect.DeepEqual(back, in) {
		t.Errorf("%#v comes back as %#v", in, back)
	}
	if _, err := raw(engine.RunDone{Response: builtins.Response{Object: map[string]any{"at": time.Time{}}}}); err == nil ||
		!strings.Contains(err.Error(), `RunDone.Response.Object["at"] cannot be written down`) {
		t.Errorf("what is no plain data: %v", err)
	}
}

func carried[I engine.Input](t *testing.T, in I) I {
	t.Helper()
	data, err := raw(in)
	if err != nil {
		t.Fatal(err)
	}
	back, err := (&decoder{}).input(kindOf(in), data)
	if err != nil {
		t.Fatal(err)
	}
	return back.(I)
}

// sources are the files of a package without its tests.
func sources(t *testing.T, dir string) (out []string) {
	t.Helper()
	files, err := filepath.Glob(dir + "/*.go")
	if err != nil {
		t.Fatal(err)
	}
	for _, file := range files {
		if !strings.HasSuffix(file, "_test.go") {
			out = append(out, file)
		}
	}
	if out == nil {
		t.Fatalf("there is no code in %s", dir)
	}
	return out
}

var typeOfTime = reflect.TypeFor[time.Time]()

const deepest = 12 // writes hold sets of writes

// fill puts something that is not zero into all fields.
func fill(t *testing.T, v reflect.Value, depth int) {
	t.Helper()
	if depth > deepest {
		return
	}
	switch v.Type() {
	case typeOfGeneration:
		return
	case typeOfSeen:
		v.Set(reflect.ValueOf(hook.NewSeen("secret")))
		return
	case typeOfRequest:
		v.Set(reflect.ValueOf((&builtins.Received{Method: "POST", Path: "/x", Body: "text"}).Request("in")))
		return
	case typeOfTime:
		v.Set(reflect.ValueOf(time.Unix(7, 9).UTC()))
		return
	case typeOfValue:
		v.Set(reflect.ValueOf(object.New(map[string]any{"n": int64(1)})))
		return
	case typeOfError:
		v.Set(reflect.ValueOf(error(&builtins.FailError{Msg: "no", Permanent: true})))
		return
	case typeOfAny:
		v.Set(reflect.ValueOf(any("text")))
		return
	}
	if text, is := v.Addr().Interface().(encoding.TextUnmarshaler); is {
		if err := text.UnmarshalText([]byte("example.com:80")); err != nil {
			t.Fatal(err)
		}
		return
	}
	switch v.Kind() {
	case reflect.Pointer:
		v.Set(reflect.New(v.Type().Elem()))
		fill(t, v.Elem(), depth+1)
	case reflect.Struct:
		for i := range v.NumField() {
			if !v.Type().Field(i).IsExported() {
				t.Fatalf("%s.%s cannot be set", v.Type(), v.Type().Field(i).Name)
			}
			fill(t, v.Field(i), depth+1)
		}
	case reflect.Slice:
		v.Set(reflect.MakeSlice(v.Type(), 1, 1))
		fill(t, v.Index(0), depth+1)
	case reflect.Map:
		v.Set(reflect.MakeMap(v.Type()))
		e := reflect.New(v.Type().Elem()).Elem()
		fill(t, e, depth+1)
		v.SetMapIndex(reflect.ValueOf("key").Convert(v.Type().Key()), e)
	case reflect.String:
		v.SetString("text")
	case reflect.Bool:
		v.SetBool(true)
	case reflect.Int, reflect.Int8, reflect.Int16, reflect.Int32, reflect.Int64:
		v.SetInt(3)
	case reflect.Uint, reflect.Uint8, reflect.Uint16, reflect.Uint32, reflect.Uint64:
		v.SetUint(4)
	case reflect.Float64:
		v.SetFloat(0.5)
	default:
		t.Fatalf("this test cannot fill a %s", v.Type())
	}
}

// set gives an input its generation.
func set(v reflect.Value, gen any) {
	for i := range v.NumField() {
		if v.Field(i).Type() == typeOfGeneration {
			v.Field(i).Set(reflect.ValueOf(gen))
		}
	}
}

// whole says which fields did not come back.
func whole(t *testing.T, name string, v reflect.Value, depth int) {
	t.Helper()
	if depth >= deepest { // what it holds was not filled
		return
	}
	if v.IsZero() && v.Type() != reflect.TypeFor[engine.Tick]() {
		t.Errorf("%s did not come back", name)
		return
	}
	switch v.Type() {
	case typeOfGeneration, typeOfSeen, typeOfRequest, typeOfTime, typeOfValue, typeOfError, typeOfAny:
		return
	}
	if _, is := v.Interface().(encoding.TextMarshaler); is {
		return
	}
	switch v.Kind() {
	case reflect.Pointer:
		whole(t, name, v.Elem(), depth+1)
	case reflect.Struct:
		for i := range v.NumField() {
			whole(t, name+"."+v.Type().Field(i).Name, v.Field(i), depth+1)
		}
	case reflect.Slice:
		whole(t, name, v.Index(0), depth+1)
	case reflect.Map:
		for _, e := range v.Seq2() {
			whole(t, name, e, depth+1)
		}
	}
}

// An event for nobody is not one for all.
func TestWhomAnEventIsForComesBack(t *testing.T) {
	events := []builtins.Event{{Name: "all"}, {Name: "nobody", Wakes: effect.WakesKeys()}, {Name: "some", Wakes: effect.WakesKeys("b", "a")}}
	back := carried(t, engine.WatchChanged{ID: "w", Events: events})
	for i, ev := range back.Events {
		if !ev.Wakes.Equal(events[i].Wakes) {
			t.Errorf("%s comes back as %v", ev.Name, ev.Wakes)
		}
	}
}
