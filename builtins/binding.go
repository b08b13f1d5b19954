package builtins

import (
	"fmt"
	"strings"

	"go.starlark.net/starlark"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/labels"

	"github.com/starling-operator/starling/runtime/schedule"
)

// The bindings: what triggers a hook.

func bindingSpecs() []Spec {
	const returns = "a binding for hook(on = […])"
	order := Param{Name: "order", Type: TypeInt, Default: "0", Doc: "Order of first attempts among the module's hooks, small first."}
	stage := func(s Stage, doc string) Spec {
		return Spec{Name: string(s), Phases: PhaseLoad, call: callStage(s), Returns: returns, Doc: doc, Params: []Param{order}}
	}
	afterHelm := stage(StageAfterHelm, "Triggers after the release has really changed, and after the first pass of a process. Values set then make one more pass.")
	afterHelm.Params = append(afterHelm.Params, Param{Name: "always", Type: TypeBool, Default: "False", Doc: "Whether it triggers after each pass, also after one that changed nothing."})
	beforeAll := stage(StageBeforeAll, "Global hooks only. Triggers once, after the first runs of the other global hooks and before any module starts.")
	beforeAll.Params = append(beforeAll.Params, Param{Name: "each", Type: TypeBool, Default: "False", Doc: "Whether it triggers again each time the user's config of global values has changed; values that hooks set do not trigger it, for it sets some itself. Modules do not wait for these runs; those that read what they set follow."})
	return append(controllerSpecs(), []Spec{
		hookSpec(),
		{
			Name: "startup", Phases: PhaseLoad, call: callStartup, Returns: returns,
			Doc: "Triggers once, when the module starts.",
			Params: []Param{order,
				{Name: "when_off", Type: TypeBool, Default: "False", Doc: "Whether it triggers in a module that is off, too: once, as Starling starts or as the module is switched off, and again as the module starts. It is for migrations, in hooks of modules, and the only trigger of its hook. While the module is off, CRDs are not applied, and values, ctx.state and sets of the hook need not last: let it look in the cluster for what is still to be done."}},
		},
		{
			Name: "schedule", Phases: PhaseLoad, call: callSchedule, Returns: returns,
			Doc: "Triggers at times. Ticks that come while the hook runs, or waits, are one run.",
			Params: []Param{
				{Name: "cron", Type: TypeString, Doc: "Five fields (minute, hour, day of month, month, day of week), six with seconds first, or @hourly, @daily, @weekly, @monthly, @yearly, or \"@every 90s\": at multiples of that time since 1970, the same ones after a restart."},
				{Name: "name", Type: TypeString, Default: "None", Doc: "Name of the binding, unique in its hook; default: \"schedule\"."},
				{Name: "timezone", Type: TypeString, Default: `"UTC"`, Doc: "The time zone of the fields, by its IANA name: \"Europe/Oslo\"."},
				{Name: "jitter", Type: TypeDuration, Default: "None", Doc: "Each tick comes up to this much later, by a time that is its own: what falls due together does not start together."},
				{Name: "missed", Type: TypeString, Default: `"skip"`, Doc: "Ticks that came while Starling, or the module, was not running: \"skip\" them, or run \"once\" for all of them."},
			},
		},
		watchSpec(),
		stage(StageBeforeHelm, "Triggers before each candidate render of the module's chart, also after a change of the user's config; values set then count. Not with for_each, and not in a module without a chart."),
		afterHelm,
		stage(StageBeforeDelete, "Triggers when the module goes, because it is switched off or is gone from the tree, before its release is uninstalled; all that waits until the hook has succeeded. Of a module without a chart, too. From then on changes of what it watches do not have the hook run."),
		stage(StageAfterDelete, "Triggers when the module goes, after its release was uninstalled and before the sets of its hooks are deleted. Of a module without a chart, too."),
		beforeAll,
		stage(StageAfterAll, "Global hooks only. Triggers each time all modules have come to rest after something was done."),
	}...)
}

func callStartup(c *call) (starlark.Value, error) {
	return binding(Binding{Startup: &StartupBinding{Order: c.intOr("order", 0), WhenOff: c.boolOr("when_off", false)}})
}

func callStage(s Stage) func(*call) (starlark.Value, error) {
	return func(c *call) (starlark.Value, error) {
		b := &StageBinding{Stage: s, Order: c.intOr("order", 0)}
		switch s {
		case StageAfterHelm:
			b.Always = c.boolOr("always", false)
		case StageBeforeAll:
			b.Always = c.boolOr("each", false)
		}
		return binding(Binding{Stage: b})
	}
}

func binding(b Binding) (starlark.Value, error) { return &declared[Binding]{"binding", b}, nil }

func callSchedule(c *call) (starlark.Value, error) {
	cron, err := schedule.Parse(c.str("cron"))
	if err != nil {
		return nil, err
	}
	name, err := c.bindingName()
	if err != nil {
		return nil, err
	}
	b := &ScheduleBinding{Cron: cron.String(), Timezone: c.strOr("timezone", "UTC"), Jitter: c.durationOr("jitter", 0)}
	if _, err := cron.In(b.Timezone); err != nil {
		return nil, fmt.Errorf("timezone: %w", err)
	}
	switch missed := c.strOr("missed", "skip"); missed {
	case "skip":
	case "once":
		b.CatchUp = true
	default:
		return nil, fmt.Errorf("missed: got %q, want \"skip\" or \"once\"", clip(missed))
	}
	return binding(Binding{Name: name, Schedule: b})
}

// bindingName returns name=, or "".
func (c *call) bindingName() (string, error) {
	if c.arg("name") == nil {
		return "", nil
	}
	name := c.str("name")
	if name == "" || len(name) > 100 || strings.ContainsFunc(name, func(r rune) bool { return r < ' ' }) {
		return "", fmt.Errorf("name: %q is no name: 1 to 100 characters", clip(name))
	}
	return name, nil
}

// labelSelector reads a selector argument as kubectl's text; empty means all.
func (c *call) labelSelector(param string) (string, error) {
	text, err := selectorText(c.arg(param))
	if err != nil {
		return "", fmt.Errorf("%s: %w", param, err)
	}
	sel, err := labels.Parse(text)
	if err != nil {
		return "", fmt.Errorf("%s: %q is no label selector: write \"key\", \"key=value\", \"key!=value\" or \"key in (a, b)\", with commas between; keys and values are those of labels", param, clip(text))
	}
	return sel.String(), nil
}

// fieldSelector is labelSelector for fields, which know = and != only.
func (c *call) fieldSelector(param string) (string, error) {
	text, err := selectorText(c.arg(param))
	if err != nil {
		return "", fmt.Errorf("%s: %w", param, err)
	}
	sel, err := fields.ParseSelector(text)
	if err != nil {
		return "", fmt.Errorf("%s: %q is no field selector: write \"field=value\" or \"field!=value\", with commas between; sets (in, notin) are for labels only", param, clip(text))
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
				return "", fmt.Errorf("%s: got %s, want string", clip(k.String()), e.Type())
			}
			if strings.ContainsAny(key+val, ",=!()") {
				return "", fmt.Errorf("%q: keys and values cannot hold any of , = ! ( )", clip(key+"="+val))
			}
			parts = append(parts, key+"="+val)
		}
		return strings.Join(parts, ","), nil
	}
	if err := TypeStrings.check(v); err != nil {
		return "", err
	}
	return strings.Join(stringsOf(v), ","), nil
}
