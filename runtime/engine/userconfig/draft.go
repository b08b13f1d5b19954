package userconfig

import (
	"maps"
	"slices"

	"github.com/starling-operator/starling/modules/values"
	"github.com/starling-operator/starling/runtime/object"
)

// A config that passes is a draft until it is kept: a process that takes over goes by what is kept, and would undo
// what this one had made by another config.

// draft is what comes into force next.
func (c *Config) draft() *Config {
	if c.next == nil {
		next := *c
		next.questions = maps.Clone(c.questions)
		c.next = &next
	}
	return c.next
}

// newest is what comes into force next, or what is in force.
func (c *Config) newest() *Config {
	if c.next != nil {
		return c.next
	}
	return c
}

// Outcome is what [Config.Count] has changed.
type Outcome struct {
	// All modules may be concerned: it was read for the first time, is there again, it is
	// missing or unreadable, or somebody begins or ends a pause.
	All bool
	// Moved are the modules whose section or switch in force is another one, "global" among them, sorted.
	Moved []string
	// Lost: the ConfigMap was there the last time, or nothing was known of it, and it is missing or unreadable now.
	Lost bool
	// Problems are new.
	Problems []values.ConfigProblem
}

// Count makes what was applied last count.
func (c *Config) Count() Outcome {
	next, was := c.next, *c
	if next == nil || !next.Known() {
		return Outcome{}
	}
	*c = *next
	state, names := c.seen.State, moved(c.accepted, was.accepted, c.origins, was.origins)
	return Outcome{
		Lost: state != Present && state != was.seen.State,
		All: state != was.seen.State || state == Unreadable ||
			slices.ContainsFunc(names, func(name string) bool { return c.Paused(name) != was.Paused(name) }),
		Moved:    names,
		Problems: added(c.problems, was.problems),
	}
}

// Moves says whether something else comes into force for a module, or for all, once it is kept.
func (c *Config) Moves(name string) bool {
	n := c.next
	return n != nil && (!object.Identical(n.accepted.Global, c.accepted.Global) || !object.Identical(n.accepted.Sections[name], c.accepted.Sections[name]) ||
		alone(name, n.accepted, c.accepted, n.origins, c.origins))
}
