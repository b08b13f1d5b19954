package testrunner

import (
	"context"
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/starling-operator/starling/builtins"
	"github.com/starling-operator/starling/runtime/effect"
)

// Requests that a hook makes side by side are answered one after the other, in their order,
// by the functions of a test.
func TestRequestsOfATestAreAnsweredInTheirOrder(t *testing.T) {
	w := &world{hosts: map[string]func(effect.Request) (builtins.Fetched, error){}, asked: map[string]bool{}}
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

// A function of t.http that waits for messages of http.send in vain has the log say so.
func TestMessagesAreNotAnswered(t *testing.T) {
	const says = `warn: t.http("chat.example.com", fn) was never asked: http.send is not answered by t.http; t.sent() has its messages`
	runTree(t, 0, map[string]string{
		"web/module.star": `module(enabled = True, http = ["chat.example.com", "api.example.com"])`,
		"web/hooks/a.star": `
def sends(ctx):
    http.send("POST", "https://chat.example.com/x", body = "a")
    http.send("POST", "https://chat.example.com/y", body = "b")
    http.get("https://api.example.com/")
    http.send("POST", "https://api.example.com/", body = "c")

hook(sends, on = [startup()])
`,
		"web/hooks/a_test.star": `
def test_sends(t):
    calls = []
    t.http("api.example.com", lambda r: "")
    t.http("chat.example.com", lambda r: calls.append(r))
    t.start()
    t.expect(len(calls)).equals(2)
`,
	}, func(f File) {
		if got := f.Tests[0]; got.Err == nil || strings.Count(strings.Join(got.Log, "\n"), "never asked") != 1 || !slices.Contains(got.Log, says) {
			t.Errorf("got %v, and the log\n%s", got.Err, strings.Join(got.Log, "\n"))
		}
	})
}

// A request of a test reaches its hook as one from the port of http.receive does.
func TestRequestsComeAsFromThePort(t *testing.T) {
	tree := map[string]string{
		"web/module.star": "module(enabled = True)",
		"web/hooks/a.star": `
def got(ctx):
    return reply(200, {"headers": sorted(ctx.request.headers), "query": ctx.request.query, "path": ctx.request.path})

hook(got, on = [http.receive("/a", public = True, max_bytes = 10)])
`,
		"web/hooks/a_test.star": `
def test_a(t):
    t.start()
    secrets = {"Authorization": "x", "x-gitlab-token": "y", "cookie": "z", "PROXY-Authorization": "p", "Host": "h", "Starling-Forwarded": "f"}
    got = t.request("/a?b=c", "1", headers = secrets | {"X-Hub-Signature-256": "sha256=abc", "X-GitHub-Event": "push"})
    t.expect(got.json).equals({"headers": ["x-github-event", "x-hub-signature-256"], "query": {"b": "c"}, "path": "/a"})
    t.expect([t.request("/a", "12345678901").status, t.request("/a", method = "GET").status]).equals([413, 405])

def test_no_texts(t):
    t.start()
    t.request("/a", headers = HEADERS)
`,
	}
	for headers, want := range map[string]string{
		`{"X-Event": ["a", "b"]}`:          "t.request: headers: X-Event: got list, want string, bytes or secret",
		`{"x-event": 3}`:                   "t.request: headers: X-Event: got int, want string, bytes or secret",
		`{"x-event": "a\r\nX-Other: b"}`:   "t.request: headers: X-Event: a header holds no line ends or other control characters",
		`{"x-event": "a", "X-Event": "b"}`: "t.request: headers: X-Event is given twice",
		`{"x event": "a"}`:                 `t.request: headers: "x event" is no name of a header`,
	} {
		given := maps.Clone(tree)
		given["web/hooks/a_test.star"] = strings.Replace(tree["web/hooks/a_test.star"], "HEADERS", headers, 1)
		runTree(t, 0, given, func(f File) {
			if got := f.Tests; got[0].Err != nil || got[1].Err == nil || !strings.Contains(got[1].Err.Error(), want) {
				t.Errorf("%s: got %v and %v, want %s", headers, got[0].Err, got[1].Err, want)
			}
		})
	}
}

// A hook that polls, and comes to the status that is there, writes nothing: its watch shows that.
func TestAStatusThatStandsIsNoRequest(t *testing.T) {
	for _, keep := range []string{"object", "both"} {
		runTree(t, 0, map[string]string{
			"web/module.star": "module(enabled = True, grants = [grant(\"example.org/v1\", \"Thing\", verbs = [\"patch\"], namespaces = [\"default\"])])\ncrd(\"example.org/v1\", \"Thing\", {\"size\": \"integer\"}, status = {\"phase\": \"string\", \"n\": \"integer\"})\n",
			"web/hooks/a.star": `
def look(ctx):
    k8s.status("example.org/v1", "Thing", "a", status = {"phase": "Running", "n": 3}, namespace = "default")
    requeue("5s")

hook(look, for_each = "things", on = [k8s.watch("example.org/v1", "Thing", name = "things", keep = "` + keep + `"` + map[string]string{"both": ", filter = [\"spec\"]"}[keep] + `)])
`,
			"web/hooks/a_test.star": `
def test_a(t):
    t.start()
    t.cluster.apply({"apiVersion": "example.org/v1", "kind": "Thing", "metadata": {"name": "a", "namespace": "default"}, "spec": {"size": 1}})
    t.clock.advance("10s")
    t.quiet(requests = True)
    t.expect(t.cluster.get("example.org/v1", "Thing", "a", "default").status.n).equals(3)
    t.cluster.patch("example.org/v1", "Thing", "a", "default", merge = {"status": {"n": 4}})
    t.clock.advance("10s")
    t.expect(t.cluster.get("example.org/v1", "Thing", "a", "default").status.n).equals(3)
`,
		}, func(f File) {
			if got := f.Tests[0]; got.Err != nil {
				t.Errorf("%s: got %v\n%v", keep, got.Err, got.Log)
			}
		})
	}
}
