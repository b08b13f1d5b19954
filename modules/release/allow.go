package release

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/starling-operator/starling/builtins"
	"github.com/starling-operator/starling/runtime/effect"
)

// A chart acts with all rights of the operator. So it holds and reads only what its module
// names (docs/decisions/0016).

func (o object) ref(namespace string) effect.Ref {
	o.Namespace = cmp.Or(o.Namespace, namespace)
	return o.Key
}

// instance names the Starling, whose own objects no chart may touch.
func (m *Manager) instance() effect.Instance {
	return effect.Instance{Namespace: m.o.Namespace, Name: m.o.Name}
}

// limit refuses objects that the release may not hold.
func (m *Manager) limit(t Target, objects []object) error {
	for _, o := range objects {
		own := o.ref(t.Namespace)
		if o.token && own.Namespace == m.o.Namespace {
			return fmt.Errorf("the chart holds %s with the token of a ServiceAccount in Starling's namespace, which belongs to Starling itself; give the module a namespace", o)
		}
		if m.instance().Owns(own) || m.instance().LivesIn(effect.Ref{APIVersion: o.APIVersion, Kind: o.Kind, Name: o.Name}) {
			return fmt.Errorf("the chart holds %s, which belongs to Starling itself", o)
		}
		if m.o.Others != nil && m.o.Others(own) {
			return fmt.Errorf("the chart holds %s, and another Starling takes its config from it", o)
		}
	}
	lines, wrong := missingInstalls(t, objects)
	if len(wrong) > 0 {
		return fmt.Errorf("the chart holds an object of kind %s, and there is none (did you mean %s?)", wrong[0].Kind, wrong[0].Near)
	}
	if len(lines) > 0 {
		return errors.New(installsMissing + strings.Join(lines, ", "))
	}
	return nil
}

const installsMissing = "the chart holds more than everyday kinds in its namespace; if that is right, add to module(installs = […]) of module.star: "

// missingInstalls are the lines that would allow the objects, each once; wrong are objects of no kind that there is.
func missingInstalls(t Target, objects []object) (lines []string, wrong []Missing) {
	for _, o := range objects {
		if o.test && !t.Test || builtins.MayInstall(t.Installs, o.ref(t.Namespace), t.Namespace) {
			continue
		}
		if near := nearKind(o.APIVersion, o.Kind); near != "" {
			wrong = append(wrong, Missing{Kind: o.Kind, Near: near})
			continue
		}
		ref := o.ref(t.Namespace)
		if line := builtins.InstallLine(ref, t.Namespace); !slices.Contains(lines, line) {
			lines = append(lines, line)
		}
	}
	return lines, wrong
}

// limitList is limit for what is about to be sent: the last word.
func (m *Manager) limitList(t Target, list []stored) error {
	var objects []object
	for _, s := range list {
		objects = append(objects, object{Key: s.key, token: effect.HoldsToken(s.key.APIVersion, s.key.Kind, s.obj.Object)})
	}
	return m.limit(t, objects)
}

// ours is the error about an object that belongs to Starling itself.
func ours(ref effect.Ref) error {
	return fmt.Errorf("lookup of %s: it belongs to Starling itself", ref)
}

// allowed refuses a lookup that the module does not name.
func (l *lookups) allowed(ref effect.Ref, namespaced bool) error {
	if ref.Name != "" && l.instance.Owns(ref) {
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

// offlineLookups finds nothing, and notes what the module does not allow.
type offlineLookups struct {
	target  Target
	missing []Missing
}

func (l *offlineLookups) find(apiVersion, kind, namespace, name string) (map[string]any, error) {
	ref := effect.Ref{APIVersion: apiVersion, Kind: kind, Namespace: namespace, Name: name}
	// Without a cluster it is not known which kinds are in no namespace.
	if !builtins.MayLookUp(l.target.Lookup, ref, true, l.target.Namespace) &&
		(namespace != "" || !builtins.MayLookUp(l.target.Lookup, ref, false, l.target.Namespace)) {
		one := Missing{Line: builtins.LookupLine(ref, true, l.target.Namespace)}
		if !slices.Contains(l.missing, one) {
			l.missing = append(l.missing, one)
		}
	}
	if name == "" {
		return map[string]any{}, nil
	}
	return nil, apierrors.NewNotFound(schema.GroupResource{Resource: kind}, name)
}
