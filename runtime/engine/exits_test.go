package engine

import (
	"slices"
	"testing"
	"time"

	"github.com/starling-operator/starling/builtins"
	"github.com/starling-operator/starling/modules/status"
	"github.com/starling-operator/starling/runtime/effect"
	"github.com/starling-operator/starling/runtime/generation"
)

// Whichever way modules go, those that depend on others go first, and the status says what
// the others wait for.
func TestModulesGoInTheReverseOrder(t *testing.T) {
	number := func(n int) *int { return &n }
	relations := map[string]func(app, db *builtins.ModuleDecl){
		"requires": func(app, _ *builtins.ModuleDecl) { app.Requires = []string{"db"} },
		"after":    func(app, _ *builtins.ModuleDecl) { app.After = []string{"db"} },
		"weight":   func(app, db *builtins.ModuleDecl) { app.Weight, db.Weight = number(20), number(10) },
	}
	for relation, declare := range relations {
		app, db := isOn(), isOn()
		declare(&app, &db)
		trees := func() (other, appModule, dbModule *generation.Module) {
			return mod("other", isOn()), mod("app", app, code("1", hk("bye", onStage(builtins.StageBeforeDelete)))), mod("db", db)
		}
		begin := func(t *testing.T) *world {
			other, app, db := trees()
			w := newWorld(t, other, app, db)
			w.start()
			return w
		}
		wantOrder := func(t *testing.T, w *world) {
			t.Helper()
			if want := []string{"app", "db"}; !slices.Equal(w.gone, want) {
				t.Errorf("gone %v, want %v", w.gone, want)
			}
		}
		ways := map[string]func(w *world){
			"switched off": func(w *world) {
				w.in(Config{State: ConfigPresent, Data: map[string]string{"appEnabled": "false", "dbEnabled": "false"}})
			},
			"not in the tree": func(w *world) {
				other, _, _ := trees()
				w.reload(other)
			},
		}
		for way, leave := range ways {
			t.Run(relation+"/"+way, func(t *testing.T) {
				w := begin(t)
				fails := true
				w.hooks["app/bye"] = func(RunHook) (effect.Effects, error) {
					if fails {
						return effect.Effects{}, errBoom
					}
					return effect.Effects{}, nil
				}
				leave(w)
				w.advance(time.Hour)
				if len(w.gone) > 0 {
					t.Errorf("gone %v while app waits for its hook", w.gone)
				}
				w.state("app", status.ModuleFailed, "before_delete hook bye: ")
				w.state("db", status.ModuleUninstalling, "; waits until app is gone, which comes after it")
				fails = false
				w.advance(time.Hour)
				wantOrder(t, w)
			})
		}
		t.Run(relation+"/one is switched off, the other is not in the tree", func(t *testing.T) {
			w := begin(t)
			w.opts.Grace = 10 * time.Second
			w.start()
			other, _, db := trees()
			w.reload(other, db)
			off(w, "db")
			w.state("db", status.ModuleUninstalling, "waits until app is gone")
			w.advance(10 * time.Second)
			wantOrder(t, w)
		})
		t.Run(relation+"/not in the tree of another process", func(t *testing.T) {
			w := begin(t)
			other, _, _ := trees()
			w.gen = newWorld(t, other).gen
			w.uninstallErr = errBoom
			w.start()
			w.state("app", status.ModuleFailed, "boom")
			w.state("db", status.ModuleUninstalling, "waits until app is gone")
			w.uninstallErr = nil
			w.advance(time.Hour)
			wantOrder(t, w)
			if len(w.kept["global"][orderKey]) > 0 {
				t.Errorf("kept %v", copyKept(w.kept))
			}
		})
		t.Run(relation+"/one stays", func(t *testing.T) {
			w := begin(t)
			w.opts.Paused = []string{"app"}
			w.start()
			w.in(Config{State: ConfigPresent, Data: map[string]string{"appEnabled": "false", "dbEnabled": "false"}})
			if want := []string{"db"}; !slices.Equal(w.gone, want) {
				t.Errorf("gone %v, want %v", w.gone, want)
			}
		})
	}
}

// The other goes on when the one that goes first is switched on again.
func TestAModuleThatGoesFirstAndStays(t *testing.T) {
	app := isOn()
	app.After = []string{"db"}
	w := newWorld(t, mod("app", app, hk("bye", onStage(builtins.StageBeforeDelete))), mod("db", isOn()))
	w.hooks["app/bye"] = func(RunHook) (effect.Effects, error) { return effect.Effects{}, errBoom }
	w.start()
	w.in(Config{State: ConfigPresent, Data: map[string]string{"appEnabled": "false", "dbEnabled": "false"}})
	w.state("db", status.ModuleUninstalling, "waits until app is gone")
	off(w, "db")
	if want := []string{"db"}; !slices.Equal(w.gone, want) {
		t.Errorf("gone %v, want %v", w.gone, want)
	}
	w.state("app", status.ModuleReady, "")
}

// A module leaves the tree, one that it requires is switched off, and new ones of the same tree wait until that is off
// and gone, and for each other: all that goes goes, in its order, and then they come. A module that left the tree, and
// for which none of them waits, stays until they have.
func TestModulesThatWaitForOneThatWaitsForAModuleThatLeft(t *testing.T) {
	requires := func(names ...string) builtins.ModuleDecl {
		d := isOn()
		d.Requires = names
		return d
	}
	after := isOn()
	after.After = []string{"next"}
	for name, tt := range map[string]struct {
		with, without []*generation.Module
		gone          []string
	}{
		"one requires the other": {
			with:    []*generation.Module{mod("legacy", isOn()), mod("addon", requires("legacy"))},
			without: []*generation.Module{mod("legacy", isOn()), mod("next", requires("!legacy"))},
			gone:    []string{"addon", "legacy"},
		},
		"others wait for the new one": {
			with:    []*generation.Module{mod("legacy", isOn()), mod("addon", requires("legacy"))},
			without: []*generation.Module{mod("legacy", isOn()), mod("next", requires("!legacy")), mod("more", requires("next")), mod("last", after)},
			gone:    []string{"addon", "legacy"},
		},
		"a row": {
			with:    []*generation.Module{mod("base", isOn()), mod("legacy", requires("base")), mod("addon", requires("legacy"))},
			without: []*generation.Module{mod("base", isOn()), mod("legacy", requires("base")), mod("next", requires("!base"))},
			gone:    []string{"addon", "legacy", "base"},
		},
		"two have left": {
			with:    []*generation.Module{mod("legacy", isOn()), mod("addon", requires("legacy")), mod("more", requires("legacy"))},
			without: []*generation.Module{mod("legacy", isOn()), mod("next", requires("!legacy"))},
			gone:    []string{"addon", "more", "legacy"},
		},
		"one has left that nobody waits for": {
			with:    []*generation.Module{mod("legacy", isOn()), mod("addon", requires("legacy")), mod("aside", isOn())},
			without: []*generation.Module{mod("legacy", isOn()), mod("next", requires("!legacy"))},
			gone:    []string{"addon", "legacy", "aside"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, tt.with...)
			w.opts.Grace = 10 * time.Second
			w.start()
			w.advance(time.Minute)
			w.reload(tt.without...)
			w.in(Config{State: ConfigPresent, Data: map[string]string{"legacyEnabled": "false", "baseEnabled": "false"}})
			w.advance(time.Hour)
			if !slices.Equal(w.gone, tt.gone) {
				t.Errorf("gone %v, want %v", w.gone, tt.gone)
			}
			w.state("next", status.ModuleReady, "")
		})
	}
}
