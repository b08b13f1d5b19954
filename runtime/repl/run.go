package repl

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"go.starlark.net/starlark"

	"github.com/starling-operator/starling/builtins"
	"github.com/starling-operator/starling/runtime/effect"
	"github.com/starling-operator/starling/runtime/message"
	"github.com/starling-operator/starling/runtime/metrics"
	"github.com/starling-operator/starling/runtime/plan"
	"github.com/starling-operator/starling/runtime/script"
	"github.com/starling-operator/starling/runtime/sim"
)

// run runs a piece as the session's hook, and then what it causes.
func (s *Session) run(ctx context.Context, piece *script.Piece) error {
	s.piece = piece
	err := s.world.Call(ctx, s.hook, "")
	s.piece, s.refused = nil, err != nil
	s.tell()
	s.refused = false
	return s.scope.Explain(err)
}

// runPiece is the session's hook. The engine may run it when nobody has typed anything,
// after requeue() for one.
func (s *Session) runPiece(t *starlark.Thread, _ *starlark.Builtin, args starlark.Tuple, _ []starlark.Tuple) (starlark.Value, error) {
	piece := s.piece
	if piece == nil {
		return starlark.None, nil
	}
	s.piece = nil
	s.inside = true
	defer func() { s.inside = false }()
	if s.past == nil {
		s.offer("ctx", args[0])
	}
	results, err := s.scope.Run(t, piece)
	for _, v := range results {
		if v != starlark.None {
			s.out.result(s.hide(show(v)))
			s.offer("_", v)
		}
	}
	return starlark.None, err
}

// hide hides what was read from Secrets.
func (s *Session) hide(text string) string {
	m := plan.Secrets(s.world)
	return m.Text(text)
}

// ran takes the ctx of the run that :run has called for; lines find it as ctx from then on.
func (s *Session) ran(hook, key string, ctx starlark.Value) {
	if hook == s.called && key == s.calledKey && !s.caught {
		s.caught, s.past = true, ctx
		s.offer("ctx", ctx)
	}
}

// offer gives a name to a value, unless the session uses it for something else.
func (s *Session) offer(name string, v starlark.Value) {
	if _, own := s.scope.Lookup(name); !own {
		s.scope.Define(name, v, false)
	}
}

// log takes what the lines, hooks and the engine say.
func (s *Session) log(module, hook string, level builtins.Level, msg string, fields []builtins.Field) {
	switch {
	case hook == s.hook && s.inside:
		if level == builtins.LevelInfo && len(fields) == 0 {
			s.out.result(msg)
			return
		}
		s.out.result(level.String() + ": " + msg + fieldsText(fields))
		return
	case hook == s.hook, level == builtins.LevelDebug:
		return // the line's own failure is told where it was typed
	case hook == s.called && strings.HasSuffix(msg, requestFailed):
		return
	}
	s.tell()
	who := s.local(hook)
	if hook == "" {
		who = module
	}
	if who != "" {
		who += ": "
	}
	s.out.note(level.String() + ": " + who + msg + fieldsText(fields))
}

// requestFailed ends what the engine says of a called run that has failed.
const requestFailed = " (the request failed)"

// local is a hook's id, without the module if it is the session's.
func (s *Session) local(hook string) string { return strings.TrimPrefix(hook, s.o.Module+"/") }

// maxRunsKept is how many runs the session remembers, at least.
const maxRunsKept = 1000

// forgetRuns keeps a long session from remembering every run. Nothing may be going on.
func (s *Session) forgetRuns() {
	if over := s.reported - maxRunsKept; over > maxRunsKept {
		s.world.Runs = slices.Clone(s.world.Runs[over:])
		s.reported -= over
	}
}

// maxTold is of how many runs one line tells.
const maxTold = 50

