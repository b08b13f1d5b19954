package migrate

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing/fstest"

	"github.com/starling-operator/starling/modules/tree"
	"github.com/starling-operator/starling/runtime/generation"
	"github.com/starling-operator/starling/runtime/message"
	"github.com/starling-operator/starling/runtime/script"
	"github.com/starling-operator/starling/stdlib"
)

// maxRounds is how often single files are taken out; past that whole modules are.
const maxRounds = 100

// Tree reads the new tree as Starling will.
func (r *Result) Tree() (*tree.Tree, error) {
	files := fstest.MapFS{}
	for _, f := range r.Files {
		files[f.Path] = &fstest.MapFile{Data: f.Data}
	}
	return tree.Read(files, tree.Options{Name: "that would be written"})
}

// mend loads the new tree and takes out what Starling refuses, until all of it loads.
func (r *Result) mend(ctx context.Context) error {
	last := "all are empty"
	for round := 1; ; round++ {
		r.compose()
		t, err := r.Tree()
		if err != nil {
			return err
		}
		g := generation.Load(ctx, generation.Options{Tree: t, Std: stdlib.FS, Number: 1})
		if err := ctx.Err(); err != nil {
			return errors.New("stopped while loading the new tree")
		}
		taken := map[string]bool{} // one file may have many errors
		for _, m := range g.All() {
			for _, refused := range apart(m.Err) {
				if last = refused.why; !taken[refused.file] {
					r.takeOut(m.Tree.Dir, refused, round > maxRounds)
				}
				taken[refused.file] = true
			}
		}
		switch {
		case len(taken) == 0:
			return nil
		case round > 2*maxRounds:
			return fmt.Errorf("a mistake of starling new: the new tree does not load: %s", last)
		}
		if len(r.modules) == 0 {
			return fmt.Errorf("no module could be brought over: %s", last)
		}
	}
}

// refusal is why a file, or a module, does not load.
type refusal struct {
	file string // in the new tree; "" where it is none
	why  string // one line
}

// apart takes an error of a module apart.
func apart(err error) (out []refusal) {
	if err == nil {
		return nil
	}
	if many, ok := err.(interface{ Unwrap() []error }); ok {
		for _, e := range many.Unwrap() {
			out = append(out, apart(e)...)
		}
		return out
	}
	if _, later := errors.AsType[generation.NotFetched](err); later {
		return nil
	}
	if at, ok := errors.AsType[*script.Error](err); ok {
		return []refusal{{at.File, message.Cut(message.Line(at.Msg), 400)}}
	}
	text := message.Cut(message.Line(err.Error()), 400)
	file, _, _ := strings.Cut(text, ":")
	return []refusal{{file, text}}
}

// takeOut leaves out what does not load: a hook stays as comments, another file is left out,
// and where no file is at fault the whole module.
func (r *Result) takeOut(dir string, refused refusal, all bool) {
	at := slices.IndexFunc(r.modules, func(m *module) bool { return m.dir == dir })
	if at < 0 {
		return
	}
	m := r.modules[at]
	i := slices.IndexFunc(m.out, func(f tree.File) bool { return f.Path == refused.file })
	switch {
	case i < 0 || all:
		r.modules = slices.Delete(r.modules, at, at+1)
		delete(m.modules, m.name)
		for _, n := range m.all {
			r.besides = append(r.besides, n.all...)
		}
		r.besides = append(r.besides, Note{dir, Left, "the module is not brought over: " + refused.why})
	case strings.HasSuffix(refused.file, ".star") && !m.refused[refused.file]:
		m.refused[refused.file] = true
		m.out[i].Data = []byte("# TODO: Starling refuses this file, so it stands here as comments: " + refused.why + "\n" + commented(string(m.out[i].Data)))
		m.note(m.from[refused.file]).add(Left, "Starling refuses the new file, so it stands there as comments: %s", refused.why)
		m.lacks(m.from[refused.file])
	default:
		m.out = slices.Delete(m.out, i, i+1)
		m.note(m.from[refused.file]).add(Left, "Starling refuses it: %s", strings.TrimPrefix(refused.why, refused.file+": "))
		m.lacks(m.from[refused.file])
	}
}
