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
	Events    []writtenEvent   `cbor:"events,omitempty"`
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

type writtenEvent struct {
	Type      string `cbor:"type"`
	Binding   string `cbor:"binding,omitempty"`
	Namespace string `cbor:"namespace,omitempty"`
	Name      string `cbor:"name,omitempty"`
	Result    any    `cbor:"result,omitempty"` // rows
	Object    any    `cbor:"object,omitempty"`
	Old       any    `cbor:"old,omitempty"`
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
	c, err := newCodec()
	if err != nil {
		return nil, nil, err
	}
	out := written{Hook: r.Hook, Module: r.Module, Now: r.in.Now.time().Format(time.RFC3339Nano), Snapshots: map[string][]any{},
		Object: rowOf(valueIn(r.object)), Config: r.config, State: r.state, Random: len(r.in.Random) > 0}
	for _, e := range r.events {
		one, err := eventOf(e)
		if err != nil {
			return nil, nil, err
		}
		out.Events = append(out.Events, writtenEvent{one.Type, one.Binding, one.Namespace, one.Name, rowOf(one.Result), rowOf(one.Object), rowOf(one.Old)})
	}
	for binding, list := range r.snapshots {
		out.Snapshots[binding] = make([]any, len(list))
		for i, v := range list {
			out.Snapshots[binding][i] = rowOf(valueIn(v))
		}
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
		for _, v := range a.rows {
			one.Rows = append(one.Rows, rowOf(valueIn(v)))
		}
		if a.data != nil {
			if err := c.read(a.data, &one.Answer); err != nil {
				return nil, nil, err
			}
		}
		if status, is := one.Answer.(map[string]any); is && a.Verb == "token" {
			mask.Leaves(status["token"])
		}
		out.Answers = append(out.Answers, one)
	}
	given, err := c.plain(r.in)
	if err != nil {
		return nil, nil, err
	}
	out.Given = given.(map[string]any)
	for _, name := range elsewhere {
		delete(out.Given, name)
	}
	plain, err := c.plain(out)
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
	c, err := newCodec()
	if err != nil {
		return nil, err
	}
	data, err := c.write(object.Change(object.CopyPlain(run), asBytes))
	if err != nil {
		return nil, err
	}
	var w written
	if err := c.read(data, &w); err != nil || w.Hook == "" {
		return nil, errors.New("this is no run as starling new test --from-run writes it")
	}
	now, err := time.Parse(time.RFC3339Nano, w.Now)
	if err != nil {
		return nil, fmt.Errorf("now: %q is no time, as in 2026-01-01T00:00:00Z", w.Now)
	}
	r := &Record{Header: Header{Hook: w.Hook, Module: w.Module}, config: w.Config, state: w.State, values: map[int]view{}}
	if data, err = c.write(w.Given); err == nil {
		err = c.read(data, &r.in)
	}
	if err != nil {
		return nil, fmt.Errorf("given: %w", err)
	}
	if r.in.Now = momentOf(now); w.Random {
		r.in.Random = someBytes()
	}
	for _, e := range w.Events {
		r.events = append(r.events, event{e.Type, e.Binding, e.Namespace, e.Name, valueOfRow(e.Result), valueOfRow(e.Object), valueOfRow(e.Old)}.event())
	}
	r.snapshots = map[string][]starlark.Value{}
	for binding, rows := range w.Snapshots {
		r.snapshots[binding] = valuesOfRows(rows)
	}
	r.object = valueOfRow(w.Object).starlark()
	first, _ := w.Values.(map[string]any)
	r.values[0] = view{first, w.Refused}
	for _, v := range w.Later {
		r.values[v.After] = view{v.Values, v.Refused}
	}
	for _, a := range w.Answers {
		one := answer{question: a.question, err: (&read{Err: a.Error, NoAnswer: a.NoAnswer}).err(), rows: valuesOfRows(a.Rows)}
		if one.data, err = c.write(a.Answer); err != nil {
			return nil, err
		}
		r.reads = append(r.reads, one)
	}
	return r, nil
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

// A row says whether it is an object, or what a filter has made of one.
func rowOf(v *value) any {
	switch {
	case v == nil:
		return nil
	case v.Lazy:
		return map[string]any{"object": v.Plain}
	}
	return map[string]any{"result": v.Plain}
}

func valueIn(v starlark.Value) *value {
	one, err := valueOf(v)
	if err != nil {
		return nil // as it was read from a record, it is one
	}
	return one
}

func valueOfRow(row any) *value {
	m, _ := row.(map[string]any)
	if obj, is := m["object"]; is {
		return &value{true, obj}
	}
	if result, is := m["result"]; is {
		return &value{false, result}
	}
	return nil
}

func valuesOfRows(rows []any) []starlark.Value {
	var out []*value
	for _, row := range rows {
		out = append(out, valueOfRow(row))
	}
	return frozen(out)
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
