package stdlib

import (
	"io/fs"
	"math"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"go.starlark.net/starlark"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/labels"

	"github.com/starling-operator/starling/builtins"
	"github.com/starling-operator/starling/builtins/spec"
	"github.com/starling-operator/starling/runtime/object"
	"github.com/starling-operator/starling/runtime/script"
)

type noLog struct{}

func (noLog) Log(builtins.Level, string, []builtins.Field) {}

func newHost() *script.Host {
	loading := &builtins.Context{Phase: spec.InLoad, Log: noLog{}}
	return script.New(script.Options{Std: FS, Context: func(string) *builtins.Context { return loading }})
}

// Every file is in the binary, and has tests that `starling test` runs.
func TestAllFilesAreEmbeddedAndTested(t *testing.T) {
	files, err := filepath.Glob("*.star")
	if err != nil {
		t.Fatal(err)
	}
	var want []string
	for _, file := range files {
		if name, isTest := strings.CutSuffix(file, "_test.star"); !isTest {
			want = append(want, file)
		} else if !slices.Contains(files, name+".star") {
			t.Errorf("%s tests no file", file)
		}
	}
	for _, file := range want {
		if !slices.Contains(files, strings.TrimSuffix(file, ".star")+"_test.star") {
			t.Errorf("%s has no tests", file)
		}
	}
	got, err := fs.Glob(FS, "*")
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
}

func pure() *builtins.Context {
	return &builtins.Context{Phase: spec.InFilter, Log: noLog{}}
}

// library returns the functions of a file as Go functions that fail the test.
func library(t testing.TB, file string) func(fn string, args ...starlark.Value) (starlark.Value, error) {
	host := newHost()
	globals, err := host.Load(t.Context(), file)
	if err != nil {
		t.Fatal(err)
	}
	return func(fn string, args ...starlark.Value) (starlark.Value, error) {
		v, _, err := host.Call(t.Context(), globals[fn].(starlark.Callable), args, script.CallOptions{Context: pure()})
		return v, err
	}
}

// Objects of the cluster and dicts of the same shape are treated alike.
func TestReadyObjects(t *testing.T) {
	cond := func(kind, status string) any {
		return map[string]any{"type": kind, "status": status, "reason": "r"}
	}
	call := library(t, "@std//k8s.star")
	for _, tt := range []struct {
		conditions []any
		ready      bool
	}{
		{[]any{cond("MemoryPressure", "False"), cond("Ready", "True")}, true},
		{[]any{cond("Available", "True")}, true},
		{[]any{cond("Ready", "Unknown"), cond("Progressing", "True")}, false},
		{nil, false},
	} {
		obj := map[string]any{"kind": "Node", "metadata": map[string]any{"generation": int64(2)}, "status": map[string]any{"conditions": tt.conditions}}
		for form, v := range map[string]starlark.Value{"object": object.New(obj), "dict": object.FromPlain(obj)} {
			if got, err := call("is_ready", v); err != nil || got != starlark.Bool(tt.ready) {
				t.Errorf("%s of %v: got %v, %v", form, tt.conditions, got, err)
			}
			if _, err := call("set_condition", v, starlark.String("Ready"), starlark.True, starlark.String("Done")); err == nil || !strings.Contains(err.Error(), "time.now") {
				t.Errorf("%s: got %v", form, err) // a filter has no clock
			}
		}
	}
}

// Quantities are what Kubernetes takes them for, to the last digit.
func TestQuantitiesAreThoseOfKubernetes(t *testing.T) {
	call := library(t, "@std//k8s.star")
	texts := strings.Fields(`0 1 -1 +1 1. .5 0.5 100m 1500m -100m 1.5Gi 0.1Ki 1Ki 1023 1024 1025Ki 3Mi 7Ti 2Pi 1E 1e3 1E3 1e-3 12e0 5k 5M 5G 5T 5P
		1n 999u 0.0000000001 0.1234567891 1.0000000001m 123456789012345678 1e18 4Ei 0.000001k 001 1.500 -0.0001 -1500.5m`)
	for _, a := range texts {
		qa, err := resource.ParseQuantity(a)
		if err != nil {
			t.Fatal(a, err)
		}
		if got, err := call("millis", starlark.String(a)); err != nil || got.String() != starlark.MakeInt64(qa.MilliValue()).String() {
			if qa.CmpInt64(math.MaxInt64/1000) < 0 { // theirs overflows
				t.Errorf("millis(%s): got %v, %v, want %d", a, got, err, qa.MilliValue())
			}
		}
		for _, b := range texts {
			qb := resource.MustParse(b)
			if got, err := call("compare_quantities", starlark.String(a), starlark.String(b)); err != nil || got.String() != starlark.MakeInt(qa.Cmp(qb)).String() {
				t.Errorf("%s and %s: got %v, %v, want %d", a, b, got, err, qa.Cmp(qb))
			}
		}
		for binary, format := range map[bool]resource.Format{false: resource.DecimalSI, true: resource.BinarySI} {
			same := qa.DeepCopy()
			same.Format = format
			want := resource.NewDecimalQuantity(*same.AsDec(), format).String()
			if got, err := call("format_quantity", starlark.String(a), starlark.Bool(binary)); err != nil || got != starlark.String(want) {
				t.Errorf("format_quantity(%s, %v): got %v, %v, want %s", a, binary, got, err, want)
			}
		}
	}
	for _, bad := range []string{"", "1x", "1mi", "1 k", "1e", "1e3m", "0x1", "1_000", "1,5", "--1", "1Kii", "１"} {
		if _, err := resource.ParseQuantity(bad); err == nil {
			t.Fatalf("%q is right", bad)
		}
		if _, err := call("quantity", starlark.String(bad)); err == nil {
			t.Errorf("%q is taken", bad)
		}
	}
}

// Selectors select what they select for kubectl.
func TestSelectorsAreThoseOfKubernetes(t *testing.T) {
	call := library(t, "@std//k8s.star")
	sets := []labels.Set{{}, {"app": "web"}, {"app": "web", "tier": "a"}, {"app": "db", "n": "5"}, {"n": "x", "a.b/c": ""}, {"in": "in", "n": "-3"}}
	for _, text := range []string{
		"", " ", "app", "!app", "! app", "app=web", "app == web", "app!=web", "app =web , tier", "app in (web)", "app in (web, db),n", "app notin (web)",
		"tier notin (a,b)", "a.b/c=", "a.b/c", "a.b/c in ()", "a.b/c in (,x)", "n>4", "n > 5", "n<6", "n<0", "in in (in)", "in", "in=in", "app=web,app=db", "x!=",
		// and what is wrong
		"app=", "app in", "app in (", "app in (a", "app in web", "app,", ",app", "a,,b", "=web", "a b", "a=b c", "a=b=c", "!a=b", "a in (b))", "(a)", "a/b/c", "-a", "a-", "a=-", "n>x", "n>", "a=\"b\"", "a notin b", "a==", "a===b", "é",
	} {
		want, wantErr := labels.Parse(text)
		for _, set := range sets {
			dict := starlark.NewDict(len(set))
			for k, v := range set {
				_ = dict.SetKey(starlark.String(k), starlark.String(v))
			}
			got, err := call("matches", starlark.String(text), dict)
			switch {
			case (err == nil) != (wantErr == nil):
				t.Errorf("%q: got error %v, want %v", text, err, wantErr)
			case err == nil && got != starlark.Bool(want.Matches(set)):
				t.Errorf("%q of %v: got %v", text, set, got)
			}
		}
	}
}
