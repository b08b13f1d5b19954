package builtins

import (
	"crypto/sha256"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"go.starlark.net/starlark"

	"github.com/starling-operator/starling/builtins/spec"
	"github.com/starling-operator/starling/runtime/object"
)

// defaultHookTimeout is hook(timeout=).
const defaultHookTimeout = 30 * time.Second

// maxHookTimeout bounds hook(timeout=): a run holds one of its module's places.
const maxHookTimeout = 10 * time.Minute

func hookSpec() spec.Spec {
	return declare("hook", spec.InLoad, spec.NoEffect, callHook, spec.Optional("fn", spec.Function, "None"),
		spec.Optional("on", spec.List, "[]"), spec.Optional("name", spec.String, "None"),
		spec.Optional("timeout", spec.Duration, `"30s"`).UpTo(maxHookTimeout), spec.Optional("retry", spec.Retry, "None"),
		spec.Optional("queue", spec.String, "None"), spec.Optional("allow_failure", spec.Bool, "False"),
		spec.Optional("min_interval", spec.Duration, "None"), spec.Optional("burst", spec.Int, "1"),
		spec.Optional("for_each", spec.String, "None"), spec.Optional("parallel", spec.Int, "4"),
		spec.Optional("cleanup", spec.Function, "None"), spec.Optional("values", spec.String, `"replace"`))
}

func callHook(c *call) (starlark.Value, error) {
	file := c.ctx.File
	if file.Role&RoleHooks == 0 {
		return nil, fmt.Errorf("only files under hooks/ register hooks; this is %s", file.Path)
	}
	h := &HookDecl{
		Timeout: c.DurationOr("timeout", defaultHookTimeout),
		Retry:   DefaultRetry,
		Pos:     c.Pos(),
	}
	if r, ok := c.Arg("retry").(*declared[Retry]); ok {
		h.Retry = r.val
	}
	if err := c.hookOptions(h); err != nil {
		return nil, err
	}
	var err error
	if h.Bindings, err = c.bindings(); err != nil {
		return nil, fmt.Errorf("on: %w", err)
	}
	if len(h.Bindings) > 1 && slices.ContainsFunc(h.Bindings, func(b Binding) bool { return b.Startup != nil && b.Startup.WhenOff }) {
		return nil, errors.New("on: startup(when_off = True) is the only trigger of its hook, for a module that is off has no others; register another hook for them")
	}
	if err := c.unusedOptions(h); err != nil {
		return nil, err
	}
	if err := noIndex(h.Bindings); err != nil {
		return nil, err
	}
	if err := c.hookFunction(h); err != nil {
		return nil, fmt.Errorf("fn: %w", err)
	}
	if err := h.convertSnapshots(); err != nil {
		return nil, err
	}
	if err := c.forEach(h); err != nil {
		return nil, err
	}
	return nil, c.register(h)
}

// register puts a hook to those of its file, under an id that no other one has.
func (c *call) register(h *HookDecl) (err error) {
	if h.ID, err = c.hookID(h); err != nil {
		return err
	}
	return c.add(h)
}

func (c *call) add(h *HookDecl) error {
	file := c.ctx.File
	for _, other := range file.Hooks {
		if other.ID == h.ID {
			return fmt.Errorf("hook %s is registered already at %s; give one of them name=", h.ID, other.Pos)
		}
	}
	file.Hooks = append(file.Hooks, h)
	return nil
}

// hookOptions reads the options that need no check against others.
func (c *call) hookOptions(h *HookDecl) (err error) {
	if h.Queue, err = c.shortName("queue"); err != nil {
		return err
	}
	h.AllowFailure = c.BoolOr("allow_failure", false)
	h.MinInterval = c.DurationOr("min_interval", 0)
	h.Burst = c.IntOr("burst", 1)
	if h.Burst < 1 || h.Burst > 1000 {
		return fmt.Errorf("burst: got %d, want 1 to 1000", h.Burst)
	}
	if h.Burst > 1 && h.MinInterval == 0 {
		return errors.New("burst: means nothing without min_interval")
	}
	switch how := c.StrOr("values", "replace"); how {
	case "replace":
	case "keep":
		h.KeepValues = true
	default:
		return fmt.Errorf("values: got %q, want \"replace\" or \"keep\"", spec.Clip(how))
	}
	return nil
}

