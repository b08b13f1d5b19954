package plan

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/starling-operator/starling/modules/helm"
	"github.com/starling-operator/starling/modules/release"
	"github.com/starling-operator/starling/modules/status"
	"github.com/starling-operator/starling/runtime/sim"
)

// underWay tells of releases that another process works on: they are pending as the plan begins, or
// get a revision while it is made.
func underWay(before map[release.Ref]*sim.Release, later []string) (out []string) {
	for _, ref := range slices.SortedFunc(maps.Keys(before), compareRefs) {
		r := before[ref]
		switch {
		case helm.Status(r.Status).IsPending():
			out = append(out, fmt.Sprintf("module %s: release %s/%s is under way: revision %d is %s; the plan says what is left to do now: plan again once it has ended", ref.Module, ref.Namespace, ref.Name, r.Revision, r.Status))
		case slices.Contains(later, release.SecretOf(ref, r.Revision+1)):
			out = append(out, fmt.Sprintf("module %s: release %s/%s is under way: revision %d has come since the plan began, and is not in it: plan again once it has ended", ref.Module, ref.Namespace, ref.Name, r.Revision+1))
		}
	}
	return out
}

// addWarnings tells of the user's config and of what is wrong beside failures.
func (b *Begun) addWarnings(p *Plan, st status.Status, m *masker) {
	warn := func(text string) { p.Warnings = append(p.Warnings, m.Text(text)) }
	fail := func(text string) { p.Problems = append(p.Problems, Problem{Error: m.Text(text)}) }
	for _, problem := range b.w.Problems() {
		warn(problem)
	}
	if st.Config.State == status.ConfigHeld && st.Config.Reason != "" {
		fail(fmt.Sprintf("ConfigMap %s cannot be read: %s", b.w.Instance(), st.Config.Reason))
	}
	for _, text := range st.Config.Problems {
		if slices.Contains(st.Config.Unknown, text) {
			warn(text) // such as the section of a module that is gone
		} else {
			fail(text) // the last good one stays in force, so it is not what was asked for
		}
	}
	for _, s := range st.Modules {
		dropped := b.dropped(p, s)
		for _, text := range dropped {
			fail(fmt.Sprintf("module %s: %s", s.Name, text))
		}
		for _, text := range s.Problems {
			if slices.Contains(dropped, text) {
				continue
			}
			if !slices.Contains(st.Config.Problems, text) && !slices.ContainsFunc(p.Problems, func(p Problem) bool { return strings.HasSuffix(text, p.Error) }) {
				warn(fmt.Sprintf("module %s: %s", s.Name, text))
			}
		}
	}
}

// dropped are the fields that an install or upgrade of the plan loses, and that can be put right in the tree.
func (b *Begun) dropped(p *Plan, s status.Module) []string {
	at := slices.IndexFunc(p.Modules, func(one Module) bool { return one.Name == s.Name })
	if at < 0 || p.Modules[at].Action != Install && p.Modules[at].Action != Upgrade {
		return nil
	}
	return b.w.Dropped(s.Name)
}
