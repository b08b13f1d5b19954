package hook

import (
	"context"
	"errors"
	"slices"
	"sync"

	"go.starlark.net/starlark"

	"github.com/starling-operator/starling/builtins"
	"github.com/starling-operator/starling/runtime/effect"
	"github.com/starling-operator/starling/runtime/object"
	"github.com/starling-operator/starling/runtime/script"
)

// Seen is what one call has seen of Secrets: it is hidden in the log lines of the call and
// in its error, and known as secret in the values that it sets. It is looked through
// when that is needed: most calls log nothing and succeed. Once the call has ended, it does
// not change.
type Seen struct {
	mu   sync.Mutex
	mask object.Mask
	new  []func(*object.Mask)
}

// NewSeen returns one that has seen these texts.
func NewSeen(secrets ...string) *Seen {
	s := &Seen{}
	s.known(func() []string { return secrets })
	return s
}

// saw notes what the mask will know.
func (s *Seen) saw(take func(*object.Mask)) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.new = append(s.new, take)
}

// use calls f with the mask of all that was seen so far.
func (s *Seen) use(f func(*object.Mask)) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, take := range s.new {
		take(&s.mask)
	}
	s.new = nil
	f(&s.mask)
}

// known notes texts that are known to be secret.
func (s *Seen) known(secrets func() []string) {
	if secrets != nil {
		s.saw(func(m *object.Mask) {
			for _, text := range secrets() {
				m.Secret(text)
			}
		})
	}
}

// given notes the Secrets that a request brings. Its watches are noted when the hook
// looks at it, by the function that it returns.
func (s *Seen) given(r *Request) (asked func(binding string)) {
	secret := map[string]bool{}
	for _, b := range r.Hook.Bindings {
		if b.Watch != nil && isSecret(b.Watch.APIVersion, b.Watch.Kind) {
			secret[b.Name] = true
		}
	}
	if r.Request != nil && r.Request.Review != nil {
		review := r.Request.Review
		s.saw(func(m *object.Mask) {
			m.Object(review.Object)
			m.Object(review.OldObject)
		})
	}
	if len(secret) == 0 {
		return nil
	}
	s.saw(func(m *object.Mask) {
		for _, e := range r.Events {
			if secret[e.Binding] {
				take(m, e.Result)
				take(m, e.Object)
				take(m, e.Old)
			}
		}
		if secret[r.Hook.ForEach] {
			take(m, r.Object)
		}
	})
	return func(binding string) {
		if secret[binding] {
			s.saw(func(m *object.Mask) {
				for _, v := range r.Snapshots[binding] {
					take(m, v)
				}
			})
		}
	}
}

func isSecret(apiVersion, kind string) bool { return apiVersion == "v1" && kind == "Secret" }

// take takes in what a watch keeps of a Secret.
func take(m *object.Mask, v starlark.Value) {
	if v == nil {
		return
	}
	if o, whole := v.(*object.Object); whole && o.Map()["kind"] == "Secret" {
		m.Object(o.Map())
	} else if plain, err := object.ToPlain(v); err == nil {
		m.Leaves(plain)
	}
}

// Err hides in an error what was seen. errors.As finds the same in the result,
// with its text hidden as well. A nil Seen has seen nothing.
func (s *Seen) Err(err error) (masked error) {
	if err == nil || s == nil {
		return err
	}
	s.use(func(m *object.Mask) { masked = maskErr(m, err) })
	return masked
}

func maskErr(m *object.Mask, err error) error {
	text := m.Text(err.Error())
	var cause error
	var failed *builtins.FailError
	var in *script.Error
	if errors.As(err, &failed) {
		hidden := *failed
		hidden.Msg = m.Text(failed.Msg)
		cause = &hidden
	}
	if errors.As(err, &in) {
		if cause == nil {
			cause = errors.Unwrap(in)
		}
		cause = in.Masked(m.Text, cause)
		if err == error(in) {
			return cause
		}
	}
	switch {
	case text == err.Error():
		return err
	case cause == nil:
		cause = err
	}
	return &maskedError{text, cause}
}

type maskedError struct {
	text  string
	cause error
}

// Error is the text without secrets.
func (e *maskedError) Error() string { return e.text }

// Unwrap gives the cause.
func (e *maskedError) Unwrap() error { return e.cause }

