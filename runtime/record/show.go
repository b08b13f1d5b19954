package record

import (
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"sigs.k8s.io/yaml"

	"github.com/starling-operator/starling/builtins"
	"github.com/starling-operator/starling/modules/values"
	"github.com/starling-operator/starling/runtime/effect"
	"github.com/starling-operator/starling/runtime/message"
)

// maxShown is how much of a value one line shows.
const maxShown = 200

// Lines are what a run asked for, answered and logged, and why it failed: each in a line,
// in the order of a commit. Details adds, indented, what is in the objects that it writes.
func (m *Mask) Lines(o Outcome, details bool) []string {
	s := &shown{m: m, details: details}
	for i := range o.Actions {
		s.add("decided: %s", m.Text(o.Actions[i].String()))
	}
	if o.Waits != "" && len(o.Actions) == 0 {
		s.add("waits for: %s", m.Text(o.Waits))
	}
	for i := range o.Effects.Writes {
		s.write(&o.Effects.Writes[i], "k8s.")
	}
	for _, op := range o.Effects.Values {
		s.value(op)
	}
	if o.Effects.State != nil {
		s.add("ctx.state = %s", s.short(o.Effects.State))
	}
	for _, metric := range o.Effects.Metrics {
		s.metric(metric)
	}
	for i := range o.Effects.Messages {
		msg := &o.Effects.Messages[i]
		s.add("http.send %s", m.Text(msg.Where()))
		if len(msg.Body) > 0 {
			s.body(string(msg.Body))
		}
	}
	if o.Effects.Requeue > 0 {
		s.add("requeue in %s", o.Effects.Requeue)
	}
	s.response(&o.Response)
	for _, line := range o.Logs {
		s.log(line)
	}
	if o.Error != "" {
		s.add("error: %s", m.Text(o.Error))
	}
	return s.lines
}

// shown is an outcome in lines.
type shown struct {
	m       *Mask
	details bool
	lines   []string
}

func (s *shown) add(format string, a ...any) {
	s.lines = append(s.lines, message.Clean(fmt.Sprintf(format, a...)))
}

// Line is a text in one line, its secrets hidden.
func (m *Mask) Line(text string) string { return message.Clean(m.Text(text)) }

// short is a value in one line, cut where it is long.
func (s *shown) short(v any) string {
	text := s.json(v)
	if s.details {
		return text
	}
	return message.Cut(text, maxShown)
}

func (s *shown) json(v any) string { return message.JSON(s.m.Plain(v)) }

// body shows data below the line before it.
func (s *shown) body(v any) {
	if !s.details || v == nil {
		return
	}
	text, err := yaml.Marshal(s.m.Plain(v))
	if err != nil {
		return
	}
	for line := range strings.Lines(string(text)) {
		s.add("    %s", strings.TrimRight(line, "\n"))
	}
}

func (s *shown) write(w *effect.Write, prefix string) {
	text := prefix + string(w.Kind) + " " + w.Ref.APIVersion + " " + w.Ref.String()
	switch w.Kind {
	case effect.WriteEvent:
		text += fmt.Sprintf(": %s %s: %s", w.Event.Type, w.Event.Reason, s.m.Text(w.Event.Message))
	case effect.WriteConfig:
		text = "config." + s.config(w.Config)
	case effect.WriteChildren:
		text = fmt.Sprintf("%schildren of %s", prefix, w.Ref.Name)
	case effect.WriteSet:
		text = fmt.Sprintf("%sapply_set %q of %d objects", prefix, w.Set.Name, len(w.Set.Members))
	case effect.WritePatch:
		text += " (" + string(w.Patch.Type)
		if w.Patch.Subresource != "" {
			text += ", " + w.Patch.Subresource
		}
		text += ")"
	}
	s.add("%s", text)
	switch w.Kind {
	case effect.WriteSet:
		for i := range w.Set.Members {
			s.write(&w.Set.Members[i], "  ")
		}
	case effect.WriteChildren:
		for i := range w.Children {
			s.write(&w.Children[i], "  ")
		}
	case effect.WritePatch:
		s.body(w.Patch.Body)
		if w.Patch.Program != "" {
			s.body(w.Patch.Program)
		}
	default:
		if w.Object != nil {
			s.body(w.Object)
		}
	}
}

func (s *shown) config(c *effect.ConfigChange) string {
	if c.Remove {
		return "remove " + c.Key + " " + values.PathString(c.Path)
	}
	return "set " + c.Key + " " + values.PathString(c.Path) + " = " + s.short(c.Value)
}

func (s *shown) value(op effect.ValueOp) {
	text := "values." + string(op.Op) + " " + values.PathString(op.Path)
	if op.Op == effect.OpRemove {
		s.add("%s", text)
		return
	}
	s.add("%s = %s", text, s.short(op.Value))
}

func (s *shown) metric(m effect.Metric) {
	if m.Kind == effect.MetricExpire {
		s.add("metrics.expire %s", m.Group)
		return
	}
	var labels []string
	for _, k := range slices.Sorted(maps.Keys(m.Labels)) {
		labels = append(labels, k+"="+strconv.Quote(s.m.Text(m.Labels[k])))
	}
	name := m.Name
	if len(labels) > 0 {
		name += "{" + strings.Join(labels, ", ") + "}"
	}
	s.add("metrics.%s %s %v", m.Kind, name, m.Value)
}

func (s *shown) response(r *builtins.Response) {
	for _, text := range r.Warnings {
		s.add("warn: %s", s.m.Text(text))
	}
	if d := r.Denied; d != nil {
		s.add("deny %d: %s", d.Code, s.m.Text(d.Message))
	}
	if r.Object != nil {
		s.add("answers with another object")
		s.body(r.Object)
	}
	for i, obj := range r.Objects {
		s.add("converted object %d", i+1)
		s.body(obj)
	}
	if r.Reply != nil {
		s.add("reply %d %s", r.Reply.Status, s.m.Text(string(r.Reply.Body)))
	}
}

func (s *shown) log(line Line) {
	text := line.Level.String() + ": " + s.m.Text(line.Text)
	for _, f := range line.Fields {
		text += " " + f.Key + "=" + s.json(f.Value)
	}
	s.add("%s", text)
}
