package engine

import (
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/starling-operator/starling/builtins"
	"github.com/starling-operator/starling/modules/reads"
	"github.com/starling-operator/starling/runtime/effect"
	"github.com/starling-operator/starling/runtime/generation"
)

// reading are the reads of a chart with one template.
func reading(template string) *reads.Reads {
	return reads.Chart(map[string][]byte{"Chart.yaml": []byte("name: web"), "templates/a.yaml": []byte(template)})
}

// runAgain has a hook run for a change of an object.
func (w *world) runAgain(id string) {
	w.t.Helper()
	module, _, _ := strings.Cut(id, "/")
	w.changed(w.e.module(module).byKey[id].watches[0].ID)
}

// withReads is a module whose chart is this template.
func withReads(name, template string, hooks ...*generation.Hook) *generation.Module {
	m := mod(name, builtins.ModuleDecl{Enabled: true}, hooks...)
	m.Reads = reading(template)
	return m
}

// Only modules that read what has changed of global are looked at.
func TestAGlobalValueHasReaders(t *testing.T) {
	w := newWorld(t,
		mod("global", builtins.ModuleDecl{}, hk("find", onWatch("nodes"))),
		withReads("one", "a: {{ .Values.global.a }}"),
		withReads("two", "a: {{ .Values.global.b.c }}"),
		withReads("none", "a: 1"),
		withReads("all", "a: {{ toYaml .Values.global }}"),
	)
	w.hooks["global/find"] = func(RunHook) (effect.Effects, error) { return set("global.a", int64(1)), nil }
	w.start()
	change := func(path string, v any) []string {
		w.hooks["global/find"] = func(RunHook) (effect.Effects, error) { return set(path, v), nil }
		before := maps.Clone(w.revision)
		w.runAgain("global/find")
		var out []string
		for name, n := range w.revision {
			if n != before[name] {
				out = append(out, name)
			}
		}
		slices.Sort(out)
		return out
	}
	for i, tt := range []struct {
		path string
		v    any
		want string
	}{
		{"global.x", int64(1), "[all one]"}, // a is gone
		{"global.x", int64(2), "[all]"},
		{"global.b", map[string]any{"c": int64(1), "d": int64(1)}, "[all two]"},
		{"global.b", map[string]any{"c": int64(1), "d": int64(2)}, "[all]"},
		{"global.b", map[string]any{"c": int64(2), "d": int64(2)}, "[all two]"},
		{"global.a", int64(2), "[all one two]"},
	} {
		if got := fmt.Sprint(change(tt.path, tt.v)); got != tt.want {
			t.Errorf("%d: %s = %v: looked at %s, want %s", i, tt.path, tt.v, got, tt.want)
		}
	}
	if got := fmt.Sprint(w.e.Values("none")); got != "map[global:map[a:2] replicas:1]" {
		t.Errorf("a module that is not looked at sees %s", got)
	}
}

// The values of a chart lie below the global ones: what a module reads is found in both.
func TestReadersSeeWhatAChartHasBelowGlobal(t *testing.T) {
	m := withReads("web", "a: {{ .Values.global.a.x }}")
	m.Tree.Values = map[string]any{"global": map[string]any{"a": map[string]any{"x": int64(1)}}}
	w := newWorld(t, mod("global", builtins.ModuleDecl{}, hk("find", onWatch("nodes"))), m)
	w.start()
	if w.revision["web"] != 1 {
		t.Fatal(w.released)
	}
	for i, tt := range []struct {
		v    any
		want int
	}{{map[string]any{"y": int64(1)}, 1}, {map[string]any{"x": int64(2)}, 2}, {map[string]any{"x": int64(2), "y": int64(2)}, 2}, {"none", 3}, {map[string]any{"x": int64(1)}, 4}} {
		w.hooks["global/find"] = func(RunHook) (effect.Effects, error) { return set("global.a", tt.v), nil }
		w.runAgain("global/find")
		if w.revision["web"] != tt.want {
			t.Errorf("%d: revision %d, want %d", i, w.revision["web"], tt.want)
		}
	}
}

// A hook that has failed for a value is tried soon when that value changes, and not when
// another one does.
func TestAReaderIsTriedSoon(t *testing.T) {
	reader := withReads("web", "a: {{ .Values.global.a }}", hk("use", onWatch("nodes")))
	w := newWorld(t, mod("global", builtins.ModuleDecl{}, hk("find", onWatch("nodes"))), reader)
	w.hooks["web/use"] = func(RunHook) (effect.Effects, error) { return effect.Effects{}, errors.New("no") }
	w.start()
	w.advance(10 * time.Minute)
	for i, path := range []string{"global.b", "global.a"} {
		w.runs = nil
		w.hooks["global/find"] = func(RunHook) (effect.Effects, error) { return set(path, int64(1)), nil }
		w.runAgain("global/find")
		w.advance(2 * time.Second)
		if soon := strings.Contains(fmt.Sprint(w.runs), "web/use"); soon != (i == 1) {
			t.Errorf("%s: runs %v", path, w.runs)
		}
	}
}

