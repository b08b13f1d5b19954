package record

import (
	"net/url"
	"regexp"
	"slices"
	"strings"

	"go.starlark.net/starlark"

	"github.com/starling-operator/starling/builtins"
	"github.com/starling-operator/starling/runtime/codec"
	"github.com/starling-operator/starling/runtime/hook"
	"github.com/starling-operator/starling/runtime/object"
)

// Hidden stands for what people are not shown.
const Hidden = object.Hidden

// Mask hides the secrets of one run from those who look at it: what the run read out of
// Secrets and what it puts there, values of the type secret, headers, private keys, and
// all that repeats any of these.
type Mask struct{ object.Mask }

// NewMask finds the secrets of a run, and of others that it is compared with.
func NewMask(r *Record, others ...Outcome) *Mask {
	return maskOf(&r.given, append(others, r.Outcome)...)
}

// maskOf finds the secrets of what a run was given and answered, and of outcomes.
func maskOf(g *given, outcomes ...Outcome) *Mask {
	m := &Mask{}
	m.knows(g.known)
	for _, obj := range g.hidden {
		m.Object(obj)
	}
	m.snapshots(g.in.Secrets, g.request.Snapshots)
	for _, e := range g.request.Events {
		for _, v := range [...]starlark.Value{e.Result, e.Object, e.Old} {
			m.value(v, slices.Contains(g.in.Secrets, e.Binding))
		}
	}
	m.value(g.request.Object, false)
	if q := g.in.Request; q != nil && q.Review != nil {
		m.Object(q.Review.Object)
		m.Object(q.Review.OldObject.Data)
	}
	for _, r := range g.reads {
		m.answer(g.in.Secrets, r)
	}
	for _, o := range outcomes {
		m.outcome(o)
	}
	return m
}

// OfSecrets returns the names of the bindings that watch Secrets.
func OfSecrets(bindings []builtins.Binding) (names []string) {
	for _, b := range bindings {
		if b.Watch != nil && b.Watch.Kind == "Secret" {
			names = append(names, b.Name)
		}
	}
	return names
}

// Shown shows snapshots as people read them: without what is known to be secret, and without all
// that the bindings of secrets have made of Secrets.
func Shown(known, secrets []string, snapshots map[string][]starlark.Value) map[string][]any {
	m := &Mask{}
	m.knows(known)
	m.snapshots(secrets, snapshots)
	out := map[string][]any{}
	for binding, list := range snapshots {
		out[binding] = m.rows(list)
	}
	return out
}

func (m *Mask) knows(known []string) {
	for _, text := range known {
		m.Secret(text)
	}
}

// snapshots takes in what watches keep; what the bindings of secrets watch is made of Secrets.
func (m *Mask) snapshots(secrets []string, snapshots map[string][]starlark.Value) {
	for binding, list := range snapshots {
		for _, v := range list {
			m.value(v, slices.Contains(secrets, binding))
		}
	}
}

// value takes in what a watch keeps; ofSecret says that it was made of a Secret.
func (m *Mask) value(v starlark.Value, ofSecret bool) {
	switch o, whole := v.(*object.Object); {
	case whole && o.Map()["kind"] == "Secret":
		m.Object(o.Map())
	case ofSecret:
		m.Leaves(codec.PlainOf(v))
	}
}

// answer finds the secrets of what the run has read. A run that is about to be kept has lists of maps.
func (m *Mask) answer(secrets []string, r reading) {
	switch answer := r.answer.(type) {
	case []starlark.Value: // rows that a controller has found
		for _, v := range answer {
			m.value(v, slices.Contains(secrets, r.About))
		}
	case []map[string]any:
		for _, obj := range answer {
			m.Object(obj)
		}
	case []any:
		for _, obj := range answer {
			m.Object(obj)
		}
	case map[string]any:
		switch r.Verb {
		case "get":
			m.Object(answer)
		case "token":
			m.Leaves(answer["token"])
		}
	}
	if r.Verb == "http" {
		rest, _ := r.Rest.(map[string]any)
		m.Leaves(rest["headers"])
		asked, _ := rest["url"].(string)
		m.query(asked)
	}
}

// inQuery are keys of a query, besides those that sound like secrets, under which APIs take one. Under those of maybe
// there is often a plain word, too.
var (
	inQuery = regexp.MustCompile(`(?i:(^|[-_])(sig|signature|pwd|pass|secret|jwt)$)|[a-z0-9](Sig|Signature|Pwd|Pass|Secret)$`)
	maybe   = regexp.MustCompile(`(?i:(^|[-_])(key|code)$)|[a-z0-9](Key|Code)$`)
)

// longKey is the length from which a value under a key of maybe is hidden in all texts, and not in the URL alone.
const longKey = 16

// query finds the secrets in the query of a URL. It does not read the query as url.Query does, which leaves out what it
// does not understand.
func (m *Mask) query(text string) {
	_, query, _ := strings.Cut(text, "?")
	query, _, _ = strings.Cut(query, "#")
	for _, pair := range strings.Split(query, "&") {
		m.pair(pair)
		if parts := strings.Split(pair, ";"); len(parts) > 1 { // some servers end a pair there, others do not
			for _, part := range parts {
				m.pair(part)
			}
		}
	}
}

func (m *Mask) pair(text string) {
	key, raw, _ := strings.Cut(text, "=")
	key, value := unescaped(key), unescaped(raw)
	known := object.SoundsSecret(key) || inQuery.MatchString(key)
	switch {
	case known || maybe.MatchString(key) && len(value) >= longKey:
		m.Secret(raw)
		m.Secret(value)
	case maybe.MatchString(key) && value != "":
		m.Secret(text)
	}
}

// unescaped is a part of a query as a server reads it, or as it is where it cannot be read.
func unescaped(text string) string {
	if out, err := url.QueryUnescape(text); err == nil {
		return out
	}
	return text
}

func (m *Mask) outcome(o Outcome) {
	hook.Outcome(&m.Mask, o.Effects, o.Response)
	for _, msg := range o.Effects.Messages {
		m.query(msg.URL)
	}
}
