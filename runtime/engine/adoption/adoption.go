// Package adoption decides which version of each module comes into force with the next
// generation: that of the tree, or the last one that could be used. It does no I/O.
package adoption

import (
	"cmp"
	"fmt"
	"slices"

	"github.com/starling-operator/starling/modules/graph"
	"github.com/starling-operator/starling/modules/values"
	"github.com/starling-operator/starling/runtime/generation"
)

// Input is what a decision rests on. Global hooks go by the name "global".
type Input struct {
	// Before is in force, Next is the tree as it is now.
	Before, Next *generation.Generation
	// Unusable says why modules of Before cannot be used; "" and no entry for those that can.
	Unusable map[string]string
	// Errors says what is wrong with modules of Next, without a look at the others; "" and no
	// entry for nothing.
	Errors map[string]string
	// Changed are the modules of Next that are not as in Before.
	Changed map[string]bool
}

// adoption is one decision on its way: a module that is held may hold others.
type adoption struct {
	Input
	held, unfit map[string]string
}

// Decide returns the generation that comes into force. A module that could be used and cannot be
// used in Next is held, with those that depend on it: it stays as it was. So is one that may
// only look as if it were gone. All others are as in Next.
func Decide(in Input) *generation.Generation {
	a := &adoption{in, map[string]string{}, map[string]string{}}
	for _, name := range a.names(in.Before) {
		switch {
		case a.next(name) && in.Errors[name] != "" && in.Unusable[name] == "":
			a.hold(name, in.Errors[name])
		case !a.next(name) && slices.Contains(in.Next.Tree.Hollow, name):
			a.hold(name, "its folder holds nothing of a module; remove the folder to uninstall it")
		}
	}
	for {
		before := len(a.held) + len(a.unfit)
		merged := in.Next.Merge(in.Before, a.held, a.unfit)
		a.look(merged)
		if len(a.held)+len(a.unfit) == before {
			return merged
		}
	}
}

// look finds modules that cannot be used beside the others in a merged generation.
func (a *adoption) look(merged *generation.Generation) {
	g, conflicts := graph.New(merged.Nodes()), map[string]string{}
	if len(a.held) > 0 { // else those of the tree have an error
		conflicts = merged.Conflicts()
	}
	for _, name := range a.names(merged) {
		if a.held[name] != "" {
			a.keepRequired(name, merged)
			continue
		}
		why := cmp.Or(a.requires(name, merged), conflicts[name])
		if err := g.Problems[name]; err != nil {
			why = err.Error()
		}
		switch {
		case a.isNew(name):
			if why = cmp.Or(a.Errors[name], why); why != "" {
				a.keepRenamed(name, why)
			}
			if why != "" && len(a.held) > 0 {
				a.unfit[name] = why
			}
		case why != "" && (a.Unusable[name] == "" || len(a.held) > 0):
			a.hold(name, why)
		}
	}
}

// requires says that a module which has changed requires one that is held: it may rely on what
// that one would be.
func (a *adoption) requires(name string, merged *generation.Generation) string {
	m := merged.Modules[name]
	if m == nil || !a.Changed[name] {
		return ""
	}
	for _, r := range m.Decl.Requires {
		if a.held[r] != "" {
			return fmt.Sprintf("requires %s, which is not as in the tree", r)
		}
	}
	return ""
}

// keepRequired holds modules that a module which is held requires, when they are gone.
func (a *adoption) keepRequired(name string, merged *generation.Generation) {
	m := merged.Modules[name]
	if m == nil {
		return
	}
	for _, r := range m.Decl.Requires {
		if merged.Modules[r] == nil && a.Before.Modules[r] != nil {
			a.hold(r, fmt.Sprintf("it is gone, while module %s, which is not as in the tree, requires it", name))
		}
	}
}

// keepRenamed holds modules that are gone while a new one is broken: that may be another name
// of one of them.
func (a *adoption) keepRenamed(broken, why string) {
	for _, name := range a.Before.Names {
		if !a.next(name) && !a.isNew(name) && a.held[name] == "" {
			a.hold(name, fmt.Sprintf("it is gone, while a new module, %s, is broken: %s", broken, why))
		}
	}
}

func (a *adoption) hold(name, why string) { a.held[name] = why }

// names are those of all modules of a generation, and of the global hooks.
func (a *adoption) names(g *generation.Generation) []string {
	return append([]string{values.GlobalKey}, g.Names...)
}

// next says whether a module is in the tree. The global hooks always are: there may be none.
func (a *adoption) next(name string) bool {
	return name == values.GlobalKey || a.Next.Modules[name] != nil
}

// isNew says that a module has never been more than unfit.
func (a *adoption) isNew(name string) bool {
	return name != values.GlobalKey && (a.Before.Modules[name] == nil || a.Before.Unfit[name] != "")
}
