package repl

import (
	"context"
	"regexp"
	"strings"
	"testing"

	"github.com/starling-operator/starling/builtins"
	"github.com/starling-operator/starling/builtins/docs"
	"github.com/starling-operator/starling/runtime/effect"
)

// errorAt is the place of an error in a session; examples leave it out.
var errorAt = regexp.MustCompile(`error: repl:[0-9:]+ `)

// The examples of builtins that are sessions say what a session says.
func TestExamplesOfBuiltinsAreTrue(t *testing.T) {
	f := newFixture(t, Options{})
	f.eval(":apply -\napiVersion: v1\nkind: Pod\nmetadata: {name: db-0, namespace: default}\nspec: {containers: [{name: db, image: a}]}\n.")
	n := 0
	for _, s := range docs.Documented() {
		text := s.Example
		if !strings.HasPrefix(text, ">>> ") {
			continue
		}
		n++
		var got strings.Builder
		for line := range strings.Lines(text) {
			if in, typed := strings.CutPrefix(strings.TrimSuffix(line, "\n"), ">>> "); typed {
				got.WriteString(line + errorAt.ReplaceAllString(f.eval(in), "error: "))
			}
		}
		if got.String() != text {
			t.Errorf("%s: the example is\n%sand the session says\n%s", s.Name, text, got.String())
		}
	}
	if n < 100 {
		t.Errorf("there are %d sessions", n)
	}
}

// answers are those of the world outside, for the examples.
type answers struct{}

func (answers) Gather(_ context.Context, requests []effect.Request, _ int) []builtins.Gathered {
	return builtins.InTurn(requests, func(effect.Request) (builtins.Fetched, error) {
		return builtins.Fetched{Status: 200, Body: []byte(`{"zone": "north"}`)}, nil
	})
}

func (answers) Exec(context.Context, effect.Exec) (builtins.Executed, error) {
	return builtins.Executed{Stdout: []byte("accepting connections")}, nil
}

func (answers) Logs(context.Context, effect.LogQuery) ([]byte, error) { return []byte("ready"), nil }

func (answers) Ask(_ context.Context, q effect.Ask) (map[string]any, error) {
	return map[string]any{"allowed": true, "token": "a token"}, nil
}
