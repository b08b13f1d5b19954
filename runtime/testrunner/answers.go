package testrunner

import (
	"context"
	"errors"

	"github.com/starling-operator/starling/builtins"
	"github.com/starling-operator/starling/runtime/effect"
)

// pods are the functions of a test that answer for containers and for the API server: [builtins.Answerer].
type pods struct {
	exec func(effect.Exec) (builtins.Executed, error)
	logs func(effect.LogQuery) ([]byte, error)
	ask  func(effect.Ask) (map[string]any, error)
}

// AnswerExec has a function answer k8s.exec of hooks.
func (w *world) AnswerExec(answer func(effect.Exec) (builtins.Executed, error)) { w.pods.exec = answer }

// AnswerLogs has a function answer k8s.logs of hooks.
func (w *world) AnswerLogs(answer func(effect.LogQuery) ([]byte, error)) { w.pods.logs = answer }

// AnswerAsk has a function answer k8s.ask and k8s.token of hooks.
func (w *world) AnswerAsk(answer func(effect.Ask) (map[string]any, error)) { w.pods.ask = answer }

// Ask implements [builtins.Answerer].
func (p *pods) Ask(_ context.Context, q effect.Ask) (map[string]any, error) {
	if p.ask == nil {
		return nil, errors.New("nobody answers in a test; say what the API server answers: t.ask(fn)")
	}
	return p.ask(q)
}

// Exec implements [builtins.Answerer].
func (p *pods) Exec(_ context.Context, e effect.Exec) (builtins.Executed, error) {
	if p.exec == nil {
		return builtins.Executed{}, errors.New("no container answers in a test; say what it answers: t.exec(fn)")
	}
	return p.exec(e)
}

// Logs implements [builtins.Answerer].
func (p *pods) Logs(_ context.Context, q effect.LogQuery) ([]byte, error) {
	if p.logs == nil {
		return nil, errors.New("no container answers in a test; say what it answers: t.logs(fn)")
	}
	return p.logs(q)
}
