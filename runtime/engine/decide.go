package engine

import (
	"fmt"

	"github.com/starling-operator/starling/builtins"
	"github.com/starling-operator/starling/modules/status"
	"github.com/starling-operator/starling/modules/values"
)

// facts are what a module's fate depends on.
type facts struct {
	Removed bool // it is not in the tree
	Hollow  bool // of such a module: its folder is there, and empty
	Grace   bool // of such a module: it may come back in a moment
	Busy    bool // of such a module: others are on their way, or something of it is under way
	Leaving bool // its uninstall has begun, with its hooks
	// BrokenNew is another module, of which nothing is there, and which is broken: it may be the new
	// name of this one.
	BrokenNew string

	Key       string // `<Key>Enabled` is its switch
	Broken    string // why the module cannot be used, or ""
	Started   bool   // its hooks run already
	Installed bool   // the records say that a release is there
	More      bool   // a release or sets of its hooks are there, or hooks must hear of its end
	Paused    bool

	Switch values.Switch

	HasEnabled bool // it has a def enabled()
	Evaluated  bool // which has answered at least once
	EvalError  string
	Decision   builtins.Decision
	Stale      bool // the values have moved since it answered

	RequiresOff   string // a requirement that is off, or ""
	RequiresUnmet string // a requirement that is not Ready, or ""
	RequiresStuck bool   // that requirement has settled without being Ready
	After         string // a module that comes first and has not settled, or ""

	ConfigKnown   bool   // the user's ConfigMap was looked at
	ConfigUnread  string // why it cannot be read, while none was ever accepted, or ""
	GlobalPending string // of global hooks, that modules wait for, or ""
	GlobalFailing string // a global hook that never succeeded, or ""
}

// verdict is what shall be done about a module.
type verdict struct {
	// State and Reason are shown to people. State is empty when the module
	// runs: its release then decides.
	State  status.ModuleState
	Reason string
	// Run lets its hooks run.
	Run bool
	// Release lets its release be installed and upgraded.
	Release bool
	// Uninstall takes away what there is of it: its release, its sets of objects.
	Uninstall bool
	// Waits says that it would be, and others go first.
	Waits bool
	// Forget drops what its hooks have set: after an explicit no, once its
	// release and its sets are gone.
	Forget bool
	// Settled is false while the module is on its way and nothing is wrong:
	// those ordered behind it wait.
	Settled bool
	// Evaluate asks for def enabled().
	Evaluate bool
}

