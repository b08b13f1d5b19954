package engine

import (
	"cmp"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/starling-operator/starling/modules/status"
	"github.com/starling-operator/starling/modules/values"
)

// Failure is one thing that fails now, and was not mended yet.
type Failure struct {
	// Module is the name of the module, "global" for the global hooks and for the config of nobody.
	Module string
	// Hook and Key name a hook and, with for_each, its object; Hook is "" for what
	// fails of the module itself, or was refused of its config.
	Hook, Key string
	Reason    string
	// Broken says that the module cannot be used as it is in the tree.
	Broken bool
}

// Failures are those of all hooks, modules, and of the user's config, in a fixed order.
func (v *View) Failures() []Failure {
	if v.gen == nil {
		return nil
	}
	var out []Failure
	if why := v.global.wrong(); why != "" {
		out = append(out, Failure{Module: globalName, Reason: why})
	}
	out = append(out, v.global.failures()...)
	for _, m := range v.known() {
		hooks := m.failures()
		out = append(out, hooks...)
		switch state, reason := v.moduleState(m); {
		case state == status.ModuleFailed && slices.ContainsFunc(hooks, func(f Failure) bool { return strings.Contains(reason, f.Reason) }):
			// A hook's failure is the module's, too: it was named.
		case state == status.ModuleFailed, state == status.ModuleBroken, strings.HasPrefix(m.pass.Held(), valuesRefused):
			out = append(out, Failure{Module: m.name, Reason: reason, Broken: state == status.ModuleBroken})
		}
	}
	for _, name := range slices.Sorted(maps.Keys(v.config.Problems())) {
		for _, p := range v.config.Problems()[name] {
			if p.Outcome != values.Unused {
				out = append(out, Failure{Module: cmp.Or(name, globalName), Reason: p.Text})
			}
		}
	}
	return out
}

// wrong says why no module can go by the global values, or "".
func (m *module) wrong() string {
	if unset := m.values.Composer().Unset(); m.broken == "" && len(unset) > 0 {
		return unset[0].Error()
	}
	return m.broken
}

// failures are those of the module's hooks.
func (m *module) failures() (out []Failure) {
	for _, h := range m.hooks {
		add := func(key, reason string) {
			if reason != "" {
				out = append(out, Failure{Module: m.name, Hook: h.gen.ID, Key: key, Reason: reason})
			}
		}
		switch why := cmp.Or(h.barred, h.watches.Trouble(), h.echoes.Trouble()); {
		case !h.awake():
		case why != "":
			add("", why)
		default:
			for _, s := range h.subjects.Failing() {
				add(s.Key, s.Why())
			}
		}
	}
	return out
}

func roundUp(d time.Duration) time.Duration {
	if d < time.Second {
		return d.Round(time.Millisecond)
	}
	return d.Round(100 * time.Millisecond)
}
