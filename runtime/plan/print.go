package plan

import (
	"fmt"
	"io"
	"slices"
	"strings"

	"sigs.k8s.io/yaml"

	"github.com/starling-operator/starling/modules/status"
	"github.com/starling-operator/starling/runtime/effect"
	"github.com/starling-operator/starling/runtime/message"
)

// PrintOptions are how a plan is shown.
type PrintOptions struct {
	// Color marks what is new green, what goes red and what changes yellow.
	Color bool
}

const (
	// maxShown bounds one value on one line.
	maxShown = 160
	// maxLines bounds the lines of one text that has many.
	maxLines = 40
	// maxScheduled bounds the hooks that wait for their schedule, and the webhooks.
	maxScheduled = 5
	// maxYAML bounds the lines of a new object.
	maxYAML = 200
)

// Print writes a plan for people, with terraform's signs.
func (p *Plan) Print(w io.Writer, o PrintOptions) error {
	out := &printer{color: o.Color}
	for _, m := range p.Modules {
		out.module(m)
	}
	for _, parent := range p.Controllers {
		out.parent(parent)
	}
	for _, obj := range p.Objects {
		out.object(obj)
	}
	for _, obj := range p.Drift {
		out.drift(obj)
	}
	for _, m := range p.Messages {
		out.line(0, '+', "%s  # sent by hook %s", m.Request, m.Hook)
	}
	for _, problem := range p.Problems {
		if slices.ContainsFunc(p.Modules, func(m Module) bool { return strings.Contains(m.Error, problem.Error) }) {
			continue // said with its module
		}
		if problem.Hook == "" {
			out.line(0, '!', "%s", problem.Error)
			continue
		}
		out.line(0, '!', "hook %s fails: %s", problem.Hook, problem.Error)
	}
	for _, text := range p.Warnings {
		out.line(0, '!', "warning: %s", text)
	}
	out.left("hooks that run by schedule", p.Scheduled)
	out.left("configurations of webhooks, which run keeps,", p.Webhooks)
	if out.b.Len() > 0 {
		out.b.WriteString("\n")
	}
	out.b.WriteString(p.Summary() + "\n")
	_, err := io.WriteString(w, out.b.String())
	return err
}

// left names some of what is not in the plan.
func (p *printer) left(what string, names []string) {
	n, more := len(names), ""
	if n == 0 {
		return
	}
	if n > maxScheduled {
		more = fmt.Sprintf(" and %d more", n-maxScheduled)
	}
	p.line(0, ' ', "note: %s are not in this plan: %s%s", what, strings.Join(names[:min(n, maxScheduled)], ", "), more)
}

// Summary is the plan in one line.
func (p *Plan) Summary() string {
	n := map[Action]int{}
	for _, o := range p.Objects {
		n[o.Action]++
	}
	for _, m := range p.Modules {
		n[m.Action]++
	}
	text := "No changes: the modules ask for nothing else than before, and the objects of releases are as their charts have them."
	switch {
	case p.Failed():
		text = "No changes are known."
	case p.Drifted():
		text = "No changes: the modules ask for nothing else than before."
	case p.unread:
		text = "No changes: the modules ask for nothing else than before. Not all objects of releases could be compared with their charts."
	}
	if p.Changes() {
		text = fmt.Sprintf("Plan: %d to create, %d to update, %d to delete; releases: %d to install, %d to upgrade, %d to uninstall.",
			n[Create], n[Update], n[Delete], n[Install], n[Upgrade], n[Uninstall])
		if len(p.Messages) > 0 {
			text += fmt.Sprintf(" %d messages to send.", len(p.Messages))
		}
	}
	left := 0
	for _, o := range p.Drift {
		if o.Left {
			left++
		}
	}
	text += driftSummary(len(p.Drift)-left, "puts", "right") + driftSummary(left, "leaves", "so")
	if p.Failed() {
		text += " Something fails: the plan is not the whole one."
	}
	return text
}

