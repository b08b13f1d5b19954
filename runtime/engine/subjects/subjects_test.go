package subjects

import (
	"cmp"
	"slices"
	"testing"

	"go.starlark.net/starlark"

	"github.com/starling-operator/starling/runtime/effect"
	"github.com/starling-operator/starling/runtime/object"
)

// objects are those of a hook with for_each.
func objects(names ...string) *Set {
	t := New("web/a", true)
	for _, name := range names {
		t.Observe(Object{Name: name}, true)
	}
	return t
}

func keys(list []*Subject) (out []string) {
	for _, s := range list {
		out = append(out, s.Key)
	}
	return out
}

func TestWhatHappensToAnObject(t *testing.T) {
	type step struct {
		Object      // UID "" stands for "1" of one that has gone
		gone   bool // it is not there any more
		cleans bool
		want   News
	}
	for name, steps := range map[string][]step{
		"without a cleanup": {{want: Here}, {Object: Object{Deleting: true}, want: Here}, {gone: true, want: Gone}},
		"is deleted before a run": {
			{cleans: true, want: Here}, {Object: Object{Deleting: true}, cleans: true, want: Gone},
		},
		"is held": {
			{Object: Object{Held: true}, cleans: true, want: Here},
			{Object: Object{Held: true, Deleting: true}, cleans: true, want: Leaves},
			{Object: Object{Held: true, Deleting: true}, cleans: true, want: Here},
			{Object: Object{Deleting: true}, cleans: true, want: Gone},
		},
		"the finalizer is taken off by hand": {
			{Object: Object{Held: true}, cleans: true, want: Here}, {cleans: true, want: Here},
			{gone: true, cleans: true, want: Leaves},
		},
		"is not selected any more": {{Object: Object{Held: true}, cleans: true, want: Here}, {gone: true, cleans: true, want: Leaves}},
		"goes before a run":        {{cleans: true, want: Here}, {gone: true, cleans: true, want: Gone}},
		"comes back":               {{Object: Object{Held: true, Deleting: true}, cleans: true, want: Leaves}, {cleans: true, want: Here}},
		"is made anew": {
			{Object: Object{Held: true, UID: "1"}, cleans: true, want: Here}, {gone: true, cleans: true, want: Leaves},
			{Object: Object{Held: true, UID: "1"}, cleans: true, want: Here}, {gone: true, cleans: true, want: Leaves},
			{Object: Object{UID: "2"}, cleans: true, want: Behind}, {Object: Object{UID: "2", Deleting: true}, cleans: true, want: Behind},
			{Object: Object{UID: "2"}, gone: true, cleans: true, want: Leaves},
			{Object: Object{UID: "3"}, cleans: true, want: Behind}, {Object: Object{UID: "3"}, gone: true, cleans: true, want: Leaves},
			{Object: Object{UID: "1"}, cleans: true, want: Here},
		},
		"is made anew without a cleanup": {
			{Object: Object{Held: true, UID: "1"}, cleans: true, want: Here}, {gone: true, cleans: true, want: Leaves},
			{Object: Object{UID: "2"}, want: Here},
		},
		"has no result for a while": {
			{Object: Object{Held: true, Deleting: true}, cleans: true, want: Leaves},
			{Object: Object{Held: true, Deleting: true, Lacks: true}, cleans: true, want: Waits},
			{Object: Object{Held: true, Deleting: true}, cleans: true, want: Leaves},
		},
	} {
		hook := New("web/a", true)
		for i, step := range steps {
			var news News
			if step.gone {
				uid := cmp.Or(step.UID, "1")
				_, news = hook.Delete("ns", "x", object.New(map[string]any{"metadata": map[string]any{"uid": uid}}), step.cleans)
				if s := hook.At("ns/x"); news == Leaves && object.UID(s.Last()) != "1" {
					t.Errorf("%s: after step %d the cleanup is about %s", name, i, s.Last())
				}
			} else {
				step.Namespace, step.Name = "ns", "x"
				_, news = hook.Observe(step.Object, step.cleans)
			}
			if news != step.want {
				t.Errorf("%s: after step %d it is %d, want %d", name, i, news, step.want)
			}
			s := hook.At("ns/x")
			if leaves := s != nil && s.Leaving(); news == Leaves && !leaves || news == Waits && !s.Lacks() || step.gone && leaves != (s.Last() != nil) {
				t.Errorf("%s: after step %d it is %+v", name, i, s)
			}
		}
	}
	if s, news := New("web/a", true).Delete("", "x", nil, true); s != nil || news != Gone {
		t.Error("there is an object that nobody has seen")
	}
}

