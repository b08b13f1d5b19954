package builtins

import (
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strings"

	"go.starlark.net/starlark"
	"k8s.io/apimachinery/pkg/util/validation"

	"github.com/starling-operator/starling/runtime/message"
	"github.com/starling-operator/starling/runtime/object"
)

func watchSpec() Spec {
	return Spec{
		Name: "k8s.watch", Phases: PhaseLoad, call: callWatch, Returns: "a binding for hook(on = […]), or for parent= and reads= of controller(…)",
		Doc: "Triggers when an object appears, changes as far as its filter shows it, or goes away, and keeps the snapshot ctx.snapshots[name] of all of them, sorted by namespace and name. For a controller it selects the parents, or the rows of one name of reads=. Secrets need a grant of list and watch. Objects of Starling itself are left out.",
		Params: []Param{
			{Name: "api_version", Type: TypeString, Doc: "API version of the objects, as in manifests: \"v1\", \"apps/v1\"."},
			{Name: "kind", Type: TypeString, Doc: "Kind of the objects, as in manifests: \"ConfigMap\"."},
			{Name: "name", Type: TypeString, Default: "None", Doc: "Name of the binding and of its snapshot, unique in its hook; default: the kind in lower case."},
			{Name: "namespaces", Type: TypeStrings, Default: "None", Doc: "Only objects in these; None: all. There is no word for the module's own namespace: write the one of module(namespace = …), or read by k8s.get, which has it as its default."},
			{Name: "exclude_namespaces", Type: TypeStrings, Default: "None", Doc: "Not the objects in these."},
			{Name: "namespace_labels", Type: TypeSelector, Default: "None", Doc: "Only objects in namespaces whose labels match, of those that namespaces and exclude_namespaces leave. They are followed: the objects of a namespace that begins to match are added, those of one that stops are deleted. Each namespace that matches costs its own watch, and Starling must be allowed to list and watch namespaces."},
			{Name: "object_names", Type: TypeStrings, Default: "None", Doc: "Only objects of these names; None: all. Up to 16 of them have a watch on the API server each, in each namespace; past that all objects there are read, and Starling selects."},
			{Name: "labels", Type: TypeSelector, Default: "None", Doc: "Label selector: a dict of equal values, or the text kubectl takes."},
			{Name: "fields", Type: TypeSelector, Default: "None", Doc: "Field selector: a dict of equal values, or the text kubectl takes, with = and !=. Which fields there are is up to the API server: metadata.name and metadata.namespace for all kinds, more for some, such as spec.nodeName of a Pod."},
			{Name: "filter", Type: TypeFilter, Default: "None", Doc: "The filter, which says what is kept of an object: a function of it (pure; None leaves the object out), or a list of paths, kept with identity and labels, or a jq program, of which the first output counts. None: the whole object. While it fails on an object that has no result yet, the hook does not run; with for_each there is no run for that object."},
			{Name: "wakes", Type: TypeWakes, Default: "None", Doc: "With for_each, of the other watches: which of its objects an event is for. A function of the watched object (pure, as filter) returns the key of one, as in ctx.key, or a list of up to 1,000 keys; None, or a key that no object has, wakes nobody. When the answer moves, the event is for those of before and those of now; snapshots are the same for all. An error in it counts as one of the filter. None: the objects that own the watched one by its ownerReferences; one without such an owner wakes all. \"all\": all of them, always."},
			{Name: "index", Type: TypeDict, Default: "None", Doc: "In reads= of a controller: by which values ctx.reads.….by(index, value) finds rows. A dict of a path of the watched object, \"spec.nodeName\", or a function of it (pure, as filter), by the name of the index. A text, or each text of a list of up to 1,000, is a value under which the row is found."},
			{Name: "keep", Type: TypeString, Default: `"result"`, Doc: "\"object\": events carry .object, too, and the object is kept beside what the filter makes of it, which costs its memory. Snapshots hold results. \"both\": rows of snapshots, ctx.object and .result of events hold two: the object in .object, and what the filter makes of it in .result. A change of the object alone triggers nothing; the next run finds it in the snapshot. It needs a filter, and Secrets do not have it."},
			{Name: "old", Type: TypeBool, Default: "False", Doc: "Whether modified events carry .old, what .result was before. It is None when that is not known. A change that came while Starling, or the module, was not running is in no such event."},
			{Name: "events", Type: TypeStrings, Default: `["added", "modified", "deleted"]`, Doc: "The changes that trigger; []: none, for a snapshot only."},
			{Name: "sync", Type: TypeBool, Default: "True", Doc: "Whether the first complete snapshot triggers, too. If not, the chart does not wait for a run of this watch."},
			{Name: "gate", Type: TypeBool, Default: "True", Doc: "Whether the chart, or with a global hook the modules, wait for the success of the first run. If not, that run comes all the same. The chart waits when another watch of the hook, or startup(), says so."},
			{Name: "require", Type: TypeBool, Default: "False", Doc: "Whether to wait for a kind that is not served: the hook does not run, and the chart is not rendered for the first time, before it is. If not, such a kind counts as one without objects."},
		},
	}
}

