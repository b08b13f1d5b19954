// Package adoption decides which version of each module comes into force with the next
// generation: that of the tree, or the last one that could be used. It does no I/O.
package adoption

import (
	"cmp"
	"fmt"
	"slices"

	"github.com/starling-operator/starling/builtins"
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
	followers   map[string][]string // of a module: those that require it in Next, and have changed
}

// Decide returns the generation that comes into force. A module that could be used and cannot be
// used in Next is held, with those that depend on it: it stays as it was. So is one that may
// only look as if it were gone. All others are as in Next.
func Decide(in Input) *generation.Generation {
	a := &adoption{in, map[string]string{}, map[string]string{}, map[string][]string{}}
	for _, name := range in.Next.Names {
		for r := range builtins.Required(in.Next.Modules[name].Decl.Requires) {
			if in.Changed[name] {
				a.followers[r] = append(a.followers[r], name)
			}
		}
	}
	for _, name := range names(in.Before) {
		switch {
		case a.next(name) && in.Errors[name] != "" && in.Unusable[name] == "" && !a.isNew(name):
			a.hold(name, in.Errors[name])
		case a.hollow(name):
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
	for _, name := range names(merged) {
		why := conflicts[name]
		if err := g.Problems[name]; err != nil {
			why = err.Error()
		}
		switch {
		case a.isNew(name):
			a.refuse(name, cmp.Or(a.Errors[name], why))
		case why != "" && (a.Unusable[name] == "" || len(a.held) > 0):
			a.hold(name, why)
		}
	}
}

// hold has a module stay as it was. Those that have changed and require it may rely on its new
// version, so they are held too; and what it requires must not go.
func (a *adoption) hold(name, why string) {
	if a.held[name] != "" {
		return
	}
	a.held[name] = why
	for _, follower := range a.followers[name] {
		why := fmt.Sprintf("requires %s, which is not as in the tree", name)
		if a.isNew(follower) {
			a.refuse(follower, why)
		} else {
			a.hold(follower, why)
		}
	}
	if m := a.Before.Modules[name]; m != nil {
		for r := range builtins.Required(m.Decl.Requires) {
			if !a.next(r) && a.Before.Modules[r] != nil {
				a.hold(r, fmt.Sprintf("it is gone, while module %s, which is not as in the tree, requires it", name))
			}
		}
	}
}

// refuse notes that a new module is broken. Modules that are gone are held then: it may be another
// name of one of them.
func (a *adoption) refuse(name, why string) {
	if why == "" || a.unfit[name] != "" {
		return
	}
	for _, gone := range a.Before.Names {
		if !a.next(gone) && !a.isNew(gone) {
			a.hold(gone, fmt.Sprintf("it is gone, while a new module, %s, is broken: %s", name, why))
		}
	}
	a.unfit[name] = why
}

// names are those of all modules of a generation, and of the global hooks.
func names(g *generation.Generation) []string { return append([]string{values.GlobalKey}, g.Names...) }

// next says whether a module is in the tree. The global hooks always are: there may be none.
func (a *adoption) next(name string) bool {
	return name == values.GlobalKey || a.Next.Modules[name] != nil
}

// hollow says that a folder is there and holds nothing of what it held before: somebody may be
// writing it.
func (a *adoption) hollow(name string) bool {
	if name != values.GlobalKey {
		return !a.next(name) && slices.Contains(a.Next.Tree.Hollow, name)
	}
	before, next := a.Before.Global, a.Next.Global
	if before == nil || len(before.Hooks) == 0 || next == nil || next.Tree == nil || len(next.Hooks) > 0 {
		return false
	}
	t := next.Tree
	return len(t.HookFiles) == 0 && t.ModuleFile == "" && t.ConfigSchema == nil && t.ValuesSchema == nil
}

// isNew says that a module has never been more than unfit.
func (a *adoption) isNew(name string) bool {
	return name != values.GlobalKey && (a.Before.Modules[name] == nil || a.Before.Unfit[name] != "")
}