// A commit that was to put the finalizer on an object may have done so unseen.
func TestAnObjectThatMayBeHeldIsCleanedUp(t *testing.T) {
	hook := objects("x")
	s := hook.At("x")
	for range 2 {
		if !s.Hold() {
			t.Error("a finalizer that nobody has seen is there")
		}
	}
	if _, news := hook.Delete("", "x", nil, true); news != Leaves {
		t.Errorf("it is %d", news)
	}
	hook.Observe(Object{Name: "x", Held: true}, true)
	if s.Hold() {
		t.Error("the finalizer is put there twice")
	}
	s.Leave(Metrics)
	if s.Clear() != Metrics || s.Clear() != 0 {
		t.Error("it leaves something else")
	}
	if _, news := hook.Delete("", "x", nil, true); news != Gone {
		t.Errorf("after its cleanup it is %d", news)
	}
}

func TestASnapshotLacksObjects(t *testing.T) {
	hook := objects("x", "y", "z")
	hook.Observe(Object{Name: "y", Held: true}, true)
	hook.Delete("", "y", starlark.String("y"), true)
	if got := keys(hook.Missing([]Object{{Name: "x"}})); !slices.Equal(got, []string{"z"}) {
		t.Errorf("missing %v", got) // y waits for its cleanup
	}
	hook.Observe(Object{Name: "z", Held: true, Deleting: true}, true)
	if got := keys(hook.Missing([]Object{{Name: "x"}})); !slices.Equal(got, []string{"z"}) {
		t.Errorf("missing %v", got) // somebody has taken its finalizer off, and nobody has seen it then
	}
	hook.Drop(hook.At("z"))
	if got := keys(hook.All()); !slices.Equal(got, []string{"x", "y"}) || hook.Len() != 2 {
		t.Errorf("there are %v", got)
	}
}

func TestAHookTakesTheObjectsOfTheOneBefore(t *testing.T) {
	old := objects("x")
	old.At("x").Remember(effect.Memory{State: map[string]any{"n": 1}})
	old.Fail(old.At("x"), "boom", false)
	hook := New("web/a", true)
	hook.Inherit(old)
	if hook.At("x").Memory().State["n"] != 1 || hook.Failure() != "" || hook.At("x").first != Untried {
		t.Errorf("it has %+v", hook.At("x"))
	}
	all := New("web/b", false)
	all.At("").Remember(effect.Memory{State: map[string]any{"n": 2}, StateSecrets: [][]string{{"n"}}})
	next := New("web/b", false)
	next.Inherit(all)
	if got := next.At("").Memory(); !got.Equal(all.At("").Memory()) {
		t.Errorf("it remembers %v", got)
	}
}

func TestWhoseIsWhatWasKept(t *testing.T) {
	one, each := New("web/a", false), New("web/b", true)
	if one.Kept("x") != nil || each.Kept("") != nil || one.Kept("") != one.At("") {
		t.Error("it belongs to another one")
	}
	s := each.Kept("ns/x")
	if namespace, name := s.Name(); s.ID() != "web/b of ns/x" || namespace != "ns" || name != "x" || each.At("ns/x") != s {
		t.Errorf("it is %+v", s)
	}
}
