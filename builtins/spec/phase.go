package spec

import "strings"

// Phase says when a builtin may be called. Phases are bits: a [Spec] holds all in which it may be, a thread is in one.
type Phase uint16

const (
	// InLoad: a file runs from top to bottom and declares.
	InLoad Phase = 1 << iota
	// InFilter: the filter of a watch looks at one object. Pure builtins only.
	InFilter
	// InRun: a hook runs.
	InRun
	// InEnabled: def enabled() of a module.star decides, or def readiness().
	InEnabled
	// InReview: a hook answers an admission request. It may read, not write.
	InReview
	// InConvert: a function of k8s.convert answers a conversion request. Pure builtins and log only.
	InConvert
	// InReceive: a hook answers an HTTP request. It may do what a run may, and reply.
	InReceive
	// InDesired: the desired function of a controller answers which children its parent wants. Pure builtins, log, and
	// those that make its answer.
	InDesired
	// InObserve: the observe or the act function of a controller looks at the world outside. It reads as a run does, and
	// writes nothing.
	InObserve
	// InTest: a function of a *_test.star file tests, on a simulated cluster.
	InTest

	// Anywhere is every phase: what pure builtins have.
	Anywhere = InLoad | InFilter | InRun | InEnabled | InReview | InConvert | InReceive | InDesired | InObserve | InTest
)

// String names the phases: "load, run".
func (p Phase) String() string {
	if p == Anywhere {
		return "any"
	}
	var names []string
	all := []string{"load", "filter", "run", "enabled", "review", "convert", "receive", "desired", "observe", "test"}
	for i, name := range all {
		if p&(1<<i) != 0 {
			names = append(names, name)
		}
	}
	return strings.Join(names, ", ")
}

// Refuses says why the builtin may not be called in a phase, and where it may; "" when it may be called.
func (s *Spec) Refuses(in Phase) string {
	phases := in
	if in == InReceive || in == InObserve && s.Effect != Writes {
		phases |= InRun // whatever a run may do
	}
	if s.Phases&phases != 0 {
		return ""
	}
	return s.Name + " " + phaseHint(in, s.Phases)
}

// phaseHint says why a call is refused and where it belongs.
func phaseHint(in, allowed Phase) string {
	switch {
	case allowed == InTest:
		return "is only available in a test, a function of a *_test.star file"
	case in == InTest:
		return "is not available in a test; call it from a hook, and look at what the hook does"
	case allowed == InDesired:
		return "is only available in the desired function of a controller"
	case allowed == InObserve:
		return "is only available in the act function of a controller"
	case in == InObserve && allowed&InRun != 0:
		return "is not available in observe and act, which write nothing themselves: act returns call(…)"
	case allowed == InEnabled|InDesired:
		return "is only available in enabled() and readiness() of a module.star, and in the desired function of a controller"
	case allowed == InEnabled:
		return "is only available in enabled() of a module.star"
	case allowed&(InReview|InReceive) != 0 && allowed&InRun == 0:
		return "is only available in a hook that answers a request (" + allowed.String() + ")"
	case in == InReview && allowed&InRun != 0:
		return "is not available in a hook that answers an admission request, which may read but not write; write from a run of another hook"
	case in == InConvert && allowed&InRun != 0:
		return "is not available in a conversion, which may only look at its object"
	case in == InDesired && allowed&InRun != 0:
		return "is not available in desired, which neither reads nor writes, and knows no time; see reads= of controller(…), and ctx.reached(t)"
	case in == InFilter:
		return "is not available in a filter, which may only look at its object; call it from a hook"
	case allowed&InRun == 0 && in != InEnabled:
		return "is only available while a file is loading; call it outside the hook's function"
	case allowed&InRun == 0:
		return "is only available while a file is loading; call it outside enabled() and readiness()"
	case in == InLoad:
		return "is not available while a file is loading; call it from a hook"
	}
	return "is not available in enabled() and readiness(), which may only read; call it from a hook"
}
