package live

import (
	"context"
	"fmt"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"go.starlark.net/starlark"

	"github.com/starling-operator/starling/runtime/engine"
)

// Runs that do not end are charged to their module as long as they compute: with more of
// them than its share, its other runs wait, the status says so, and other modules go on.
func TestRunsThatDoNotEndStayChargedToTheirModule(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFixture(t, map[string]string{
			"web/module.star": "module(enabled = True)\n",
			"web/hooks/a.star": "[hook(lambda ctx: None, name = n, queue = n, on = [startup()], timeout = \"1s\", retry = retry(min = \"10s\", max = \"10s\"))" +
				" for n in [\"a\", \"b\", \"c\"]]\n",
		}, renewsSeldom)
		release := make(chan struct{})
		var begun atomic.Int64
		for _, h := range f.driver.generation.Load().Modules["web"].Hooks {
			h.Fn = starlark.NewBuiltin("endless", func(*starlark.Thread, *starlark.Builtin, starlark.Tuple, []starlark.Tuple) (starlark.Value, error) {
				begun.Add(1)
				<-release
				return starlark.None, nil
			})
		}
		f.start()
		f.waitReady()
		time.Sleep(3 * time.Second)
		f.driver.slots.mu.Lock()
		running := f.driver.slots.running
		f.driver.slots.mu.Unlock()
		if running != 0 || begun.Load() != 3 {
			t.Errorf("%d runs have begun, and %d have a slot a second past their limit", begun.Load(), running)
		}
		time.Sleep(2 * time.Minute)
		ctx, stop := context.WithTimeout(t.Context(), time.Minute)
		defer stop()
		if f.driver.slots.take(ctx, "web") {
			t.Error("another run of the module begins")
		}
		if why := f.driver.slots.problem("web"); !strings.HasPrefix(why, "its hooks compute more than one processor does") {
			t.Errorf("the status says %q", why)
		}
		if !f.driver.slots.take(t.Context(), "other") {
			t.Error("another module waits")
		}
		f.driver.slots.give("other", 0)
		if begun.Load() != 3 {
			t.Errorf("%d runs have begun", begun.Load())
		}
		close(release)
		time.Sleep(20 * time.Minute) // it computes less meanwhile
		f.driver.slots.mu.Lock()
		m := f.driver.slots.modules["web"]
		f.driver.slots.mu.Unlock()
		if begun.Load() == 3 || m != nil && m.ahead > maxAhead {
			t.Errorf("%d runs have begun after the end of those: %+v", begun.Load(), m)
		}
		f.stop()
		if err := <-f.ended; err != nil {
			t.Error(err)
		}
	})
}

// slowValues has the engine take long to check the values of a module.
func (f *fixture) slowValues(check func(what string)) {
	o := f.driver.engineOptions()
	mark := o.Mark
	o.Mark = func(what, digest string) (func(bool), error) {
		ended, err := mark(what, digest)
		check(what)
		return ended, err
	}
	f.driver.leading = engine.New(f.driver.o.Inputs.Options(o))
	f.driver.engine = f.driver.leading
}

// manyModules are modules whose values have a schema.
func manyModules(n int) map[string]string {
	files := map[string]string{}
	for i := range n {
		files[fmt.Sprintf("m%d/module.star", i)] = "module()\n"
		files[fmt.Sprintf("m%d/openapi/config-values.yaml", i)] = "type: object\nproperties: {a: {type: integer, default: 1}}\n" +
			"x-kubernetes-validations: [{rule: self.a > 0}]\n"
		files[fmt.Sprintf("m%d/values.yaml", i)] = "a: 1\n"
	}
	return files
}

// A reload that changes many modules with expensive rules is one long step, which ends: no module of it is to blame,
// and the process goes on.
func TestAReloadOfManyExpensiveModules(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFixture(t, emptyTree)
		f.slowValues(func(string) { time.Sleep(time.Second) })
		f.start()
		f.waitReady()
		began := time.Now()
		f.reload(manyModules(150))
		if took := time.Since(began); took < 2*hungAfter {
			t.Fatalf("the reload took only %s", took)
		}
		f.waitReady()
		if n := len(f.driver.generation.Load().Names); n != 150 {
			t.Errorf("%d modules are in force", n)
		}
		f.stop()
		if err := <-f.ended; err != nil {
			t.Error(err)
		}
	})
}

// One module whose check does not end is what the process ends over, and the next one knows which it was.
func TestAReloadWithAModuleThatHangs(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFixture(t, emptyTree)
		stuck := make(chan struct{})
		defer close(stuck)
		f.slowValues(func(what string) {
			if what == "values of m3" {
				<-stuck
			}
		})
		f.start()
		f.waitReady()
		f.reload(manyModules(60))
		if err := <-f.ended; err == nil || !strings.Contains(err.Error(), "at one step") {
			t.Errorf("the process ends with %v", err)
		}
		left, err := readMarks(f.driver.marks.book.path)
		if err != nil {
			t.Fatal(err)
		}
		for mark := range left {
			if r := f.driver.marks.running[mark]; r == nil || r.what != "values of m3" {
				t.Errorf("blamed: %+v", r)
			}
		}
		if len(left) != 1 {
			t.Errorf("%d marks stay", len(left))
		}
	})
}
