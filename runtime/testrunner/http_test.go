package testrunner

import (
	"context"
	"strings"
	"testing"

	"github.com/starling-operator/starling/builtins"
	"github.com/starling-operator/starling/runtime/effect"
)

// Requests that a hook makes side by side are answered one after the other, in their order,
// by the functions of a test.
func TestRequestsOfATestAreAnsweredInTheirOrder(t *testing.T) {
	w := &world{hosts: map[string]func(effect.Request) (builtins.Fetched, error){}}
	var asked []string
	w.HTTP("api.example.com", func(r effect.Request) (builtins.Fetched, error) {
		asked = append(asked, r.Method+" "+r.URL)
		if r.Method == "DELETE" {
			return builtins.Fetched{}, &builtins.NoAnswerError{Reason: "down"}
		}
		return builtins.Fetched{Status: 201}, nil
	})
	got := w.Gather(context.Background(), []effect.Request{
		{Method: "POST", URL: "https://api.example.com/a"}, {Method: "DELETE", URL: "https://api.example.com/b"}, {Method: "GET", URL: "https://other.example.com"},
	}, 8)
	if len(got) != 3 || got[0].Status != 201 || got[1].Err == nil || got[2].Err == nil || !strings.Contains(got[2].Err.Error(), "nobody answers at other.example.com") {
		t.Errorf("answers are %+v", got)
	}
	if want := "POST https://api.example.com/a, DELETE https://api.example.com/b"; strings.Join(asked, ", ") != want {
		t.Errorf("asked for %s", strings.Join(asked, ", "))
	}
}
