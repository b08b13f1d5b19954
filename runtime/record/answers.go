package record

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"

	"github.com/starling-operator/starling/builtins"
	"github.com/starling-operator/starling/runtime/effect"
	"github.com/starling-operator/starling/runtime/object"
)

// Questions to containers, in a run and in its replay.

// Exec implements [builtins.Answerer].
func (p *tap) Exec(ctx context.Context, e effect.Exec) (builtins.Executed, error) {
	got, err := p.request.Answerer.Exec(ctx, e)
	(*Trace)(p).note(execQuestion(e), got, err, 1+(len(got.Stdout)+len(got.Stderr))>>10)
	return got, err
}

// Logs implements [builtins.Answerer].
func (p *tap) Logs(ctx context.Context, q effect.LogQuery) ([]byte, error) {
	text, err := p.request.Answerer.Logs(ctx, q)
	(*Trace)(p).note(logsQuestion(q), text, err, 1+len(text)>>10)
	return text, err
}

// Exec implements [builtins.Answerer]. Nothing is run.
func (w *world) Exec(_ context.Context, e effect.Exec) (x builtins.Executed, err error) {
	return x, w.ask(execQuestion(e), &x)
}

// Logs implements [builtins.Answerer].
func (w *world) Logs(_ context.Context, q effect.LogQuery) (text []byte, err error) {
	return text, w.ask(logsQuestion(q), &text)
}

// Ask implements [builtins.Answerer].
func (p *tap) Ask(ctx context.Context, q effect.Ask) (map[string]any, error) {
	status, err := p.request.Answerer.Ask(ctx, q)
	(*Trace)(p).note(askQuestion(q), status, err, 1+object.PlainSize(status)>>10)
	return status, err
}

// Ask implements [builtins.Answerer].
func (w *world) Ask(_ context.Context, q effect.Ask) (status map[string]any, err error) {
	return status, w.ask(askQuestion(q), &status)
}

// askQuestion holds of a question no more than its digest: it may hold a token.
func askQuestion(q effect.Ask) question {
	text, err := json.Marshal(q.Object)
	if err != nil {
		panic(fmt.Sprintf("a question is JSON: %v", err)) // of plain data
	}
	verb := "ask"
	if q.Subresource != "" {
		verb = q.Subresource
	}
	return question{Verb: verb, About: q.Ref.APIVersion + " " + q.String(), Rest: digestOf(text)}
}

// execQuestion holds of an input no more than its digest.
func execQuestion(e effect.Exec) question {
	argv := make([]any, len(e.Argv))
	for i, arg := range e.Argv {
		argv[i] = arg
	}
	rest := map[string]any{"argv": argv, "maxBytes": int64(e.MaxBytes)}
	if e.Stdin != nil {
		rest["stdin"] = digestOf(e.Stdin)
	}
	return question{Verb: "exec", About: fmt.Sprintf("%q in %s, container %s", e.Argv[0], e.Pod, e.Container), Rest: rest}
}

func logsQuestion(q effect.LogQuery) question {
	return question{Verb: "logs", About: fmt.Sprintf("%s, container %s", q.Pod, q.Container), Rest: map[string]any{
		"tail": int64(q.Tail), "since": q.Since.String(), "previous": q.Previous, "maxBytes": int64(q.MaxBytes),
	}}
}

// shownAnswer is an answer with text where it holds bytes.
func shownAnswer(verb string, answer any) any {
	if log, is := answer.([]byte); is && verb == "logs" {
		return string(log)
	}
	m, is := answer.(map[string]any)
	if !is {
		return answer
	}
	m = maps.Clone(m)
	for _, key := range map[string][]string{"http": {"body"}, "exec": {"stdout", "stderr"}}[verb] {
		data, _ := m[key].([]byte)
		m[key] = string(data)
	}
	return m
}
