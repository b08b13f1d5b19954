package builtins

import (
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strings"

	"go.starlark.net/starlark"
	"k8s.io/apimachinery/pkg/util/validation"

	"github.com/starling-operator/starling/builtins/jq"
	"github.com/starling-operator/starling/builtins/spec"
	"github.com/starling-operator/starling/runtime/message"
	"github.com/starling-operator/starling/runtime/object"
)

func watchSpec() spec.Spec {
	return declare("k8s.watch", spec.InLoad, spec.NoEffect, callWatch, spec.Required("api_version", spec.String),
		spec.Required("kind", spec.String), spec.Optional("name", spec.String, "None"),
		spec.Optional("namespaces", spec.Strings, "None"), spec.Optional("exclude_namespaces", spec.Strings, "None"),
		spec.Optional("namespace_labels", spec.Selector, "None"), spec.Optional("object_names", spec.Strings, "None"),
		spec.Optional("labels", spec.Selector, "None"), spec.Optional("fields", spec.Selector, "None"),
		spec.Optional("filter", spec.Filter, "None"), spec.Optional("wakes", spec.Wakes, "None"),
		spec.Optional("index", spec.Dict, "None"), spec.Optional("keep", spec.String, `"result"`),
		spec.Optional("old", spec.Bool, "False"), spec.Optional("events", spec.Strings, `["added", "modified", "deleted"]`),
		spec.Optional("sync", spec.Bool, "True"), spec.Optional("gate", spec.Bool, "True"),
		spec.Optional("require", spec.Bool, "False"))
}

func callWatch(c *call) (starlark.Value, error) {
	w := &WatchBinding{
		APIVersion: c.Str("api_version"),
		Kind:       c.Str("kind"),
		Names:      c.Strings("object_names"),
		Quiet:      !c.BoolOr("sync", true),
		NoGate:     !c.BoolOr("gate", true),
		Old:        c.BoolOr("old", false),
		Require:    c.BoolOr("require", false),
		Pos:        c.Pos(),
	}
	name, err := c.shortName("name")
	if err != nil {
		return nil, err
	}
	if err := checkSeen(w.APIVersion, w.Kind); err != nil {
		return nil, err
	}
	if w.Namespaces, w.ExcludeNamespaces, err = c.selectedNamespaces(); err != nil {
		return nil, err
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
	for _, part := range []struct {
		param string
		read  func(*WatchBinding) error
	}{{"filter", c.filter}, {"keep", c.keep}, {"wakes", c.wakes}, {"index", c.indexes}} {
		if err := part.read(w); err != nil {
			return nil, fmt.Errorf("%s: %w", part.param, err)
		}
	}
	return binding(Binding{Name: name, Watch: w})
}

// keep reads keep= into w.
func (c *call) keep(w *WatchBinding) error {
	switch keep := c.StrOr("keep", "result"); keep {
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
		return fmt.Errorf("got %q, want \"result\", \"object\" or \"both\"", spec.Clip(keep))
	}
	return nil
}

// wakes reads wakes= into w.
func (c *call) wakes(w *WatchBinding) error {
	switch v := c.Arg("wakes").(type) {
	case starlark.Callable:
		if err := takesOne(v, "the object"); err != nil {
			return err
		}
		w.Wakes, w.WakesID = v, filterID(v)
	case starlark.String:
		if v != "all" {
			return fmt.Errorf("got %q, want a function or \"all\"", spec.Clip(string(v)))
		}
		w.WakesAll = true
	}
	return nil
}

// selectedNamespaces reads namespaces=, nil for all, and exclude_namespaces=.
func (c *call) selectedNamespaces() (in, out []string, err error) {
	if in, err = c.namespaces(); err != nil {
		return nil, nil, err
	}
	out = c.Strings("exclude_namespaces")
	if c.Arg("exclude_namespaces") != nil && len(out) == 0 {
		return nil, nil, errors.New("exclude_namespaces: the list is empty; leave it out to exclude none")
	}
	for _, ns := range out {
		if len(validation.IsDNS1123Label(ns)) > 0 {
			return nil, nil, fmt.Errorf("exclude_namespaces: %q is no valid name of a namespace", spec.Clip(ns))
		}
	}
	if in != nil && !slices.ContainsFunc(in, func(ns string) bool { return !contains(out, ns) }) {
		return nil, nil, errors.New("exclude_namespaces: nothing of namespaces is left")
	}
	return in, out, nil
}

// changes are what events= may name, in the order of [WatchBinding].
var changes = [...]string{"added", "modified", "deleted"}

// watchEvents reads events=.
func (c *call) watchEvents() ([]string, error) {
	if c.Arg("events") == nil {
		return nil, nil
	}
	asked := c.Strings("events")
	for i, event := range asked {
		if slices.Contains(changes[:], event) {
			continue
		}
		hint := "want " + strings.Join(changes[:], ", ")
		if near := message.Nearest(event, changes[:]); near != "" {
			hint = fmt.Sprintf("did you mean %q?", near)
		}
		return nil, fmt.Errorf("element %d: %q is no event of a watch (%s)", i, spec.Clip(event), hint)
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
	switch v := c.Arg("filter").(type) {
	case nil:
		w.FilterID = "object"
	case starlark.Callable:
		if err := takesOne(v, "the object"); err != nil {
			return err
		}
		w.Filter, w.FilterID = v, filterID(v)
	case starlark.String:
		fn, err := jq.Filter(string(v), w.Pos, func(t *starlark.Thread) spec.Scope { return From(t).scope() })
		if err != nil {
			if barePath.MatchString(string(v)) {
				return fmt.Errorf("%w; a path in jq begins with a dot, %q, one in a list without, [%q]", err, "."+spec.Clip(string(v)), spec.Clip(string(v)))
			}
			return err
		}
		w.Filter, w.FilterID = fn, fmt.Sprintf("jq %q", string(v))
	default:
		list := v.(starlark.Indexable)
		if err := spec.Strings.Check(v); err != nil {
			return err
		}
		w.FilterFields = spec.StringsOf(list)
		if len(w.FilterFields) == 0 {
			return errors.New("the list is empty; leave filter out to keep whole objects")
		}
		for i, f := range w.FilterFields {
			if _, err := object.ParsePath(starlark.String(f)); err != nil {
				return fmt.Errorf("element %d: %w", i, err)
			}
			if rest, dot := strings.CutPrefix(f, "."); dot { // of no object: nothing would be kept
				return fmt.Errorf("element %d: %q: a path begins without a dot, %q; a jq program is no list", i, spec.Clip(f), spec.Clip(rest))
			}
		}
		w.FilterID = fmt.Sprintf("fields %q", w.FilterFields)
	}
	return nil
}