// unusedOptions refuses what is about runs that are repeated, where all runs answer requests:
// the client waits, and asks again.
func (c *call) unusedOptions(h *HookDecl) error {
	reads := true
	for i := range h.Bindings {
		phase := h.Bindings[i].Phase()
		if phase == 0 {
			return nil
		}
		reads = reads && phase != spec.InReceive
	}
	unused := []string{"retry", "allow_failure", "min_interval", "burst"}
	if reads { // beside all lanes
		unused = append(unused, "queue", "values")
	}
	for _, name := range unused {
		if c.Arg(name) != nil {
			return fmt.Errorf("%s: means nothing here: all that triggers the hook are requests, which are answered once", name)
		}
	}
	return nil
}

// bindings reads on=.
func (c *call) bindings() ([]Binding, error) {
	list, ok := c.Arg("on").(starlark.Indexable)
	if !ok {
		return nil, errors.New("it is missing, so nothing would trigger the hook; write on = [" + someBindings + "]")
	}
	return bindingsOf(list)
}

// hookFunction reads fn=, which only conversions do without.
func (c *call) hookFunction(h *HookDecl) error {
	converts := !slices.ContainsFunc(h.Bindings, func(b Binding) bool { return b.Convert == nil && b.triggers() })
	fn, given := c.Arg("fn").(starlark.Callable)
	switch {
	case !given && converts:
		return nil
	case !given:
		return errors.New("it is missing; give the function that the hook calls, by its name and without brackets")
	case converts:
		return errors.New("nothing would call it, k8s.convert has its own functions; leave it out: hook(on = [k8s.convert(…)])")
	}
	h.Fn = fn
	return takesCtx(fn)
}

// hookID is name=, or the file's path below the module's folder and the name of
// the function; without one, of the CustomResourceDefinition that is converted.
func (c *call) hookID(h *HookDecl) (string, error) {
	if c.Arg("name") != nil {
		id := c.Str("name")
		if id == "" || len(id) > 200 || strings.ContainsFunc(id, func(r rune) bool { return r <= ' ' || r == 0x7f }) {
			return "", fmt.Errorf("name: %q is no id: at most 200 characters, no spaces", spec.Clip(id))
		}
		return id, nil
	}
	what := ""
	switch {
	case h.Fn == nil:
		i := slices.IndexFunc(h.Bindings, func(b Binding) bool { return b.Convert != nil })
		what = h.Bindings[i].Convert.CRD
	case h.Fn.Name() == "lambda":
		return "", errors.New("name: a lambda has no name; give one")
	default:
		what = h.Fn.Name()
	}
	path := c.ctx.File.Path
	if _, below, ok := strings.Cut(path, "/"); ok {
		path = below
	}
	return path + ":" + what, nil
}

// function reads an argument that is a function, and whose parameters are right; nil: none is given.
func (c *call) function(name string, right func(starlark.Callable) error) (starlark.Callable, error) {
	fn, given := c.Arg(name).(starlark.Callable)
	if !given {
		return nil, nil
	}
	if err := right(fn); err != nil {
		return nil, fmt.Errorf("%s: %w", name, err)
	}
	return fn, nil
}

// takesOne makes sure that fn can be called with exactly one positional argument.
func takesOne(fn starlark.Callable, param string) error { return takes(fn, 1, "one, "+param) }

func takesCtx(fn starlark.Callable) error   { return takesOne(fn, "ctx") }
func takesChild(fn starlark.Callable) error { return takesOne(fn, "child") }

// takesParent makes sure that fn can be the desired function of a controller.
func takesParent(fn starlark.Callable) error { return takes(fn, 2, "two, ctx and the parent") }

// takes makes sure that fn can be called with exactly n positional arguments.
func takes(fn starlark.Callable, n int, params string) error {
	_, names, _ := strings.Cut(params, ", ")
	f, ok := fn.(*starlark.Function)
	if !ok {
		return fmt.Errorf("%s is a builtin; write a function that takes %s", fn.Name(), names)
	}
	positional := f.NumParams() - f.NumKwonlyParams()
	if f.HasVarargs() {
		positional--
	}
	if f.HasKwargs() {
		positional--
	}
	required := 0
	for i := range positional {
		if f.ParamDefault(i) == nil {
			required++
		}
	}
	for i := range f.NumKwonlyParams() {
		if f.ParamDefault(positional+i) == nil {
			name, _ := f.Param(positional + i)
			return fmt.Errorf("%s needs the argument %s; it is only given %s", f.Name(), name, names)
		}
	}
	if required > n || positional < n && !f.HasVarargs() {
		hint := ""
		if f.Name() != "lambda" {
			hint = fmt.Sprintf(": def %s(%s):", f.Name(), strings.NewReplacer(" and ", ", ", "the object", "o", "the ", "").Replace(names))
		}
		return fmt.Errorf("%s takes %d arguments; it must take %s%s", f.Name(), required, params, hint)
	}
	return nil
}