func driftSummary(n int, verb, how string) string {
	switch n {
	case 0:
		return ""
	case 1:
		return fmt.Sprintf(" 1 object is not as its release has it, and run %s it %s.", verb, how)
	}
	return fmt.Sprintf(" %d objects are not as their releases have them, and run %s them %s.", n, verb, how)
}

type printer struct {
	b     strings.Builder
	color bool
}

var colors = map[rune]string{'+': "32", '-': "31", '~': "33", '!': "31;1"}

// line writes one line; sign ' ' is for what does not change.
func (p *printer) line(depth int, sign rune, format string, a ...any) {
	text := strings.Repeat("    ", depth) + string(sign) + " " + message.Clean(fmt.Sprintf(format, a...))
	if code := colors[sign]; p.color && code != "" {
		text = "\x1b[" + code + "m" + text + "\x1b[0m"
	}
	p.b.WriteString(strings.TrimRight(text, " ") + "\n")
}

var actionSigns = map[Action]rune{Install: '+', Create: '+', Upgrade: '~', Update: '~', Uninstall: '-', Delete: '-'}

func (p *printer) module(m Module) {
	sign, ok := actionSigns[m.Action]
	if m.Error != "" {
		p.line(0, '!', "module %s fails: %s", m.Name, m.Error)
	}
	if !ok {
		if m.waits() {
			p.line(0, '!', "module %s is %s: %s", m.Name, m.State, m.Reason)
		}
		return
	}
	why := ""
	if m.Reason != "" {
		why = "  # " + m.Reason
	}
	release := ""
	if m.Release != nil {
		release = fmt.Sprintf(" release %s in %s", m.Release.Name, m.Release.Namespace)
	}
	p.line(0, sign, "module %s: %s%s%s", m.Name, m.Action, release, why)
	for _, f := range m.Values {
		p.field(1, f, "values.")
	}
}

// waits says that the module is on, and that nothing is done about it until something else comes.
func (m Module) waits() bool {
	waits := m.State == status.ModuleBlocked || m.State == status.ModuleWaiting || m.State == status.ModuleStarting
	return waits && m.Error == "" && m.Reason != ""
}

func (p *printer) object(o Object) {
	what := ""
	if o.UserConfig {
		what = "the user's config, "
	}
	p.line(0, actionSigns[o.Action], "%s %s  # %s%s by %s", o.APIVersion, o.Ref, what, o.Action+"d", strings.Join(o.By, ", "))
	for _, f := range o.Fields {
		if !strings.HasPrefix(f.Path, conditionsPath) {
			p.field(1, f, "")
		}
	}
	p.conditions(o.Fields)
	if o.Object != nil {
		p.yaml(o.Object)
	}
}

// conditionsPath begins the paths of fields of conditions: status.conditions[Ready].reason.
const conditionsPath = "status.conditions["

// conditions shows what becomes of the conditions of an object, in one line: the status of those that have another one,
// the reason, the message or another field of the others.
func (p *printer) conditions(fields []Field) {
	type change struct{ name, field, text string }
	var changes []change
	for _, f := range fields {
		rest, is := strings.CutPrefix(f.Path, conditionsPath)
		name, field, whole := strings.Cut(rest, "].")
		if !is || !whole {
			continue
		}
		was, now := "none", "none"
		if f.Old != nil {
			was = fmt.Sprint(*f.Old)
		}
		if f.New != nil {
			now = fmt.Sprint(*f.New)
		}
		c := change{name, field, field + " " + now}
		if field == "status" {
			c.text = was + " -> " + now
		}
		if n := len(changes) - 1; n >= 0 && changes[n].name == name {
			if changes[n].field != "status" && (field == "status" || field == "reason") {
				changes[n] = c
			}
			continue
		}
		changes = append(changes, c)
	}
	if len(changes) == 0 {
		return
	}
	texts := make([]string, len(changes))
	for i, c := range changes {
		texts[i] = c.name + ": " + message.Cut(c.text, maxShown)
	}
	p.line(1, '~', "status.conditions: %s", strings.Join(texts, "; "))
}

