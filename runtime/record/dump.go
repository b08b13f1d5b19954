package record

import (
	"go.starlark.net/starlark"

	"github.com/starling-operator/starling/runtime/codec"
)

// Dump is a record as people read it, without its secrets: what `starling get runs RUN -o
// json` prints.
type Dump struct {
	Header
	Inputs DumpInputs `json:"inputs"`
	// Reads are the questions to the world and their answers, in order.
	Reads []DumpRead `json:"reads,omitempty"`
	// Outcome are the lines of [Mask.Lines], with details.
	Outcome []string `json:"outcome"`
}

// DumpInputs are what the run was given. Missing parts are left out.
type DumpInputs struct {
	Now       string           `json:"now"` // with its zone
	Namespace string           `json:"namespace"`
	Events    []any            `json:"events,omitempty"`
	Snapshots map[string][]any `json:"snapshots,omitempty"`
	Synced    map[string]bool  `json:"synced,omitempty"`
	Unsynced  []string         `json:"unsynced,omitempty"` // kinds of which it did not know all children
	Object    any              `json:"object,omitempty"`
	Cleanup   bool             `json:"cleanup,omitempty"`
	Values    any              `json:"values,omitempty"`
	Config    any              `json:"config,omitempty"`
	State     any              `json:"state,omitempty"`
	Request   any              `json:"request,omitempty"`
}

// DumpRead is one question to the world.
type DumpRead struct {
	Question string `json:"question"`
	Answer   any    `json:"answer,omitempty"`
	Error    string `json:"error,omitempty"`
}

// Dump shows the record.
func (r *Record) Dump() (*Dump, error) {
	m := NewMask(r)
	out := &Dump{Header: r.Header, Outcome: m.Lines(r.Outcome, true), Inputs: DumpInputs{
		Now: r.in.Now.time().String(), Namespace: r.in.Namespace, Snapshots: map[string][]any{}, Synced: r.in.Synced,
		Object: m.Plain(codec.PlainOf(r.request.Object)), Cleanup: r.in.Cleanup,
		Values: some(m, r.values[0].m), Config: some(m, r.request.Config), State: some(m, r.request.State),
	}}
	out.Error = m.Text(out.Error)
	for _, e := range r.request.Events {
		shown := map[string]any{"type": e.Type, "binding": e.Binding}
		if e.Name != "" {
			shown["namespace"], shown["name"] = e.Namespace, e.Name
			shown["result"] = m.Plain(codec.PlainOf(e.Result))
		}
		out.Inputs.Events = append(out.Inputs.Events, shown)
	}
	for _, k := range r.in.Unsynced {
		out.Inputs.Unsynced = append(out.Inputs.Unsynced, k.APIVersion+" "+k.Kind)
	}
	for binding, list := range r.request.Snapshots {
		out.Inputs.Snapshots[binding] = m.rows(list)
	}
	if r.in.Request != nil {
		request, err := codec.Plain(r.in.Request)
		if err != nil {
			return nil, err
		}
		out.Inputs.Request = m.Plain(request)
	}
	for _, a := range r.reads {
		if a.Verb == "kind" {
			continue // of no interest to people
		}
		one := DumpRead{Question: m.Text(a.String())}
		if a.err != nil {
			one.Error = m.Text(a.err.Error())
		}
		if rows, are := a.answer.([]starlark.Value); are {
			one.Answer = m.rows(rows)
		} else if a.answer != nil {
			one.Answer = m.Plain(shownAnswer(a.Verb, a.answer))
		}
		out.Reads = append(out.Reads, one)
	}
	return out, nil
}

// rows are values without their secrets.
func (m *Mask) rows(list []starlark.Value) []any {
	out := make([]any, len(list))
	for i, v := range list {
		out[i] = m.Plain(codec.PlainOf(v))
	}
	return out
}

// some is nil for an empty map.
func some(m *Mask, data map[string]any) any {
	if len(data) == 0 {
		return nil
	}
	return m.Plain(data)
}
