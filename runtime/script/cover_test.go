package script

import (
	"testing"
	"testing/fstest"

	"github.com/google/go-cmp/cmp"

	"github.com/starling-operator/starling/builtins"
	"github.com/starling-operator/starling/builtins/spec"
)

type quiet struct{}

func (quiet) Log(builtins.Level, string, []builtins.Field) {}

func TestCover(t *testing.T) {
	cover := NewCover()
	files := fstest.MapFS{
		"a.star": {Data: []byte(`load("./b.star", "one")

def f(x):
    """Docs are no statement."""
    if x == 1:
        return one()
    elif x == 2:
        x += 1
    else:
        for i in range(x):
            pass
    return x

y = f(1)
`)},
		"b.star":      {Data: []byte("def one():\n    return 1\n\ndef two():\n    return 2\n")},
		"a_test.star": {Data: []byte("load(\"./a.star\", \"f\")\nz = f(2)\n")},
	}
	h := New(Options{Files: files, Cover: cover, Context: func(path string) *builtins.Context {
		return &builtins.Context{Phase: spec.InLoad, File: &builtins.File{Path: path}, Log: quiet{}}
	}})
	globals, err := h.Load(t.Context(), "a_test.star")
	if err != nil {
		t.Fatal(err)
	}
	if globals["z"].String() != "3" {
		t.Errorf("z is %s", globals["z"])
	}
	type short struct {
		Path            string
		Statements, Ran int
		Missed          []int
	}
	var got []short
	for _, f := range cover.Files() {
		if f.Path == "a.star" {
			if want := (Statement{Line: 8, Col: 9, EndLine: 8, EndCol: 15, Ran: true}); f.Statements[3] != want {
				t.Errorf("the statement %+v is not %+v", f.Statements[3], want)
			}
			if want := (Statement{Line: 3, Col: 1, EndLine: 3, EndCol: 8, Ran: true}); f.Statements[0] != want {
				t.Errorf("the function %+v is not %+v", f.Statements[0], want)
			}
		}
		if string(f.Source) != string(files[f.Path].Data) {
			t.Errorf("%s has the source %q", f.Path, f.Source)
		}
		got = append(got, short{f.Path, len(f.Statements), f.Ran(), f.Missed()})
	}
	want := []short{
		{Path: "a.star", Statements: 8, Ran: 6, Missed: []int{10, 11}},
		{Path: "b.star", Statements: 4, Ran: 3, Missed: []int{5}},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
	again := New(Options{Files: files, Cover: cover, Context: func(path string) *builtins.Context {
		return &builtins.Context{Phase: spec.InLoad, File: &builtins.File{Path: path}, Log: quiet{}}
	}})
	if _, err := again.Load(t.Context(), "a.star"); err != nil {
		t.Fatal(err)
	}
	if n := cover.Files()[0]; n.Ran() != 6 {
		t.Errorf("%d statements of a.star have run, after another host has compiled it too", n.Ran())
	}
}
