package builtins

import (
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	startime "go.starlark.net/lib/time"
	"go.starlark.net/starlark"

	"github.com/starling-operator/starling/builtins/spec"
	"github.com/starling-operator/starling/runtime/effect"
	"github.com/starling-operator/starling/runtime/message"
)

// readsBinding begins the names of the bindings of reads=.
const readsBinding = "reads-"

// maxLookups bounds how many places one run looks at.
const maxLookups = 10_000

// Lookups answers what the functions of a controller ask beside the parent and its children, in one run:
// ctx.reads and ctx.reached. It knows afterwards what they have asked. It is safe for concurrent use: a
// function that has not ended in time may go on.
type Lookups struct {
	o     LookupsOptions
	mu    sync.Mutex
	asked map[effect.Lookup]answer
	due   time.Time
}

// answer is that of one lookup.
type answer struct {
	rows []starlark.Value
	err  error
}

// LookupsOptions configures [Lookups].
type LookupsOptions struct {
	// Bindings are those of the controller: ctx.reads has those with [WatchBinding].Read.
	Bindings []Binding
	// Rows returns the rows at a place, frozen, sorted by namespace and name. Nil: there are none.
	Rows func(effect.Lookup) ([]starlark.Value, error)
	// Namespaced says whether the objects of a kind are known to have a namespace. Nil: nobody knows.
	Namespaced func(apiVersion, kind string) bool
	// Now is the time of the run.
	Now time.Time
}

// NewLookups makes what one run asks.
func NewLookups(o LookupsOptions) *Lookups { return &Lookups{o: o, asked: map[effect.Lookup]answer{}} }

// Asked returns where the functions have looked, and the soonest time of those that they have asked for and
// that had not come; zero: none.
func (l *Lookups) Asked() (lookups []effect.Lookup, due time.Time) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for asked := range l.asked {
		lookups = append(lookups, asked)
	}
	return lookups, l.due
}

// LookupText is a lookup as code. Hide leaves out the value of an index.
func LookupText(l effect.Lookup, hide bool) string {
	if l.Watch == "" {
		return "values"
	}
	text := "ctx.reads." + strings.TrimPrefix(l.Watch, readsBinding)
	if l.At == effect.Everywhere {
		return text + ".all()"
	}
	if key, is := strings.CutPrefix(l.At, effect.AtObject("")); is {
		return fmt.Sprintf("%s.get(%q)", text, key)
	}
	index, value, _ := strings.Cut(l.At, "=")
	if hide || strings.HasPrefix(value, "\x00") { // or too long
		return fmt.Sprintf("%s.by(%q, …)", text, index)
	}
	return fmt.Sprintf("%s.by(%q, %q)", text, index, value)
}

// Values notes that the values of the module were looked at.
func (l *Lookups) Values() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.asked[effect.Lookup{At: effect.Everywhere}] = answer{}
}

// rows looks at a place. The same question has the same answer throughout the run.
func (l *Lookups) rows(asked effect.Lookup) ([]starlark.Value, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	a, known := l.asked[asked]
	switch {
	case known:
		return a.rows, a.err
	case len(l.asked) >= maxLookups:
		return nil, fmt.Errorf("more than %d lookups in one run; ctx.reads.….all() is one", maxLookups)
	}
	if l.o.Rows != nil {
		a.rows, a.err = l.o.Rows(asked)
	}
	l.asked[asked] = a
	return a.rows, a.err
}

