package verdicts

import (
	"fmt"
	"strings"

	"github.com/starling-operator/starling/modules/status"
	"github.com/starling-operator/starling/modules/values"
)

// Verdict is what shall be done about a module. It can be compared.
type Verdict struct {
	Do Do
	// State and Reason are shown to people. State is empty when the module
	// runs: its release then decides.
	State  status.ModuleState
	Reason string
	// For is the module that this one waits for, as far as it does not require it, or "".
	For string
	// Settled is false while the module is on its way and nothing is wrong:
	// those ordered behind it wait.
	Settled bool
	// Asks has def enabled() asked, if there is one.
	Asks bool
	Is   Decided
}

// Decided says whether a module of the tree is on.
type Decided int

// Of a module that is neither on nor off, because it waits or something is wrong with it, stays
// what is there.
const (
	Undecided Decided = iota
	IsOff
	IsOn
	Stays
)

// Do is what shall be done.
type Do int

const (
	// Hold runs no hooks, and leaves what is there of the module.
	Hold Do = iota
	// RunHooks leaves the release alone.
	RunHooks
	// Install runs hooks, and lets the release be installed and upgraded.
	Install
	// Wait is an Uninstall that others come before.
	Wait
	// Uninstall takes away what there is of the module: its release, its sets of objects.
	Uninstall
	// Forget drops what its hooks have set: after an explicit no, once its
	// release and its sets are gone.
	Forget
	// GiveBack leaves what there is of the module to another instance, and all of it as it is.
	GiveBack
	// Bar leaves all of the module as it is, and looks at it no more: the engine has met a bug.
	Bar
)

// Runs says whether hooks run.
func (d Do) Runs() bool { return d == RunHooks || d == Install }

// Goes says whether the module is taken away, now or after others.
func (d Do) Goes() bool { return d == Wait || d == Uninstall }

// Behind is a verdict that waits until another module is gone.
func (v Verdict) Behind(module string) Verdict {
	v.Do, v.For = Wait, module
	v.Reason += fmt.Sprintf("; waits until %s is gone, which comes after it", module)
	return v
}

// Decide determines what shall be done about a module. It is the only place that says when a
// module is uninstalled: after an explicit no, or when it has left the tree, and never because
// something could not be read, loaded or computed.
func Decide(f Facts) Verdict {
	if f.Gone != InTree {
		return decideGone(f)
	}
	v, stops := decideBefore(f)
	if stops {
		v.Is = decided(v)
		return v
	}
	v = decideOn(f)
	v.Asks = f.Global.Pending == "" // else the values may lack what a global hook sets
	return v
}

// decided says what a module is that is not on.
func decided(v Verdict) Decided {
	switch v.State {
	case status.ModuleStarting:
		return Undecided
	case status.ModuleOff, status.ModulePaused:
		return IsOff
	}
	return Stays
}

// decideOn is about a module that is switched on.
func decideOn(f Facts) Verdict {
	v, stops := decideEnabled(f)
	if stops {
		v.Is = decided(v)
		return v
	}
	v = decideOrder(f)
	v.Is = IsOn
	return v
}

// decideOrder is about a module that is on: others may come first.
func decideOrder(f Facts) Verdict {
	if !f.Started {
		switch name := f.Before.Module; {
		case f.ConfigUnread != "" && f.There != Release:
			return hold(status.ModuleBlocked, true, "not installed while the user's ConfigMap cannot be read: "+f.ConfigUnread)
		case f.Unlisted:
			return hold(status.ModuleStarting, false, "waits until it is known which modules are on")
		case f.Before.Is == RequiredStuck, f.Before.Is == RequiredComes:
			return hold(status.ModuleBlocked, f.Before.Is == RequiredStuck, "waits for "+strings.ReplaceAll(name, "|", " or ")+" to be ready")
		case f.Before.Is == RequiredGoes:
			return hold(status.ModuleBlocked, false, "waits until "+name+" is off and gone")
		case f.Before.Is == Earlier:
			v := hold(status.ModuleBlocked, false, "comes after "+name)
			v.For = name
			return v
		}
	}
	switch {
	case f.Global.Failing != "" && f.There != Release:
		v := hold(status.ModuleBlocked, true, "not installed while global hook "+f.Global.Failing+" fails")
		if f.Started {
			v.Do = RunHooks
		}
		return v
	case f.Paused:
		return Verdict{Do: RunHooks}
	case f.Renamed && f.Global.Stays != "":
		v := hold(status.ModuleBlocked, true, "its release has another name or namespace; it stays as it is until "+f.Global.Stays)
		v.Do = RunHooks
		return v
	}
	return Verdict{Do: Install}
}

func hold(state status.ModuleState, settled bool, reason string) Verdict {
	return Verdict{State: state, Reason: reason, Settled: settled}
}

// stays is said of a module that does not run.
func (f Facts) stays() string {
	if f.There == Release {
		return "; its release stays as it is"
	}
	return ""
}

