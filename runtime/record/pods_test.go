package record

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/starling-operator/starling/builtins"
	"github.com/starling-operator/starling/runtime/effect"
	"github.com/starling-operator/starling/runtime/hook"
)

// containers are those of the Pod db-0. Each command has its number as its output.
type containers struct {
	live
	asked int
}

func (c *containers) Get(ctx context.Context, ref effect.Ref) (map[string]any, error) {
	if ref.Kind == "Pod" && ref.Name == "db-0" {
		return map[string]any{"apiVersion": "v1", "kind": "Pod", "metadata": map[string]any{"name": "db-0", "namespace": "ns"}, "spec": map[string]any{"containers": []any{map[string]any{"name": "db"}}}}, nil
	}
	return c.live.Get(ctx, ref)
}

func (c *containers) Exec(_ context.Context, e effect.Exec) (builtins.Executed, error) {
	if e.Argv[0] == "gone" {
		return builtins.Executed{}, &builtins.NoAnswerError{Reason: "the connection ended"}
	}
	c.asked++
	return builtins.Executed{Code: 3, Stdout: fmt.Appendf(nil, "\xff%d %s", c.asked, secretText), Stderr: []byte("err")}, nil
}

func (c *containers) Ask(_ context.Context, q effect.Ask) (map[string]any, error) {
	c.asked++
	return map[string]any{"allowed": true, "token": fmt.Sprintf("hush-token-%d", c.asked)}, nil
}

func (c *containers) Logs(_ context.Context, q effect.LogQuery) ([]byte, error) {
	if q.Previous {
		return nil, &builtins.NoAnswerError{Reason: "it has not been restarted"}
	}
	return fmt.Appendf(nil, "%d lines", q.Tail), nil
}

// A replay asks the API server nothing: each question has the answer that it had.
func TestQuestionsToTheAPIServerHaveTheirAnswersAgain(t *testing.T) {
	body := `def may(user):
    return k8s.ask({"apiVersion": "authorization.k8s.io/v1", "kind": "SubjectAccessReview", "spec": {"user": user}}).allowed
values.set("x", [may("hush-jane"), may("joe"), k8s.token("ci"), k8s.token("ci", expires = "2h")])`
	m, s := newModule(t, body), newStore(t, StoreOptions{})
	live := &containers{}
	put(t, s, m.run(t, nil, func(r *hook.Request) { r.Reader, r.Answerer = live, live }))
	r := opened(t, s, 1)
	if again := replayed(t, r, ReplayOptions{}); !again.Same || again.Error != "" || live.asked != 4 {
		t.Errorf("%d questions: came to %+v, was %+v", live.asked, again, r.Outcome)
	}
	for _, one := range r.reads {
		if text := fmt.Sprintf("%+v %+v", one.question, one.question.Rest); strings.Contains(text, "hush") {
			t.Errorf("the record shows what was asked: %s", text)
		}
	}
	dump, err := r.Dump()
	if err != nil {
		t.Fatal(err)
	}
	if text, err := json.Marshal(dump.Reads); err != nil || strings.Contains(string(text), "hush-token-3") || strings.Contains(string(text), "hush-token-4") {
		t.Errorf("the record shows a token (%v): %s", err, text)
	}
}

// A replay runs no command: each question has the answer that it had.
func TestQuestionsToContainersHaveTheirAnswersAgain(t *testing.T) {
	body := `def ask(*argv, **rest):
    e = k8s.exec("db-0", list(argv), **rest)
    return [e.ok, e.code, e.error, e.bytes[:2] == b"\xff1", e.stdout[3:4], e.stderr]
s = k8s.secret("x", "k")
values.set("x", [ask("a", "b"), ask("a", "c"), ask("a", "b"), ask("a", stdin = "hush-input"), ask("gone")])
values.set("y", [k8s.logs("db-0", tail = 5), k8s.logs("db-0"), k8s.logs("db-0", previous = True, default = "none"), k8s.exec("missing", ["a"]).error])`
	m, s := newModule(t, body), newStore(t, StoreOptions{})
	pods := &containers{}
	put(t, s, m.run(t, nil, func(r *hook.Request) { r.Reader, r.Answerer = pods, pods }))
	r := opened(t, s, 1)
	if again := replayed(t, r, ReplayOptions{}); !again.Same || again.Error != "" || pods.asked != 4 {
		t.Errorf("%d commands: came to %+v, was %+v", pods.asked, again, r.Outcome)
	}
	for _, one := range r.reads {
		if text := fmt.Sprintf("%+v %+v", one.question, one.question.Rest); strings.Contains(text, "hush-input") {
			t.Errorf("the record holds an input: %s", text)
		}
	}
	dump, err := r.Dump()
	if err != nil {
		t.Fatal(err)
	}
	data, err := json.Marshal(dump)
	if err != nil {
		t.Fatal(err)
	}
	text := string(data)
	for _, want := range []string{`k8s.exec of \"a\" in Pod ns/db-0, container db`, `"stdout":"\ufffd1 ***"`, `"stderr":"err"`, `k8s.logs of Pod ns/db-0, container db`, `"answer":"5 lines"`, "the connection ended"} {
		if !strings.Contains(text, want) {
			t.Errorf("no %s in %s", want, text)
		}
	}
	if strings.Contains(text, secretText) {
		t.Errorf("a secret is shown: %s", text)
	}
	other := newModule(t, strings.ReplaceAll(body, `ask("gone")`, `ask("new")`))
	again := replayed(t, r, ReplayOptions{Generation: other.g})
	if want := `the record has no answer to k8s.exec of "new" in Pod ns/db-0, container db: the recorded run did not ask`; !strings.Contains(again.Error, want) {
		t.Errorf("error is %q, want %q", again.Error, want)
	}
}