// decide determines what shall be done about a module. It is the only place that says when a
// module is uninstalled: after an explicit no, or when it has left the tree, and never because
// something could not be read, loaded or computed.
func decide(f facts) verdict {
	stays := ""
	if f.Installed {
		stays = "; its release stays as it is"
	}
	off := func(format string, a ...any) verdict {
		return verdict{State: status.ModuleOff, Reason: fmt.Sprintf(format, a...) + stays, Settled: true}
	}
	hold := func(state status.ModuleState, settled bool, format string, a ...any) verdict {
		return verdict{State: state, Reason: fmt.Sprintf(format, a...), Settled: settled}
	}

	switch {
	case f.Removed:
		return decideRemoved(f)
	case f.Broken != "":
		return hold(status.ModuleBroken, true, "%s%s", f.Broken, stays)
	case !f.ConfigKnown:
		return hold(status.ModuleStarting, false, "reading the configuration")
	case f.GlobalPending != "" && !f.Started:
		return hold(status.ModuleStarting, false, "waits for %s", f.GlobalPending)
	case !f.Switch.On && f.Switch.Source == values.SourceTree && f.GlobalPending != "":
		// The hook may be the one that says yes, under another name: the module goes on.
		v := hold(status.ModuleStarting, false, "%sEnabled: false in %s; waits for %s", f.Key, f.Switch.Source, f.GlobalPending)
		v.Run = true
		return v
	case !f.Switch.On && f.Switch.Source == values.SourceTree && f.GlobalFailing != "":
		// The hook may be the one that says yes; its error is no no.
		return off("%sEnabled: false in %s, while global hook %s fails", f.Key, f.Switch.Source, f.GlobalFailing)
	case !f.Switch.On && f.Switch.Explicit:
		v := verdict{State: status.ModuleOff, Reason: fmt.Sprintf("%sEnabled: false in %s", f.Key, f.Switch.Source), Settled: true}
		return uninstalls(v, f)
	case !f.Switch.On:
		return off("add `%sEnabled: true` to values.yaml or module(enabled=True)", f.Key)
	case f.RequiresOff != "":
		return off("requires %s, which is off", f.RequiresOff)
	}

	if f.HasEnabled {
		// Before the first run of a global hook the values may lack what it sets.
		v := verdict{Evaluate: f.GlobalPending == ""}
		switch {
		case f.EvalError != "" && !f.Started:
			v.State, v.Reason, v.Settled = status.ModuleFailed, "enabled(): "+f.EvalError+stays, true
			return v
		case !f.Evaluated:
			v.State, v.Reason = status.ModuleStarting, "asking enabled()"
			return v
		case f.EvalError != "":
			// A module that runs goes on by the last answer.
		case f.Decision.Answer == builtins.AnswerDisabled:
			v.State, v.Reason, v.Settled = status.ModuleOff, "disabled: "+f.Decision.Reason, true
			switch {
			case f.Stale || f.GlobalPending != "": // asked again before anything is taken away
				return v
			case f.GlobalFailing != "":
				v.Reason += ", while global hook " + f.GlobalFailing + " fails" + stays
				return v
			}
			return uninstalls(v, f)
		case f.Decision.Answer == builtins.AnswerWaiting:
			v.State, v.Reason, v.Settled = status.ModuleWaiting, f.Decision.Reason+stays, true
			return v
		}
	}

	v := verdict{Evaluate: f.HasEnabled && f.GlobalPending == ""}
	if !f.Started {
		switch {
		case f.ConfigUnread != "" && !f.Installed:
			v.State, v.Reason, v.Settled = status.ModuleBlocked, "not installed while the user's ConfigMap cannot be read: "+f.ConfigUnread, true
			return v
		case f.RequiresUnmet != "":
			v.State, v.Reason, v.Settled = status.ModuleBlocked, "waits for "+f.RequiresUnmet+" to be ready", f.RequiresStuck
			return v
		case f.After != "":
			v.State, v.Reason = status.ModuleBlocked, "comes after "+f.After
			return v
		}
	}
	if f.GlobalFailing != "" && !f.Installed {
		v.State, v.Reason, v.Settled = status.ModuleBlocked,
			"not installed while global hook "+f.GlobalFailing+" fails", true
		v.Run = f.Started
		return v
	}
	v.Run, v.Release = true, !f.Paused
	return v
}

// decideRemoved is about a module that is not in the tree: it goes once it has been gone for a
// while, and all modules of the tree have settled. An uninstall that has begun goes on.
func decideRemoved(f facts) verdict {
	v := verdict{State: status.ModuleUninstalling, Reason: goneReason, Settled: true}
	switch {
	case f.Leaving:
		v.Uninstall = true
	case f.Hollow:
		v.State, v.Reason = status.ModulePaused, hollowReason
	case f.Paused:
		v.State, v.Reason = status.ModulePaused, v.Reason+pausedReason
	case f.BrokenNew != "":
		v.State = status.ModulePaused
		v.Reason += fmt.Sprintf("; its release stays while module %s, of which nothing is there, is broken: it may be another name of it; mend or remove %[1]s", f.BrokenNew)
	case f.Grace:
		v.Reason += ": uninstalled in a moment, unless it comes back"
	case !f.Busy:
		v.Uninstall, v.Forget = f.Installed || f.More, !f.Installed && !f.More
	}
	return v
}

const pausedReason = "; paused: its release stays as it is"

// uninstalls completes a verdict that takes the release away.
func uninstalls(v verdict, f facts) verdict {
	there := f.Installed || f.More
	switch {
	case f.Paused && there:
		v.State, v.Reason = status.ModulePaused, v.Reason+pausedReason
	default:
		v.Uninstall, v.Forget = there, !there
	}
	return v
}
