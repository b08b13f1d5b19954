package record

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/starling-operator/starling/runtime/effect"
	"github.com/starling-operator/starling/runtime/hook"
	"github.com/starling-operator/starling/runtime/reconcile"
)

// asksAll is a hook that uses every input that there is.
const asksAll = `secret = k8s.secret("s", "k")
missing = k8s.get("v1", "ConfigMap", "missing")
found = k8s.list("v1", "Pod", labels = {"a": "b"})
answer = http.get("https://api.example.com/x?y=1", headers = {"Authorization": "Bearer " + secret})
values.set("a.c", [n.metadata.name for n in ctx.snapshots["nodes"]])
values.set("a.d", values.get("a"))
values.set("password", secret)
ctx.state.set("t", ctx.state.get("s"))
metrics.set("m", len(found), labels = {"x": "y"})
log.warn("says", now = str(ctx.now), one = found[0]["x"], n = found[0]["n"], config = config.get("c"), event = ctx.events[0].result, old = ctx.events[0].old.n)
print(answer.body, missing, secret, env("REGION"))
k8s.apply({"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "made"}, "stringData": {"p": random.string(8)}})
k8s.apply({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": helper("cm")}, "data": {"uuid": random.uuid()}})
http.send("POST", "https://api.example.com/hook", json = {"a": 1})
requeue("5m")`

func TestReplayComesToTheSame(t *testing.T) {
	m, s := newModule(t, asksAll), newStore(t, StoreOptions{})
	put(t, s, m.run(t, nodes("a", "b")))
	r := opened(t, s, 1)
	again := replayed(t, r, ReplayOptions{})
	if !again.Same || again.Error != "" || again.Steps != r.Steps {
		t.Errorf("came to %+v, was %+v", again, r.Outcome)
	}
	want := []string{
		"k8s.apply v1 Secret ns/made", "k8s.apply v1 ConfigMap ns/cm",
		`values.set a.c = ["a","b"]`, `values.set a.d = {"b":1,"c":["a","b"]}`, `values.set password = "***"`,
		`ctx.state = {"s":7,"t":7}`, `metrics.set m{x="y"} 1`, "http.send POST https://api.example.com/hook", "requeue in 5m0s",
		`warn: says now="2026-01-02 03:04:05.000000006 +0100 CET" one=1 n=1 config="d" event={"n":1} old=0`,
		"info: \ufffd{} None *** the REGION",
	}
	if diff := cmp.Diff(want, NewMask(r).Lines(again.Outcome, false)); diff != "" {
		t.Error(diff)
	}
	details := strings.Join(NewMask(r).Lines(again.Outcome, true), "\n")
	if strings.Contains(details, secretText) || !strings.Contains(details, "    stringData:\n        p: '***'") && !strings.Contains(details, "      p: '***'") {
		t.Error(details)
	}
	if r.Sources["lib/x.star"] == nil || string(r.Sources["m/a.txt"]) != "of the module" || r.Cause != "nodes: modified" || r.Failed() {
		t.Errorf("record %+v", r.Header)
	}
}

// A server that was down in the run is down in the replay, and no other error becomes
// that.
func TestAServerThatWasDownIsDownAgain(t *testing.T) {
	m, s := newModule(t, `values.set("x", http.get("https://api.example.com/down", default = "down"))`), newStore(t, StoreOptions{})
	put(t, s, m.run(t, nil))
	again := replayed(t, opened(t, s, 1), ReplayOptions{})
	if diff := cmp.Diff([]string{`values.set x = "down"`}, NewMask(opened(t, s, 1)).Lines(again.Outcome, false)); diff != "" || !again.Same {
		t.Errorf("same: %v\n%s", again.Same, diff)
	}
}

