package engine

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"golang.org/x/time/rate"

	"github.com/starling-operator/starling/modules/status"
	"github.com/starling-operator/starling/modules/tree"
	"github.com/starling-operator/starling/runtime/effect"
	"github.com/starling-operator/starling/runtime/engine/userconfig"
)

// A change of the user's config by a hook goes where the section stands, and never brings what the
// user once set to an end.
func TestConfigWrites(t *testing.T) {
	w := newWorld(t, mod("web", isOn(), hk("a", onWatch("nodes"))))
	change := &effect.ConfigChange{Key: "web", Path: []string{"password"}, Value: "x"}
	w.hooks["web/a"] = func(RunHook) (effect.Effects, error) {
		return effect.Effects{Writes: []effect.Write{{Kind: effect.WriteConfig, Config: change,
			Ref: effect.Ref{APIVersion: "v1", Kind: "ConfigMap", Namespace: "ops", Name: "starling"}}}}, nil
	}
	var got []effect.Write
	w.told = func(a Action) {
		if commit, is := a.(Commit); is {
			got = append(got, commit.Writes...)
		}
	}
	w.start()
	look := func(in Config) *effect.Write {
		t.Helper()
		got = nil
		w.in(in)
		w.runAgain("web/a")
		if len(got) == 0 {
			return nil
		}
		return &got[len(got)-1]
	}
	if wr := look(Config{State: ConfigMissing}); wr == nil || !wr.Config.Create || wr.Config.Object || wr.Ref.Kind != "ConfigMap" {
		t.Errorf("without a ConfigMap: %+v", wr)
	}
	if wr := look(Config{State: ConfigPresent, Data: map[string]string{"web": "a: 1"}}); wr == nil || wr.Config.Create || wr.Ref.Kind != "ConfigMap" {
		t.Errorf("with a ConfigMap: %+v", wr)
	}
	in := Config{State: ConfigPresent, ObjectsState: ConfigPresent, Objects: map[string]userconfig.Object{"web": {Values: `{"a":2}`}}}
	if wr := look(in); wr == nil || !wr.Config.Object || wr.Ref != (effect.Ref{APIVersion: effect.ModuleAPIVersion, Kind: "Module", Name: "web"}) {
		t.Errorf("with a Module object: %+v", wr)
	}
	if change.Object || change.Create {
		t.Error("what the run has asked for is changed")
	}
	look(Config{State: ConfigPresent, Data: map[string]string{"web": "a: 1"}})
	if wr := look(Config{State: ConfigMissing}); wr != nil { // a new ConfigMap would say that there is no a
		t.Errorf("one that is gone: %+v", wr)
	}
	if said := strings.Join(w.notes, "\n"); !strings.Contains(said, "ConfigMap ops/starling is gone, and what it said last stays in force; create it again") {
		t.Errorf("notes:\n%s", said)
	}
	if wr := look(Config{State: ConfigUnreadable, Reason: "no"}); wr != nil {
		t.Errorf("one that cannot be read: %+v", wr)
	}
}

// A change that the schema refuses is not written: it would not come into force.
func TestConfigWritesAreChecked(t *testing.T) {
	web := mod("web", isOn(), hk("a", onWatch("nodes")))
	web.Tree.ConfigSchema = &tree.File{Path: "web/openapi/config-values.yaml", Data: []byte("properties: {replicas: {type: integer}}\n")}
	w := newWorld(t, web)
	w.hooks["web/a"] = func(RunHook) (effect.Effects, error) {
		return effect.Effects{Writes: []effect.Write{{Kind: effect.WriteConfig, Config: &effect.ConfigChange{Key: "web", Path: []string{"replicas"}, Value: "many"}}}}, nil
	}
	w.start()
	w.in(Config{State: ConfigPresent})
	if w.writes != 0 {
		t.Errorf("%d writes", w.writes)
	}
	w.state("web", status.ModuleFailed, "config refused")
}

// Values that the hooks of a module set have a share of the user's ConfigMap.
func TestConfigWritesHaveAShare(t *testing.T) {
	web := mod("web", isOn(), hk("a", onWatch("nodes")))
	web.Decl.Config = []string{"text", "more"}
	w := newWorld(t, web)
	w.hooks["web/a"] = func(RunHook) (effect.Effects, error) {
		change := func(path string) effect.Write {
			return effect.Write{Kind: effect.WriteConfig, Config: &effect.ConfigChange{Key: "web", Path: []string{path}, Value: strings.Repeat("x", 20<<10)}}
		}
		return effect.Effects{Writes: []effect.Write{change("text"), change("more")}}, nil
	}
	w.start()
	w.in(Config{State: ConfigPresent})
	if w.writes != 0 {
		t.Errorf("%d writes", w.writes)
	}
	w.state("web", status.ModuleFailed, "would have 41 KiB")
}

// A hook that runs for a change of the config, and changes the config each time, is slowed down; one that
// sets the same value is not.
func TestAConfigThatWakesItsHook(t *testing.T) {
	w := newWorld(t, mod("web", isOn(), hk("a", onBefore())))
	n := 0
	next := func() any { return int64(n + 1) }
	w.hooks["web/a"] = func(RunHook) (effect.Effects, error) {
		return effect.Effects{Writes: []effect.Write{{Kind: effect.WriteConfig, Config: &effect.ConfigChange{Key: "web", Path: []string{"count"}, Value: next(), Was: int64(n)}}}}, nil
	}
	w.start()
	round := func(times int) int {
		before := w.writes
		for range times { // the write comes back as config
			n++
			w.in(Config{State: ConfigPresent, Data: map[string]string{"web": fmt.Sprintf("count: %d", n)}})
		}
		return w.writes - before
	}
	if got := round(3 * configBurst); got > configBurst || got < configBurst-1 {
		t.Errorf("%d changes at once", got)
	}
	w.state("web", status.ModuleFailed, "config count of section web is changed again and again")
	w.advance(time.Hour) // the hook is tried again
	next = func() any { return int64(n) }
	if got := round(3 * configBurst); got < 3*configBurst {
		t.Errorf("of the same value %d", got)
	}
}

// A hook that makes up paths has no limit kept for each of them for ever.
func TestLimitsOfPathsAreDropped(t *testing.T) {
	h, now := &hook{limits: map[string]*rate.Limiter{}}, time.Unix(0, 0)
	for round := range 3 {
		for i := range 2 * maxPaced {
			if may := h.paced(now, []string{fmt.Sprint("p", round), fmt.Sprint(i)}); may != (i < maxPaced) {
				t.Fatalf("round %d: value %d may be changed: %v", round, i, may)
			}
		}
		if len(h.limits) > maxPaced {
			t.Errorf("round %d: %d limits are kept", round, len(h.limits))
		}
		now = now.Add(configBurst * configEvery)
	}
}