// reached is ctx.reached.
func (l *Lookups) reached(_ *starlark.Thread, b *starlark.Builtin, args starlark.Tuple, kwargs []starlark.Tuple) (starlark.Value, error) {
	var given starlark.Value
	if err := starlark.UnpackArgs(b.Name(), args, kwargs, "t", &given); err != nil {
		return nil, err
	}
	at, err := timeOf(given)
	if err != nil {
		return nil, fmt.Errorf("ctx.reached: %w", err)
	}
	if !l.o.Now.Before(at) {
		return starlark.True, nil
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.due.IsZero() || at.Before(l.due) {
		l.due = at
	}
	return starlark.False, nil
}

// timeOf reads a time, or the text of one as objects have it.
func timeOf(v starlark.Value) (time.Time, error) {
	switch v := v.(type) {
	case startime.Time:
		return time.Time(v), nil
	case starlark.String:
		if at, err := time.Parse(time.RFC3339, string(v)); err == nil {
			return at, nil
		}
		return time.Time{}, fmt.Errorf(`%q is no time; write "2026-01-31T12:00:00Z"`, spec.Clip(string(v)))
	}
	return time.Time{}, fmt.Errorf(`got %s, want a time, or text as "2026-01-31T12:00:00Z"`, v.Type())
}

// readsValue is ctx.reads.
type readsValue struct {
	spec.Opaque
	l *Lookups
}

var _ starlark.HasAttrs = readsValue{}

func (r readsValue) String() string       { return "<ctx.reads>" }
func (r readsValue) Truth() starlark.Bool { return len(r.AttrNames()) > 0 }

// AttrNames are the names of reads=.
func (r readsValue) AttrNames() (names []string) {
	for _, b := range r.l.o.Bindings {
		if b.Watch != nil && b.Watch.Read != "" {
			names = append(names, b.Watch.Read)
		}
	}
	slices.Sort(names)
	return names
}

// Attr leaves the error about an absent name to go.starlark.net, which suggests.
func (r readsValue) Attr(name string) (starlark.Value, error) {
	for i := range r.l.o.Bindings {
		if b := &r.l.o.Bindings[i]; b.Watch != nil && b.Watch.Read != "" && b.Watch.Read == name {
			return readValue{"read", r.l, b}, nil
		}
	}
	return nil, nil
}

// readValue is one of ctx.reads.
type readValue struct {
	spec.Opaque
	l *Lookups
	b *Binding
}

var _ starlark.HasAttrs = readValue{}

func (r readValue) String() string      { return "<ctx.reads." + r.b.Watch.Read + ">" }
func (r readValue) AttrNames() []string { return []string{"all", "by", "get"} }

// Attr returns a function that looks rows up.
func (r readValue) Attr(name string) (starlark.Value, error) {
	do := map[string]func(args starlark.Tuple, kwargs []starlark.Tuple) (starlark.Value, error){"all": r.all, "by": r.by, "get": r.get}[name]
	if do == nil {
		return nil, nil
	}
	return starlark.NewBuiltin(name, func(_ *starlark.Thread, _ *starlark.Builtin, args starlark.Tuple, kwargs []starlark.Tuple) (starlark.Value, error) {
		v, err := do(args, kwargs)
		if err != nil {
			return nil, fmt.Errorf("ctx.reads.%s.%s: %w", r.b.Watch.Read, name, err)
		}
		return v, nil
	}), nil
}

func (r readValue) at(place string) ([]starlark.Value, error) {
	return r.l.rows(effect.Lookup{Watch: r.b.Name, At: place})
}

func (r readValue) get(args starlark.Tuple, kwargs []starlark.Tuple) (starlark.Value, error) {
	var key string
	if err := starlark.UnpackArgs("get", args, kwargs, "key", &key); err != nil {
		return nil, err
	}
	rows, err := r.at(effect.AtObject(key))
	w, scoped := r.b.Watch, r.l.o.Namespaced
	if err == nil && len(rows) == 0 && !strings.Contains(key, "/") && scoped != nil && scoped(w.APIVersion, w.Kind) {
		err = fmt.Errorf("the key of a %s is \"namespace/name\", got %q", w.Kind, spec.Clip(key))
	}
	if err != nil || len(rows) == 0 {
		return starlark.None, err
	}
	return rows[0], nil
}

func (r readValue) by(args starlark.Tuple, kwargs []starlark.Tuple) (starlark.Value, error) {
	var index, value string
	if err := starlark.UnpackArgs("by", args, kwargs, "index", &index, "value", &value); err != nil {
		return nil, err
	}
	var names []string
	for _, x := range r.b.Watch.Index {
		names = append(names, x.Name)
	}
	if !slices.Contains(names, index) {
		hint := message.DidYouMean(index, names, "it has "+strings.Join(names, ", "))
		if len(names) == 0 {
			hint = "its watch has none: k8s.watch(…, index = {…})"
		}
		return nil, fmt.Errorf("there is no index %q (%s)", spec.Clip(index), hint)
	}
	return r.list(effect.AtIndex(index, value))
}

func (r readValue) all(args starlark.Tuple, kwargs []starlark.Tuple) (starlark.Value, error) {
	if err := starlark.UnpackArgs("all", args, kwargs); err != nil {
		return nil, err
	}
	return r.list(effect.Everywhere)
}

func (r readValue) list(place string) (starlark.Value, error) {
	rows, err := r.at(place)
	if err != nil {
		return nil, err
	}
	list := starlark.NewList(slices.Clip(rows))
	list.Freeze()
	return list, nil
}