// maskOutputs hides what was seen in what people are told by a run: labels of metrics, Events, URLs
// in logs, and why a request is refused.
func (s *Seen) maskOutputs(r *Result) {
	e, d := &r.Effects, r.Response.Denied
	event := slices.ContainsFunc(e.Writes, func(w effect.Write) bool { return w.Event != nil })
	if len(e.Metrics)+len(e.Messages)+len(r.Response.Warnings) == 0 && d == nil && !event {
		return
	}
	s.use(func(m *object.Mask) {
		for _, metric := range e.Metrics {
			for label, value := range metric.Labels {
				metric.Labels[label] = m.Text(value)
			}
		}
		for _, w := range e.Writes {
			if w.Event != nil {
				w.Event.Message = m.Text(w.Event.Message)
			}
		}
		for i := range e.Messages {
			msg := &e.Messages[i]
			msg.Hidden = msg.Hidden || m.Text(msg.URL) != msg.URL
		}
		for i, text := range r.Response.Warnings {
			r.Response.Warnings[i] = m.Text(text)
		}
		if d != nil {
			d.Message = m.Text(d.Message)
		}
	})
}

// mark marks what was seen in the values that a run sets, and in what it remembers: there it
// is known as secret from now on, in later generations and after restarts too.
func (s *Seen) mark(e *effect.Effects) {
	if len(e.Values)+len(e.State) == 0 {
		return
	}
	s.use(func(m *object.Mask) {
		for i := range e.Values {
			op := &e.Values[i]
			op.Secrets = append(op.Secrets, m.Marks(op.Value)...)
		}
		if len(e.State) > 0 {
			e.StateSecrets = m.Marks(e.State)
		}
	})
}

// Outcome takes in what a run puts into Secrets, values and headers of the type secret.
func Outcome(m *object.Mask, e effect.Effects, r builtins.Response) {
	for _, op := range e.Values {
		for _, at := range op.Secrets {
			if text, ok := object.Inside(op.Value, at).(string); ok {
				m.Secret(text)
			}
		}
	}
	for i := range e.Writes {
		written(m, &e.Writes[i])
	}
	for _, msg := range e.Messages {
		for _, v := range msg.Headers {
			m.Secret(v)
		}
		if msg.Hidden {
			m.Secret(msg.URL)
		}
	}
	m.Object(r.Object)
	for _, obj := range r.Objects {
		m.Object(obj)
	}
}

func written(m *object.Mask, w *effect.Write) {
	m.Object(w.Object)
	if w.Patch != nil && w.Ref.Kind == "Secret" {
		if body, ok := w.Patch.Body.(map[string]any); ok {
			m.Data(body)
		} else {
			m.Leaves(w.Patch.Body)
		}
	}
	if w.Config != nil {
		for _, at := range w.Config.Secrets {
			if text, ok := object.Inside(w.Config.Value, at).(string); ok {
				m.Secret(text)
			}
		}
	}
	if w.Set != nil {
		for i := range w.Set.Members {
			written(m, &w.Set.Members[i])
		}
	}
	for i := range w.Children {
		written(m, &w.Children[i])
	}
}

// seenReader notes the Secrets that a run reads.
type seenReader struct {
	builtins.Reader
	seen *Seen
}

// Get reads one object.
func (r seenReader) Get(ctx context.Context, ref effect.Ref) (map[string]any, error) {
	obj, err := r.Reader.Get(ctx, ref)
	if obj != nil && isSecret(ref.APIVersion, ref.Kind) {
		r.seen.saw(func(m *object.Mask) { m.Data(obj) })
	}
	return obj, err
}

// List reads the objects of a kind.
func (r seenReader) List(ctx context.Context, apiVersion, kind string, namespaces []string, labels, fields string) ([]map[string]any, error) {
	list, err := r.Reader.List(ctx, apiVersion, kind, namespaces, labels, fields)
	if isSecret(apiVersion, kind) && len(list) > 0 {
		r.seen.saw(func(m *object.Mask) {
			for _, obj := range list {
				m.Data(obj)
			}
		})
	}
	return list, err
}

// seenAnswerer notes the tokens that a run gets.
type seenAnswerer struct {
	builtins.Answerer
	seen *Seen
}

// Ask asks the API server.
func (a seenAnswerer) Ask(ctx context.Context, q effect.Ask) (map[string]any, error) {
	status, err := a.Answerer.Ask(ctx, q)
	if token, _ := status["token"].(string); token != "" {
		a.seen.saw(func(m *object.Mask) { m.Secret(token) })
	}
	return status, err
}

// seenLog hides in log lines what was seen.
type seenLog struct {
	builtins.Logger
	seen *Seen
}

// Log writes one line.
func (l seenLog) Log(level builtins.Level, msg string, fields []builtins.Field) {
	l.seen.use(func(m *object.Mask) {
		msg = m.Text(msg)
		if m.Empty() {
			return
		}
		shown := make([]builtins.Field, len(fields))
		for i, f := range fields {
			shown[i] = builtins.Field{Key: m.Text(f.Key), Value: m.Plain(f.Value)}
		}
		fields = shown
	})
	l.Logger.Log(level, msg, fields)
}