// Each request has its answer again: those that differ in their method or body are not one.
func TestRequestsHaveTheirAnswersAgain(t *testing.T) {
	body := `def ask(method, path, **rest):
    r = http.request(method, "https://api.example.com/" + path, **rest)
    return [r.ok, r.error, r.status, r.body]
values.set("x", [ask("POST", "a", json = {"n": 1}), ask("POST", "a", json = {"n": 2}), ask("GET", "down"), ask("PUT", "b", body = b"\xff")])
values.set("y", [[r.status, r.error] for r in http.gather(["https://api.example.com/a", "https://api.example.com/down", {"method": "POST", "url": "https://api.example.com/a", "json": {"n": 1}}])])
print(http.request("POST", "https://api.example.com/a", body = "hush-body", headers = {"X": "hush-header"}).bytes)`
	m, s := newModule(t, body), newStore(t, StoreOptions{})
	put(t, s, m.run(t, nil))
	r := opened(t, s, 1)
	if again := replayed(t, r, ReplayOptions{}); !again.Same || again.Error != "" {
		t.Errorf("came to %+v, was %+v", again, r.Outcome)
	}
	for _, one := range r.reads {
		if text := fmt.Sprintf("%+v %+v", one.question, one.question.Rest); strings.Contains(text, "hush-body") {
			t.Errorf("the record holds a body: %s", text)
		}
	}
	other := newModule(t, strings.ReplaceAll(body, `"n": 2`, `"n": 3`))
	again := replayed(t, r, ReplayOptions{Generation: other.g})
	if want := "the record has no answer to http.request of POST https://api.example.com/a: the recorded run did not ask"; !strings.Contains(again.Error, want) {
		t.Errorf("error is %q, want %q", again.Error, want)
	}
}

// A test of a run holds no secrets that were in the URL of a request.
func TestSecretsOfURLsAreInNoTest(t *testing.T) {
	m, s := newModule(t, `for query in ["token=hush-1111&page=page-2", "key=hush-2222", "X-Amz-Signature=hush%2F3333"]:
    http.get("https://api.example.com/a?" + query, default = "")
values.set("x", "hush/3333")`), newStore(t, StoreOptions{})
	put(t, s, m.run(t, nil))
	r := opened(t, s, 1)
	run, lines, err := r.Written()
	if err != nil {
		t.Fatal(err)
	}
	text := TestFile(r.Header, run, lines)
	if !strings.Contains(text, "page-2") || strings.Contains(text, "hush") {
		t.Errorf("got %s", text)
	}
}

// Names under which APIs take secrets, and values that url.Query leaves out.
func TestSecretsOfQueries(t *testing.T) {
	for _, tt := range []struct{ query, text, want string }{
		{"token=hush-1111", "hush-1111", "***"},
		{"subscription_key=hush-1111-2222-3333", "hush-1111-2222-3333", "***"},
		{"subscriptionKey=hush-1111-2222-3333", "hush-1111-2222-3333", "***"},
		{"auth_code=hush-1111-2222-3333", "hush-1111-2222-3333", "***"},
		{"key=hush-1111-2222-3333", "hush-1111-2222-3333", "***"},
		{"pwd=hush-1111", "hush-1111", "***"},
		{"app_secret=hush-1111", "hush-1111", "***"},
		{"password=hush;1111", "hush;1111", "***"},
		{"a=b;password=hush-1111", "hush-1111", "***"},
		{"password=hush%zz11", "hush%zz11", "***"},
		{"X-Amz-Signature=hush%2F3333", "hush/3333", "***"},
		{"sig=hush%2f3333", "hush/3333", "***"},
		{"key=metadata.name", "metadata.name", "metadata.name"},
		{"sort_key=metadata.name", "metadata.name", "metadata.name"},
		{"page=page-2222&q=monkey", "page-2222", "page-2222"},
	} {
		t.Run(tt.query, func(t *testing.T) {
			m := &Mask{}
			address := "https://api.example.com/a?" + tt.query + "#end"
			m.answer(nil, reading{question: question{Verb: "http", Rest: map[string]any{"url": address}}})
			if got := m.Text("it says " + tt.text); got != "it says "+tt.want {
				t.Errorf("got %q", got)
			}
			_, secret, _ := strings.Cut(tt.query, "=")
			if got := m.Text(address); strings.Contains(got, secret) != strings.HasPrefix(tt.query, "page") {
				t.Errorf("got %q", got)
			}
		})
	}
}

// The URL of http.send is one of a request, too.
func TestSecretsOfSentURLs(t *testing.T) {
	m := &Mask{}
	m.outcome(Outcome{Effects: effect.Effects{Messages: []effect.Message{{Request: effect.Request{URL: "https://api.example.com/a?token=hush-1111&page=2"}}}}})
	if got := m.Text("https://api.example.com/a?token=hush-1111&page=2"); got != "https://api.example.com/a?token=***&page=2" {
		t.Errorf("got %q", got)
	}
}

