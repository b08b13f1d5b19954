package record

import (
	"errors"
	"maps"
	"reflect"
	"slices"

	"go.starlark.net/starlark"

	"github.com/starling-operator/starling/builtins"
	"github.com/starling-operator/starling/modules/status"
	"github.com/starling-operator/starling/runtime/codec"
	"github.com/starling-operator/starling/runtime/effect"
	"github.com/starling-operator/starling/runtime/generation"
)

const (
	// inPlace is how large a part may be to stand in the run's own file.
	inPlace = 512
	// maxComposed is how many views of the values are kept of one run, the first and
	// the last ones; a replay makes up the others.
	maxComposed = 50
)

// errLarge says that a run is too large to be kept.
var errLarge = errors.New("it is larger than a record may be")

// packer makes records of traces and puts them into a store. It serves one goroutine.
type packer struct {
	store *Store

	// sources and lists spare work: what is kept already is known by them. Generation
	// is that of the last run.
	sources    map[string]source
	lists      map[string]*list // by hook and binding
	generation int
}

// source is the files of a module, as they are kept.
type source struct {
	module *generation.Module
	name   Name
	used   int // the generation of the last run that has used it
}

// maxIdle is for how many generations something is known that no run has used: what
// belongs to hooks that are gone would stay for ever.
const maxIdle = 16

// put keeps a run.
func (p *packer) put(t *Trace) error {
	if t.Generation > p.generation { // a run may have begun before a reload
		p.generation = t.Generation
		maps.DeleteFunc(p.sources, func(_ string, s source) bool { return s.used+maxIdle < p.generation })
		maps.DeleteFunc(p.lists, func(_ string, l *list) bool { return l.used+maxIdle < p.generation })
	}
	tx := p.store.begin()
	defer tx.end()
	h, b, err := p.body(tx, t)
	if err != nil {
		return err
	}
	plain, err := codec.Write(b)
	if err != nil {
		return err
	}
	return tx.commit(h, plain)
}

func (p *packer) body(tx *tx, t *Trace) (Header, *body, error) {
	r := &t.request
	h := Header{
		Format: Format, ID: ID(p.store.o.Process, t.Run), Version: p.store.o.Version,
		Module: r.Module.Name, Hook: r.Hook.ID, Key: r.Key, Cause: Cause(r.Events),
		Generation: t.Generation, Attempt: r.Attempt, Started: r.Now.UTC().Round(0), Took: status.Duration(t.Took),
		Steps: t.result.Usage.Steps, Result: ResultOK, SealedWith: p.store.key.ID(),
	}
	outcome := outcomeOf(t.result, t.logs)
	b := &body{}
	var err error
	if b.Source, err = p.source(tx, t); err != nil {
		return h, nil, err
	}
	h.Source = b.Source.String()[:8]
	if b.Outcome, err = codec.Write(outcome); err != nil {
		return h, nil, err
	}
	g := t.given()
	if err := p.inputs(tx, t, g); err != nil {
		return h, nil, err
	}
	b.Inputs = g.in
	if t.failed() {
		why := outcome.Error
		if h.AtCommit = t.result.Err == nil; h.AtCommit {
			why = t.refused
		}
		h.Result, b.Error = ResultFailed, maskOf(g, outcome).Text(why)
	}
	b.Reads, err = p.reads(tx, t)
	return h, b, err
}

// source keeps the files of a module, and what they load.
func (p *packer) source(tx *tx, t *Trace) (Name, error) {
	m := t.request.Module
	if s, ok := p.sources[m.Name]; ok && s.module == m && tx.use(s.name) {
		s.used = p.generation
		p.sources[m.Name] = s
		return s.name, nil
	}
	var paths []string
	if m.Tree != nil {
		paths = slices.Clone(m.Tree.HookFiles)
		if m.Tree.ModuleFile != "" {
			paths = append(paths, m.Tree.ModuleFile)
		}
	}
	files, err := t.request.Host.Sources(paths...)
	if err != nil {
		return Name{}, err
	}
	plain, err := codec.Write(files)
	if err != nil {
		return Name{}, err
	}
	name, err := tx.part(plain, nil)
	if err == nil {
		p.sources[m.Name] = source{m, name, p.generation}
	}
	return name, err
}

