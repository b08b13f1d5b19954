package hook

import (
	"context"
	"errors"
	"strings"
	"testing"

	"github.com/starling-operator/starling/builtins"
	"github.com/starling-operator/starling/runtime/effect"
)

// A run that fails asks for nothing, unless it says so; secrets are hidden in what it keeps.
func TestARunThatFailsKeepsItsEffects(t *testing.T) {
	for _, test := range []struct {
		keep string
		want int
	}{{"", 0}, {", keep = False", 0}, {", keep = True", 1}} {
		g, m := compile(t, `
def f(ctx):
    s = k8s.secret("a", "k")
    values.set("token", s)
    metrics.set("m", 1, labels = {"l": reveal(s)})
    fail("no: " + reveal(s)`+test.keep+`)

hook(f, on = [startup()])
`, `module(grants = [grant("v1", "Secret", verbs = ["get"])])`)
		result := Run(context.Background(), Request{
			Host: g.Host, Module: m, Hook: g.Hook("web/hooks/a.star:f"), Namespace: "web", Reader: secretReader{}, Log: noLog{},
			Compose: func([]effect.ValueOp) (map[string]any, error) { return map[string]any{}, nil },
		})
		var failed *builtins.FailError
		if !errors.As(result.Err, &failed) || failed.Keep != (test.want == 1) || strings.Contains(result.Err.Error(), "unter") {
			t.Errorf("%q: error %v", test.keep, result.Err)
		}
		e := result.Effects
		if len(e.Values) != test.want || len(e.Metrics) != test.want || (result.Size > 0) != (test.want == 1) {
			t.Errorf("%q: effects %+v of %d bytes", test.keep, e, result.Size)
			continue
		}
		if test.want == 1 && (len(e.Values[0].Secrets) == 0 || strings.Contains(e.Metrics[0].Labels["l"], "unter")) {
			t.Errorf("secrets of %+v are not known, or shown", e)
		}
	}
}
