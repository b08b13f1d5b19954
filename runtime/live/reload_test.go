package live

import (
	"context"
	"errors"
	"maps"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"testing/fstest"
	"testing/synctest"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil"
	"github.com/rs/zerolog"

	"github.com/starling-operator/starling/modules/tree"
	"github.com/starling-operator/starling/runtime/effect"
	"github.com/starling-operator/starling/runtime/engine"
	"github.com/starling-operator/starling/runtime/generation"
	"github.com/starling-operator/starling/runtime/modules"
	"github.com/starling-operator/starling/stdlib"
)

func TestDeploymentOfAPod(t *testing.T) {
	for pod, want := range map[string]string{
		"starling-6d4b75cb6d-hwt4s": "starling", "my-starling-6d4b75cb6d-hwt4s": "my-starling",
		"starling-0": "", "starling": "", "": "", "-a-b": "",
	} {
		if got := deploymentOf(pod); got != want {
			t.Errorf("%s: got %q, want %q", pod, got, want)
		}
	}
}

func TestDifferenceOfGenerations(t *testing.T) {
	module := func(name string) *generation.Module { return &generation.Module{Name: name} }
	same, global := module("same"), module("global")
	gen := func(global *generation.Module, all ...*generation.Module) *generation.Generation {
		g := &generation.Generation{Global: global, Modules: map[string]*generation.Module{}}
		for _, m := range all {
			g.Modules[m.Name] = m
			g.Names = append(g.Names, m.Name)
		}
		return g
	}
	before := gen(global, same, module("edited"), module("gone"))
	if got := difference(before, before); got != "" {
		t.Errorf("got %q", got)
	}
	after := gen(module("global"), same, module("edited"), module("new"))
	if got := difference(before, after); got != "changed: global, edited; new: new; gone: gone" {
		t.Errorf("got %q", got)
	}
}

// The series of a hook go with it, those of others stay.
func TestMetricsOfGoneHooks(t *testing.T) {
	m, reg := newTestMetrics(t)
	for _, hook := range []string{"web/a", "web/b"} {
		m.runs.WithLabelValues("web", hook).Inc()
		m.seconds.WithLabelValues("web", hook).Observe(1)
		m.limits.WithLabelValues("web", hook, "time").Inc()
		if errs := m.hooks.Publish("web", hook, "", []effect.Metric{{Kind: effect.MetricSet, Name: "x", Value: 1}}); errs != nil {
			t.Fatal(errs)
		}
	}
	m.runs.WithLabelValues("shop", "shop/a").Inc()
	count := func() (series int) {
		t.Helper()
		families, err := reg.Gather()
		if err != nil {
			t.Fatal(err)
		}
		for _, f := range families {
			for _, metric := range f.GetMetric() {
				for _, l := range metric.GetLabel() {
					if l.GetName() == "hook" {
						series++
					}
				}
			}
		}
		return series
	}
	if got := count(); got != 9 {
		t.Fatalf("%d series", got)
	}
	m.gone("web", "web/a")
	if got := count(); got != 5 {
		t.Errorf("%d series are left", got)
	}
	m.gone("web", "")
	if got := count(); got != 1 {
		t.Errorf("%d series are left", got)
	}
}

// A mark is of the code that runs: what has gone loses it, what runs keeps it until it has
// ended, and what stays under another tree keeps what it has done.
func TestMarksFollowTheCode(t *testing.T) {
	dir := t.TempDir()
	m := open(t, dir)
	begin := func(hook, digest string) {
		t.Helper()
		if err := m.begin(hook, digest); err != nil {
			t.Fatal(err)
		}
	}
	gen := loadTree(t, map[string]string{"web/module.star": "module(enabled = True)\n", "web/hooks/a.star": "hook(lambda ctx: None, name = \"stays\", on = [startup()])\n"})
	stays := gen.Modules["web"].Hooks[0]
	begin("web/rests", "one")
	begin(stays.ID, stays.Digest)
	begin("web/runs", "one")
	if err := m.end("web/rests", "one", true); err != nil {
		t.Fatal(err)
	}
	m.use(gen)
	if n := len(m.running); n != 2 {
		t.Errorf("%d marks, want those of the hook that stays and of the one that runs", n)
	}
	if err := m.end("web/runs", "one", false); err != nil {
		t.Fatal(err)
	}
	if n := len(m.running); n != 1 {
		t.Errorf("%d marks, want that of the hook that stays", n)
	}
	for range 2 { // killed now, and once more
		m = open(t, dir)
		begin("web/runs", "one")
	}
	m = open(t, dir)
	if m.quarantined("web/runs", "one") == "" || m.quarantined("web/runs", "two") != "" {
		t.Error("quarantine is for the code that ran")
	}
}

