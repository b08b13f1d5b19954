package verdicts

import (
	"strings"
	"testing"

	"github.com/starling-operator/starling/modules/status"
	"github.com/starling-operator/starling/modules/values"
)

// on are the facts of a module that may run.
func on(change func(*Facts)) Facts {
	f := Facts{Key: "web", ConfigKnown: true, Switch: values.Switch{On: true, Explicit: true, Source: "values.yaml"}}
	if change != nil {
		change(&f)
	}
	return f
}

func TestDecide(t *testing.T) {
	off := values.Switch{On: false, Explicit: true, Source: "config"}
	unset := values.Switch{On: false}
	for _, c := range []struct {
		name   string
		facts  Facts
		state  status.ModuleState
		reason string
		run    bool
		rel    bool
		gone   bool // uninstalled
		busy   bool // not settled
	}{
		{"on", on(nil), "", "", true, true, false, true},
		{"paused", on(func(f *Facts) { f.Paused = true }), "", "", true, false, false, true},
		{"broken", on(func(f *Facts) { f.Broken, f.There = "web/module.star:1: no", Release }),
			status.ModuleBroken, "web/module.star:1: no; its release stays as it is", false, false, false, false},
		{"config not read yet", on(func(f *Facts) { f.ConfigKnown = false }), status.ModuleStarting, "reading", false, false, false, true},
		{"config unreadable, first install", on(func(f *Facts) { f.ConfigUnread = "forbidden" }), status.ModuleBlocked, "cannot be read: forbidden", false, false, false, false},
		{"config unreadable, installed", on(func(f *Facts) { f.ConfigUnread, f.There = "forbidden", Release }), "", "", true, true, false, true},
		{"explicitly off", on(func(f *Facts) { f.Switch = off }), status.ModuleOff, "webEnabled: false in config", false, false, false, false},
		{"explicitly off, installed", on(func(f *Facts) { f.Switch, f.There = off, Release }), status.ModuleOff, "", false, false, true, false},
		{"explicitly off, installed, paused", on(func(f *Facts) { f.Switch, f.There, f.Paused = off, Release, true }),
			status.ModulePaused, "stays", false, false, false, false},
		{"no switch", on(func(f *Facts) { f.Switch = unset }),
			status.ModuleOff, "add `webEnabled: true` to values.yaml or module(enabled=True)", false, false, false, false},
		{"no switch any more", on(func(f *Facts) { f.Switch, f.There = unset, Release }), status.ModuleOff, "release stays", false, false, false, false},
		{"requirement off", on(func(f *Facts) { f.Before, f.There, f.Started = Before{"db", RequiredOff}, Release, true }),
			status.ModuleOff, "requires db, which is off; its release stays", false, false, false, false},
		{"others not decided", on(func(f *Facts) { f.Unlisted = true }), status.ModuleStarting, "which modules are on", false, false, false, true},
		{"others not decided later", on(func(f *Facts) { f.Unlisted, f.Started = true, true }), "", "", true, true, false, true},
		{"requirement off, which uninstalls", on(func(f *Facts) { f.Before, f.There, f.LostUninstalls = Before{"db", RequiredOff}, Release, true }),
			status.ModuleOff, "requires db, which is off", false, false, true, false},
		{"requirement off, which uninstalls, paused", on(func(f *Facts) {
			f.Before, f.There, f.LostUninstalls, f.Paused = Before{"db", RequiredOff}, Release, true, true
		}), status.ModulePaused, "requires db, which is off; paused", false, false, false, false},
		{"requirement off while the config cannot be read", on(func(f *Facts) {
			f.Before, f.There, f.LostUninstalls, f.ConfigUnread = Before{"db", RequiredOff}, Release, true, "forbidden"
		}), status.ModuleOff, "its release stays", false, false, false, false},
		{"requirement off while a global hook fails", on(func(f *Facts) {
			f.Before, f.There, f.LostUninstalls, f.Global.Failing = Before{"db", RequiredOff}, Release, true, "global/a"
		}), status.ModuleOff, "its release stays", false, false, false, false},
		{"all of several are off", on(func(f *Facts) { f.Before = Before{"db|store", RequiredOff} }),
			status.ModuleOff, "requires one of db, store, which are all off", false, false, false, false},
		{"one that must be off is on", on(func(f *Facts) { f.Before, f.There, f.Started = Before{"old", RequiredOn}, Release, true }),
			status.ModuleOff, "requires old to be off, and it is on; its release stays", false, false, false, false},
		{"one that must be off is not gone", on(func(f *Facts) { f.Before = Before{"old", RequiredGoes} }),
			status.ModuleBlocked, "waits until old is off and gone", false, false, false, true},
		{"one that must be off is looked at anew", on(func(f *Facts) { f.Before, f.Started = Before{"old", RequiredGoes}, true }), "", "", true, true, false, true},
		{"none of several is ready", on(func(f *Facts) { f.Before = Before{"db|store", RequiredComes} }), status.ModuleBlocked, "waits for db or store to be ready", false, false, false, true},
		{"requirement not ready", on(func(f *Facts) { f.Before = Before{"db", RequiredComes} }), status.ModuleBlocked, "waits for db", false, false, false, true},
		{"requirement failing", on(func(f *Facts) { f.Before = Before{"db", RequiredStuck} }),
			status.ModuleBlocked, "waits for db", false, false, false, false},
		{"requirement fails later", on(func(f *Facts) { f.Before, f.Started = Before{"db", RequiredComes}, true }), "", "", true, true, false, true},
		{"comes after", on(func(f *Facts) { f.Before = Before{"cni", Earlier} }), status.ModuleBlocked, "comes after cni", false, false, false, true},
		{"enabled() not asked", on(func(f *Facts) { f.Enabled.Says = Unasked }), status.ModuleStarting, "asking", false, false, false, true},
		{"enabled() waiting", on(func(f *Facts) {
			f.Enabled, f.There = Answer{Waiting, "no domain yet"}, Release
		}), status.ModuleWaiting, "no domain yet; its release stays", false, false, false, false},
		{"enabled() disabled", on(func(f *Facts) {
			f.Enabled, f.There = Answer{Disabled, "not here"}, Release
		}), status.ModuleOff, "disabled: not here", false, false, true, false},
		{"enabled() disabled for other values", on(func(f *Facts) {
			f.Enabled, f.There = Answer{WasDisabled, "not here"}, Release
		}), status.ModuleOff, "disabled: not here", false, false, false, false},
		{"off in the tree while a global hook fails", on(func(f *Facts) {
			f.Switch, f.There, f.Global.Failing = values.Switch{Explicit: true, Source: values.SourceTree}, Release, "global/a"
		}), status.ModuleOff, "while global hook global/a fails; its release stays", false, false, false, false},
		{"enabled() fails first", on(func(f *Facts) { f.Enabled, f.There = Answer{Failed, "boom"}, Release }),
			status.ModuleFailed, "enabled(): boom; its release stays", false, false, false, false},
		{"global hook never tried", on(func(f *Facts) { f.Global.Pending = "global/a" }), status.ModuleStarting, "global/a", false, false, false, true},
		{"global hook fails, first install", on(func(f *Facts) { f.Global.Failing = "global/a" }), status.ModuleBlocked, "not installed while", false, false, false, false},
		{"global hook fails, installed", on(func(f *Facts) { f.Global.Failing, f.There = "global/a", Release }), "", "", true, true, false, true},
		{"only sets are left", on(func(f *Facts) { f.Switch, f.There = off, Rest }), status.ModuleOff, "webEnabled: false", false, false, true, false},
		{"not in the tree, for a moment", Facts{Gone: Moment, There: Release}, status.ModuleUninstalling, "in a moment", false, false, false, false},
		{"not in the tree, others are busy", Facts{Gone: Busy, There: Release}, status.ModuleUninstalling, GoneReason, false, false, false, false},
		{"not in the tree", Facts{Gone: Nothing, There: Rest}, status.ModuleUninstalling, GoneReason, false, false, true, false},
		{"not in the tree, paused", Facts{Gone: Nothing, There: Release, Paused: true}, status.ModulePaused, "stays", false, false, false, false},
		{"another instance has it", Facts{Gone: Elsewhere, There: Release, Paused: true}, status.ModulePaused, ElsewhereReason, false, false, false, false},
		{"an empty folder", Facts{Gone: Hollow, There: Release}, status.ModulePaused, HollowReason, false, false, false, false},
		{"not in the tree, which takes nothing away", Facts{Gone: Nothing, There: Release, Global: Global{Stays: "noon"}}, status.ModulePaused, "not in the module tree; it stays as it is until noon", false, false, false, false},
		{"off in the tree, which takes nothing away", on(func(f *Facts) {
			f.Switch, f.There, f.Global.Stays = values.Switch{Explicit: true, Source: values.SourceTree}, Release, "noon"
		}), status.ModuleOff, "webEnabled: false in values.yaml; it stays as it is until noon", false, false, false, false},
		{"explicitly off while the tree takes nothing away", on(func(f *Facts) { f.Switch, f.There, f.Global.Stays = off, Release, "noon" }),
			status.ModuleOff, "webEnabled: false in config", false, false, true, false},
		{"enabled() disabled while the tree takes nothing away", on(func(f *Facts) {
			f.Enabled, f.There, f.Global.Stays = Answer{Disabled, "not here"}, Release, "noon"
		}), status.ModuleOff, "disabled: not here; it stays as it is until noon", false, false, false, false},
		{"its release has another name while the tree takes nothing away", on(func(f *Facts) { f.Renamed, f.There, f.Global.Stays = true, Release, "noon" }),
			status.ModuleBlocked, "its release has another name or namespace; it stays as it is until noon", true, false, false, false},
		{"its release has another name", on(func(f *Facts) { f.Renamed, f.There = true, Release }), "", "", true, true, false, true},
		{"it may have another name", Facts{Gone: Nothing, There: Release, NewBroken: "site"}, status.ModulePaused, "mend or remove site", false, false, false, false},
	} {
		t.Run(c.name, func(t *testing.T) {
			v := Decide(c.facts)
			if v.State != c.state || !strings.Contains(v.Reason, c.reason) {
				t.Errorf("got %q %q, want %q %q", v.State, v.Reason, c.state, c.reason)
			}
			if v.Do.Runs() != c.run || (v.Do == Install) != c.rel || v.Do.Goes() != c.gone || v.Settled == c.busy {
				t.Errorf("got %+v, want run=%v release=%v uninstall=%v settled=%v", v, c.run, c.rel, c.gone, !c.busy)
			}
		})
	}
}

