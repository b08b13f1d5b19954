package releases

import (
	"fmt"
	"maps"
	"reflect"
	"slices"
	"time"

	"github.com/starling-operator/starling/builtins"
	"github.com/starling-operator/starling/runtime/lane"
)

// Module is what the next step hangs on.
type Module struct {
	// Ends says that nothing of the module shall stay; Leaving, that its hooks of
	// before_delete and after_delete run for that.
	Ends, Leaving bool
	// GivesBack says that another instance has the module: its releases are given back.
	GivesBack bool
	// Sets says that hooks have sets of objects in the cluster.
	Sets bool
	// Open says that a pass may begin, Release that it may go on, Asking that enabled() has not
	// answered for the values as they are, or that they are not whole: they must not reach Helm.
	Open, Release, Asking bool
	Chart                 bool
	// Overtaken says that Helm works with values or files that are not those of now.
	Overtaken bool
	// Seen are the values as far as the module reads them.
	Seen map[string]any
}

// Do is the work of a step.
type Do int

// A step asks for one of these. After RunStage, CheckValues and Hold there may be another one at once.
const (
	Nothing     Do = iota
	RunStage       // the hooks of the stage, then [Pass.Wait]
	CheckValues    // then [Pass.Refuse] or [Pass.Install]
	Hold           // [Pass.Held] says why, and people should hear of it
	Install        // or upgrade; then [Pass.Released]
	Uninstall      // then [Pass.Uninstalled]
	GiveBack       // then [Pass.Uninstalled]
	Overtake       // what Helm waits for ends; then [Pass.Released], as without it
	RemoveSets     // then [Pass.Removed]
	End            // nothing is left of the module
)

// Step is what is due; Ref is the release that it is about.
type Step struct {
	Do    Do
	Stage builtins.Stage
	// Always says that only those hooks of the stage are due that always are.
	Always bool
	Ref    Ref
}

// Next says what is due now.
func (p *Pass) Next(m Module, now time.Time) Step {
	if p.retry.Waits(now) {
		return Step{}
	}
	switch p.phase {
	case idle:
		return p.begin(m)
	case beforeHelm:
		return p.endBefore(m)
	case inHelm:
		if m.Overtaken || m.Ends || m.GivesBack {
			p.phase = overtaken
			return Step{Do: Overtake}
		}
	case helmDone, helmSame:
		return Step{Do: RunStage, Stage: builtins.StageAfterHelm, Always: p.phase == helmSame}
	case afterHelm:
		if len(p.waiting) == 0 {
			return p.endAfter(m, now)
		}
	case beforeDelete, afterDelete:
		if len(p.waiting) == 0 {
			p.left = stages[p.phase]
			p.phase = idle
			return p.Next(m, now)
		}
	}
	return Step{}
}

func (p *Pass) begin(m Module) Step {
	switch {
	case m.Ends:
		return p.leave(m)
	case m.GivesBack && p.Installed():
		p.phase = givingBack
		return Step{Do: GiveBack, Ref: p.refs[0]}
	case !p.wanted || !m.Open:
		return Step{}
	case !m.Chart:
		p.wanted, p.ready, p.retry = false, true, lane.Retry{}
		return Step{}
	case p.cause.Row() >= MaxRow:
		p.wanted = false
		p.hold = fmt.Sprintf("values still move after %d runs of before_helm and after_helm hooks that have set each other off: %s; let modules that read each other's exports come to the same values again",
			MaxRow, firstDifference(p.seen, m.Seen))
		return Step{Do: Hold}
	}
	p.again = 0
	return Step{Do: RunStage, Stage: builtins.StageBeforeHelm}
}

// endBefore goes on to Helm. When other values have moved while before_helm hooks ran, what
// they derive may rest on the old ones: they run once more, and after a few times one more
// pass makes up for it.
func (p *Pass) endBefore(m Module) Step {
	switch {
	case !m.Release:
		p.phase, p.waiting, p.wanted = idle, nil, true
		return Step{}
	case len(p.waiting) > 0 || m.Asking:
		return Step{}
	}
	if p.again++; p.wanted && p.again < MaxRounds {
		return Step{Do: RunStage, Stage: builtins.StageBeforeHelm}
	}
	p.phase, p.hold = idle, ""
	return Step{Do: CheckValues}
}

// endAfter looks whether after_helm hooks have moved the values once more.
func (p *Pass) endAfter(m Module, now time.Time) Step {
	p.phase, p.after = idle, true
	if !p.wanted || passes(p.cause) < MaxRounds {
		return p.Next(m, now)
	}
	p.wanted = false
	p.hold = fmt.Sprintf("values still move after %d passes: %s; let after_helm hooks set what does not depend on the pass", MaxRounds, firstDifference(p.seen, m.Seen))
	return Step{Do: Hold}
}

// leave takes the next step on the module's way out: before_delete hooks, its releases,
// after_delete hooks, its sets of objects.
func (p *Pass) leave(m Module) Step {
	switch {
	case m.Leaving && p.left == "":
		return Step{Do: RunStage, Stage: builtins.StageBeforeDelete}
	case p.Installed():
		return p.uninstall(p.refs[0])
	case m.Leaving && p.left != builtins.StageAfterDelete:
		return Step{Do: RunStage, Stage: builtins.StageAfterDelete}
	case m.Sets:
		return Step{Do: RemoveSets}
	}
	return Step{Do: End}
}

func (p *Pass) uninstall(ref Ref) Step {
	p.phase = uninstalling
	return Step{Do: Uninstall, Ref: ref}
}

// Refuse notes that the values must not reach Helm.
func (p *Pass) Refuse(why string) {
	p.retry = lane.Retry{}
	p.hold = why
}

// Install hands the values over to Helm. A release under an earlier name or namespace is
// uninstalled first: its objects would not let those of the new release in.
func (p *Pass) Install(ref Ref, m Module) Step {
	for _, old := range p.refs {
		if old != ref {
			return p.uninstall(old)
		}
	}
	p.phase, p.seen = inHelm, m.Seen
	if !slices.Contains(p.refs, ref) {
		p.refs = append(p.refs, ref)
	}
	return Step{Do: Install, Ref: ref}
}

// Removing notes that sets of objects are being removed.
func (p *Pass) Removing() { p.phase = uninstalling }

// firstDifference names the first path at which two values differ.
func firstDifference(a, b any) string {
	ma, aok := a.(map[string]any)
	mb, bok := b.(map[string]any)
	if !aok || !bok {
		return ""
	}
	keys := map[string]bool{}
	for k := range ma {
		keys[k] = true
	}
	for k := range mb {
		keys[k] = true
	}
	for _, k := range slices.Sorted(maps.Keys(keys)) {
		if reflect.DeepEqual(ma[k], mb[k]) {
			continue
		}
		if rest := firstDifference(ma[k], mb[k]); rest != "" {
			return k + "." + rest
		}
		return k
	}
	return ""
}
