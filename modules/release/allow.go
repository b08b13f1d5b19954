package release

import (
	"errors"
	"fmt"
	"strings"

	"github.com/starling-operator/starling/builtins"
	"github.com/starling-operator/starling/modules/chart"
	"github.com/starling-operator/starling/runtime/effect"
)

// A chart acts with all rights of the operator. So it holds and reads only what its module
// names (docs/decisions/0016).

// instance names the Starling, whose own objects no chart may touch.
func (m *Manager) instance() effect.Instance {
	return effect.Instance{Namespace: m.o.Namespace, Name: m.o.Name}
}

// limit refuses objects that the release may not hold.
func (m *Manager) limit(t Target, objects []chart.Object) error {
	for _, o := range objects {
		own := o.In(t.Namespace)
		if o.Token && own.Namespace == m.o.Namespace {
			return fmt.Errorf("the chart holds %s with the token of a ServiceAccount in Starling's namespace, which belongs to Starling itself; give the module a namespace", o)
		}
		if m.instance().Owns(own) || m.instance().LivesIn(effect.Ref{APIVersion: o.APIVersion, Kind: o.Kind, Name: o.Name}) {
			return fmt.Errorf("the chart holds %s, which belongs to Starling itself", o)
		}
		if m.o.Others != nil && m.o.Others(own) {
			return fmt.Errorf("the chart holds %s, and another Starling takes its config from it", o)
		}
	}
	lines, wrong := chart.MissingInstalls(t.Input, objects)
	if len(wrong) > 0 {
		return fmt.Errorf("the chart holds an object of kind %s, and there is none (did you mean %s?)", wrong[0].Kind, wrong[0].Near)
	}
	if len(lines) > 0 {
		return errors.New(installsMissing + strings.Join(lines, ", "))
	}
	return nil
}

const installsMissing = "the chart holds more than everyday kinds in its namespace; if that is right, add to module(installs = […]) of module.star: "

// limitList is limit for what is about to be sent: the last word.
func (m *Manager) limitList(t Target, list []stored) error {
	var objects []chart.Object
	for _, s := range list {
		objects = append(objects, chart.Object{Ref: s.key, Token: effect.HoldsToken(s.key.APIVersion, s.key.Kind, s.obj.Object)})
	}
	return m.limit(t, objects)
}

// ours is the error about an object that belongs to Starling itself.
func ours(ref effect.Ref) error {
	return fmt.Errorf("lookup of %s: it belongs to Starling itself", ref)
}

// allowed refuses a lookup that the module does not name.
func (l *lookups) allowed(ref effect.Ref, namespaced bool) error {
	if ref.Name != "" && l.m.instance().Owns(ref) {
		return ours(ref)
	}
	if builtins.MayLookUp(l.target.Lookup, ref, namespaced, l.target.Namespace) {
		return nil
	}
	what := ref.Kind
	if ref.Name != "" {
		what = ref.String()
	} else if ref.Namespace != "" {
		what += " in " + ref.Namespace
	}
	return fmt.Errorf("lookup of %s is not allowed; if that is right, add to module(lookup = […]) of module.star: %s",
		what, builtins.LookupLine(ref, namespaced, l.target.Namespace))
}
