package generation_test

import (
	"maps"
	"slices"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/google/go-cmp/cmp"

	"github.com/starling-operator/starling/builtins"
	"github.com/starling-operator/starling/modules/tree"
	"github.com/starling-operator/starling/runtime/generation"
	"github.com/starling-operator/starling/stdlib"
)

// selected loads a tree as an instance with this selector does.
func selected(t *testing.T, files map[string]string, selector string, previous *generation.Generation) *generation.Generation {
	t.Helper()
	mapped := fstest.MapFS{}
	for path, text := range files {
		mapped[path] = &fstest.MapFile{Data: []byte(text)}
	}
	s, err := tree.ParseSelector(selector)
	if err != nil {
		t.Fatal(err)
	}
	read, err := tree.Read(mapped, tree.Options{Selector: s})
	if err != nil {
		t.Fatal(err)
	}
	return generation.Load(t.Context(), generation.Options{Tree: read, Std: stdlib.FS, Previous: previous,
		Log: func(string) builtins.Logger { return noLog{} }})
}

const hookOfNothing = "def run(ctx):\n    pass\nhook(run, on = [startup()])\n"

func shared() map[string]string {
	return map[string]string{
		"values.yaml":     "web: {a: 1}\ndb: {b: 2}\ndbEnabled: true\n",
		"web/module.star": `module(labels = {"tier": "edge", "name": "other"})` + "\n", "web/hooks/a.star": hookOfNothing,
		"db/module.star": `module(labels = {"tier": "data"})` + "\n", "db/hooks/a.star": hookOfNothing,
		"bare/hooks/a.star": hookOfNothing,
		"global/a.star":     hookOfNothing,
	}
}

// A selector is one of kubectl: labels of module(labels=), and the name of the module. Global hooks are in
// every instance.
func TestSelectors(t *testing.T) {
	for selector, want := range map[string]string{
		"": "bare db web", "tier": "db web", "tier=edge": "web", "tier!=edge": "bare db", "name in (web, bare)": "bare web",
		"!tier": "bare", "name=other": "", "tier=edge,name!=web": "", "tier notin (data)": "bare web",
	} {
		g := selected(t, shared(), selector, nil)
		if got := strings.Join(g.Names, " "); got != want || len(g.Names)+len(g.Elsewhere) != 3 || g.Global == nil {
			t.Errorf("%q: modules %q, elsewhere %v; want %q", selector, got, g.Elsewhere, want)
		}
		if w := g.Whole(); len(w.Unknown) > 0 || len(w.Switches) != 3 || len(g.Problems) > 0 {
			t.Errorf("%q: values %v, switches %v, problems %v", selector, w.Unknown, w.Switches, g.Problems)
		}
		if (g.Hook("db/hooks/a.star:run") != nil) != strings.Contains(want, "db") {
			t.Errorf("%q: the hook of db is %v", selector, g.Hook("db/hooks/a.star:run"))
		}
	}
}

func TestBadSelectors(t *testing.T) {
	if _, err := tree.ParseSelector("tier in"); err == nil || !strings.Contains(err.Error(), "tier=edge,name!=web") {
		t.Errorf("%v", err)
	}
}

// One instance cannot see the modules of another one: requires= is an error, after= and the list of modules
// that are on are problems.
func TestModulesOfOtherInstancesAreNotSeen(t *testing.T) {
	files := shared()
	files["web/module.star"] = `module(labels = {"tier": "edge"}, requires = ["bare|db"])`
	files["bare/module.star"] = `module(labels = {"tier": "edge"}, after = ["db"])`
	files["bare/hooks/a.star"] = "def run(ctx):\n    values.get('global.enabledModules')\nhook(run, on = [startup()])\n"
	g := selected(t, files, "tier=edge", nil)
	if err := g.Modules["web"].Err; err == nil || err.Error() != "web/module.star:1: requires=: module db is not one of --modules-selector tier=edge, so another instance has it; "+
		"what it requires must be in the same instance: select both here, or neither" {
		t.Errorf("web: %v", err)
	}
	var got []string
	for _, p := range g.Problems {
		got = append(got, p.Module+": "+p.Msg)
	}
	if diff := cmp.Diff([]string{
		"bare: after=: module db is not one of --modules-selector tier=edge, so another instance has it; this one does not wait for it",
		"bare: it reads global.enabledModules, which names the modules of this instance alone: those of --modules-selector tier=edge",
	}, got); diff != "" {
		t.Errorf("problems (-want +got):\n%s", diff)
	}
	if all := selected(t, files, "", nil); all.Modules["web"].Err != nil || len(all.Problems) > 0 {
		t.Errorf("without a selector: %v, %v", all.Modules["web"].Err, all.Problems)
	}
}

// A module whose module.star does not load has no labels: it stays where it was, and no instance takes
// that for a reason to let it go. At a start its name decides, as far as it can.
func TestABrokenModuleStaysInItsInstance(t *testing.T) {
	files := shared()
	edge, data := selected(t, files, "tier=edge", nil), selected(t, files, "tier=data", nil)
	broken := maps.Clone(files)
	broken["web/module.star"] = "module(\n"
	if g := selected(t, broken, "tier=edge", edge); g.Modules["web"] == nil || g.Modules["web"].Err == nil {
		t.Errorf("the instance that had it: %v", g.Names)
	}
	if g := selected(t, broken, "tier=data", data); !g.Elsewhere["web"] {
		t.Errorf("the other one: %v", g.Names)
	}
	for selector, has := range map[string]bool{"tier=edge": true, "tier=data": true, "name=web": true, "name!=web,tier=edge": false} {
		if g := selected(t, broken, selector, nil); slices.Contains(g.Names, "web") != has {
			t.Errorf("at a start with %s: %v", selector, g.Names)
		}
	}
	// Another label moves it.
	moved := maps.Clone(files)
	moved["web/module.star"] = `module(labels = {"tier": "data"})`
	if g := selected(t, moved, "tier=edge", edge); !g.Elsewhere["web"] {
		t.Errorf("it has moved, and stays: %v", g.Names)
	}
	if g := selected(t, moved, "tier=data", data); g.Modules["web"] == nil || g.Modules["db"] != data.Modules["db"] {
		t.Errorf("it has moved, and is not there: %v", g.Names)
	}
}
