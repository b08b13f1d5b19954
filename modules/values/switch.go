package values

import "cmp"

// The sources of a [Switch], lowest first.
const (
	// SourceModule is module(enabled=…) in the module.star.
	SourceModule = "module"
	// SourceTree is the values.yaml of the tree.
	SourceTree = "values.yaml"
	// SourceHook is a global hook.
	SourceHook = "global hook"
	// SourceConfig is the user's config in the cluster.
	SourceConfig = "config"
)

// Switch says whether a module is switched on, and who said so.
type Switch struct {
	// On is the answer.
	On bool
	// Explicit is true when someone set the switch. Off and explicit
	// uninstalls; off without a switch leaves a release that is there alone.
	Explicit bool
	// Source is one of the Source constants.
	Source string
	// From names the object of the user's config that says so, if that is not its ConfigMap.
	From string
}

// Where names for people who said so.
func (s Switch) Where() string { return cmp.Or(s.From, s.Source) }

// ResolveSwitch decides whether a module is on. The highest source that says
// anything wins; nil says nothing. Lowest first: module(enabled=…), the tree's
// values.yaml, global hooks, the user's config.
func ResolveSwitch(defaultEnabled bool, tree, hooks, config *bool) Switch {
	for _, s := range []struct {
		value  *bool
		source string
	}{{config, SourceConfig}, {hooks, SourceHook}, {tree, SourceTree}} {
		if s.value != nil {
			return Switch{On: *s.value, Explicit: true, Source: s.source}
		}
	}
	return Switch{On: defaultEnabled, Source: SourceModule}
}
