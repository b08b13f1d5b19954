package hook

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/starling-operator/starling/builtins"
	"github.com/starling-operator/starling/runtime/effect"
	"github.com/starling-operator/starling/runtime/script"
)

// containers answer with the secret.
type containers struct{}

func (containers) Exec(ctx context.Context, e effect.Exec) (builtins.Executed, error) {
	switch e.Argv[0] {
	case "hang":
		<-ctx.Done()
		return builtins.Executed{}, ctx.Err()
	case "slow":
		time.Sleep(30 * time.Millisecond)
	}
	return builtins.Executed{Code: 1, Stdout: []byte("the password is hunter2"), Stderr: e.Stdin}, nil
}

func (containers) Ask(_ context.Context, q effect.Ask) (map[string]any, error) {
	return map[string]any{"token": "hush-token", "allowed": true}, nil
}

func (containers) Logs(context.Context, effect.LogQuery) ([]byte, error) {
	return nil, &builtins.NoAnswerError{Reason: "hunter2 is waiting to start"}
}

// podReader has one Pod beside the Secret.
type podReader struct{ secretReader }

func (r podReader) Get(ctx context.Context, ref effect.Ref) (map[string]any, error) {
	if ref.Kind == "Pod" {
		return map[string]any{"apiVersion": "v1", "kind": "Pod", "metadata": map[string]any{"name": "db-0", "namespace": "web"}, "spec": map[string]any{"containers": []any{map[string]any{"name": "db"}}}}, nil
	}
	return r.secretReader.Get(ctx, ref)
}

func runPods(t *testing.T, statement string, timeout time.Duration) (Result, string) {
	t.Helper()
	g, m := compile(t, `
def f(ctx):
    s = k8s.secret("a", "k")
    `+statement+`

hook(f, on = [startup()])
`, `module(grants = [grant("v1", "Secret", verbs = ["get"]), grant("v1", "Pod", verbs = ["exec", "logs"]), grant("v1", "ServiceAccount", verbs = ["token"])])`)
	h := g.Hook("web/hooks/a.star:f")
	h.Timeout = timeout
	log := &textLog{}
	return Run(context.Background(), Request{
		Host: g.Host, Module: m, Hook: h, Namespace: "web", Reader: podReader{}, Answerer: containers{}, Log: log,
		Compose: func([]effect.ValueOp) (map[string]any, error) { return map[string]any{}, nil },
	}), log.String()
}

// A token that a run gets is hidden wherever the run would show it.
func TestTokensAreHidden(t *testing.T) {
	for _, statement := range []string{`fail(reveal(k8s.token("ci")))`, `log.error(reveal(k8s.token("ci"))); fail("x")`, `log.error("x", t = reveal(k8s.token("ci"))); fail(json.encode([k8s.token("ci")]))`} {
		result, said := runPods(t, statement, time.Minute)
		if result.Err == nil || strings.Contains(said+result.Err.Error()+fmt.Sprintf("%+v", result.Err), "hush") {
			t.Errorf("%s: %v, %s", statement, result.Err, said)
		}
	}
}

// A command that never ends costs a run no more than its own time limit, and one that ends no time of
// computing.
func TestExecEndsWithTheRun(t *testing.T) {
	result, _ := runPods(t, `k8s.exec("db-0", ["hang"], timeout = "5m")`, 50*time.Millisecond)
	var limit *script.LimitError
	if !errors.As(result.Err, &limit) || limit.Limit != "time" {
		t.Errorf("got %v", result.Err)
	}
	if result, _ := runPods(t, `k8s.exec("db-0", ["slow"])`, time.Minute); result.Err != nil || result.Usage.Waited < 20*time.Millisecond {
		t.Errorf("of %s the run has waited %s, %v", result.Usage.Wall, result.Usage.Waited, result.Err)
	}
}

// A secret that a command repeats is hidden as any other one.
func TestExecShowsNoSecret(t *testing.T) {
	for _, statement := range []string{
		`fail(k8s.exec("db-0", ["cat"]).stdout)`, `fail(k8s.exec("db-0", ["cat"], stdin = s).stderr)`, `log.error(k8s.exec("db-0", ["cat"]).stdout); fail("x")`,
		`k8s.exec("db-0", ["cat"], stdin = s).json()`, `k8s.exec(s, ["cat"])`, `k8s.exec("db-0", [s])`, `k8s.exec("db-0", [reveal(s) * 9000])`, `k8s.exec("db-0", ["cat"], container = s)`,
		`k8s.exec("db-0", ["cat"], container = reveal(s) + "/")`, `k8s.logs("db-0")`, `k8s.logs(s)`, `k8s.logs("db-0", tail = s)`, `fail(str(k8s.exec("db-0", [reveal(s)])) + reveal(s))`,
	} {
		result, said := runPods(t, statement, time.Minute)
		if result.Err == nil {
			t.Errorf("%s: no error", statement)
			continue
		}
		text := said + result.Err.Error() + fmt.Sprintf("%+v", result.Err)
		var long *script.Error
		if errors.As(result.Err, &long) {
			text += long.Render()
		}
		if strings.Contains(text, "unter") {
			t.Errorf("%s: %s", statement, text)
		}
	}
}
