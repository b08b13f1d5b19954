package generation

import (
	"strings"
	"testing"
)

func TestConditionsAreCompiled(t *testing.T) {
	review := func(expression string) string {
		return "hook(lambda ctx: None, name = \"r\", on = [\n  k8s.validate(\"v1\", \"Pod\", failure_policy = \"fail\", match_conditions = {\"by people\": \"" + expression + "\"}),\n])\n"
	}
	g := load(t, map[string]string{
		"good/hooks/a.star":  review("!request.userInfo.username.startsWith('system:')"),
		"wrong/hooks/a.star": review("!request.userInfo.name.startsWith('system:')"),
	})
	if err := g.Modules["good"].Err; err != nil {
		t.Error(err)
	}
	want := `wrong/hooks/a.star:2: hook r: match_conditions: "by-people": undefined field 'name' (character 18)`
	if err := g.Modules["wrong"].Err; err == nil || !strings.HasPrefix(err.Error(), want) {
		t.Errorf("got %v, want %s", err, want)
	}
}
