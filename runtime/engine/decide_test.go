package engine

import (
	"strings"
	"testing"

	"github.com/starling-operator/starling/builtins"
	"github.com/starling-operator/starling/modules/status"
	"github.com/starling-operator/starling/modules/values"
)

// on are the facts of a module that may run.
func on(change func(*facts)) facts {
	f := facts{Key: "web", ConfigKnown: true, Switch: values.Switch{On: true, Explicit: true, Source: "values.yaml"}}
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
		facts  facts
		state  status.ModuleState
		reason string
		run    bool
		rel    bool
		gone   bool // uninstalled
		busy   bool // not settled
	}{
		{"on", on(nil), "", "", true, true, false, true},
		{"paused", on(func(f *facts) { f.Paused = true }), "", "", true, false, false, true},
		{"broken", on(func(f *facts) { f.Broken, f.Installed = "web/module.star:1: no", true }),
			status.ModuleBroken, "web/module.star:1: no; its release stays as it is", false, false, false, false},
		{"config not read yet", on(func(f *facts) { f.ConfigKnown = false }), status.ModuleStarting, "reading", false, false, false, true},
		{"config unreadable, first install", on(func(f *facts) { f.ConfigUnread = "forbidden" }), status.ModuleBlocked, "cannot be read: forbidden", false, false, false, false},
		{"config unreadable, installed", on(func(f *facts) { f.ConfigUnread, f.Installed = "forbidden", true }), "", "", true, true, false, true},
		{"explicitly off", on(func(f *facts) { f.Switch = off }), status.ModuleOff, "webEnabled: false in config", false, false, false, false},
		{"explicitly off, installed", on(func(f *facts) { f.Switch, f.Installed = off, true }), status.ModuleOff, "", false, false, true, false},
		{"explicitly off, installed, paused", on(func(f *facts) { f.Switch, f.Installed, f.Paused = off, true, true }),
			status.ModulePaused, "stays", false, false, false, false},
		{"no switch", on(func(f *facts) { f.Switch = unset }),
			status.ModuleOff, "add `webEnabled: true` to values.yaml or module(enabled=True)", false, false, false, false},
		{"no switch any more", on(func(f *facts) { f.Switch, f.Installed = unset, true }), status.ModuleOff, "release stays", false, false, false, false},
		{"requirement off", on(func(f *facts) { f.RequiresOff, f.Installed, f.Started = "db", true, true }),
			status.ModuleOff, "requires db, which is off; its release stays", false, false, false, false},
		{"requirement not ready", on(func(f *facts) { f.RequiresUnmet = "db" }), status.ModuleBlocked, "waits for db", false, false, false, true},
		{"requirement failing", on(func(f *facts) { f.RequiresUnmet, f.RequiresStuck = "db", true }),
			status.ModuleBlocked, "waits for db", false, false, false, false},
		{"requirement fails later", on(func(f *facts) { f.RequiresUnmet, f.Started = "db", true }), "", "", true, true, false, true},
		{"comes after", on(func(f *facts) { f.After = "cni" }), status.ModuleBlocked, "comes after cni", false, false, false, true},
		{"enabled() not asked", on(func(f *facts) { f.HasEnabled = true }), status.ModuleStarting, "asking", false, false, false, true},
		{"enabled() waiting", on(func(f *facts) {
			f.HasEnabled, f.Evaluated, f.Installed = true, true, true
			f.Decision = builtins.Decision{Answer: builtins.AnswerWaiting, Reason: "no domain yet"}
		}), status.ModuleWaiting, "no domain yet; its release stays", false, false, false, false},
		{"enabled() disabled", on(func(f *facts) {
			f.HasEnabled, f.Evaluated, f.Installed = true, true, true
			f.Decision = builtins.Decision{Answer: builtins.AnswerDisabled, Reason: "not here"}
		}), status.ModuleOff, "disabled: not here", false, false, true, false},
		{"enabled() disabled for other values", on(func(f *facts) {
			f.HasEnabled, f.Evaluated, f.Installed, f.Stale = true, true, true, true
			f.Decision = builtins.Decision{Answer: builtins.AnswerDisabled, Reason: "not here"}
		}), status.ModuleOff, "disabled: not here", false, false, false, false},
		{"off in the tree while a global hook fails", on(func(f *facts) {
			f.Switch, f.Installed, f.GlobalFailing = values.Switch{Explicit: true, Source: values.SourceTree}, true, "global/a"
		}), status.ModuleOff, "while global hook global/a fails; its release stays", false, false, false, false},
		{"enabled() fails first", on(func(f *facts) { f.HasEnabled, f.EvalError, f.Installed = true, "boom", true }),
			status.ModuleFailed, "enabled(): boom; its release stays", false, false, false, false},
		{"enabled() fails later", on(func(f *facts) { f.HasEnabled, f.Evaluated, f.EvalError, f.Started = true, true, "boom", true }),
			"", "", true, true, false, true},
		{"global hook never tried", on(func(f *facts) { f.GlobalPending = "global/a" }), status.ModuleStarting, "global/a", false, false, false, true},
		{"global hook fails, first install", on(func(f *facts) { f.GlobalFailing = "global/a" }), status.ModuleBlocked, "not installed while", false, false, false, false},
		{"global hook fails, installed", on(func(f *facts) { f.GlobalFailing, f.Installed = "global/a", true }), "", "", true, true, false, true},
	} {
		t.Run(c.name, func(t *testing.T) {
			v := decide(c.facts)
			if v.State != c.state || !strings.Contains(v.Reason, c.reason) {
				t.Errorf("got %q %q, want %q %q", v.State, v.Reason, c.state, c.reason)
			}
			if v.Run != c.run || v.Release != c.rel || v.Uninstall != c.gone || v.Settled == c.busy {
				t.Errorf("got %+v, want run=%v release=%v uninstall=%v settled=%v", v, c.run, c.rel, c.gone, !c.busy)
			}
		})
	}
}

// Whatever is unknown, broken or unset: only an explicit no uninstalls.
func TestDecideUninstallsOnlyAfterAnExplicitNo(t *testing.T) {
	bits := func(n int) func(i int) bool { return func(i int) bool { return n>>i&1 == 1 } }
	text := func(set bool) string {
		if set {
			return "x"
		}
		return ""
	}
	for n := range 1 << 16 {
		b := bits(n)
		f := facts{
			Key: "web", Broken: text(b(0)), Started: b(1), Installed: b(2), Paused: b(3),
			Switch:     values.Switch{On: b(4), Explicit: b(5), Source: "config"},
			HasEnabled: b(6), Evaluated: b(7), EvalError: text(b(8)),
			Decision:    builtins.Decision{Answer: builtins.Answer((n >> 9 & 3) % 3)},
			RequiresOff: text(b(11)), RequiresUnmet: text(b(12)), ConfigKnown: b(13), GlobalPending: text(b(14)), GlobalFailing: text(b(15)),
		}
		v := decide(f)
		saidNo := !f.Switch.On && f.Switch.Explicit ||
			f.HasEnabled && f.Evaluated && f.EvalError == "" && f.Decision.Answer == builtins.AnswerDisabled
		if v.Uninstall && (!saidNo || !f.Installed || f.Paused || f.Broken != "" || !f.ConfigKnown) {
			t.Fatalf("%+v is uninstalled", f)
		}
		if v.Uninstall && (v.Run || v.Release) {
			t.Fatalf("%+v is uninstalled while it runs", f)
		}
	}
}