// A run that changes the user's config does so again, with what it has seen of it then.
func TestChangesOfTheUsersConfigAreReplayed(t *testing.T) {
	body := `if config.get("c") == "d":
    config.set("size", {"min": 1, "max": 2.5, "names": ["a"]})
config.remove("c")
config.set("token", k8s.secret("s", "k"))
values.set("seen", [config.get("c"), config.get("size.min")])`
	s := newStore(t, StoreOptions{})
	of := func(body string) *module {
		return &module{g: load(t, map[string]string{"m/module.star": strings.Replace(header, "module(", `module(config = ["c", "size", "token"], `, 1),
			"m/hooks/a.star": "def f(ctx):\n    " + strings.ReplaceAll(body, "\n", "\n    ") + "\n\nhook(f, on = [k8s.watch(\"v1\", \"Node\", name = \"nodes\")])\n"})}
	}
	put(t, s, of(body).run(t, nil, func(r *hook.Request) { r.Instance = effect.Instance{Namespace: "ns", Name: "starling"} }))
	r := opened(t, s, 1)
	again := replayed(t, r, ReplayOptions{})
	want := []string{`config.set m size = {"max":2.5,"min":1,"names":["a"]}`, "config.remove m c", `config.set m token = "***"`, "values.set seen = [null,1]"}
	if diff := cmp.Diff(want, NewMask(r).Lines(again.Outcome, false)); diff != "" || !again.Same || again.Error != "" {
		t.Errorf("same: %v, error %q\n%s", again.Same, again.Error, diff)
	}
	if was := again.Effects.Writes[1].Config.Was; was != "d" {
		t.Errorf("it was %v", was)
	}
	other := replayed(t, r, ReplayOptions{Generation: of(strings.Replace(body, `"min": 1`, `"min": 3`, 1)).g})
	if diff := Diff(NewMask(r).Lines(r.Outcome, false), NewMask(r).Lines(other.Outcome, false)); other.Same || len(diff) < 2 {
		t.Errorf("another version: same %v, %q", other.Same, diff)
	}
}

// A run that has failed and keeps its effects does so again.
func TestARunThatKeepsItsEffectsKeepsThemAgain(t *testing.T) {
	m, s := newModule(t, `values.set("x", 1)
fail("unreachable", keep = True)`), newStore(t, StoreOptions{})
	put(t, s, m.run(t, nil))
	r := opened(t, s, 1)
	again := replayed(t, r, ReplayOptions{})
	if lines := NewMask(r).Lines(again.Outcome, false); !again.Same || !r.Failed() || len(lines) != 2 || lines[0] != "values.set x = 1" || !strings.Contains(lines[1], "unreachable") {
		t.Errorf("same: %v, %q", again.Same, lines)
	}
}

// A read that was forbidden in the run is forbidden in the replay: its default holds, or it
// fails in the same words.
func TestAReadThatWasForbiddenIsForbiddenAgain(t *testing.T) {
	m, s := newModule(t, `values.set("x", k8s.get("v1", "ConfigMap", "forbidden", default = "unknown"))
k8s.get("v1", "ConfigMap", "forbidden")`), newStore(t, StoreOptions{})
	put(t, s, m.run(t, nil))
	r := opened(t, s, 1)
	again := replayed(t, r, ReplayOptions{})
	if !again.Same || !strings.HasSuffix(again.Error, "k8s.get: not allowed to get configmaps") {
		t.Errorf("same: %v, error %q", again.Same, again.Error)
	}
}

func TestAFailedRunFailsAgain(t *testing.T) {
	m, s := newModule(t, "log.info(\"before\")\nvalues.set(\"x\", 1)\nk8s.get(\"v1\", \"ConfigMap\", \"other\")"), newStore(t, StoreOptions{})
	put(t, s, m.run(t, nil))
	r := opened(t, s, 1)
	again := replayed(t, r, ReplayOptions{})
	if !again.Same || !r.Failed() || again.Error != r.Error || !strings.HasPrefix(r.Error, "m/hooks/a.star:5:12: k8s.get: the API server is tired") {
		t.Errorf("came to %+v, was %+v", again, r.Header)
	}
	headers, _, err := List(s.o.Dir, nil)
	if err != nil || headers[0].Error != "" {
		t.Errorf("without the key: %+v, %v", headers, err)
	}
	if headers, _, err = List(s.o.Dir, s.key); err != nil || headers[0].Error != r.Error {
		t.Errorf("with the key: %+v, %v", headers, err)
	}
}

