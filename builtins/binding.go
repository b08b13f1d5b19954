package builtins

import (
	"fmt"
	"strings"

	"go.starlark.net/starlark"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/labels"

	"github.com/starling-operator/starling/builtins/spec"
	"github.com/starling-operator/starling/runtime/schedule"
)

// The bindings: what triggers a hook.

func bindingSpecs() []spec.Spec {
	order := spec.Optional("order", spec.Int, "0")
	stage := func(s Stage) spec.Spec {
		return declare(string(s), spec.InLoad, spec.NoEffect, callStage(s), order)
	}
	afterHelm := stage(StageAfterHelm)
	afterHelm.Params = append(afterHelm.Params, spec.Optional("always", spec.Bool, "False"))
	beforeAll := stage(StageBeforeAll)
	beforeAll.Params = append(beforeAll.Params, spec.Optional("each", spec.Bool, "False"))
	return append(controllerSpecs(), []spec.Spec{
		hookSpec(),
		declare("startup", spec.InLoad, spec.NoEffect, callStartup, order, spec.Optional("when_off", spec.Bool, "False")),
		declare("schedule", spec.InLoad, spec.NoEffect, callSchedule, spec.Required("cron", spec.String),
			spec.Optional("name", spec.String, "None"), spec.Optional("timezone", spec.String, `"UTC"`),
			spec.Optional("jitter", spec.Duration, "None"), spec.Optional("missed", spec.String, `"skip"`)),
		watchSpec(),
		stage(StageBeforeHelm),
		afterHelm,
		stage(StageBeforeDelete),
		stage(StageAfterDelete),
		beforeAll,
		stage(StageAfterAll),
	}...)
}

func callStartup(c *call) (starlark.Value, error) {
	return binding(Binding{Startup: &StartupBinding{Order: c.IntOr("order", 0), WhenOff: c.BoolOr("when_off", false)}})
}

func callStage(s Stage) func(*call) (starlark.Value, error) {
	return func(c *call) (starlark.Value, error) {
		b := &StageBinding{Stage: s, Order: c.IntOr("order", 0)}
		switch s {
		case StageAfterHelm:
			b.Always = c.BoolOr("always", false)
		case StageBeforeAll:
			b.Always = c.BoolOr("each", false)
		}
		return binding(Binding{Stage: b})
	}
}

func binding(b Binding) (starlark.Value, error) { return &declared[Binding]{"binding", b}, nil }

func callSchedule(c *call) (starlark.Value, error) {
	cron, err := schedule.Parse(c.Str("cron"))
	if err != nil {
		return nil, err
	}
	name, err := c.shortName("name")
	if err != nil {
		return nil, err
	}
	b := &ScheduleBinding{Cron: cron.String(), Timezone: c.StrOr("timezone", "UTC"), Jitter: c.DurationOr("jitter", 0)}
	if _, err := cron.In(b.Timezone); err != nil {
		return nil, fmt.Errorf("timezone: %w", err)
	}
	switch missed := c.StrOr("missed", "skip"); missed {
	case "skip":
	case "once":
		b.CatchUp = true
	default:
		return nil, fmt.Errorf("missed: got %q, want \"skip\" or \"once\"", spec.Clip(missed))
	}
	return binding(Binding{Name: name, Schedule: b})
}

// shortName reads an argument that is a name on one line; "" when it was not given.
func (c *call) shortName(param string) (string, error) {
	name := c.Str(param)
	control := func(r rune) bool { return r < ' ' }
	if c.Arg(param) != nil && (name == "" || len(name) > 100 || strings.ContainsFunc(name, control)) {
		return "", fmt.Errorf("%s: %q is no name: 1 to 100 characters", param, spec.Clip(name))
	}
	return name, nil
}

// labelSelector reads a selector argument as kubectl's text; empty means all.
func (c *call) labelSelector(param string) (string, error) {
	parse := func(text string) (labels.Selector, error) { return labels.Parse(text) }
	return selector(c, param, parse, "label", `write "key", "key=value", "key!=value" or "key in (a, b)", `+
		"with commas between; keys and values are those of labels")
}

// fieldSelector is labelSelector for fields, which know = and != only.
func (c *call) fieldSelector(param string) (string, error) {
	return selector(c, param, fields.ParseSelector, "field", `write "field=value" or "field!=value", `+
		"with commas between; sets (in, notin) are for labels only")
}

// selector reads a selector argument; of and form say in errors what it is, and how it is written.
func selector[S fmt.Stringer](c *call, param string, parse func(string) (S, error), of, form string) (string, error) {
	text, err := selectorText(c.Arg(param))
	if err != nil {
		return "", fmt.Errorf("%s: %w", param, err)
	}
	sel, err := parse(text)
	if err != nil {
		return "", fmt.Errorf("%s: %q is no %s selector: %s", param, spec.Clip(text), of, form)
	}
	return sel.String(), nil
}

// selectorText turns the forms of a selector into one: text as it is, the parts
// of a list joined by commas, a dict as equalities in the order of its keys.
func selectorText(v starlark.Value) (string, error) {
	switch v := v.(type) {
	case nil:
		return "", nil
	case starlark.String:
		return string(v), nil
	case starlark.IterableMapping:
		var parts []string
		for k, e := range starlark.Entries(v) {
			key, ok1 := starlark.AsString(k)
			val, ok2 := starlark.AsString(e)
			if !ok1 || !ok2 {
				return "", fmt.Errorf("%s: got %s, want string", spec.Clip(k.String()), e.Type())
			}
			if strings.ContainsAny(key+val, ",=!()") {
				return "", fmt.Errorf("%q: keys and values cannot hold any of , = ! ( )", spec.Clip(key+"="+val))
			}
			parts = append(parts, key+"="+val)
		}
		return strings.Join(parts, ","), nil
	}
	if err := spec.Strings.Check(v); err != nil {
		return "", err
	}
	return strings.Join(spec.StringsOf(v), ","), nil
}
