package generation

import (
	"strings"
	"testing"
)

const convertsOneWay = `
def up(o):
    return o

hook(on = [k8s.convert("lamps.example.com.x", {("v1alpha1", "v1"): up})])
`

func TestConversionsThatLeadNowhereAreNamed(t *testing.T) {
	g := load(t, map[string]string{"web/hooks/a.star": convertsOneWay})
	if err := g.Modules["web"].Err; err != nil {
		t.Fatal(err)
	}
	if g.Hook("web/hooks/a.star:lamps.example.com.x") == nil {
		t.Error("the hook has another id")
	}
	if len(g.Problems) != 1 || !strings.Contains(g.Problems[0].String(), "no function of k8s.convert leads from v1 to v1alpha1") {
		t.Errorf("problems %v", g.Problems)
	}
	if !g.Converts("lamps.example.com.x") || g.Converts("others.example.com.x") {
		t.Error("which definitions are converted is not known")
	}
}

// Several hooks of a module give functions for one definition, and the first one answers.
func TestSeveralHooksConvertADefinition(t *testing.T) {
	down := strings.ReplaceAll(strings.ReplaceAll(convertsOneWay, `("v1alpha1", "v1")`, `("v1", "v1alpha1")`), "up", "down")
	g := load(t, map[string]string{"web/hooks/a.star": convertsOneWay, "web/hooks/b.star": down})
	if err := g.Modules["web"].Err; err != nil || len(g.Problems) > 0 {
		t.Fatal(err, g.Problems)
	}
	a, b := &g.Modules["web"].Hooks[0].Bindings[0], &g.Modules["web"].Hooks[1].Bindings[0]
	if !a.Converts() || b.Converts() || len(a.Convert.Steps) != 2 || len(a.Convert.Unreachable()) > 0 {
		t.Errorf("a %+v, b %+v", a.Convert, b.Convert)
	}

	g = load(t, map[string]string{"web/hooks/a.star": convertsOneWay, "web/hooks/b.star": convertsOneWay})
	if err := g.Modules["web"].Err; err == nil || !strings.Contains(err.Error(), `("v1alpha1", "v1") of lamps.example.com.x is converted by hook hooks/a.star:lamps.example.com.x`) {
		t.Error(err)
	}
	sees := `
def up(o, snapshots):
    return o

hook(on = [k8s.watch("v1", "ConfigMap", name = "settings", events = [], sync = False), k8s.convert("lamps.example.com.x", {("v1", "v2"): up}, snapshots = ["settings"])])
`
	g = load(t, map[string]string{"web/hooks/a.star": convertsOneWay, "web/hooks/b.star": sees})
	if err := g.Modules["web"].Err; err != nil {
		t.Fatal(err)
	}
	hooks := g.Modules["web"].Hooks
	if with := hooks[1].Binding("convert"); !with.Converts() || hooks[0].Bindings[0].Converts() || len(with.Convert.Steps) != 2 ||
		!with.Convert.Alone[[2]string{"v1alpha1", "v1"}] || with.Convert.Alone[[2]string{"v1", "v2"}] {
		t.Errorf("the hook with snapshots: %+v", with.Convert)
	}
	g = load(t, map[string]string{"web/hooks/a.star": sees, "web/hooks/b.star": strings.ReplaceAll(sees, `("v1", "v2")`, `("v2", "v1")`)})
	if err := g.Modules["web"].Err; err == nil || !strings.Contains(err.Error(), "both have snapshots=; put the functions that need them into one k8s.convert") {
		t.Error(err)
	}
}

func TestOneModuleConvertsADefinition(t *testing.T) {
	g := load(t, map[string]string{"a/hooks/a.star": convertsOneWay, "b/hooks/a.star": convertsOneWay})
	if err := g.Modules["a"].Err; err != nil {
		t.Error(err)
	}
	if err := g.Modules["b"].Err; err == nil || !strings.Contains(err.Error(), "lamps.example.com.x is converted by hook a/hooks/a.star:lamps.example.com.x (a/hooks/a.star:5) already") {
		t.Error(err)
	}
}
