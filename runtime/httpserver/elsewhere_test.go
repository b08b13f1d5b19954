package httpserver

import (
	"context"
	"encoding/hex"
	"fmt"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/starling-operator/starling/builtins"
)

// A process that stands by asks the one that leads about paths that no hook of it has, which checks and answers.
func TestRequestsForUnknownPathsAreForwarded(t *testing.T) {
	bindings := []*builtins.ReceiveBinding{{Path: "/new", Signature: builtins.SignatureGitHub, Secret: ref("token")}, {Path: "/open", Methods: []string{"PUT"}}}
	leads, stands := two(t, [2]string{}, func() []*builtins.ReceiveBinding { b := bindings; bindings = nil; return b })
	signed := []string{"X-Hub-Signature-256", "sha256=" + hex.EncodeToString(sum("{}", token))}
	ask := func(code int, says, method, path, body string, headers ...string) {
		t.Helper()
		resp, text := stands.do(method, path, body, headers...)
		if resp.StatusCode != code || text != says || len(resp.Header.Values(forwardedHeader)) > 0 {
			t.Errorf("%s %s: %d %q %v, want %d %q", method, path, resp.StatusCode, text, resp.Header, code, says)
		}
	}
	ask(200, "", "POST", "/new", "{}", signed...)
	ask(401, "the signature is missing, wrong or too old", "POST", "/new", "{ }", signed...)
	ask(405, "another method is needed", "POST", "/open", "")
	ask(404, "no hook receives requests here", "POST", "/other", "{}")
	ask(413, "the body is larger than 100 bytes", "PUT", "/open", strings.Repeat("x", 200))
	ask(413, fmt.Sprintf("the body is larger than %d bytes", builtins.MaxReceiveBytes), "PUT", "/open", strings.Repeat("x", builtins.MaxReceiveBytes+1))
	if len(leads.asked) != 1 || len(leads.observed) != 4 || len(stands.observed) > 0 {
		t.Errorf("the hook has seen %d; counted there: %q, here: %q", len(leads.asked), leads.observed, stands.observed)
	}

	// One that was handed on goes no further, and the process that is meant by it alone says that there is no such path.
	leads.name = "a_2"
	ask(503, "there is no answer now, try again later", "POST", "/other", "{}")
	leads.name = "a_1"
	for name, want := range map[string]int{"a_1": 404, "a_2": 503} {
		if resp, _ := leads.do("POST", "/other", "{}", forwardedHeader, name); resp.StatusCode != want {
			t.Errorf("handed to %s: %d, want %d", name, resp.StatusCode, want)
		}
	}
	if log := stands.log.String(); strings.Count(log, "a request to a path that no hook of this process has is answered nowhere") != 1 {
		t.Errorf("log: %s", log)
	}
	stands.other = nil // it leads
	ask(404, "no hook receives requests here", "POST", "/new", "{}", signed...)
}

// Strangers who ask for any path take no more than some places, and no memory for long.
func TestRequestsForUnknownPathsHaveABound(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		answer := make(chan struct{})
		w.other = func(context.Context, Incoming) (builtins.Response, error) {
			<-answer
			return builtins.Response{}, ErrNoPath
		}
		codes := make(chan int, 2*maxStrange)
		ask := func() {
			resp, _ := w.do("POST", "/a", "x")
			codes <- resp.StatusCode
		}
		for range maxStrange {
			go ask()
		}
		synctest.Wait()
		if ask(); <-codes != http.StatusServiceUnavailable {
			t.Error("one more is not refused")
		}
		close(answer)
		for range maxStrange {
			if code := <-codes; code != http.StatusNotFound {
				t.Errorf("got %d", code)
			}
		}
		synctest.Wait()
		if ask(); <-codes != http.StatusNotFound {
			t.Error("their places are not free again")
		}
		w.other = func(context.Context, Incoming) (builtins.Response, error) {
			return builtins.Response{}, ErrAway
		}
		for range maxStrange + 1 { // bodies that are refused give their places back, too
			w.do("POST", "/a", strings.Repeat("x", builtins.MaxReceiveBytes+1))
		}
		if resp, _ := w.do("POST", "/a", "x"); resp.Header.Get("Retry-After") != "1" {
			t.Errorf("got %d", resp.StatusCode)
		}
	})
}
