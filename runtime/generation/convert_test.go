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

func TestOneHookConvertsADefinition(t *testing.T) {
	g := load(t, map[string]string{"a/hooks/a.star": convertsOneWay, "b/hooks/a.star": convertsOneWay})
	if err := g.Modules["a"].Err; err != nil {
		t.Error(err)
	}
	if err := g.Modules["b"].Err; err == nil || !strings.Contains(err.Error(), "lamps.example.com.x is converted by hook a/hooks/a.star:lamps.example.com.x (a/hooks/a.star:5) already") {
		t.Error(err)
	}
}
