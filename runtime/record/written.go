package record

import (
	"context"
	"crypto/sha256"
	"encoding/base64"
	"encoding/binary"
	"errors"
	"fmt"
	"maps"
	"slices"
	"time"
	"unicode/utf8"

	"go.starlark.net/starlark"

	"github.com/starling-operator/starling/builtins"
	"github.com/starling-operator/starling/runtime/codec"
	"github.com/starling-operator/starling/runtime/generation"
	"github.com/starling-operator/starling/runtime/object"
	"github.com/starling-operator/starling/runtime/script"
)

// A run that a test holds is plain data without secrets: what the run was given, and the answers that it
// got. Where something was secret, [Hidden] stands.

// written is that data.
type written struct {
	Hook      string           `cbor:"hook"`
	Module    string           `cbor:"module"`
	Now       string           `cbor:"now"`
	Events    []event[any]     `cbor:"events,omitempty"`
	Snapshots map[string][]any `cbor:"snapshots,omitempty"` // of rows
	Object    any              `cbor:"object,omitempty"`    // a row
	Values    any              `cbor:"values,omitempty"`
	// Refused is why there were no values.
	Refused string         `cbor:"refused,omitempty"`
	Later   []writtenView  `cbor:"later,omitempty"` // values after changes of the run
	Config  map[string]any `cbor:"config,omitempty"`
	State   map[string]any `cbor:"state,omitempty"`
	Answers []writtenRead  `cbor:"answers,omitempty"`
	// Random says that the run took random bytes. They may be keys, so a test has others.
	Random bool `cbor:"random,omitempty"`
	// Given is the rest of what the run was given.
	Given map[string]any `cbor:"given,omitempty"`
}

type writtenView struct {
	After   int            `cbor:"after"`
	Values  map[string]any `cbor:"values,omitempty"`
	Refused string         `cbor:"refused,omitempty"`
}

type writtenRead struct {
	question
	Answer   any    `cbor:"answer,omitempty"`
	Rows     []any  `cbor:"rows,omitempty"`
	Error    string `cbor:"error,omitempty"`
	NoAnswer bool   `cbor:"noAnswer,omitempty"`
}

// elsewhere are the fields of [inputs] that have a place of their kind in a [written].
var elsewhere = []string{"now", "events", "snapshots", "object", "config", "state", "known", "hidden", "values", "composed", "random"}

// Written is the run as a test holds it, and the lines of what it asked for.
func (r *Record) Written() (run map[string]any, lines []string, err error) {
	q := &r.request
	out := written{Hook: r.Hook, Module: r.Module, Now: q.Now.Format(time.RFC3339Nano), Snapshots: map[string][]any{},
		Object: rowOf(q.Object), Config: q.Config, State: q.State, Random: len(r.in.Random) > 0}
	for _, e := range q.Events {
		out.Events = append(out.Events, eventOf(e, rowOf))
	}
	for binding, list := range q.Snapshots {
		out.Snapshots[binding] = rowsOf(list)
	}
	for _, after := range slices.Sorted(maps.Keys(r.values)) {
		switch v := r.values[after]; {
		case after > 0:
			out.Later = append(out.Later, writtenView{after, v.m, v.err})
		case v.m != nil:
			out.Values = v.m
		default:
			out.Refused = v.err
		}
	}
	mask := NewMask(r)
	for _, a := range r.reads {
		one := writtenRead{question: a.question}
		if a.err != nil {
			one.Error, one.NoAnswer = a.err.Error(), errors.As(a.err, new(*builtins.NoAnswerError))
		}
		if rows, are := a.answer.([]starlark.Value); are {
			one.Rows = rowsOf(rows)
		} else {
			one.Answer = a.answer
		}
		out.Answers = append(out.Answers, one)
	}
	given, err := codec.Plain(r.in)
	if err != nil {
		return nil, nil, err
	}
	out.Given = given.(map[string]any)
	for _, name := range elsewhere {
		delete(out.Given, name)
	}
	plain, err := codec.Plain(out)
	if err != nil {
		return nil, nil, err
	}
	run = mask.Plain(object.Change(plain, asText)).(map[string]any)
	decodable(run)
	return run, mask.effects(r.Outcome), nil
}

// Slim is a run of [Record.Written] without managedFields, which hooks look at seldom, and which are long.
func Slim(run map[string]any) map[string]any {
	out := object.CopyPlain(run).(map[string]any)
	for e := range object.All(out) {
		if m, is := e.(map[string]any); is {
			delete(m, "managedFields")
		}
	}
	return out
}

// effects are the lines of what a run asks for, without its log.
func (m *Mask) effects(o Outcome) []string {
	o.Logs = nil
	return m.Lines(o, true)
}

