package record

import (
	"bytes"
	"context"
	"errors"
	"fmt"

	"go.starlark.net/starlark"

	"github.com/starling-operator/starling/builtins"
	"github.com/starling-operator/starling/modules/values"
	"github.com/starling-operator/starling/runtime/codec"
	"github.com/starling-operator/starling/runtime/effect"
	"github.com/starling-operator/starling/runtime/sim/store"
)

// world answers a replay out of its record. Each question gets its answers in the order
// in which they were given, then the last one again. It serves one run.
type world struct {
	r       *Record
	answers map[string][]reading
	random  []byte
}

func newWorld(r *Record) (*world, error) {
	w := &world{r: r, answers: map[string][]reading{}, random: r.in.Random}
	for _, a := range r.reads {
		key, err := codec.Write(a.question)
		if err != nil {
			return nil, err
		}
		w.answers[string(key)] = append(w.answers[string(key)], a)
	}
	return w, nil
}

// notAskedError says that the recorded run has not asked what its replay does.
type notAskedError struct{ question question }

// Error names the question.
func (e *notAskedError) Error() string {
	return fmt.Sprintf("the record has no answer to %s: the recorded run did not ask", e.question)
}

// next is the next answer of the record to a question.
func (w *world) next(q question) (any, error) {
	key, err := codec.Write(q)
	if err != nil {
		return nil, err
	}
	known := w.answers[string(key)]
	if len(known) == 0 {
		return nil, &notAskedError{q}
	}
	if len(known) > 1 {
		w.answers[string(key)] = known[1:]
	}
	return known[0].answer, known[0].err
}

// ask gives an answer of the record.
func (w *world) ask(q question, into any) error {
	answer, err := w.next(q)
	if err != nil || answer == nil {
		return err
	}
	data, err := codec.Write(answer)
	if err != nil {
		return err
	}
	return codec.Read(data, into)
}

// rows are those that the recorded run has found there.
func (w *world) rows(l effect.Lookup) ([]starlark.Value, error) {
	answer, err := w.next(rowsQuestion(l))
	found, _ := answer.([]starlark.Value)
	return found, err
}

// Get implements [builtins.Reader].
func (w *world) Get(_ context.Context, ref effect.Ref) (obj map[string]any, err error) {
	return obj, w.ask(getQuestion(ref), &obj)
}

// List implements [builtins.Reader].
func (w *world) List(_ context.Context, apiVersion, kind string, namespaces []string, labels, fields string) (found []map[string]any, err error) {
	return found, w.ask(listQuestion(apiVersion, kind, namespaces, labels, fields), &found)
}

// Gather implements [builtins.Fetcher].
func (w *world) Gather(_ context.Context, requests []effect.Request, _ int) []builtins.Gathered {
	return builtins.InTurn(requests, func(r effect.Request) (f builtins.Fetched, err error) {
		return f, w.ask(httpQuestion(r), &f)
	})
}

// env is an environment variable as it was.
func (w *world) env(name string) (text string, err error) {
	return text, w.ask(envQuestion(name), &text)
}

// scope says whether a kind has namespaces. Of the kinds that Kubernetes itself has that
// is known without a record: another version of a hook may write others than it did.
func (w *world) scope(apiVersion, kind string) (namespaced bool, err error) {
	err = w.ask(scopeQuestion(apiVersion, kind), &namespaced)
	if !errors.As(err, new(*notAskedError)) {
		return namespaced, err
	}
	for _, k := range store.New(store.Options{Builtins: store.NewBuiltins(), Now: w.r.in.Now.time}).Kinds() {
		if k.Kind == kind && k.APIVersion() == apiVersion {
			return k.Namespaced, nil
		}
	}
	return false, err
}

// Read implements [io.Reader], for random values.
func (w *world) Read(p []byte) (int, error) {
	if len(w.random) == 0 {
		return 0, errors.New("the record has no more of them: the recorded run took fewer")
	}
	n := copy(p, w.random)
	w.random = w.random[n:]
	return n, nil
}

// compose gives the values as the run saw them after these changes. Where it has not
// looked at them then, they are made of the first ones; defaults of the schema for what
// is new are not in them.
func (w *world) compose(own []effect.ValueOp) (map[string]any, error) {
	if w.known(own) {
		if v, ok := w.r.values[len(own)]; ok {
			if v.err != "" {
				return nil, errors.New(v.err)
			}
			return v.m, nil
		}
	}
	first := w.r.values[0]
	if first.err != "" {
		return nil, errors.New(first.err)
	}
	return values.Section{Static: []values.Layer{{Name: "record", Data: first.m}}}.ComposeFor(w.r.Hook, own)
}

// known says that the recorded run had made these changes, too.
func (w *world) known(own []effect.ValueOp) bool {
	if len(own) == 0 || len(own) > len(w.r.in.Ops) {
		return len(own) == 0
	}
	now, err := codec.Write(own)
	then, errThen := codec.Write(w.r.in.Ops[:len(own)])
	return err == nil && errThen == nil && bytes.Equal(now, then)
}
