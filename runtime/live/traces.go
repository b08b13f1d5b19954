package live

import (
	"time"

	"github.com/starling-operator/starling/builtins"
	"github.com/starling-operator/starling/runtime/effect"
	"github.com/starling-operator/starling/runtime/engine"
	"github.com/starling-operator/starling/runtime/hook"
	"github.com/starling-operator/starling/runtime/record"
	"github.com/starling-operator/starling/runtime/tracing"
)

// remembered is how many runs, and how many subjects, spans can be put below.
const remembered = 10_000

// traces makes spans of what the driver carries out. The actions say what led to what: by the number
// of a run, and by the cause of events and of releases, which names the subject of the last run.
// A nil one makes none.
type traces struct {
	tracer  *tracing.Tracer
	process string
	runs    *tracing.Recent[uint64]
	last    *tracing.Recent[string] // by subject, see [effect.Cause]
}

func newTraces(tracer *tracing.Tracer, process string) *traces {
	if tracer == nil {
		return nil
	}
	return &traces{tracer: tracer, process: process, runs: tracing.NewRecent[uint64](remembered), last: tracing.NewRecent[string](remembered)}
}

func named(key string, value any) tracing.Attribute {
	return tracing.Attribute{Key: "starling." + key, Value: value}
}

// ran makes the span of a run, below what has brought it about: the run of which an event was an
// answer to a write, the try before it, or the change of an object that came first.
func (t *traces) ran(a engine.RunHook, came, began time.Time, done engine.RunDone, result hook.Result) {
	if t == nil {
		return
	}
	subject := a.Hook.ID
	if a.Key != "" {
		subject += " of " + a.Key
	}
	of := []tracing.Attribute{named("module", a.Module.Name), named("hook", a.Hook.ID), named("key", a.Key)}
	above := t.after(causeOf(a.Events))
	if a.Attempt > 1 && above.IsZero() {
		above = t.last.Get(subject)
	}
	if above.IsZero() && !came.IsZero() && len(a.Events) > 0 {
		event := a.Events[0]
		span := t.tracer.Start(above, tracing.Consumer, "event "+event.Type, came, nil, append(of, named("binding", event.Binding), named("events", len(a.Events)))...)
		span.End(began, false)
		above = span.Self()
	}
	span := t.tracer.Start(above, tracing.Internal, "run "+a.Hook.ID, began, nil, append(of,
		named("run", record.ID(t.process, a.Run)), named("attempt", a.Attempt), named("steps", int(result.Usage.Steps)), named("limit", limitOf(result.Err)))...)
	span.End(time.Now(), done.Err != nil)
	t.runs.Put(a.Run, span.Self())
	t.last.Put(subject, span.Self())
}

// commit makes the span of the writes of a run.
func (t *traces) commit(a engine.Commit, write func() error) error {
	began := time.Now()
	err := write()
	if t == nil {
		return err
	}
	t.tracer.Start(t.runs.Get(a.Run), tracing.Client, "commit "+a.Hook.ID, began, nil,
		named("module", a.Module), named("hook", a.Hook.ID), named("run", record.ID(t.process, a.Run)), named("writes", len(a.Writes))).End(time.Now(), err != nil)
	return err
}

// save makes the span of what is kept of a module: below the first of the runs that end with it.
func (t *traces) save(a engine.Save, write func() error) error {
	began := time.Now()
	err := write()
	if t == nil {
		return err
	}
	var above tracing.Parent
	var others []tracing.Parent
	for i, run := range a.Runs {
		if i == 0 {
			above = t.runs.Get(run)
		} else {
			others = append(others, t.runs.Get(run))
		}
	}
	t.tracer.Start(above, tracing.Client, "save "+a.Module, began, others, named("module", a.Module), named("runs", len(a.Runs))).End(time.Now(), err != nil)
	return err
}

// helm makes the span of what Helm did with a release, below the run that has led to it.
func (t *traces) helm(what string, ref engine.ReleaseRef, cause *effect.Cause, began time.Time, err error, more ...tracing.Attribute) {
	if t == nil {
		return
	}
	t.tracer.Start(t.after(cause), tracing.Client, what+" "+ref.Name, began, nil,
		append(more, named("module", ref.Module), named("release", ref.Namespace+"/"+ref.Name))...).End(time.Now(), err != nil)
}

// after is the last run of a row that has led to something.
func (t *traces) after(cause *effect.Cause) tracing.Parent {
	if cause == nil {
		return tracing.Parent{}
	}
	return t.last.Get(cause.Run)
}

// causeOf is the longest row of runs that has led to one of the events.
func causeOf(events []builtins.Event) (most *effect.Cause) {
	for _, ev := range events {
		if ev.Cause != nil && most.Compare(ev.Cause) < 0 {
			most = ev.Cause
		}
	}
	return most
}