func callWatch(c *call) (starlark.Value, error) {
	w := &WatchBinding{
		APIVersion: c.str("api_version"),
		Kind:       c.str("kind"),
		Namespaces: c.strings("namespaces"),
		Names:      c.strings("object_names"),
		Quiet:      !c.boolOr("sync", true),
		NoGate:     !c.boolOr("gate", true),
		Old:        c.boolOr("old", false),
		Require:    c.boolOr("require", false),
		Pos:        c.pos(),
	}
	name, err := c.bindingName()
	if err != nil {
		return nil, err
	}
	if err := checkKind(w.APIVersion, w.Kind); err != nil {
		return nil, err
	}
	if err := checkNamespaces(w.Namespaces); err != nil {
		return nil, err
	}
	if slices.Contains(w.Namespaces, "*") {
		w.Namespaces = nil
	}
	if err := c.excluded(w); err != nil {
		return nil, fmt.Errorf("exclude_namespaces: %w", err)
	}
	if err := checkNames("object_names", w.Names); err != nil {
		return nil, err
	}
	if w.Labels, err = c.labelSelector("labels"); err != nil {
		return nil, err
	}
	if w.NamespaceLabels, err = c.labelSelector("namespace_labels"); err != nil {
		return nil, err
	}
	if w.Fields, err = c.fieldSelector("fields"); err != nil {
		return nil, err
	}
	if w.Events, err = c.watchEvents(); err != nil {
		return nil, fmt.Errorf("events: %w", err)
	}
	if w.Old && !w.Triggers("modified") {
		return nil, errors.New("old: only modified events have it; name \"modified\" in events")
	}
	if err := c.filter(w); err != nil {
		return nil, fmt.Errorf("filter: %w", err)
	}
	if err := c.keep(w); err != nil {
		return nil, fmt.Errorf("keep: %w", err)
	}
	if err := c.wakes(w); err != nil {
		return nil, fmt.Errorf("wakes: %w", err)
	}
	if err := c.indexes(w); err != nil {
		return nil, fmt.Errorf("index: %w", err)
	}
	return binding(Binding{Name: name, Watch: w})
}

// keep reads keep= into w.
func (c *call) keep(w *WatchBinding) error {
	switch keep := c.strOr("keep", "result"); keep {
	case "result":
	case "object":
		w.KeepObject = true
	case "both":
		w.KeepObject, w.KeepBoth = true, true
		switch {
		case w.FilterID == "object":
			return errors.New("there is no filter beside which the object could be kept; without one the result is the object")
		case w.APIVersion == "v1" && w.Kind == "Secret":
			return errors.New("\"both\" is not for Secrets; have the filter return all that the hook needs")
		}
	default:
		return fmt.Errorf("got %q, want \"result\", \"object\" or \"both\"", clip(keep))
	}
	return nil
}