// drift shows an object that somebody else has changed, or taken away.
func (p *printer) drift(o Object) {
	sign, what, of, then := '~', "changed outside of Starling: not as ", strings.Join(o.By, ", "), "puts it right"
	if len(o.ChangedBy) > 0 {
		what = "changed by " + o.ChangedBy[0] + ": not as "
	}
	if o.Action == Missing {
		sign, what, then = '-', "missing: ", "makes it again"
	}
	if o.Left {
		then = "leaves it so"
	}
	p.line(0, sign, "%s %s  # %s%s has it; run %s", o.APIVersion, o.Ref, what, of, then)
	for _, f := range o.Fields {
		p.field(1, f, "")
	}
}

// yaml shows a new object, but for what its line has said.
func (p *printer) yaml(obj map[string]any) {
	obj, meta := effect.WithMetadata(obj)
	delete(obj, "apiVersion")
	delete(obj, "kind")
	delete(meta, "name")
	delete(meta, "namespace")
	if len(meta) == 0 {
		delete(obj, "metadata")
	}
	if len(obj) == 0 {
		return
	}
	text, err := yaml.Marshal(obj)
	if err != nil {
		return // it was JSON before
	}
	p.lines(1, '+', string(text), maxYAML)
}

// lines shows a text of many lines, the first most of them.
func (p *printer) lines(depth int, sign rune, text string, most int) {
	lines := strings.Split(strings.TrimSuffix(text, "\n"), "\n")
	for i, line := range lines {
		if i == most {
			p.line(depth, sign, "… %d more lines", len(lines)-i)
			return
		}
		p.line(depth, sign, "%s", message.Cut(line, maxShown))
	}
}

func (p *printer) field(depth int, f Field, prefix string) {
	why := ""
	if f.Why != nil {
		why = "  # " + f.Why.From()
		if place := f.Why.Place(); place != "" {
			why += ", " + place
		}
	}
	path := prefix + f.Path
	switch {
	case f.Old == nil:
		p.value(depth, '+', path, *f.New, why)
	case f.New == nil:
		p.value(depth, '-', path, *f.Old, why)
	default:
		old, isText := (*f.Old).(string)
		now, both := (*f.New).(string)
		if isText && both && strings.Contains(old+now, "\n") {
			p.line(depth, '~', "%s:%s", path, why)
			p.texts(depth+1, old, now)
			return
		}
		if f.Secret {
			why = "  # secret" + strings.Replace(why, "  # ", ", ", 1)
		}
		was, is := message.Apart(message.JSON(*f.Old), message.JSON(*f.New), maxShown)
		p.line(depth, '~', "%s: %s -> %s%s", path, was, is, why)
	}
}

func (p *printer) value(depth int, sign rune, path string, v any, why string) {
	text, is := v.(string)
	if !is || !strings.Contains(strings.TrimSuffix(text, "\n"), "\n") {
		p.line(depth, sign, "%s: %s%s", path, message.Cut(message.JSON(v), maxShown), why)
		return
	}
	p.line(depth, sign, "%s: |%s", path, why)
	p.lines(depth+1, sign, text, maxLines)
}

// texts shows the lines that two texts do not share, with those around left out.
func (p *printer) texts(depth int, old, now string) {
	a, b := strings.Split(old, "\n"), strings.Split(now, "\n")
	from := 0
	for from < min(len(a), len(b)) && a[from] == b[from] {
		from++
	}
	to := 0
	for to < min(len(a), len(b))-from && a[len(a)-1-to] == b[len(b)-1-to] {
		to++
	}
	for _, side := range []struct {
		sign  rune
		lines []string
	}{{'-', a[from : len(a)-to]}, {'+', b[from : len(b)-to]}} {
		if len(side.lines) > 0 {
			p.lines(depth, side.sign, strings.Join(side.lines, "\n"), maxLines)
		}
	}
}
