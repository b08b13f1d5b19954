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

// fetcher fails, or waits for the end of the run.
type fetcher struct{ hang bool }

func (f fetcher) Gather(ctx context.Context, requests []effect.Request, _ int) []builtins.Gathered {
	return builtins.InTurn(requests, func(effect.Request) (builtins.Fetched, error) {
		if f.hang {
			<-ctx.Done()
			return builtins.Fetched{}, ctx.Err()
		}
		return builtins.Fetched{}, errors.New("connection refused")
	})
}

func runHTTP(t *testing.T, statement string, timeout time.Duration, f fetcher) (Result, string) {
	t.Helper()
	g, m := compile(t, `
def f(ctx):
    s = k8s.secret("a", "k")
    `+statement+`

hook(f, on = [startup()])
`, `module(http = ["api.example.com"], grants = [grant("v1", "Secret", verbs = ["get"])])`)
	h := g.Hook("web/hooks/a.star:f")
	h.Timeout = timeout
	log := &textLog{}
	return Run(context.Background(), Request{
		Host: g.Host, Module: m, Hook: h, Namespace: "web", Reader: secretReader{}, HTTP: f, Log: log,
		Compose: func([]effect.ValueOp) (map[string]any, error) { return map[string]any{}, nil },
	}), log.String()
}

// A server that does not answer costs a run no more than its own time limit.
func TestHTTPEndsWithTheRun(t *testing.T) {
	result, _ := runHTTP(t, `http.get("https://api.example.com", timeout = "5m")`, 50*time.Millisecond, fetcher{hang: true})
	var limit *script.LimitError
	if !errors.As(result.Err, &limit) || limit.Limit != "time" {
		t.Errorf("got %v", result.Err)
	}
}

// Secrets may go along with requests, and show in nothing that is said of them.
func TestHTTPShowsNoSecret(t *testing.T) {
	for _, statement := range []string{
		`http.get("https://api.example.com/" + s)`, `http.get("https://" + s)`, `http.get(s)`, `http.get("https://api.example.com", headers = {"a": s + "\n"})`,
		`http.get("https://api.example.com", headers = {s: "a"})`, `http.get("https://api.example.com", headers = [s])`, `http.get("https://api.example.com", ca = s)`, `http.get("https://api.example.com?a=b", timeout = s)`,
		`http.send(s, "https://api.example.com")`, `http.send("POST", "https://" + s + "@api.example.com")`, `http.send("POST", "https://api.example.com", key = s)`,
		`http.request("POST", "https://api.example.com/" + s)`, `http.request(s, "https://api.example.com")`,
		`http.request("POST", "https://api.example.com", json = {"a": s, "b": len})`, `http.request("GET", "https://api.example.com", cert = s, key = s)`,
		`http.request("GET", "https://api.example.com", server_name = s)`, `http.request("GET", "https://api.example.com", max_bytes = s)`,
		`http.send("POST", "https://api.example.com", json = {"a": s, "b": len})`, `http.send("POST", "https://api.example.com/\n" + s)`,
	} {
		result, said := runHTTP(t, statement, time.Minute, fetcher{})
		if result.Err == nil {
			t.Errorf("%s: no error", statement)
			continue
		}
		text := said + result.Err.Error() + fmt.Sprintf("%+v", result.Err)
		var long *script.Error
		if errors.As(result.Err, &long) {
			text += long.Render()
		}
		if strings.Contains(text, "unter") || strings.Contains(text, "aHVu") {
			t.Errorf("%s: %s", statement, text)
		}
	}
	result, _ := runHTTP(t, `http.send("POST", "https://api.example.com/" + s, json = {"a": s}, headers = {"x": s})`, time.Minute, fetcher{})
	if result.Err != nil || len(result.Effects.Messages) != 1 {
		t.Fatal(result.Err)
	}
	if m := result.Effects.Messages[0]; !strings.Contains(m.URL+string(m.Body)+m.Headers["X"], "unter") || strings.Contains(m.Where(), "unter") {
		t.Errorf("got %+v, %s", m, m.Where())
	}
}
