package hook

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/starling-operator/starling/builtins"
	"github.com/starling-operator/starling/runtime/effect"
	"github.com/starling-operator/starling/runtime/script"
)

// secretReader holds one Secret with the text hunter2.
type secretReader struct{ slowReader }

func (secretReader) Get(context.Context, effect.Ref) (map[string]any, error) {
	return map[string]any{"data": map[string]any{"k": "aHVudGVyMg=="}}, nil
}

// textLog keeps all that is logged as text.
type textLog struct{ strings.Builder }

func (l *textLog) Log(_ builtins.Level, msg string, fields []builtins.Field) {
	fmt.Fprintf(l, "%s %v %+v %#v\n", msg, fields, fields, fields)
}

// Neither logs nor errors, in their long form too, show a secret, through the
// rewriting of the host as well.
func TestSecretsDoNotLeak(t *testing.T) {
	for _, statement := range []string{
		`fail(s)`, `fail("x" + s)`, `fail({"a": [s]})`, `fail(struct(s = s))`, `fail("%s %r" % (s, s))`, `fail(str(s) + repr(s))`, `fail("{}".format(s))`,
		`s * 2`, `2 * s`, `s * s`, `s % s`, `s % 1`, `"%d" % s`, `"%c" % s`, `"x" % s`, `s[0]`, `s.text`, `s.secret`, `len(s)`, `int(s)`, `float(s)`, `list(s)`, `sorted([s, s])`, `max([s, s])`,
		`s < s`, `"h" in s`, `s in "h"`, `hash(s)`, `{s: 1}`, `set([s])`, `"".join([s])`, `"a".replace("a", s)`, `"a".startswith(s)`, `range(s)`, `getattr(s, "x")`, `dir(s).x`,
		`json.encode(s)`, `json.decode(s)`, `yaml.encode([s])`, `jq([s], ".")`, `jq(1, s)`, `re.match("h", s)`, `hash.sha256(s)`, `fail(base64.encode(s))`, `values.patch([{"op": "add", "path": "/a", "value": s}])`,
		`values.get(s)`, `k8s.get("v1", "Secret", s)`, `k8s.secret(s, "k")`, `k8s.apply({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": s}})`, `metrics.set(s, 1)`, `requeue(s)`,
		`time.parse_duration(s)`, `semver.parse(s)`, `names.kebab(s)`, `reveal(1)`, `s()`, `s.x()`, `s[1] + 1`, `[x for x in s]`, `s + 1`, `-s`, `fail(dict(a = s))`, `fail(copy([s]))`,
	} {
		g, m := compile(t, `
def f(ctx):
    s = k8s.secret("a", "k")
    log.info(s, s = s, l = [s], d = {"a": s}, st = struct(a = s))
    print(s, [s], (s,), {"a": s})
    `+statement+`

hook(f, on = [startup()])
`, `module(grants = [grant("v1", "Secret", verbs = ["*"]), grant("v1", "ConfigMap", verbs = ["*"])])`)
		log := &textLog{}
		result := Run(context.Background(), Request{
			Host: g.Host, Module: m, Hook: g.Hook("web/hooks/a.star:f"), Namespace: "web", Reader: secretReader{}, Log: log,
			Compose: func([]effect.ValueOp) (map[string]any, error) { return map[string]any{}, nil },
		})
		if result.Err == nil {
			t.Errorf("%s: no error", statement)
			continue
		}
		text := log.String() + result.Err.Error() + fmt.Sprintf("%+v", result.Err)
		var long *script.Error
		if errors.As(result.Err, &long) {
			text += long.Render()
		}
		if strings.Contains(text, "unter") || strings.Contains(text, "aHVu") {
			t.Errorf("%s: %s", statement, text)
		}
	}
}