// tell tells of the runs that have ended since it was called last, and of releases.
func (s *Session) tell() {
	n := 0
	for ; s.reported < len(s.world.Runs); s.reported++ {
		r := &s.world.Runs[s.reported]
		if r.Run == 0 {
			break // under way
		}
		switch {
		case r.Hook == s.hook:
			if !s.refused {
				for _, line := range effectLines(r.Effects) {
					s.out.note(line)
				}
			}
			continue
		case r.Err != nil:
			continue // the engine says so, and what follows
		}
		if n++; n <= maxTold {
			s.out.note("ran " + s.title(r) + ": " + summary(r.Effects))
		}
	}
	if n > maxTold {
		s.out.note(fmt.Sprintf("… and %d more runs, see :runs", n-maxTold))
	}
	for _, m := range s.world.Status().Modules {
		if m.Release == nil || m.Release.Revision == 0 || s.revisions[m.Name] == m.Release.Revision {
			continue
		}
		s.revisions[m.Name] = m.Release.Revision
		s.out.note(fmt.Sprintf("released %s/%s: revision %d", m.Release.Namespace, m.Release.Name, m.Release.Revision))
	}
}

// title names a run.
func (s *Session) title(r *sim.Run) string {
	title := s.local(r.Hook)
	if r.Key != "" {
		title += " of " + r.Key
	}
	if r.Cleanup {
		title += " (cleanup)"
	}
	return title
}

// maxEffects is how many effects of one run are shown.
const maxEffects = 50

// effectLines shows what a run asks for, one line each.
func effectLines(e effect.Effects) []string {
	var out []string
	for _, w := range e.Writes {
		out = append(out, "~ "+string(w.Kind)+" "+writeText(&w))
	}
	for _, v := range e.Values {
		out = append(out, "~ values."+string(v.Op)+" "+strings.Join(v.Path, "."))
	}
	for _, m := range e.Metrics {
		out = append(out, "~ metrics."+metricText(m))
	}
	if e.State != nil {
		out = append(out, "~ ctx.state: "+message.Count(len(e.State), "key"))
	}
	for _, m := range e.Messages {
		out = append(out, "~ http.send "+m.Where())
	}
	if e.Requeue > 0 {
		out = append(out, "~ requeue "+e.Requeue.String())
	}
	if more := len(out) - maxEffects; more > 0 {
		out = append(out[:maxEffects], fmt.Sprintf("… and %d more", more))
	}
	return out
}

func writeText(w *effect.Write) string {
	switch {
	case w.Set != nil:
		return w.Set.Name + ": " + message.Count(len(w.Set.Members), "object")
	case w.Event != nil:
		return w.Event.Reason + " of " + w.Ref.APIVersion + " " + w.Ref.String()
	}
	return w.Ref.APIVersion + " " + w.Ref.String()
}

func metricText(m effect.Metric) string {
	if m.Kind == effect.MetricExpire {
		return "expire " + m.Group
	}
	labels := ""
	if len(m.Labels) > 0 {
		labels = strings.TrimPrefix(metrics.Key("", "", m.Labels), " ")
	}
	return fmt.Sprintf("%s %s%s %v", m.Kind, m.Name, labels, m.Value)
}

// summary is what a run asks for in one line.
func summary(e effect.Effects) string {
	const shown = 4
	var parts []string
	group := func(what string, all []string) {
		if len(all) > shown {
			all = append(all[:shown:shown], fmt.Sprintf("%d more", len(all)-shown))
		}
		if len(all) > 0 {
			parts = append(parts, what+strings.Join(all, ", "))
		}
	}
	var writes, paths, metrics []string
	for i := range e.Writes {
		writes = append(writes, string(e.Writes[i].Kind)+" "+writeText(&e.Writes[i]))
	}
	for _, v := range e.Values {
		paths = append(paths, strings.Join(v.Path, "."))
	}
	for _, m := range e.Metrics {
		metrics = append(metrics, m.Name+m.Group)
	}
	group("", writes)
	group("values ", paths)
	group("metrics ", metrics)
	if e.State != nil {
		parts = append(parts, "state")
	}
	if n := len(e.Messages); n > 0 {
		parts = append(parts, message.Count(n, "message"))
	}
	if e.Requeue > 0 {
		parts = append(parts, "requeue "+e.Requeue.String())
	}
	if len(parts) == 0 {
		return "asks for nothing"
	}
	return strings.Join(parts, "; ")
}

// runError is why a run has failed, or nil.
func runError(r *sim.Run) error { return errors.Join(r.Err, r.Committed) }