// inputs fills in what g.in holds.
func (p *packer) inputs(tx *tx, t *Trace, g *given) error {
	r, in := &t.request, &g.in
	*in = inputs{
		Namespace: r.Namespace, Instance: r.Instance, Attempt: r.Attempt, Failed: r.Failed, Past: r.Past, Now: momentOf(r.Now),
		Synced: r.Synced, Unsynced: r.Unsynced, Unserved: r.Unserved, Lacking: r.Lacking, Key: r.Key, Cleanup: r.Cleanup,
		Gone: r.Gone, Switches: r.Switches, Request: codec.RequestOf(r.Request), Snapshots: map[string]Name{},
		Random: t.random, Secrets: OfSecrets(r.Hook.Bindings),
	}
	var err error
	value := func(v starlark.Value) *codec.Value {
		out, wrong := codec.ValueOf(v)
		err = errors.Join(err, wrong)
		return out
	}
	events := make([]event[*codec.Value], len(r.Events))
	for i, e := range r.Events {
		events[i] = eventOf(e, value)
	}
	about := value(r.Object)
	if err != nil {
		return err
	}
	for _, one := range []struct {
		into *part
		data any
	}{{&in.Events, events}, {&in.Object, about}, {&in.Config, r.Config}, {&in.State, r.State}, {&in.Observed, r.Observed}, {&in.Known, g.known}, {&in.Hidden, g.hidden}} {
		if *one.into, err = p.part(tx, one.data); err != nil {
			return err
		}
	}
	for _, binding := range slices.Sorted(maps.Keys(r.Snapshots)) {
		if in.Snapshots[binding], err = p.snapshot(tx, r.Hook.ID+" "+binding, r.Snapshots[binding]); err != nil {
			return err
		}
	}
	if r.Compose != nil {
		return p.values(tx, t, in)
	}
	return nil
}

// values keeps the values that the run saw. They are put together once more: it is
// cheaper than to hold on to what each run saw until its turn comes.
func (p *packer) values(tx *tx, t *Trace, in *inputs) (err error) {
	view := func(ops []effect.ValueOp) (composed, error) {
		out := composed{After: len(ops)}
		m, err := t.request.Compose(slices.Clip(ops))
		if err != nil {
			out.Err = err.Error()
			return out, nil
		}
		out.View, err = p.part(tx, m)
		return out, err
	}
	if in.Values, err = view(nil); err != nil {
		return err
	}
	after := slices.Compact(slices.DeleteFunc(slices.Clone(t.composed), func(n int) bool { return n == 0 }))
	if len(after) > maxComposed {
		after = slices.Concat(after[:maxComposed/2], after[len(after)-maxComposed/2:])
	}
	for _, n := range after {
		one, err := view(t.ops[:n])
		if err != nil {
			return err
		}
		in.Composed = append(in.Composed, one)
	}
	if len(after) > 0 {
		in.Ops = t.ops
	}
	return nil
}

func (p *packer) reads(tx *tx, t *Trace) ([]read, error) {
	var out []read
	kinds := map[string]bool{}
	for _, r := range t.reads {
		if r.Verb == "kind" && kinds[r.About] {
			continue // the answer is the same throughout a run
		}
		kinds[r.About] = kinds[r.About] || r.Verb == "kind"
		one := read{question: r.question}
		if r.err != nil {
			one.Err, one.NoAnswer = r.err.Error(), builtins.Unanswered(r.err)
		}
		var err error
		if rows, ok := r.answer.([]starlark.Value); ok {
			err = p.rows(tx, t.request.Hook.ID, &one, rows)
		} else {
			one.Answer, err = p.part(tx, r.answer)
		}
		if err != nil {
			return nil, err
		}
		out = append(out, one)
	}
	return out, nil
}

// rows keeps those that a controller has found.
func (p *packer) rows(tx *tx, hook string, one *read, rows []starlark.Value) error {
	if one.Rest == effect.Everywhere {
		name, err := p.snapshot(tx, hook+" "+one.About, rows)
		one.List = &name
		return err
	}
	list, err := codec.ValuesOf(rows)
	if err != nil {
		return err
	}
	one.Answer, err = p.part(tx, list)
	return err
}

// part keeps data in place, or as its own file.
func (p *packer) part(tx *tx, data any) (part, error) {
	if v := reflect.ValueOf(data); !v.IsValid() || (v.Kind() == reflect.Map || v.Kind() == reflect.Slice || v.Kind() == reflect.Pointer) && v.IsNil() {
		return part{}, nil
	}
	plain, err := codec.Write(data)
	if err != nil || len(plain) <= inPlace {
		return part{Data: plain}, err
	}
	name, err := tx.part(plain, nil)
	return part{File: &name}, err
}
