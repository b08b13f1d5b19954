// Package spec is how a builtin is declared and called. A family declares its builtins as [Spec]s, whose functions
// take a [Call]: its arguments, checked, and of the world outside what is in its [Scope].
package spec

import (
	"strings"
	"time"

	"go.starlark.net/starlark"
)

// Spec declares one builtin. Arguments and phases are checked from what it says, and docs are made of it.
type Spec struct {
	// Name as it is called, dotted inside a namespace: "k8s.apply".
	Name string
	// Params in the order of the call. Empty for constants.
	Params []Param
	// Phases are those in which it may be called.
	Phases Phase
	// Effect says what it does to the world outside.
	Effect EffectClass

	// Call is the function behind it; nil for a constant, which has a Value.
	Call  Func
	Value starlark.Value

	// Doc says in plain words what it does. This and what follows is empty but for docs.Documented.
	Doc string
	// Returns says what it returns; empty for None.
	Returns string
	// Example is code that shows how it is called. Lines behind ">>> " are typed in a session, what it answers
	// follows; other code is that of a file.
	Example string
}

// Func is what a builtin does. It returns nil for None.
type Func func(*Call) (starlark.Value, error)

// New declares a builtin.
func New(name string, phases Phase, effect EffectClass, call Func, params ...Param) Spec {
	return Spec{Name: name, Phases: phases, Effect: effect, Call: call, Params: params}
}

// Pure declares one that can be called everywhere: what it returns depends on its arguments alone.
func Pure(name string, call Func, params ...Param) Spec {
	return New(name, Anywhere, NoEffect, call, params...)
}

// Constant reports whether the builtin is a value, not a function: math.pi.
func (s *Spec) Constant() bool { return s.Value != nil }

// Param declares one parameter.
type Param struct {
	// Name, with "*" or "**" before it when it takes all further positional or keyword arguments.
	Name string
	// Type says what it takes, and how it is checked.
	Type Type
	// Default as it is written in Starlark; empty means required. "None" means that None may be given.
	Default string
	// Keyword means that it cannot be given by position.
	Keyword bool
	// Doc says what it means; empty but for docs.Documented.
	Doc string

	least, most int           // of an int; most is 0 where nothing bounds it
	longest     time.Duration // of a duration, which is not 0 then; 0 where nothing bounds it
}

// Between returns a parameter whose number has these bounds.
func (p Param) Between(least, most int) Param {
	p.least, p.most = least, most
	return p
}

// UpTo returns a parameter whose duration is more than 0, and this at most.
func (p Param) UpTo(longest time.Duration) Param {
	p.longest = longest
	return p
}

// Required is a parameter that must be given, by position or by keyword.
func Required(name string, kind Type) Param { return Param{Name: name, Type: kind} }

// Optional is a parameter with a default.
func Optional(name string, kind Type, value string) Param {
	return Param{Name: name, Type: kind, Default: value}
}

// Rest is a parameter that takes all further arguments; its name says which: "*args", "**fields".
func Rest(name string, kind Type) Param { return Param{Name: name, Type: kind} }

// Keyword is a parameter that goes by keyword alone; it is required when value is "".
func Keyword(name string, kind Type, value string) Param {
	return Param{Name: name, Type: kind, Default: value, Keyword: true}
}

// Type is the type of a parameter, in words for people.
type Type string

// The types of parameters.
const (
	Any      Type = "any"
	String   Type = "string"
	Text     Type = "string or bytes"
	Bool     Type = "bool"
	Int      Type = "int"
	Number   Type = "int or float"
	Strings  Type = "list of strings"
	List     Type = "list"
	Dict     Type = "dict or object"
	Function Type = "function"
	Path     Type = "string or list of strings" // see product.md, "Paths"
	Duration Type = "duration, as \"30s\", or seconds"
	Selector Type = "string, list of strings or dict"
	Filter   Type = "function, list of strings or jq program"
	Wakes    Type = "function or \"all\""
	Ref      Type = "object, dict or string"
	// Pod names a Pod.
	Pod   Type = "string, object or dict"
	Retry Type = "retry"
	// Conditions are named expressions.
	Conditions Type = "dict or list of dicts"
	Time       Type = "time"
	Secret     Type = "secret"
	// SecretRef is what secret_ref(…) returns.
	SecretRef Type = "secret_ref"
	// SecretText is text that may be secret; what is made of it is secret then.
	SecretText Type = "string, bytes or secret"
)

// EffectClass says what a builtin does to the world outside the program.
type EffectClass int

const (
	// NoEffect: pure, or declares.
	NoEffect EffectClass = iota
	// Reads reads what may change: values, the cluster, the clock.
	Reads
	// Writes records an effect, or logs.
	Writes
)

func (e EffectClass) String() string { return [...]string{"none", "read", "write"}[e] }

// Signature writes a builtin as its users call it.
func (s Spec) Signature() string {
	if s.Constant() {
		return s.Name
	}
	return s.Name + s.List(func(p Param) string { return strings.TrimSuffix(p.Name+"="+p.Default, "=") })
}

// List writes the parameters as Python declares them, with "*" before the first one that goes by keyword.
func (s Spec) List(one func(Param) string) string {
	var params []string
	keyword := false
	for _, p := range s.Params {
		if p.Keyword && !keyword {
			params = append(params, "*")
		}
		keyword = keyword || p.Keyword || strings.HasPrefix(p.Name, "*")
		params = append(params, one(p))
	}
	return "(" + strings.Join(params, ", ") + ")"
}