// Whatever changes, releases are those that they are with modules that read all.
func TestReadersMissNothing(t *testing.T) {
	templates := []string{"{{ .Values.global.a }}", "{{ .Values.global.b.c }}", "{{ if .Values.global.b }}x{{ end }}", "{{ .Values.own }}", "{{ toYaml .Values.global }}",
		"{{ with .Values.global.b }}{{ .d }}{{ end }}"}
	for seed := range uint64(40) {
		r := rand.New(rand.NewPCG(seed, 1))
		worlds, releases := make([]*world, 2), []map[string]map[string]any{{}, {}}
		for i := range worlds {
			mods := []*generation.Module{mod("global", builtins.ModuleDecl{}, hk("find", onWatch("nodes")))}
			for n, text := range templates {
				m := withReads(fmt.Sprint("m", n), text, hk("own", onWatch("nodes")))
				if n%2 == 1 {
					m.Tree.Values = map[string]any{"global": map[string]any{"b": map[string]any{"c": int64(7)}}}
				}
				if i == 1 {
					m.Reads = nil
				}
				mods = append(mods, m)
			}
			w := newWorld(t, mods...)
			w.told = func(a Action) {
				if a, ok := a.(Release); ok {
					releases[i][a.Ref.Module] = a.Values
				}
			}
			w.start()
			worlds[i] = w
		}
		for range 12 {
			path, v := []string{"global.a", "global.b", "global.b.c", "global.b.d", "global.x"}[r.IntN(5)], []any{int64(r.IntN(3)), map[string]any{"c": int64(r.IntN(2))}, map[string]any{}}[r.IntN(3)]
			own, hook := int64(r.IntN(2)), fmt.Sprintf("m%d/own", r.IntN(len(templates)))
			for _, w := range worlds {
				w.hooks["global/find"] = func(RunHook) (effect.Effects, error) { return set(path, v), nil }
				w.runAgain("global/find")
				w.hooks[hook] = func(RunHook) (effect.Effects, error) { return set("own", own), nil }
				w.runAgain(hook)
			}
			for n := range templates {
				name := fmt.Sprint("m", n)
				all := worlds[1].e.Values(name)
				if got := worlds[0].e.Values(name); fmt.Sprint(got) != fmt.Sprint(all) {
					t.Fatalf("seed %d: %s sees %v, want %v", seed, name, got, all)
				}
				m := worlds[0].e.modules[name]
				read := func(values map[string]any) string {
					return fmt.Sprint(m.gen.Reads.Of(values["global"].(map[string]any)), values["own"])
				}
				if got := releases[0][name]; read(got) != read(all) {
					t.Fatalf("seed %d: the release of %s has %v, want %v", seed, name, got, all)
				}
				if got := releases[1][name]; fmt.Sprint(got) != fmt.Sprint(all) {
					t.Fatalf("seed %d: of a module that reads all, the release of %s has %v, want %v", seed, name, got, all)
				}
			}
		}
	}
}

// A value that a module exports concerns the modules that read it, and no others.
func TestAnExportedValueHasReaders(t *testing.T) {
	auth := mod("auth", builtins.ModuleDecl{Enabled: true, Exports: []string{"url"}}, hk("find", onWatch("nodes")))
	auth.Reads = reading("a: 1")
	w := newWorld(t, auth, withReads("web", "a: {{ .Values.global.exports.auth.url }}"), withReads("none", "a: 1"))
	w.hooks["auth/find"] = func(RunHook) (effect.Effects, error) { return set("url", "https://a"), nil }
	w.start()
	before := maps.Clone(w.revision)
	w.hooks["auth/find"] = func(RunHook) (effect.Effects, error) { return set("url", "https://b"), nil }
	w.runAgain("auth/find")
	for name, looks := range map[string]bool{"auth": true, "web": true, "none": false} {
		if got := w.revision[name] != before[name]; got != looks {
			t.Errorf("%s was looked at: %t", name, got)
		}
	}
	if got := fmt.Sprint(w.e.Values("web")["global"]); got != "map[exports:map[auth:map[url:https://b]]]" {
		t.Errorf("web sees %s", got)
	}
	in, err := w.e.Explain("web")
	if err != nil {
		t.Fatal(err)
	}
	if entries, _, err := in.Explain().Find("global.exports.auth.url"); err != nil || entries[0].Chain[0].From() != "exports of module auth" {
		t.Errorf("%+v, %v", entries, err)
	}
}
