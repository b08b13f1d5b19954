package script

import (
	"testing"
	"testing/fstest"

	"github.com/google/go-cmp/cmp"

	"github.com/starling-operator/starling/builtins"
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
		return &builtins.Context{Phase: builtins.PhaseLoad, File: &builtins.File{Path: path}, Log: quiet{}}
	}})
	globals, err := h.Load(t.Context(), "a_test.star")
	if err != nil {
		t.Fatal(err)
	}
	if globals["z"].String() != "3" {
		t.Errorf("z is %s", globals["z"])
	}
	want := []Covered{
		{Path: "a.star", Statements: 8, Ran: 6, Missed: []int{10, 11}},
		{Path: "b.star", Statements: 4, Ran: 3, Missed: []int{5}},
	}
	if diff := cmp.Diff(want, cover.Files()); diff != "" {
		t.Error(diff)
	}
}