// decideBefore is about all that is known before def enabled() is asked. Stops says that it is not.
func decideBefore(f Facts) (v Verdict, stops bool) {
	off := func(format string, a ...any) (Verdict, bool) {
		return hold(status.ModuleOff, true, fmt.Sprintf(format, a...)+f.stays()), true
	}
	inTree := !f.Switch.On && f.Switch.Source == values.SourceTree
	switch {
	case f.Broken != "":
		return hold(status.ModuleBroken, true, f.Broken+f.stays()), true
	case !f.ConfigKnown:
		return hold(status.ModuleStarting, false, "reading the configuration"), true
	case f.Global.Pending != "" && !f.Started:
		return hold(status.ModuleStarting, false, "waits for "+f.Global.Pending), true
	case inTree && f.Global.Pending != "":
		// The hook may be the one that says yes, under another name: the module goes on.
		v := hold(status.ModuleStarting, false, fmt.Sprintf("%sEnabled: false in %s; waits for %s", f.Key, f.Switch.Where(), f.Global.Pending))
		v.Do = RunHooks
		return v, true
	case inTree && f.Global.Failing != "":
		// The hook may be the one that says yes; its error is no no.
		return off("%sEnabled: false in %s, while global hook %s fails", f.Key, f.Switch.Where(), f.Global.Failing)
	case !f.Switch.On && f.Switch.Explicit:
		return uninstalls(f, fmt.Sprintf("%sEnabled: false in %s", f.Key, f.Switch.Where())), true
	case !f.Switch.On:
		return off("add `%sEnabled: true` to values.yaml or module(enabled=True)", f.Key)
	case f.Before.Lost() != "" && f.LostUninstalls && f.ConfigUnread == "" && f.Global == (Global{}):
		return uninstalls(f, f.Before.Lost()), true
	case f.Before.Lost() != "":
		return off("%s", f.Before.Lost())
	}
	return Verdict{}, false
}

// decideEnabled is about the answer of def enabled(). Stops says that the
// module does not run.
func decideEnabled(f Facts) (v Verdict, stops bool) {
	switch why := f.Enabled.Reason; f.Enabled.Says {
	case Failed:
		return hold(status.ModuleFailed, true, "enabled(): "+why+f.stays()), true
	case Unasked:
		return hold(status.ModuleStarting, false, "asking enabled()"), true
	case Waiting:
		return hold(status.ModuleWaiting, true, why+f.stays()), true
	case Disabled, WasDisabled:
		why = "disabled: " + why
		switch {
		case f.Enabled.Says == WasDisabled || f.Global.Pending != "": // asked again before anything is taken away
			return hold(status.ModuleOff, true, why), true
		case f.Global.Failing != "":
			return hold(status.ModuleOff, true, why+", while global hook "+f.Global.Failing+" fails"+f.stays()), true
		}
		return uninstalls(f, why), true
	}
	return Verdict{}, false
}

// The reasons of modules that are not in the tree.
const (
	GoneReason      = "no longer in the module tree"
	lackedReason    = "not in the module tree; it stays as it is until "
	ElsewhereReason = "not one of --modules-selector: its release is given back, for another instance"
	HollowReason    = "its folder holds nothing of a module: its release stays as it is"
	pausedReason    = "; paused: its release stays as it is"
)

// decideGone is about a module that is not in the tree: it goes once it has been gone for a
// while, and all modules of the tree have settled. An uninstall that has begun goes on.
func decideGone(f Facts) Verdict {
	v := hold(status.ModuleUninstalling, true, GoneReason)
	switch {
	case f.Gone == Leaving:
		v.Do = Uninstall
	case f.Gone == Elsewhere:
		v.State, v.Reason, v.Do = status.ModulePaused, ElsewhereReason, GiveBack
	case f.Gone == Hollow:
		v.State, v.Reason = status.ModulePaused, HollowReason
	case f.Paused && f.There != None:
		v.State, v.Reason = status.ModulePaused, v.Reason+pausedReason
	case f.Global.Stays != "":
		v.State, v.Reason = status.ModulePaused, lackedReason+f.Global.Stays
	case f.NewBroken != "":
		v.State = status.ModulePaused
		v.Reason += fmt.Sprintf("; its release stays while module %s, of which nothing is there, is broken: it may be another name of it; mend or remove %[1]s", f.NewBroken)
	case f.Gone == Moment:
		v.Reason += ": uninstalled in a moment, unless it comes back"
	case f.Gone == Nothing:
		v.Do = takesAway(f)
	}
	return v
}

// uninstalls is about a module in the tree that has an explicit no.
func uninstalls(f Facts, why string) Verdict {
	if f.Paused && f.There != None {
		return hold(status.ModulePaused, true, why+pausedReason)
	}
	v := hold(status.ModuleOff, true, why)
	switch byUser := !f.Switch.On && f.Switch.Source == values.SourceConfig; {
	case byUser || f.Global.Stays == "":
		v.Do = takesAway(f)
	case f.There != None:
		v.Reason += "; it stays as it is until " + f.Global.Stays
	}
	return v
}

func takesAway(f Facts) Do {
	if f.There == None {
		return Forget
	}
	return Uninstall
}