// Rerun runs the hook of a generation with what a run of [Record.Written] was given, and returns the lines of
// what it asks for. A nil generation is that of the record r.
func Rerun(ctx context.Context, run map[string]any, g *generation.Generation, governor *script.Governor) ([]string, error) {
	r, err := readWritten(run)
	if err != nil {
		return nil, err
	}
	again, err := Replay(ctx, r, ReplayOptions{Generation: g, Governor: governor})
	if err != nil {
		return nil, err
	}
	return NewMask(r, again.Outcome).effects(again.Outcome), nil
}

func readWritten(run map[string]any) (*Record, error) {
	var w written
	if err := reread(object.Change(object.CopyPlain(run), asBytes), &w); err != nil || w.Hook == "" {
		return nil, errors.New("this is no run as starling new test --from-run writes it")
	}
	now, err := time.Parse(time.RFC3339Nano, w.Now)
	if err != nil {
		return nil, fmt.Errorf("now: %q is no time, as in 2026-01-01T00:00:00Z", w.Now)
	}
	r := &Record{Header: Header{Hook: w.Hook, Module: w.Module}, values: map[int]view{}}
	if err := reread(w.Given, &r.in); err != nil {
		return nil, fmt.Errorf("given: %w", err)
	}
	if r.in.Now = momentOf(now); w.Random {
		r.in.Random = someBytes()
	}
	q := r.in.request()
	q.Config, q.State, q.Object = w.Config, w.State, fromRow(w.Object)
	for _, e := range w.Events {
		q.Events = append(q.Events, e.event(fromRow))
	}
	for binding, rows := range w.Snapshots {
		q.Snapshots[binding] = fromRows(rows)
	}
	r.request = q
	first, _ := w.Values.(map[string]any)
	r.values[0] = view{first, w.Refused}
	for _, v := range w.Later {
		r.values[v.After] = view{v.Values, v.Refused}
	}
	for _, a := range w.Answers {
		one := reading{question: a.question, answer: a.Answer, err: (&read{Err: a.Error, NoAnswer: a.NoAnswer}).err()}
		if a.Verb == "rows" {
			one.answer = fromRows(a.Rows)
		}
		r.reads = append(r.reads, one)
	}
	return r, nil
}

// reread makes plain data something else that is written so.
func reread(plain, into any) error {
	data, err := codec.Write(plain)
	if err != nil {
		return err
	}
	return codec.Read(data, into)
}

// someBytes stand for the random bytes of a run: the same each time.
func someBytes() []byte {
	var out []byte
	for i := range uint64(4096) {
		sum := sha256.Sum256(binary.BigEndian.AppendUint64([]byte("a test"), i))
		out = append(out, sum[:]...)
	}
	return out
}

// rowOf says whether a value is an object, or what a filter has made of one. As it was read from a record, it is one.
func rowOf(v starlark.Value) any {
	switch v.(type) {
	case nil:
		return nil
	case *object.Object:
		return map[string]any{"object": codec.PlainOf(v)}
	}
	return map[string]any{"result": codec.PlainOf(v)}
}

func rowsOf(list []starlark.Value) []any {
	out := make([]any, len(list))
	for i, v := range list {
		out[i] = rowOf(v)
	}
	return out
}

// fromRow is the reverse of rowOf.
func fromRow(row any) starlark.Value {
	m, _ := row.(map[string]any)
	if obj, is := m["object"]; is {
		return (&codec.Value{Lazy: true, Plain: obj}).Starlark()
	}
	if result, is := m["result"]; is {
		return (&codec.Value{Plain: result}).Starlark()
	}
	return nil
}

func fromRows(rows []any) []starlark.Value {
	out := make([]starlark.Value, len(rows))
	for i, row := range rows {
		out[i] = fromRow(row)
	}
	return out
}

// How bytes stand among texts.
const (
	bytesAsText   = "$text"
	bytesAsBase64 = "$base64"
)

// asText puts text in the place of bytes.
func asText(v any) any {
	data, is := v.([]byte)
	switch {
	case !is:
		return v
	case utf8.Valid(data):
		return map[string]any{bytesAsText: string(data)}
	}
	return map[string]any{bytesAsBase64: base64.StdEncoding.EncodeToString(data)}
}

// asBytes is the reverse of asText.
func asBytes(v any) any {
	m, _ := v.(map[string]any)
	if text, is := m[bytesAsText].(string); is && len(m) == 1 {
		return []byte(text)
	}
	if text, is := m[bytesAsBase64].(string); is && len(m) == 1 {
		if data, err := base64.StdEncoding.DecodeString(text); err == nil {
			return data
		}
	}
	return v
}

// decodable has the data of hidden Secrets be base64, as hooks decode it.
func decodable(run any) {
	for v := range object.All(run) {
		m, _ := v.(map[string]any)
		data, _ := m["data"].(map[string]any)
		for key, text := range data {
			if m["kind"] == "Secret" && text == Hidden {
				data[key] = base64.StdEncoding.EncodeToString([]byte(Hidden))
			}
		}
	}
}
