package hook

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/starling-operator/starling/builtins"
	"github.com/starling-operator/starling/runtime/effect"
	"github.com/starling-operator/starling/runtime/object"
)

const mistakes = `
def one(ctx, o):
    mode = o.spec.mode
    if mode == "field":
        return o.spec.image
    if mode == "number":
        return 1 // 0
    if mode == "fail":
        fail("no tier")
    if mode == "later":
        fail("no tier", retry_after = "1m")
    if mode == "text":
        return "all"
    if mode == "values":
        return [part({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": values.get("name")}})]
    if mode == "long":
        for i in range(10000000):
            for j in range(10000000):
                pass
    return [part({"apiVersion": "v1", "kind": o.spec.kind, "metadata": {"name": "a"}})]

controller("one", k8s.watch("example.org/v1", "Parent"), one, owns = [owns("v1", "ConfigMap")], timeout = "100ms")
`

// The functions of a controller are pure: a mistake is tried again once something has changed. One that was
// stopped, or got no answer, may do better the next time.
func TestMistakesAreNotTriedAgain(t *testing.T) {
	g, m := compile(t, mistakes, `module()`)
	ended, end := context.WithCancel(t.Context())
	end()
	for name, c := range map[string]struct {
		spec  map[string]any
		ctx   context.Context
		final bool
		want  string
	}{
		"a field that is not there": {map[string]any{"mode": "field"}, nil, true, `has no field "image"`},
		"a mistake":                 {map[string]any{"mode": "number"}, nil, true, "division by zero"},
		"fail":                      {map[string]any{"mode": "fail"}, nil, true, "no tier"},
		"fail for a while":          {map[string]any{"mode": "later"}, nil, false, "no tier"},
		"no parts":                  {map[string]any{"mode": "text"}, nil, true, "desired returned string"},
		"a kind of nobody":          {map[string]any{"mode": "", "kind": "Service"}, nil, true, `add owns("v1", "Service") to owns`},
		"a kind that is not served": {map[string]any{"mode": "", "kind": "Widget"}, nil, false, "no such kind"},
		"no values":                 {map[string]any{"mode": "values"}, nil, false, "no values"},
		"a limit":                   {map[string]any{"mode": "long"}, nil, false, "limit"},
		"the process ends":          {map[string]any{"mode": "field"}, ended, false, ""},
	} {
		if c.ctx == nil {
			c.ctx = t.Context()
		}
		r := Request{
			Host: g.Host, Module: m, Hook: g.Hook("web/one"), Key: "a", Attempt: 1, Now: time.Now(), Log: noLog{},
			Object: object.New(map[string]any{"apiVersion": "example.org/v1", "kind": "Parent", "metadata": map[string]any{"name": "a", "uid": "1"}, "spec": c.spec}),
			Family: &Family{Children: func(func(map[string]any) bool) {}},
			Scope: func(_, kind string) (bool, error) {
				if kind == "Widget" {
					return false, errors.New("no such kind")
				}
				return true, nil
			},
			Compose: func([]effect.ValueOp) (map[string]any, error) { return nil, errors.New("no values") },
		}
		err := Run(c.ctx, r).Err
		var failed *builtins.FailError
		if final := errors.As(err, &failed) && failed.Permanent; err == nil || final != c.final || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: final is %t, want %t: %v", name, final, c.final, err)
		}
	}
}
