package builtins

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"go.starlark.net/starlark"

	"github.com/starling-operator/starling/builtins/data"
	"github.com/starling-operator/starling/builtins/jq"
	"github.com/starling-operator/starling/builtins/secrets"
	"github.com/starling-operator/starling/builtins/spec"
	"github.com/starling-operator/starling/runtime/message"
)

// Table returns the declarations of all builtins, by family. It is the one place that knows them.
func Table() []spec.Spec {
	return slices.Concat(
		declareSpecs(), fileSpecs(), crdSpecs(), bindingSpecs(), webhookSpecs(), valuesSpecs(), configSpecs(),
		k8sReadSpecs(), podSpecs(), askSpecs(), k8sWriteSpecs(), logSpecs(), metricsSpecs(), runSpecs(),
		data.Specs(), envSpecs(), jq.Specs(), secrets.Specs(), secretSpecs(),
		stateSpecs(), httpSpecs(), hostSpecs(), receiveSpecs(), desiredSpecs(), observeSpecs(),
		testSpecs(), expectSpecs(nil), assertSpecs(),
	)
}

// Predeclared returns what every file finds without loading it: the functions and
// namespaces of [Table]. The other names of go.starlark.net's universe stay.
func Predeclared() starlark.StringDict {
	env := members("", slices.DeleteFunc(Table(), func(s spec.Spec) bool {
		space, _, _ := strings.Cut(s.Name, ".")
		return space == "ctx" || space == "t" || space == "expect" // of the argument of a hook or of a test
	}))
	env.Freeze()
	return env
}

// members makes the values of builtins, by their names without what all begin with. One with a dot is in a namespace.
func members(prefix string, specs []spec.Spec) starlark.StringDict {
	env := starlark.StringDict{}
	for _, s := range specs {
		v := s.Value
		if v == nil {
			v = s.Function(enter)
		}
		space, member, dotted := strings.Cut(strings.TrimPrefix(s.Name, prefix), ".")
		ns := &namespace{name: prefix + space, members: starlark.StringDict{member: v}}
		switch known := env[space].(type) {
		case *namespace:
			known.members[member] = v
		case *callable:
			known.space.members[member] = v
		case *starlark.Builtin:
			env[space] = &callable{known, ns}
		default:
			if env[space] = ns; !dotted {
				env[space] = v
			}
		}
	}
	return env
}

// Names returns all names that a file may use without defining them, sorted: those
// of [Predeclared] and of the universe.
func Names() []string {
	names := slices.AppendSeq(starlark.Universe.Keys(), maps.Keys(Predeclared()))
	slices.Sort(names)
	return slices.Compact(names)
}

// callable is a function that is a namespace, too: module. The table names it before its members.
type callable struct {
	*starlark.Builtin
	space *namespace
}

var _ starlark.HasAttrs = (*callable)(nil)

// Attr returns one of its builtins.
func (c *callable) Attr(name string) (starlark.Value, error) { return c.space.Attr(name) }

// AttrNames are the names of its builtins.
func (c *callable) AttrNames() []string { return c.space.AttrNames() }

// namespace is a predeclared name whose attributes are builtins: k8s, values.
type namespace struct {
	name    string
	members starlark.StringDict
}

var _ starlark.HasAttrs = (*namespace)(nil)

func (n *namespace) String() string        { return "<module " + n.name + ">" }
func (n *namespace) Type() string          { return "module" }
func (n *namespace) Freeze()               {}
func (n *namespace) Truth() starlark.Bool  { return true }
func (n *namespace) Hash() (uint32, error) { return starlark.String(n.name).Hash() }
func (n *namespace) AttrNames() []string   { return n.members.Keys() }

func (n *namespace) Attr(name string) (starlark.Value, error) {
	if v, ok := n.members[name]; ok {
		return v, nil
	}
	names := n.AttrNames()
	hint := fmt.Sprintf("it has %d others", len(names))
	if len(names) <= 12 {
		hint = "it has " + strings.Join(names, ", ")
	}
	if near := message.Nearest(name, names); near != "" {
		hint = "did you mean " + n.name + "." + near + "?"
	}
	return nil, spec.Finalf("%s has no .%s (%s)", n.name, name, hint)
}