// wakes reads wakes= into w.
func (c *call) wakes(w *WatchBinding) error {
	switch v := c.arg("wakes").(type) {
	case starlark.Callable:
		if err := takesOne(v, "the object"); err != nil {
			return err
		}
		w.Wakes, w.WakesID = v, filterID(v)
	case starlark.String:
		if v != "all" {
			return fmt.Errorf("got %q, want a function or \"all\"", clip(string(v)))
		}
		w.WakesAll = true
	}
	return nil
}

// excluded reads exclude_namespaces= into w.
func (c *call) excluded(w *WatchBinding) error {
	w.ExcludeNamespaces = c.strings("exclude_namespaces")
	if c.arg("exclude_namespaces") != nil && len(w.ExcludeNamespaces) == 0 {
		return errors.New("the list is empty; leave it out to exclude none")
	}
	for _, ns := range w.ExcludeNamespaces {
		if problems := validation.IsDNS1123Label(ns); len(problems) > 0 {
			return fmt.Errorf("%q is no valid name of a namespace", clip(ns))
		}
	}
	if w.Namespaces != nil && !slices.ContainsFunc(w.Namespaces, func(ns string) bool { return !slices.Contains(w.ExcludeNamespaces, ns) }) {
		return errors.New("nothing of namespaces is left")
	}
	return nil
}

// changes are what events= may name, in the order of [WatchBinding].
var changes = [...]string{"added", "modified", "deleted"}

// watchEvents reads events=.
func (c *call) watchEvents() ([]string, error) {
	if c.arg("events") == nil {
		return nil, nil
	}
	asked := c.strings("events")
	for i, event := range asked {
		if slices.Contains(changes[:], event) {
			continue
		}
		hint := "want " + strings.Join(changes[:], ", ")
		if near := message.Nearest(event, changes[:]); near != "" {
			hint = fmt.Sprintf("did you mean %q?", near)
		}
		return nil, fmt.Errorf("element %d: %q is no event of a watch (%s)", i, clip(event), hint)
	}
	out := []string{}
	for _, event := range changes {
		if slices.Contains(asked, event) {
			out = append(out, event)
		}
	}
	return out, nil
}

// barePath is what looks like a path, but is none in jq.
var barePath = regexp.MustCompile(`^[A-Za-z_][A-Za-z0-9_]*(\.[A-Za-z_][A-Za-z0-9_]*)*$`)

// filter reads filter= into w.
func (c *call) filter(w *WatchBinding) error {
	switch v := c.arg("filter").(type) {
	case nil:
		w.FilterID = "object"
	case starlark.Callable:
		if err := takesOne(v, "the object"); err != nil {
			return err
		}
		w.Filter, w.FilterID = v, filterID(v)
	case starlark.String:
		fn, err := jqFilter(string(v), w.Pos)
		if err != nil {
			if barePath.MatchString(string(v)) {
				return fmt.Errorf("%w; a path in jq begins with a dot, %q, one in a list without, [%q]", err, "."+clip(string(v)), clip(string(v)))
			}
			return err
		}
		w.Filter, w.FilterID = fn, fmt.Sprintf("jq %q", string(v))
	default:
		list := v.(starlark.Indexable)
		if err := TypeStrings.check(v); err != nil {
			return err
		}
		w.FilterFields = stringsOf(list)
		if len(w.FilterFields) == 0 {
			return errors.New("the list is empty; leave filter out to keep whole objects")
		}
		for i, f := range w.FilterFields {
			if _, err := object.ParsePath(starlark.String(f)); err != nil {
				return fmt.Errorf("element %d: %w", i, err)
			}
			if rest, dot := strings.CutPrefix(f, "."); dot { // of no object: nothing would be kept
				return fmt.Errorf("element %d: %q: a path begins without a dot, %q; a jq program is no list", i, clip(f), clip(rest))
			}
		}
		w.FilterID = fmt.Sprintf("fields %q", w.FilterFields)
	}
	return nil
}
