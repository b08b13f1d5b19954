package repl

import (
	"strings"

	"go.starlark.net/starlark"

	"github.com/starling-operator/starling/builtins/docs"
)

// Completer completes what is typed in the session as it is now.
func (s *Session) Completer() *Completer {
	return &Completer{
		Table: docs.Documented(),
		Names: s.scope.Names,
		Lookup: func(name string) starlark.Value {
			v, _ := s.scope.Lookup(name)
			return v
		},
		Values:  func() map[string]any { return s.world.Values(s.module) },
		Command: s.completeCommand,
	}
}

// completeCommand completes a command, or the last of its arguments.
func (s *Session) completeCommand(words []string, begun string) []Candidate {
	var out []Candidate
	for _, c := range commands() {
		if len(words) == 0 {
			out = append(out, Candidate{":" + c.name, c.doc})
		} else if words[0] == ":"+c.name && c.complete != nil {
			return c.complete(s, words[1:], begun)
		}
	}
	return out
}

func (s *Session) completeHelp(args []string, _ string) []Candidate {
	var out []Candidate
	if len(args) > 0 {
		return nil
	}
	for _, c := range commands() {
		out = append(out, Candidate{":" + c.name, c.doc})
	}
	for _, spec := range docs.Documented() {
		if name, _, _ := strings.Cut(spec.Name, "."); !forTests(name) {
			out = append(out, Candidate{spec.Name, docs.FirstSentence(spec.Doc)})
		}
	}
	return out
}

func (s *Session) completeHook(args []string, _ string) []Candidate {
	var out []Candidate
	if len(args) > 0 {
		return nil
	}
	for _, id := range s.world.Hooks() {
		if id != s.hook {
			out = append(out, Candidate{s.local(id), s.causesOf(id)})
		}
	}
	return out
}

// causesOf names what triggers a hook.
func (s *Session) causesOf(id string) string {
	h := s.gen.Hook(id)
	if h == nil {
		return ""
	}
	var names []string
	for i := range h.Bindings {
		names = append(names, h.Bindings[i].Name)
	}
	return strings.Join(names, ", ")
}

func (s *Session) completeKind(args []string, _ string) []Candidate {
	var out []Candidate
	if len(args) > 0 {
		return nil
	}
	seen := map[string]bool{}
	for _, k := range s.world.Store().Kinds() {
		if !seen[k.Kind] {
			seen[k.Kind] = true
			version := k.Version
			if k.Group != "" {
				version = k.Group + "/" + version
			}
			out = append(out, Candidate{k.Kind, version})
		}
	}
	return out
}

func (s *Session) completeValues(args []string, _ string) []Candidate {
	switch {
	case len(args) > 1:
		return nil
	case len(args) == 1:
		return paths(s.world.Values(args[0]), "", nil)
	}
	var out []Candidate
	for _, name := range s.gen.Names {
		out = append(out, Candidate{name, "module"})
	}
	return append(out, paths(s.world.Values(s.module), "", nil)...)
}

// filesNamed completes names of files with these endings.
func filesNamed(endings ...string) func(*Session, []string, string) []Candidate {
	return func(s *Session, args []string, begun string) []Candidate {
		if len(args) > 0 {
			return nil
		}
		var out []Candidate
		for _, name := range s.o.Files.list(begun, endings...) {
			out = append(out, Candidate{name, ""})
		}
		return out
	}
}