func TestAnotherVersionOfAHook(t *testing.T) {
	s := newStore(t, StoreOptions{})
	put(t, s, newModule(t, "values.set(\"x\", len(ctx.snapshots[\"nodes\"]))").run(t, nodes("a", "b")))
	r := opened(t, s, 1)
	for _, tt := range []struct {
		name, body string
		same       bool
		diff       []string
	}{
		{"same", "n = len(ctx.snapshots[\"nodes\"])\nvalues.set(\"x\", n)", true, nil},
		{"more", "values.set(\"x\", len(ctx.snapshots[\"nodes\"]))\nvalues.set(\"y\", values.get(\"a.b\") + values.get(\"x\"))", false, []string{"  values.set x = 2", "+ values.set y = 3"}},
		{"asks", "k8s.get(\"v1\", \"ConfigMap\", \"c\")", false, []string{"- values.set x = 2", "+ error: m/hooks/a.star:3:12: k8s.get: the record has no answer to k8s.get of v1 ConfigMap ns/c: the recorded run did not ask"}},
		{"writes", "values.set(\"x\", 2)\nk8s.apply({\"apiVersion\": \"v1\", \"kind\": \"Pod\", \"metadata\": {\"name\": \"p\"}})", false, []string{
			"+ k8s.apply v1 Pod ns/p", "+     apiVersion: v1", "+     kind: Pod", "+     metadata:", "+       name: p", "+       namespace: ns", "  values.set x = 2"}},
		{"random", "random.int(1, 5)", false, []string{"- values.set x = 2", "+ error: m/hooks/a.star:3:15: random.int: no random bytes: the record has no more of them: the recorded run took fewer"}},
		{"http", "http.get(\"https://api.example.com/a?token=b\")", false, []string{"- values.set x = 2", "+ error: m/hooks/a.star:3:13: http.get: GET https://api.example.com/a: the record has no answer to http.get of GET https://api.example.com/a: the recorded run did not ask"}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			again := replayed(t, r, ReplayOptions{Generation: newModule(t, tt.body).g})
			m := NewMask(r, again.Outcome)
			if diff := cmp.Diff(tt.diff, Diff(m.Lines(r.Outcome, true), m.Lines(again.Outcome, true))); diff != "" || again.Same != tt.same {
				t.Errorf("same: %v\n%s", again.Same, diff)
			}
		})
	}
	for files, want := range map[string]string{
		"x/hooks/a.star: def f(ctx):\n  pass\nhook(f, on = [startup()])\n":                                   "there is no module m; there are x",
		"m/hooks/b.star: def f(ctx):\n  pass\nhook(f, on = [startup()])\n":                                   "module m has no hook m/hooks/a.star:f any more; did you mean m/hooks/b.star:f?",
		"m/hooks/a.star: def f(ctx):\n  pass\nhook(f, on = [k8s.watch(\"v1\", \"Pod\", name = \"pods\")])\n": `hook m/hooks/a.star:f watches "pods", of which the record has no snapshot: it was not watched then`,
	} {
		path, text, _ := strings.Cut(files, ": ")
		if _, err := Replay(t.Context(), r, ReplayOptions{Generation: load(t, map[string]string{path: text})}); err == nil || err.Error() != want {
			t.Errorf("got %v, want %s", err, want)
		}
	}
}

// A read that is repeated may get another answer.
func TestAnswersComeInTheirOrder(t *testing.T) {
	r := &Record{given: given{reads: []reading{
		{question: question{Verb: "get", About: "x"}, err: errors.New("first")}, {question: question{Verb: "get", About: "x"}, err: errors.New("second")},
	}}}
	w, err := newWorld(r)
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for range 3 {
		got = append(got, w.ask(question{Verb: "get", About: "x"}, nil).Error())
	}
	if !slices.Equal(got, []string{"first", "second", "second"}) {
		t.Error(got)
	}
}

func TestAnObjectOfForEach(t *testing.T) {
	m, s := newModule(t, "log.info(\"about\", key = ctx.key, name = ctx.object.metadata.name)"), newStore(t, StoreOptions{})
	put(t, s, m.run(t, nodes("a"), func(r *hook.Request) { r.Key, r.Object = "a", nodes("a")[0] }))
	r := opened(t, s, 1)
	if again := replayed(t, r, ReplayOptions{}); !again.Same || r.Key != "a" || len(again.Logs) != 1 {
		t.Errorf("%+v", again)
	}
}

func TestKindsOfUnknownChildrenAreKept(t *testing.T) {
	m, s := newModule(t, "pass"), newStore(t, StoreOptions{})
	want := []reconcile.Kind{{APIVersion: "apps/v1", Kind: "Deployment"}}
	put(t, s, m.run(t, nil, func(r *hook.Request) { r.Unsynced = want }))
	r := opened(t, s, 1)
	dump, err := r.Dump()
	if err != nil || !slices.Equal(r.in.Unsynced, want) || !slices.Equal(dump.Inputs.Unsynced, []string{"apps/v1 Deployment"}) {
		t.Errorf("%v, %v, %v", r.in.Unsynced, dump.Inputs.Unsynced, err)
	}
}
