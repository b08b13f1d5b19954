package generation

import (
	"crypto/sha256"
	"fmt"
	"io/fs"
	"reflect"
	"slices"
	"strings"

	"go.starlark.net/starlark"

	"github.com/starling-operator/starling/modules/tree"
	"github.com/starling-operator/starling/runtime/script"
)

// A module that has not changed since the generation before is taken over from it: the pointer
// of a module that is the same in both says that there is nothing to do.

// inputs are what was read to load a module, see [script.Sum].
type inputs map[string][sha256.Size]byte

// contents reads the files of one tree, each once.
type contents struct {
	files fs.FS
	sums  inputs
}

// same says whether all of these files are as they were. The standard library is part
// of the process.
func (c *contents) same(in inputs) bool {
	for path, sum := range in {
		if strings.HasPrefix(path, "@") {
			continue
		}
		now, known := c.sums[path]
		if !known {
			var err error
			if now, err = script.Sum(c.files, path); err != nil {
				return false
			}
			c.sums[path] = now
		}
		if now != sum {
			return false
		}
	}
	return true
}

// reuse returns the module of the generation before when nothing of it has changed; nil
// when something has, or when it did not load: what it would have read is not known.
func (g *Generation) reuse(t *tree.Module, global bool, now *contents) *Module {
	old := g.Global
	if !global {
		old = g.Modules[t.Name]
	}
	if old == nil || old.Err != nil || old.inputs == nil || t.Err != nil || old.folder == nil || !sameFolder(old.folder, t) || !now.same(old.inputs) {
		return nil
	}
	return old
}

// sameFolder compares all of two folders that does not come from .star files.
func sameFolder(a, b *tree.Module) bool {
	if (a.Chart == nil) != (b.Chart == nil) || a.Chart != nil && (a.Chart.Name != b.Chart.Name || a.Chart.Digest != b.Chart.Digest) {
		return false
	}
	x, y := *a, *b
	x.Chart, y.Chart = nil, nil
	return reflect.DeepEqual(x, y)
}

// takeOver begins a generation with what the one before has unchanged: the result is by
// the index of all. Problems of their files come along.
func (g *Generation) takeOver(previous *Generation, all []*tree.Module) []*Module {
	out := make([]*Module, len(all))
	if previous == nil {
		return out
	}
	now := &contents{files: g.Tree.Files, sums: inputs{}}
	names := map[string]int{}
	for _, t := range all {
		names[t.Name]++
	}
	for i, t := range all {
		if names[t.Name] == 1 { // else both have an Err
			out[i] = previous.reuse(t, t == g.Tree.Global, now)
		}
	}
	return out
}

// unchecked puts copies in the place of modules that were taken over, because the
// checks between modules may find errors in them that they had not before. The
// function that it returns puts those back that are still without one.
func (g *Generation) unchecked(taken []*Module) (restore func()) {
	copies := map[*Module]*Module{}
	put := func(m *Module) {
		if m.Global {
			g.Global = m
		} else {
			g.Modules[m.Name] = m
		}
	}
	for _, m := range taken {
		if m != nil {
			one := *m
			copies[m] = &one
			put(&one)
		}
	}
	return func() {
		for m, one := range copies {
			if one.Err == nil {
				put(m)
			}
		}
	}
}

// remember notes what a module was made of, once all files are loaded, and gives its
// hooks and their filters identities that last as long as their code.
func (m *Module) remember(host *script.Host) {
	for _, h := range m.Hooks {
		h.Digest = host.Digest(h.file)
		for i := range h.Bindings {
			w := h.Bindings[i].Watch
			if w == nil {
				continue
			}
			identify(host, h.Digest, w.Filter, &w.FilterID)
			identify(host, h.Digest, w.Wakes, &w.WakesID)
			for j := range w.Index {
				identify(host, h.Digest, w.Index[j].Fn, &w.Index[j].ID)
			}
		}
	}
	if m.SettingsCheck != nil {
		m.SettingsDigest = host.Digest(m.Tree.ModuleFile)
	}
	paths := slices.Clone(m.Tree.HookFiles)
	if m.Tree.ModuleFile != "" {
		paths = append(paths, m.Tree.ModuleFile)
	}
	in := inputs{}
	for _, path := range paths {
		if !host.Inputs(path, in) {
			return
		}
	}
	m.inputs = in
}

// identify gives a function that looks at objects an id that lasts as long as its code.
func identify(host *script.Host, digest string, fn starlark.Callable, id *string) {
	f, ok := fn.(*starlark.Function)
	if !ok {
		return
	}
	if next := filterID(host, digest, f, *id); next != *id {
		*id = next // else it may be one that is in force already
	}
}

// filterID puts the code of a filter into the place of its file's path. The values that a function
// closes over may come from the file that registers the hook, whose digest is given.
func filterID(host *script.Host, digest string, fn *starlark.Function, id string) string {
	pos := fn.Position()
	rest, ok := strings.CutPrefix(id, pos.String())
	if !ok {
		return id // two hooks have one watch, and this is the second
	}
	code := host.Digest(pos.Filename())
	closes := fn.NumFreeVars() > 0
	for i := range fn.NumParams() {
		closes = closes || fn.ParamDefault(i) != nil
	}
	if closes || code == "" {
		code += " " + digest
	}
	return fmt.Sprintf("%s %d:%d%s", code, pos.Line, pos.Col, rest)
}

// foundIn sorts problems by their modules.
func foundIn(problems []tree.Problem) map[string][]tree.Problem {
	out := map[string][]tree.Problem{}
	for _, p := range problems {
		out[p.Module] = append(out[p.Module], p)
	}
	return out
}
