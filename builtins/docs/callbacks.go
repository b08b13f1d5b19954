package docs

import (
	"slices"

	"github.com/starling-operator/starling/builtins/spec"
)

// Callback is one kind of function that Starling calls: what it is given, and what it may do.
type Callback struct {
	// Name says where the function is given to Starling: "k8s.watch" for hook(f, on = [k8s.watch(…)]),
	// "hook(cleanup)" for a parameter, "enabled" for def enabled() of a module.star.
	Name string
	// Args are what it is called with: "ctx", "parent", "object".
	Args []string
	// Phase says which builtins it may call.
	Phase spec.Phase
	// Events are the types that ctx.events may have; nil when ctx has no events.
	Events []string
	// Doc says in one sentence when it is called.
	Doc string
	// Answer says what it returns; empty for a function whose result counts for nothing.
	Answer string
}

// Ctx says whether the function takes ctx.
func (c *Callback) Ctx() bool { return len(c.Args) > 0 && c.Args[0] == "ctx" }

// Hook says whether its ctx is that of a hook; that of a controller's functions is another one.
func (c *Callback) Hook() bool { return c.Events != nil }

// Names of callbacks that the fields of ctx name.
const (
	onWatch, onEach, onCleanup      = "k8s.watch", "hook(for_each)", "hook(cleanup)"
	onValidate, onMutate, onReceive = "k8s.validate", "k8s.mutate", "http.receive"
)

// Callbacks returns all kinds of functions that Starling calls, those of hooks first.
func Callbacks() []Callback {
	ctx, parent, object := []string{"ctx"}, []string{"ctx", "parent"}, []string{"object"}
	hook := func(name string, phase spec.Phase, doc, answer string, events ...string) Callback {
		return Callback{Name: name, Args: ctx, Phase: phase, Events: append(events, "requeue"), Doc: doc, Answer: answer}
	}
	request := func(name string, phase spec.Phase, doc, answer string) Callback {
		return Callback{Name: name, Args: ctx, Phase: phase, Events: []string{"request"}, Doc: doc, Answer: answer}
	}
	return []Callback{
		hook("startup", spec.InRun, "Once, when the module starts.", "", "startup"),
		hook("schedule", spec.InRun, "At times.", "", "schedule"),
		hook(onWatch, spec.InRun, "When an object appears, changes or goes away, and once when the watch has seen all there are.", "", "sync", "added", "modified", "deleted"),
		hook(onEach, spec.InRun, "As its watches and schedules say, once for each object of one of the watches.", "", "sync", "added", "modified", "deleted", "schedule"),
		hook(onCleanup, spec.InRun, "Once an object of for_each is being deleted, or is no longer watched.", "", "deleted", "sync", "added", "modified", "schedule"),
		hook("before_helm", spec.InRun, "Before each render of the module's chart.", "", "helm"),
		hook("after_helm", spec.InRun, "After the release has changed, and once after each start.", "", "helm"),
		hook("before_delete", spec.InRun, "Before the release is taken away.", "", "delete"),
		hook("after_delete", spec.InRun, "After the release was taken away.", "", "delete"),
		hook("before_all", spec.InRun, "In global hooks, before any module starts.", "", "all"),
		hook("after_all", spec.InRun, "In global hooks, when all modules have come to rest.", "", "all"),
		request(onValidate, spec.InReview, "Before the API server makes a change.", "None to let it pass, or deny(…)"),
		request(onMutate, spec.InReview, "Before the API server makes a change.", "the changed object, None, or deny(…)"),
		request(onReceive, spec.InReceive, "For each HTTP request to its path.", "reply(…), or None"),
		{Name: "controller(desired)", Args: parent, Phase: spec.InDesired, Doc: "When the parent, a child, or something that it has looked at changes.", Answer: "a list of part(…), or waiting(…), stalled(…) or None"},
		{Name: "controller(status)", Args: parent, Phase: spec.InDesired, Doc: "After each decision about the parent.", Answer: "a dict of fields of the parent's status"},
		{Name: "controller(cleanup)", Args: parent, Phase: spec.InDesired, Doc: "While the parent is being deleted, until it is done.", Answer: "None, a list of part(…) that must stay for now, or waiting(…)"},
		{Name: "controller(observe)", Args: parent, Phase: spec.InObserve,
			Doc: "Again and again, as every says, and when the parent or a child changes.", Answer: "plain data, for ctx.observed"},
		{Name: "controller(act)", Args: parent, Phase: spec.InObserve,
			Doc: "After each observe that did not fail.", Answer: "call(…), or None"},
		{Name: "call(done)", Args: []string{"answer"}, Phase: spec.InObserve,
			Doc: "Once the call has an answer.", Answer: "True or False"},
		{Name: "call(then)", Args: []string{"answer"}, Phase: spec.InObserve,
			Doc: "Once the step is done.", Answer: "a dict of fields of the parent's status, or None"},
		{Name: "rolling(pause)", Args: ctx, Phase: spec.InDesired, Doc: "Before a further part of rolling(…) comes to its new state.", Answer: "why none begins now, or None"},
		{Name: "rolling(before)", Args: []string{"child"}, Phase: spec.InDesired,
			Doc: "For the child that comes to its new state next.", Answer: "why it waits, or None"},
		{Name: "rolling(order)", Args: []string{"child"}, Phase: spec.InDesired, Doc: "For each part of rolling(…) that is there.", Answer: "an int or a text; small ones go first"},
		{Name: "part(ready)", Args: []string{"child"}, Phase: spec.InDesired, Doc: "For a part that is there.", Answer: "True or False"},
		{Name: "k8s.convert(functions)", Args: append(object, "snapshots"), Phase: spec.InConvert, Doc: "When the API server has an object converted; with snapshots only where snapshots= is given.", Answer: "the object in the other version"},
		{Name: "k8s.watch(filter)", Args: object, Phase: spec.InFilter, Doc: "For each object that the watch sees.", Answer: "what is kept of the object; None leaves it out"},
		{Name: "k8s.watch(wakes)", Args: object, Phase: spec.InFilter, Doc: "For each object that the watch sees.", Answer: "a key as in ctx.key, a list of keys, or None"},
		{Name: "k8s.watch(index)", Args: object, Phase: spec.InFilter, Doc: "For each object that the watch sees.", Answer: "a text, a list of texts, or None"},
		{Name: "enabled", Phase: spec.InEnabled, Doc: "When a value changes.", Answer: "True, False, disabled(…) or waiting(…)"},
		{Name: "readiness", Phase: spec.InEnabled, Doc: "When a value changes, in a module that is on.", Answer: "True, or waiting(…)"},
		{Name: "chart_values", Args: []string{"values"}, Phase: spec.InFilter, Doc: "Before each render of the chart.", Answer: "a dict: the values of the chart"},
		{Name: "settings_check", Args: []string{"old", "new"}, Phase: spec.InFilter, Doc: "When the user's config of the module changes.", Answer: "None, or a text that says what is wrong"},
	}
}

// CallbackOf returns the callback of that name; nil when there is none.
func CallbackOf(name string) *Callback {
	all := Callbacks()
	if i := slices.IndexFunc(all, func(c Callback) bool { return c.Name == name }); i >= 0 {
		return &all[i]
	}
	return nil
}
