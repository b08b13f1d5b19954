package script

import (
	"errors"
	"strings"
	"testing"

	"go.starlark.net/starlark"

	"github.com/starling-operator/starling/builtins"
	"github.com/starling-operator/starling/runtime/object"
	"github.com/starling-operator/starling/runtime/reconcile"
	"github.com/starling-operator/starling/runtime/wording"
)

// The error of a change to an object of the cluster says how to get a copy that may be changed.
func TestObjectsAreNotChanged(t *testing.T) {
	f := newFixture(t, map[string]string{"a.star": "def f():\n    o[\"x\"] = 1\n"}, func(o *Options) {
		o.Predeclared["o"] = object.New(map[string]any{"kind": "Node"})
	})
	_, _, err := f.call(t, t.Context(), Limits{})
	if err == nil || !strings.Contains(err.Error(), "a.star:2:") || !strings.HasSuffix(err.Error(), "(dict(o) makes a copy you may change; in the cluster, k8s.patch(o, merge = {\"spec\": {…}}) changes it)") {
		t.Error(err)
	}
}

// Parts of ctx that are not there, or not to be had in that way, say what is.
func TestPartsOfCtxAreExplained(t *testing.T) {
	for expr, want := range map[string]string{
		"desired.children[0].status": "(a child has .kind, .namespace, .name, .ready, .reason and .deleting; a row of reads= shows the rest of it)",
		"desired.snapshots":          "(the ctx of a controller has .key, .object, .children, .reads and .reached(t); reads= finds other objects)",
		"ctx.events[0].object":       `(events of a watch with keep = "object" have it; .result is what the filter kept)`,
		"ctx.events[1].result":       `(only events about objects have it: added, modified and deleted; see .type)`,
		`ctx.state["n"]`:             `(write ctx.state.get("n"))`,
	} {
		f := newFixture(t, map[string]string{"a.star": "def f():\n    " + expr + "\n"}, func(o *Options) {
			o.Predeclared["ctx"] = builtins.NewCtx(builtins.CtxOptions{Events: []builtins.Event{
				{Type: "added", Binding: "nodes", Name: "a", Result: starlark.None}, {Type: "startup", Binding: "startup"},
			}})
			o.Predeclared["desired"] = builtins.Question{Key: "a", Parent: starlark.None, Children: make([]reconcile.Child, 1)}.Ctx()
		})
		_, _, err := f.call(t, t.Context(), Limits{})
		if err == nil || !strings.Contains(err.Error(), "a.star:2:") || !strings.HasSuffix(err.Error(), want) {
			t.Errorf("%s: %v", expr, err)
		}
	}
}

// A message that quotes another error says the hint of that one once.
func TestHintsAreSaidOnce(t *testing.T) {
	const hint = "write xs[0] if xs else None; len(xs) says how many there are"
	for msg, want := range map[string]string{
		"index 0 out of range: empty list": hint,
		"t.start: hook h fails: h.star:2:1: index 0 out of range: empty list (" + hint + "); more": "",
	} {
		e := &Error{Msg: msg}
		if reword(e); e.Hint != want {
			t.Errorf("%s: got the hint %q, want %q", msg, e.Hint, want)
		}
	}
}

// Each row of the tables is about something that is said, by go.starlark.net or by what Starling adds to it.
func TestEachRowIsSaid(t *testing.T) {
	var codes [][]string
	_, all := habits(t, read(t, habitsFile))
	for _, h := range all {
		codes = append(codes, h.wrong)
	}
	for _, code := range strings.Split(read(t, "testdata/rows.txt"), "\n\n")[1:] {
		codes = append(codes, strings.Split(code, "\n"))
	}
	said := map[*wording.Row]bool{nil: true}
	for i, code := range codes {
		_, err := tryHabit(t, code)
		if e, is := errors.AsType[*Error](err); !is || said[e.row] && i >= len(all) {
			t.Errorf("no row, or one that another code has, is about what is said of:\n%s\n%v", strings.Join(code, "\n"), err)
		} else {
			said[e.row] = true
		}
	}
	for _, row := range rewordings() {
		if !said[row] {
			t.Errorf("nothing says what this row is about; add code to testdata/rows.txt, or leave it out: %s", row.Text)
		}
	}
}