// bindingsOf reads on=, and names what has no name.
func bindingsOf(list starlark.Indexable) ([]Binding, error) {
	if list.Len() == 0 {
		return nil, errors.New("the list is empty, so nothing would trigger the hook; write [" + someBindings + "]")
	}
	var out []Binding
	taken := map[string]bool{}
	for i := range list.Len() {
		b, err := bindingOf(list.Index(i))
		if err != nil {
			return nil, fmt.Errorf("element %d: %w", i, err)
		}
		if b.Name != "" && taken[b.Name] {
			return nil, fmt.Errorf("element %d: the name %q is used twice", i, spec.Clip(b.Name))
		}
		taken[b.Name] = true
		out = append(out, b)
	}
	if !slices.ContainsFunc(out, Binding.triggers) {
		return nil, errors.New("nothing would trigger the hook: its watches have events = [] and sync = False")
	}
	for i := range out {
		if out[i].Name != "" {
			continue
		}
		kind := out[i].defaultName()
		name := kind
		for n := 2; taken[name]; n++ {
			name = kind + "-" + strconv.Itoa(n)
		}
		taken[name], out[i].Name = true, name
	}
	return out, nil
}

// someBindings shows how triggers are written.
const someBindings = `startup(), schedule("*/5 * * * *") or k8s.watch("v1", "Pod")`

// triggers is false for a watch that is there for its snapshot alone.
func (b Binding) triggers() bool {
	return b.Watch == nil || !b.Watch.Quiet || b.Watch.Events == nil || len(b.Watch.Events) > 0
}

// bindingOf reads one element of on=. A bare startup, or the bare name of a stage,
// means the call without arguments.
func bindingOf(v starlark.Value) (Binding, error) {
	switch v := v.(type) {
	case *declared[Binding]:
		return v.val, nil
	case *starlark.Builtin:
		switch v.Name() {
		case "startup":
			return Binding{Startup: &StartupBinding{}}, nil
		case string(StageBeforeHelm), string(StageAfterHelm), string(StageBeforeDelete), string(StageAfterDelete),
			string(StageBeforeAll), string(StageAfterAll):
			return Binding{Stage: &StageBinding{Stage: Stage(v.Name())}}, nil
		}
		return Binding{}, fmt.Errorf("got %s, want a binding, such as "+someBindings, v.Name())
	}
	return Binding{}, fmt.Errorf("got %s, want a binding, such as "+someBindings, v.Type())
}

func (b *Binding) defaultName() string {
	switch {
	case b.Startup != nil:
		return "startup"
	case b.Schedule != nil:
		return "schedule"
	case b.Stage != nil:
		return string(b.Stage.Stage)
	case b.Admission != nil && b.Admission.Mutate:
		return "mutate"
	case b.Admission != nil:
		return "validate"
	case b.Convert != nil:
		return "convert"
	case b.Receive != nil:
		return "receive"
	}
	return strings.ToLower(b.Watch.Kind)
}

// filterID identifies what a function does as far as this can be told from
// outside: where it was written, and what it closes over.
func filterID(fn starlark.Callable) string { return functionID(fn, 0) }

// maxClosures bounds how far functionID follows functions that close over
// functions, which may close over each other.
const maxClosures = 4

func functionID(fn starlark.Callable, depth int) string {
	f, ok := fn.(*starlark.Function)
	if !ok {
		return "builtin " + fn.Name()
	}
	id := f.Position().String()
	if depth == maxClosures {
		return id
	}
	h := sha256.New()
	closed := false
	note := func(name string, v starlark.Value) {
		text := "unset"
		if inner, ok := v.(starlark.Callable); ok {
			text = functionID(inner, depth+1)
		} else if v != nil {
			known := false
			if text, known = object.Text(v, spec.MaxText); !known {
				text = fmt.Sprintf("%p", v) // another function each time it is loaded
			}
		}
		closed = true
		fmt.Fprintf(h, "%q=%q\n", name, text)
	}
	for i := range f.NumFreeVars() {
		b, v := f.FreeVar(i)
		note(b.Name, v)
	}
	for i := range f.NumParams() {
		if v := f.ParamDefault(i); v != nil {
			name, _ := f.Param(i)
			note(name, v)
		}
	}
	if !closed {
		return id
	}
	return fmt.Sprintf("%s %x", id, h.Sum(nil)[:8])
}
