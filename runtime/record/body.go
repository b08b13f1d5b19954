package record

import (
	"errors"
	"time"

	"go.starlark.net/starlark"

	"github.com/starling-operator/starling/builtins"
	"github.com/starling-operator/starling/runtime/codec"
	"github.com/starling-operator/starling/runtime/effect"
	"github.com/starling-operator/starling/runtime/hook"
	"github.com/starling-operator/starling/runtime/reconcile"
)

// The sealed part of a run. Fields may be added to it within one [Format] when a record
// without them still means what it meant.

// given is what a run was given, and what it was answered: what its record holds, in the form that the run has it.
type given struct {
	// in is all that is plain data; what its parts hold is in request.
	in      inputs
	request hook.Request
	known   []string         // secrets of the values and of State
	hidden  []map[string]any // Secrets that a controller wants
	reads   []reading
}

// body is the sealed part of a run's file.
type body struct {
	// Error is why it failed, or its commit, without its secrets.
	Error  string `cbor:"error,omitempty"`
	Source Name   `cbor:"source"` // map[string][]byte: files by path
	Inputs inputs `cbor:"inputs"`
	Reads  []read `cbor:"reads,omitempty"`
	// Outcome is an [Outcome], as the codec writes it: that is what a replay is
	// compared with, byte for byte.
	Outcome []byte `cbor:"outcome"`
}

// inputs are what a run was given.
type inputs struct {
	Namespace string            `cbor:"namespace"`
	Instance  effect.Instance   `cbor:"instance,omitzero"`
	Attempt   int               `cbor:"attempt"`
	Failed    string            `cbor:"failed,omitempty"`
	Past      hook.Past         `cbor:"past,omitzero"`
	Observed  part              `cbor:"observed,omitzero"` // *builtins.Observed
	Now       moment            `cbor:"now"`
	Events    part              `cbor:"events"`    // []event
	Snapshots map[string]Name   `cbor:"snapshots"` // lists of parts, each []value
	Synced    map[string]bool   `cbor:"synced,omitempty"`
	Unsynced  []reconcile.Kind  `cbor:"unsynced,omitempty"`
	Unserved  []string          `cbor:"unserved,omitempty"`
	Lacking   map[string]string `cbor:"lacking,omitempty"`
	Secrets   []string          `cbor:"secrets,omitempty"` // bindings that watch Secrets
	Key       string            `cbor:"key,omitempty"`
	Object    part              `cbor:"object"` // *value
	Cleanup   bool              `cbor:"cleanup,omitempty"`
	Gone      bool              `cbor:"gone,omitempty"`
	Config    part              `cbor:"config"`          // map[string]any
	State     part              `cbor:"state"`           // map[string]any
	Known     part              `cbor:"known,omitzero"`  // []string: secrets of the values and of State
	Hidden    part              `cbor:"hidden,omitzero"` // []map[string]any: Secrets that a controller wants
	Switches  []string          `cbor:"switches,omitempty"`
	// Values are what the run saw before it changed any, Composed what it saw
	// after so many changes of Ops.
	Values   composed         `cbor:"values"`
	Composed []composed       `cbor:"composed,omitempty"`
	Ops      []effect.ValueOp `cbor:"ops,omitempty"`
	Random   []byte           `cbor:"random,omitempty"`
	Request  *codec.Request   `cbor:"request,omitempty"`
}

// composed are values that a run saw.
type composed struct {
	After int    `cbor:"after,omitempty"`
	View  part   `cbor:"view"` // map[string]any
	Err   string `cbor:"err,omitempty"`
}

// read is an answer of the world.
type read struct {
	question
	Answer part   `cbor:"answer"` // of rows []value
	Err    string `cbor:"err,omitempty"`
	// List is the list of parts with all rows of a watch, each []value: other runs have most of them, too.
	List *Name `cbor:"list,omitempty"`
	// NoAnswer says that nobody answered, see [builtins.Unanswered].
	NoAnswer bool `cbor:"noAnswer,omitempty"`
}

// err is the error of the answer, nil for none.
func (r *read) err() error {
	switch {
	case r.Err == "":
		return nil
	case r.NoAnswer:
		return &builtins.NoAnswerError{Reason: r.Err}
	}
	return errors.New(r.Err)
}

// event is a [builtins.Event], with values in the form V.
type event[V any] struct {
	Type      string `cbor:"type"`
	Binding   string `cbor:"binding,omitempty"`
	Namespace string `cbor:"namespace,omitempty"`
	Name      string `cbor:"name,omitempty"`
	Result    V      `cbor:"result,omitempty"`
	Object    V      `cbor:"object,omitempty"`
	Old       V      `cbor:"old,omitempty"`
}

func eventOf[V any](e builtins.Event, form func(starlark.Value) V) event[V] {
	return event[V]{e.Type, e.Binding, e.Namespace, e.Name, form(e.Result), form(e.Object), form(e.Old)}
}

// event is the reverse of eventOf.
func (e event[V]) event(form func(V) starlark.Value) builtins.Event {
	return builtins.Event{
		Type: e.Type, Binding: e.Binding, Namespace: e.Namespace, Name: e.Name,
		Result: form(e.Result), Object: form(e.Object), Old: form(e.Old),
	}
}

// part is a part of a record: in place when it is small, else its own file.
type part struct {
	Data []byte `cbor:"d,omitempty"`
	File *Name  `cbor:"f,omitempty"`
}

// Line is one line that a run has logged.
type Line struct {
	Level  builtins.Level   `cbor:"level"`
	Text   string           `cbor:"text"`
	Fields []builtins.Field `cbor:"fields,omitempty"`
}

// Outcome is what came of a run.
type Outcome struct {
	Effects  effect.Effects    `cbor:"effects"`
	Response builtins.Response `cbor:"response"`
	Logs     []Line            `cbor:"logs,omitempty"`
	// Actions are what a controller has decided, Waits says for what the rest waits.
	Actions []reconcile.Action `cbor:"actions,omitempty"`
	Waits   string             `cbor:"waits,omitempty"`
	// Error is why it failed, or "".
	Error string `cbor:"error,omitempty"`
}

func outcomeOf(r hook.Result, logs []Line) Outcome {
	out := Outcome{Effects: r.Effects, Response: r.Response, Logs: logs, Actions: r.Actions, Waits: r.Waits}
	if r.Err != nil {
		out.Error = r.Err.Error()
	}
	return out
}

// frozen turns a list of values into what a run is given.
func frozen(list []*codec.Value) []starlark.Value {
	out := make([]starlark.Value, len(list))
	for i, v := range list {
		out[i] = v.Starlark()
	}
	return out
}

// moment is a time with its zone, as a hook may show it.
type moment struct {
	At     int64  `cbor:"at"` // nanoseconds since 1970
	Zone   string `cbor:"zone,omitempty"`
	Offset int    `cbor:"offset,omitempty"` // seconds east of UTC
}

func momentOf(t time.Time) moment {
	zone, offset := t.Zone()
	return moment{t.UnixNano(), zone, offset}
}

func (m moment) time() time.Time {
	zone := time.UTC
	if m.Offset != 0 || m.Zone != "UTC" {
		zone = time.FixedZone(m.Zone, m.Offset)
	}
	return time.Unix(0, m.At).In(zone)
}