// Of modules that were loaded as the process ended, it is found out which one it was.
func TestALoadThatTakesTheProcessWithIt(t *testing.T) {
	dir := t.TempDir()
	load := func(m *Marks, module string) func(bool) {
		t.Helper()
		loaded, err := m.Loading(module, "code")
		if err != nil {
			t.Fatal(err)
		}
		return loaded
	}
	m := open(t, dir)
	load(m, "innocent")
	load(m, "guilty") // and the process is gone
	m = open(t, dir)
	load(m, "guilty") // alone, and gone
	m = open(t, dir)
	if _, err := m.Loading("guilty", "code"); err == nil || !strings.Contains(err.Error(), "2 times in a row starling was killed while it was loaded") {
		t.Error(err)
	}
	load(m, "innocent")(true)
	load(m, "guilty edited")(true)
	files, err := filepath.Glob(filepath.Join(dir, "runs", "*"+uncleanSuffix))
	if err != nil || len(files) != 1 {
		t.Errorf("what is noted: %v %v", files, err)
	}
}

// The follower of the tree tells what becomes of it, beside the engine.
func TestAReloadMayFailAsTheEngineBegins(t *testing.T) {
	metrics, err := NewMetrics(prometheus.NewRegistry(), "v0")
	if err != nil {
		t.Fatal(err)
	}
	read, err := tree.Read(fstest.MapFS{"web/templates/a.yaml": {}}, tree.Options{})
	if err != nil {
		t.Fatal(err)
	}
	d := &Driver{
		o:      Options{Log: zerolog.Nop()},
		engine: engine.New(engine.Options{Jitter: func() float64 { return 0 }}), metrics: metrics,
		timer: time.NewTimer(time.Hour), look: time.NewTimer(time.Hour), requests: newRequests(), marks: open(t, t.TempDir()),
		objects: modules.New(modules.Options{}),
	}
	d.generation.Store(generation.Load(t.Context(), generation.Options{Tree: read, Number: 1}))
	var told sync.WaitGroup
	told.Go(func() { d.tellOfReload("Normal", "Reloaded", "") })
	d.handle(engine.Start{})
	told.Wait()
}

// The log may lie in the tree: a line for each change of a file of no module would have no end.
func TestAChangeOfNoModuleIsNotTold(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		files := map[string]string{"web/module.star": "module(enabled = True)\n"}
		f := newFixture(t, files)
		var log strings.Builder
		f.driver.o.Log = zerolog.New(&log).Level(zerolog.InfoLevel)
		f.driver.o.Load = func(_ context.Context, read *tree.Tree, before *generation.Generation) *generation.Generation {
			return generation.Load(t.Context(), generation.Options{
				Tree: read, Std: stdlib.FS, Number: before.Number + 1, Log: FileLog(zerolog.Nop()), Governor: before.Host.Governor(), Previous: before,
			})
		}
		f.start()
		for _, c := range []struct{ path, text, want string }{
			{"run.log", "a line", ""},
			{"web/module.star", "module(enabled = False)\n", "is in force: changed: web"},
			{"web/module.star", "module(", "apart from modules that stay as they were"},
			{"run.log", "two lines", ""},
			{"web/module.star", "module(enabled = False)\n", "is in force"},
		} {
			synctest.Wait()
			log.Reset()
			files[c.path] = c.text
			fsys := fstest.MapFS{}
			for path, text := range files {
				fsys[path] = &fstest.MapFile{Data: []byte(text)}
			}
			read, err := tree.Read(fsys, tree.Options{})
			if err != nil {
				t.Fatal(err)
			}
			f.driver.Reload(t.Context(), read)
			if got := log.String(); !strings.Contains(got, c.want) || c.want == "" && got != "" {
				t.Errorf("%s %q: %s", c.path, c.text, got)
			}
			synctest.Wait()
			st, err := f.driver.Status(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			if r := f.driver.Replica(); r.Generation == 0 || r.Generation != st.Generation || r.ReloadFailed != st.ReloadFailed {
				t.Errorf("%s %q: the replica has generation %d, %v, the status %d, %v", c.path, c.text, r.Generation, r.ReloadFailed, st.Generation, st.ReloadFailed)
			}
		}
		f.stop()
		<-f.ended
	})
}

// The metric of the tree in force is that of each process: one that stands by reloads, too.
func TestAStandbyShowsItsGeneration(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFixture(t, sayingTree)
		f.start()
		f.waitReady()
		g := f.beside(sayingTree)
		g.start()
		time.Sleep(5 * time.Second)
		next := maps.Clone(sayingTree)
		next["web/hooks/b.star"] = "def f(ctx):\n    pass\n\nhook(f, on = [startup()])\n"
		for _, p := range []*fixture{f, g} {
			before := testutil.ToFloat64(p.driver.metrics.generation)
			p.reload(next)
			if after := testutil.ToFloat64(p.driver.metrics.generation); before < 1 || after != before+1 {
				t.Errorf("leads %t: generation %v, then %v", p.leads(), before, after)
			}
		}
		f.stop()
		g.stop()
		if err := errors.Join(<-f.ended, <-g.ended); err != nil {
			t.Error(err)
		}
	})
}
