package record

import (
	"cmp"
	"encoding/base64"
	"slices"
	"strconv"
	"strings"

	"go.starlark.net/starlark"

	"github.com/starling-operator/starling/builtins"
	"github.com/starling-operator/starling/runtime/effect"
	"github.com/starling-operator/starling/runtime/object"
)

// Hidden stands for what people are not shown.
const Hidden = "***"

// Mask hides the secrets of one run from whoever looks at it: what the run read out of
// Secrets and what it puts there, values of the type secret, headers, private keys, and
// all that repeats any of these.
type Mask struct {
	whole  map[string]bool
	inside []string // longest first
}

// NewMask finds the secrets of a run, and of others that it is compared with.
func NewMask(r *Record, others ...Outcome) *Mask {
	m := &Mask{whole: map[string]bool{}}
	m.inputs(r.in.Secrets, r.snapshots, r.events, r.object, r.in.Request)
	if c, err := newCodec(); err == nil {
		for _, a := range r.reads {
			var data any
			if a.data == nil || c.read(a.data, &data) == nil {
				m.answer(a.question, data)
			}
		}
	}
	for _, o := range append(others, r.Outcome) {
		m.outcome(o)
	}
	return m.sorted()
}

// maskOf finds the secrets of a run that is about to be kept.
func maskOf(t *Trace, in *inputs, o Outcome) *Mask {
	m := &Mask{whole: map[string]bool{}}
	m.inputs(in.Secrets, t.request.Snapshots, t.request.Events, t.request.Object, in.Request)
	for _, r := range t.reads {
		if list, ok := r.answer.([]map[string]any); ok {
			for _, obj := range list {
				m.object(obj)
			}
			continue
		}
		m.answer(r.question, r.answer)
	}
	m.outcome(o)
	return m.sorted()
}

func (m *Mask) sorted() *Mask {
	for text := range m.whole {
		if len(text) >= object.MinSecretInside {
			m.inside = append(m.inside, text)
		}
	}
	slices.SortFunc(m.inside, func(a, b string) int {
		return cmp.Or(len(b)-len(a), strings.Compare(a, b))
	})
	return m
}

// inputs finds the secrets of what the run was given; what these bindings watch is made
// of Secrets.
func (m *Mask) inputs(secrets []string, snapshots map[string][]starlark.Value, events []builtins.Event, about starlark.Value, q *request) {
	for binding, list := range snapshots {
		for _, v := range list {
			m.value(v, slices.Contains(secrets, binding))
		}
	}
	for _, e := range events {
		m.value(e.Result, slices.Contains(secrets, e.Binding))
		m.value(e.Object, slices.Contains(secrets, e.Binding))
	}
	m.value(about, false)
	if q != nil && q.Review != nil {
		m.object(q.Review.Object)
		m.object(q.Review.OldObject.Data)
	}
}

// value takes in what a watch keeps; ofSecret says that it was made of a Secret.
func (m *Mask) value(v starlark.Value, ofSecret bool) {
	switch o, whole := v.(*object.Object); {
	case whole && o.Map()["kind"] == "Secret":
		m.object(o.Map())
	case ofSecret:
		m.leaves(plainOf(v), "")
	}
}

// answer finds the secrets of what the run has read.
func (m *Mask) answer(q question, data any) {
	switch q.Verb {
	case "get", "list":
		m.object(data)
		if list, ok := data.([]any); ok {
			for _, obj := range list {
				m.object(obj)
			}
		}
	case "http":
		rest, _ := q.Rest.(map[string]any)
		m.leaves(rest["headers"], "")
	}
}

func (m *Mask) outcome(o Outcome) {
	for _, op := range o.Effects.Values {
		for _, at := range op.Secrets {
			if text, ok := inside(op.Value, at).(string); ok {
				m.secret(text)
			}
		}
	}
	for i := range o.Effects.Writes {
		m.write(&o.Effects.Writes[i])
	}
	for _, msg := range o.Effects.Messages {
		for _, v := range msg.Headers {
			m.secret(v)
		}
		if msg.Hidden {
			m.secret(msg.URL)
		}
	}
	m.object(o.Response.Object)
	for _, obj := range o.Response.Objects {
		m.object(obj)
	}
}

func (m *Mask) write(w *effect.Write) {
	m.object(w.Object)
	if w.Patch != nil && w.Ref.Kind == "Secret" {
		if body, ok := w.Patch.Body.(map[string]any); ok {
			m.data(body)
		} else {
			m.leaves(w.Patch.Body, "")
		}
	}
	if w.Set != nil {
		for i := range w.Set.Members {
			m.write(&w.Set.Members[i])
		}
	}
}

// object takes in what a Secret holds.
func (m *Mask) object(v any) {
	if obj, ok := v.(map[string]any); ok && obj["kind"] == "Secret" {
		m.data(obj)
	}
}

func (m *Mask) data(obj map[string]any) {
	for _, field := range [...]string{"data", "stringData"} {
		data, _ := obj[field].(map[string]any)
		for _, v := range data {
			if text, ok := v.(string); ok {
				m.secret(text)
			}
		}
	}
}

// open are the keys under which nothing secret stands in what is left of a Secret.
var open = [...]string{"name", "namespace", "kind", "apiVersion", "type", "uid", "resourceVersion", "labels"}

// leaves takes in all texts but those that name things.
func (m *Mask) leaves(v any, key string) {
	if slices.Contains(open[:], key) {
		return
	}
	switch v := v.(type) {
	case string:
		m.secret(v)
	case map[string]any:
		for k, e := range v {
			m.leaves(e, k)
		}
	case []any:
		for _, e := range v {
			m.leaves(e, key)
		}
	}
}

// secret takes in a text, as it is and in base64, either way.
func (m *Mask) secret(text string) {
	if len(text) < object.MinSecret {
		return
	}
	m.whole[text] = true
	m.whole[base64.StdEncoding.EncodeToString([]byte(text))] = true
	if decoded, err := base64.StdEncoding.DecodeString(text); err == nil && len(decoded) >= object.MinSecret {
		m.whole[string(decoded)] = true
	}
}

// Text hides what is secret in a text.
func (m *Mask) Text(text string) string {
	if m.whole[text] || strings.Contains(text, "PRIVATE KEY-----") {
		return Hidden
	}
	for _, secret := range m.inside {
		text = strings.ReplaceAll(text, secret, Hidden)
	}
	return text
}

// Plain returns data with its secrets hidden; v is not changed.
func (m *Mask) Plain(v any) any {
	switch v := v.(type) {
	case string:
		return m.Text(v)
	case map[string]any:
		out := make(map[string]any, len(v))
		for k, e := range v {
			out[m.Text(k)] = m.Plain(e)
		}
		if out["kind"] == "Secret" {
			for _, field := range [...]string{"data", "stringData"} {
				if data, ok := out[field].(map[string]any); ok {
					for k := range data {
						data[k] = Hidden
					}
				}
			}
		}
		return out
	case []any:
		out := make([]any, len(v))
		for i, e := range v {
			out[i] = m.Plain(e)
		}
		return out
	}
	return v
}

// inside returns what stands at a path of plain data, nil when nothing does.
func inside(v any, path []string) any {
	for _, key := range path {
		switch holder := v.(type) {
		case map[string]any:
			v = holder[key]
		case []any:
			i, err := strconv.Atoi(key)
			if err != nil || i < 0 || i >= len(holder) {
				return nil
			}
			v = holder[i]
		default:
			return nil
		}
	}
	return v
}