// Whatever is unknown, broken or unset: only an explicit no uninstalls, or an end outside the tree.
func TestDecideUninstallsOnlyAfterAnExplicitNo(t *testing.T) {
	for n := 0; ; n++ {
		left := n
		one := func(of int) int {
			i := left % of
			left /= of
			return i
		}
		is := func() bool { return one(2) == 1 }
		text := func() string { return []string{"", "x"}[one(2)] }
		f := Facts{
			Key: "web", Broken: text(), Started: is(), There: There(one(3)), Paused: is(),
			Switch:  values.Switch{On: is(), Explicit: is(), Source: []string{"config", values.SourceTree}[one(2)]},
			Enabled: Answer{Says: Says(one(6))}, Before: Before{"db", Need(one(7))}, LostUninstalls: is(), Unlisted: is(),
			ConfigKnown: is(), ConfigUnread: text(), Global: Global{Pending: text(), Failing: text(), Stays: text()},
			Gone: Gone(one(6)), NewBroken: text(),
		}
		if left > 0 {
			return
		}
		v := Decide(f)
		lost := f.LostUninstalls && f.Before.Lost() != "" && f.ConfigUnread == "" && f.Global == Global{}
		saidNo := f.Broken == "" && f.ConfigKnown && (!f.Paused || f.There == None) && (!f.Switch.On && f.Switch.Explicit || f.Enabled.Says == Disabled || lost)
		if f.Global.Stays != "" && (f.Switch.On || f.Switch.Source != values.SourceConfig) {
			saidNo = false // the tree takes nothing away
		}
		switch f.Gone {
		case Leaving:
			saidNo = true // an uninstall that has begun goes on
		case Nothing:
			saidNo = (!f.Paused || f.There == None) && f.NewBroken == "" && f.Global.Stays == ""
		case Hollow, Moment, Busy:
			saidNo = false
		}
		if (v.Do == Uninstall || v.Do == Forget) && !saidNo || v.Do == Uninstall && f.There == None && f.Gone != Leaving {
			t.Fatalf("%+v is uninstalled", f)
		}
		if v.Do == Forget && f.There != None {
			t.Fatalf("%+v is forgotten while something of it is there", f)
		}
	}
}

// A module that waits for another one to go first says so.
func TestBehind(t *testing.T) {
	v := Decide(Facts{Gone: Nothing, There: Release}).Behind("app")
	if v.Do != Wait || v.For != "app" || !strings.HasSuffix(v.Reason, "; waits until app is gone, which comes after it") {
		t.Errorf("got %+v", v)
	}
}
