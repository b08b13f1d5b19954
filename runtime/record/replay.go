package record

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"slices"
	"strings"
	"testing/fstest"

	"github.com/starling-operator/starling/builtins"
	"github.com/starling-operator/starling/modules/tree"
	"github.com/starling-operator/starling/runtime/cluster"
	"github.com/starling-operator/starling/runtime/codec"
	"github.com/starling-operator/starling/runtime/generation"
	"github.com/starling-operator/starling/runtime/hook"
	"github.com/starling-operator/starling/runtime/message"
	"github.com/starling-operator/starling/runtime/script"
)

// ReplayOptions configures [Replay].
type ReplayOptions struct {
	// Generation is the code to run; nil: that of the record.
	Generation *generation.Generation
	// Governor watches the memory of the run; nil: nobody does.
	Governor *script.Governor
}

// Replayed is what a replay came to.
type Replayed struct {
	Outcome
	Steps uint64
	// Same says that the outcome is that of the record, byte for byte.
	Same bool
}

// Replay runs the hook of a record again with what it was given then. Nothing outside is
// asked: what the record has no answer to is an error of the run, which names it. The
// error of Replay itself says why the hook cannot be run at all.
func Replay(ctx context.Context, r *Record, o ReplayOptions) (*Replayed, error) {
	g := o.Generation
	if g == nil {
		var err error
		if g, err = r.Generate(ctx, o.Governor); err != nil {
			return nil, err
		}
	}
	module, h, err := r.hook(g)
	if err != nil {
		return nil, err
	}
	w, err := newWorld(r)
	if err != nil {
		return nil, err
	}
	logs := &lines{}
	request := r.request
	request.Host, request.Module, request.Hook, request.Secrets = g.Host, module, h, func() []string { return r.known }
	request.Reader, request.HTTP, request.Answerer, request.Random, request.Log = w, w, w, w, logs
	request.Compose, request.Env, request.Scope = w.compose, w.env, w.scope
	if h.Controller != nil {
		request.Family, request.Rows = cluster.FamilyOf(r.in.Instance, h.Controls(), r.request.Snapshots, nil), w.rows
	}
	result := hook.Run(ctx, request)
	out := &Replayed{Outcome: outcomeOf(result, logs.all), Steps: result.Usage.Steps}
	data, err := codec.Write(out.Outcome)
	if err != nil {
		return nil, err
	}
	out.Same = bytes.Equal(data, r.outcome)
	// As it would be read back: the two are shown side by side.
	out.Outcome = Outcome{}
	return out, codec.Read(data, &out.Outcome)
}

// Generate compiles the files of the record.
func (r *Record) Generate(ctx context.Context, governor *script.Governor) (*generation.Generation, error) {
	files, std := fstest.MapFS{}, fstest.MapFS{}
	for path, data := range r.Sources {
		if name, ok := strings.CutPrefix(path, "@std//"); ok {
			std[name] = &fstest.MapFile{Data: data}
		} else {
			files[path] = &fstest.MapFile{Data: data}
		}
	}
	t, err := tree.Read(files, tree.Options{Name: "of the record"})
	if err != nil {
		return nil, err
	}
	return generation.Load(ctx, generation.Options{
		Tree: t, Std: fs.FS(std), Number: 1, Governor: governor,
	}), nil
}

// hook returns the hook of a record in a generation. The files of one module say
// nothing of the modules that it requires, so that is no obstacle.
func (r *Record) hook(g *generation.Generation) (*generation.Module, *generation.Hook, error) {
	module := g.Modules[r.Module]
	if g.Global != nil && r.Module == g.Global.Name {
		module = g.Global
	}
	if module == nil {
		return nil, nil, fmt.Errorf("there is no module %s; there are %s", r.Module, strings.Join(slices.Sorted(maps.Keys(g.Modules)), ", "))
	}
	if h := g.Hook(r.Hook); h != nil {
		return module, h, lacking(h, r)
	}
	if module.Err != nil {
		return nil, nil, module.Err
	}
	var names []string
	for _, h := range module.Hooks {
		names = append(names, h.ID)
	}
	hint := "; " + message.DidYouMean(r.Hook, names, "it has "+strings.Join(names, ", "))
	return nil, nil, fmt.Errorf("module %s has no hook %s any more%s", r.Module, r.Hook, hint)
}

// lacking names a watch of the hook that the record has no snapshot of.
func lacking(h *generation.Hook, r *Record) error {
	for _, b := range h.Bindings {
		if h.Controller != nil { // of a kind that it did not own then there were no children
			break
		}
		if _, known := r.request.Snapshots[b.Name]; b.Watch != nil && !known {
			return fmt.Errorf("hook %s watches %q, of which the record has no snapshot: it was not watched then", h.ID, b.Name)
		}
	}
	if r.in.Cleanup && !h.Cleans() {
		return fmt.Errorf("the run was one of cleanup=, which hook %s has no more", h.ID)
	}
	if !r.in.Cleanup && h.Fn == nil && r.in.Request == nil {
		return errors.New("the hook has no function to run")
	}
	return nil
}

// lines keeps what a replay logs.
type lines struct{ all []Line }

// Log implements [builtins.Logger].
func (l *lines) Log(level builtins.Level, msg string, fields []builtins.Field) {
	l.all = append(l.all, Line{level, msg, fields})
}
