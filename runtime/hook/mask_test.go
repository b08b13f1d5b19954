package hook

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"go.starlark.net/starlark"

	"github.com/starling-operator/starling/builtins"
	"github.com/starling-operator/starling/runtime/effect"
	"github.com/starling-operator/starling/runtime/object"
	"github.com/starling-operator/starling/runtime/script"
)

const readsSecrets = `
def f(ctx):
    %s
    log.info("pw: " + p, pw = p, s = [{"x": p}])
    print(p, base64.encode(p), repr(p), "hex", [p])
    values.set("login", {"password": p, "user": "web-user", "url": "https://x:" + p + "@host"})
    values.set("open", "open")
    %s

hook(f, on = [
    k8s.watch("v1", "Secret", name = "whole"),
    k8s.watch("v1", "Secret", name = "some", filter = lambda o: {"name": o.metadata.name, "p": base64.decode(o.data["k"])}),
    k8s.watch("v1", "ConfigMap", name = "maps"),
])
`

// dataReader answers k8s.get and k8s.list with one Secret.
type dataReader struct {
	secret map[string]any
}

func (r dataReader) Get(context.Context, effect.Ref) (map[string]any, error) { return r.secret, nil }
func (r dataReader) List(context.Context, string, string, []string, string, string) ([]map[string]any, error) {
	return []map[string]any{r.secret}, nil
}

// Data that a run reads from Secrets, by a watch or by itself, is in no log line and no error,
// and is known as secret in the values that it sets.
func TestWhatIsReadFromSecretsIsHidden(t *testing.T) {
	secret := map[string]any{
		"apiVersion": "v1", "kind": "Secret", "metadata": map[string]any{"name": "web-login", "namespace": "web"},
		"data": map[string]any{"k": "aHVudGVyMg=="},
	}
	kept := object.FromPlain(map[string]any{"name": "web-login", "p": "hunter2"})
	for _, from := range []string{
		`p = base64.decode(k8s.get("v1", "Secret", "a").data["k"])`,
		`p = base64.decode(k8s.list("v1", "Secret")[0].data["k"])`,
		`p = reveal(k8s.secret("a", "k"))`,
		`p = base64.decode(ctx.snapshots["whole"][0].data["k"])`,
		`p = ctx.snapshots["some"][0]["p"]`,
		`p = ctx.events[0].result["p"]`,
	} {
		for _, end := range []string{`pass`, `fail("bad: " + p)`, `fail(p, permanent = True)`, `fail({"a": [p, base64.encode(p)]}, retry_after = "3s")`, `int(p)`, `{}[p]`, `re.match("(" + p, p)`} {
			g, m := compile(t, fmt.Sprintf(readsSecrets, from, end), `module(grants = [grant("v1", "Secret", verbs = ["*"], namespaces = ["*"])])`)
			log := &textLog{}
			result := Run(context.Background(), Request{
				Host: g.Host, Module: m, Hook: g.Hook("web/hooks/a.star:f"), Namespace: "web", Reader: dataReader{secret: secret}, Log: log,
				Compose:   func([]effect.ValueOp) (map[string]any, error) { return map[string]any{}, nil },
				Snapshots: map[string][]starlark.Value{"whole": {object.New(secret)}, "some": {kept}, "maps": {object.New(map[string]any{"kind": "ConfigMap"})}},
				Events:    []builtins.Event{{Type: "added", Binding: "some", Namespace: "web", Name: "web-login", Result: kept}},
			})
			text := log.String()
			if !strings.Contains(text, "pw: *** ") || !strings.Contains(text, "hex") {
				t.Errorf("%s: the log is %s", from, text)
			}
			if hidden := result.Seen.Err(errors.New(`"hunter2" is no label`)); hidden.Error() != `"***" is no label` {
				t.Errorf("%s: the error of its commit is %v", from, hidden)
			}
			if end == "pass" {
				if result.Err != nil {
					t.Fatal(result.Err)
				}
				want := [][]string{{"password"}, {"url"}}
				if diff := cmp.Diff(want, result.Effects.Values[0].Secrets); diff != "" || result.Effects.Values[1].Secrets != nil {
					t.Errorf("%s: %s %v", from, diff, result.Effects.Values)
				}
			} else {
				var long *script.Error
				if !errors.As(result.Err, &long) {
					t.Fatalf("%s, %s: %v", from, end, result.Err)
				}
				text += result.Err.Error() + long.Render()
				var failed *builtins.FailError
				if errors.As(result.Err, &failed) {
					text += failed.Msg
				}
				if is := failed != nil && (failed.Permanent || failed.RetryAfter == 3*time.Second); is != (strings.Contains(end, "permanent") || strings.Contains(end, "retry_after")) {
					t.Errorf("%s: %+v", end, failed)
				}
			}
			if strings.Contains(text, "unter2") || strings.Contains(text, "aHVu") {
				t.Errorf("%s, %s: %s", from, end, text)
			}
		}
	}
}

// The errors of filters of Secrets show nothing of them.
func TestErrorsOfFiltersHideSecrets(t *testing.T) {
	for filter, want := range map[string]string{
		`fail("no: " + base64.decode(o.data["k"]) + o.data["k"])`: "no: ***",
		`{base64.decode(o.data["k"]): len}`:                       "the filter's result: ***: ",
	} {
		g, _ := compile(t, `
def f(ctx):
    pass

hook(f, on = [k8s.watch("v1", "Secret", name = "s", filter = lambda o: `+filter+`)])
`, `module(grants = [grant("v1", "Secret", verbs = ["*"], namespaces = ["*"])])`)
		b := g.Hook("web/hooks/a.star:f").Bindings[0]
		_, _, err := Filter(context.Background(), func() *script.Host { return g.Host }, b.Watch, noLog{})(map[string]any{"data": map[string]any{"k": "aHVudGVyMg=="}})
		if err == nil || strings.Contains(err.Error(), "hunter2") || strings.Contains(err.Error(), "aHVu") || !strings.Contains(err.Error(), want) {
			t.Error(err)
		}
	}
}

// A value that is made with a child is in no record of the run.
func TestChildrenAreHidden(t *testing.T) {
	m := &object.Mask{}
	made := map[string]any{"apiVersion": "v1", "kind": "Secret", "data": map[string]any{"password": "aHVudGVyMg=="}}
	Outcome(m, effect.Effects{Writes: []effect.Write{{Kind: effect.WriteChildren, Children: []effect.Write{{Kind: effect.WriteApply, Object: made}}}}}, builtins.Response{})
	if got := m.Text("hunter2 aHVudGVyMg=="); strings.Contains(got, "hunter2") || strings.Contains(got, "aHVudGVyMg") {
		t.Errorf("got %q", got)
	}
}
