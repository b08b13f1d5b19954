package builtins

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"go.starlark.net/starlark"

	"github.com/starling-operator/starling/runtime/message"
)

// Spec declares one builtin. Arguments are unpacked and phases checked from what
// it says, and docs, help and stubs are made of it.
type Spec struct {
	// Name as it is called, dotted inside a namespace: "k8s.apply".
	Name string
	// Params in the order of the call. Empty for constants.
	Params []Param
	// Phases are those in which it may be called.
	Phases Phase
	// Effect says what it does to the world outside.
	Effect EffectClass

	call  func(*call) (starlark.Value, error)
	value starlark.Value // of a constant; call is nil then

	// Doc says in plain words what it does, with shapes, units and errors. This and what follows is empty but for
	// [Documented].
	Doc string
	// Returns says what it returns; empty for None.
	Returns string
	// Example is code that shows how it is called. Lines behind ">>> " are typed in a session, what it answers
	// follows; other code is that of a file.
	Example string
}

// Constant reports whether the builtin is a value, not a function: math.pi.
func (s *Spec) Constant() bool { return s.value != nil }

// Param declares one parameter.
type Param struct {
	// Name, with "*" or "**" before it when it takes all further positional or
	// keyword arguments.
	Name string
	// Type says what it takes, and how it is checked.
	Type Type
	// Default as it is written in Starlark; empty means required. "None" means
	// that None may be given.
	Default string
	// Keyword means that it cannot be given by position.
	Keyword bool
	// Doc says what it means; empty but for [Documented].
	Doc string
}

// required is a parameter that must be given, by position or by keyword.
func required(name string, kind Type) Param { return Param{Name: name, Type: kind} }

// optional is a parameter with a default.
func optional(name string, kind Type, value string) Param {
	return Param{Name: name, Type: kind, Default: value}
}

// rest is a parameter that takes all further arguments; its name says which: "*args", "**fields".
func rest(name string, kind Type) Param { return Param{Name: name, Type: kind} }

// keyword is a parameter that goes by keyword alone; it is required when value is "".
func keyword(name string, kind Type, value string) Param {
	return Param{Name: name, Type: kind, Default: value, Keyword: true}
}

// Type is the type of a parameter, in words for people.
type Type string

// The types of parameters.
const (
	TypeAny      Type = "any"
	TypeString   Type = "string"
	TypeText     Type = "string or bytes"
	TypeBool     Type = "bool"
	TypeInt      Type = "int"
	TypeNumber   Type = "int or float"
	TypeStrings  Type = "list of strings"
	TypeList     Type = "list"
	TypeDict     Type = "dict or object"
	TypeFunction Type = "function"
	TypePath     Type = "string or list of strings" // see product.md, "Paths"
	TypeDuration Type = "duration, as \"30s\", or seconds"
	TypeSelector Type = "string, list of strings or dict"
	TypeFilter   Type = "function, list of strings or jq program"
	TypeWakes    Type = "function or \"all\""
	TypeRef      Type = "object, dict or string"
	// TypePod names a Pod.
	TypePod   Type = "string, object or dict"
	TypeRetry Type = "retry"
	// TypeConditions are named expressions.
	TypeConditions Type = "dict or list of dicts"
	TypeTime       Type = "time"
	TypeSecret     Type = "secret"
	// TypeSecretRef is what secret_ref(…) returns.
	TypeSecretRef Type = "secret_ref"
	// TypeSecretText is text that may be secret; what is made of it is secret then.
	TypeSecretText Type = "string, bytes or secret"
)

// EffectClass says what a builtin does to the world outside the program.
type EffectClass int

const (
	// EffectNone: pure, or declares.
	EffectNone EffectClass = iota
	// EffectRead reads what may change: values, the cluster, the clock.
	EffectRead
	// EffectWrite records an effect, or logs.
	EffectWrite
)

func (e EffectClass) String() string { return [...]string{"none", "read", "write"}[e] }

// Table returns the declarations of all builtins, by family. It is the one place
// that knows them.
func Table() []Spec {
	return slices.Concat(
		declareSpecs(), fileSpecs(), crdSpecs(), bindingSpecs(), webhookSpecs(), valuesSpecs(), configSpecs(), k8sReadSpecs(), podSpecs(), askSpecs(), k8sWriteSpecs(),
		logSpecs(), metricsSpecs(), runSpecs(), dataSpecs(),
		jsonSpecs(), yamlSpecs(), reSpecs(), encodingSpecs(), gzipSpecs(), timeSpecs(), mathSpecs(),
		semverSpecs(), namesSpecs(), envSpecs(), jqSpecs(), randomSpecs(), tlsSpecs(), jwtSpecs(), bcryptSpecs(), secretSpecs(), stateSpecs(), httpSpecs(), hostSpecs(), receiveSpecs(), desiredSpecs(),
		testSpecs(), expectSpecs(nil), assertSpecs(),
	)
}

// Predeclared returns what every file finds without loading it: the functions and
// namespaces of [Table]. The other names of go.starlark.net's universe stay.
func Predeclared() starlark.StringDict {
	env := starlark.StringDict{}
	spaces := map[string]*namespace{}
	for _, spec := range Table() {
		var v starlark.Value = spec.value
		if v == nil {
			v = newBuiltin(&spec)
		}
		space, member, dotted := strings.Cut(spec.Name, ".")
		if unbound(space) {
			continue
		}
		if !dotted {
			env[spec.Name] = v
			continue
		}
		ns := spaces[space]
		if ns == nil {
			ns = &namespace{name: space, members: starlark.StringDict{}}
			spaces[space] = ns
			if fn, both := env[space].(*starlark.Builtin); both {
				env[space] = &callable{fn, ns}
			} else {
				env[space] = ns
			}
		}
		ns.members[member] = v
	}
	env.Freeze()
	return env
}

// Names returns all names that a file may use without defining them, sorted: those
// of [Predeclared] and of the universe.
func Names() []string {
	seen := map[string]bool{}
	for name := range starlark.Universe {
		seen[name] = true
	}
	for _, spec := range Table() {
		if name, _, _ := strings.Cut(spec.Name, "."); !unbound(name) {
			seen[name] = true
		}
	}
	return slices.Sorted(maps.Keys(seen))
}

// unbound says that a name of the table is no predeclared one: it belongs to the
// argument of a hook or of a test.
func unbound(space string) bool { return space == "ctx" || space == "t" || space == "expect" }

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
	return nil, finalf("%s has no .%s (%s)", n.name, name, hint)
}
