package script

import (
	"context"
	"errors"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"go.starlark.net/starlark"

	"github.com/starling-operator/starling/builtins"
	"github.com/starling-operator/starling/builtins/spec"
)

func TestResolveLabel(t *testing.T) {
	tests := []struct{ label, from, want, err string }{
		{"./x.star", "web/hooks/a.star", "web/hooks/x.star", ""},
		{"../lib/x.star", "web/hooks/a.star", "web/lib/x.star", ""},
		{"./x.star", "a.star", "x.star", ""},
		{"//global/lib/x.star", "web/hooks/a.star", "global/lib/x.star", ""},
		{"@std//k8s.star", "web/hooks/a.star", "@std//k8s.star", ""},
		{"./time.star", "@std//k8s.star", "@std//time.star", ""},
		{"../../../x.star", "web/hooks/a.star", "", "it leaves the module tree"},
		{"//../x.star", "a.star", "", "it leaves the module tree"},
		{"//web/../../x.star", "a.star", "", "it leaves the module tree"},
		{"@std//../x.star", "a.star", "", "it leaves the module tree"},
		{"//x.star", "@std//k8s.star", "", "the standard library loads nothing of the module tree"},
		{"x.star", "a.star", "", `(did you mean "./x.star" or "//x.star"?)`},
		{"/x.star", "a.star", "", `(did you mean "//x.star"?)`},
		{"@other//x.star", "a.star", "", "the only library is @std"},
		{"//x.py", "a.star", "", "only .star files can be loaded"},
		{"//", "a.star", "", "only .star files can be loaded"},
		{"./a_test.star", "a.star", "", "tests are not loaded"},
		{"", "a.star", "", "this is no path of a file"},
		{"//a\nb.star", "a.star", "", "it holds a character"},
	}
	for _, tt := range tests {
		got, err := resolveLabel(tt.label, tt.from)
		msg := ""
		var label *labelError
		if errors.As(err, &label) {
			msg = label.msg + " (" + label.hint + ")"
		}
		if got != tt.want || tt.err == "" != (err == nil) || !strings.Contains(msg, tt.err) {
			t.Errorf("%q in %s: %q, %s", tt.label, tt.from, got, msg)
		}
	}
}

func FuzzResolveLabel(f *testing.F) {
	for _, s := range []string{"./x.star", "//a/b.star", "@std//k8s.star", "../../x.star", "//.star", "//a//../b.star"} {
		f.Add(s, "web/hooks/a.star")
	}
	f.Fuzz(func(t *testing.T, label, from string) {
		p, err := resolveLabel(label, "web/hooks/a.star")
		if err != nil {
			return
		}
		p = strings.TrimPrefix(p, stdPrefix)
		if strings.HasPrefix(p, "/") || strings.HasPrefix(p, "@") && strings.HasPrefix(p, stdPrefix) || strings.Contains("/"+p+"/", "/../") || !strings.HasSuffix(p, ".star") {
			t.Errorf("%q became %q", label, p)
		}
	})
}

func TestLoadErrors(t *testing.T) {
	files := map[string]string{
		"web/hooks/a.star":     "x = 1\nload(\"../lib/helper.star\", \"h\")\n",
		"web/hooks/typo.star":  "load(\"//web/lib/helpers2.star\", \"h\")\n",
		"web/hooks/away.star":  "load(\"./helpers.star\", \"h\")\n",
		"web/hooks/name.star":  "load(\"//web/lib/helpers.star\", \"hulp\")\n",
		"web/hooks/out.star":   "load(\"../../../etc/x.star\", \"h\")\n",
		"web/lib/helpers.star": "help = 1\n",
		"one.star":             "load(\"//two.star\", \"x\")\n",
		"two.star":             "load(\"//three.star\", \"x\")\n",
		"three.star":           "load(\"//two.star\", \"x\")\n",
		"self.star":            "load(\"//self.star\", \"x\")\n",
		"outer.star":           "load(\"//inner.star\", \"x\")\n",
		"inner.star":           "def f():\n    return 1 // 0\n\nx = f()\n",
		"std.star":             "load(\"@std//k8.star\", \"is_ready\")\n",
		"many.star":            "vlues(1)\nx = exploed\n\ndef f(count):\n    return cuont + null\n",
		"damaged.star":         "x = 1\ny = \x00\x00\x00\nz = ",
		"syntax.star":          "def f(:\n",
		"while.star":           "def f():\n    while True:\n        pass\n",
		"import.star":          "import os\n",
		"fstring.star":         "x = f\"a\"\n",
		"top.star":             "if True:\n    x = 1\n",
		"large.star":           strings.Repeat("#", MaxFileSize+1),
	}
	tests := []struct{ path, want string }{
		{"web/hooks/a.star", `web/hooks/a.star:2:1: cannot load "../lib/helper.star": no file web/lib/helper.star (did you mean "//web/lib/helpers.star"?)`},
		{"web/hooks/typo.star", `web/hooks/typo.star:1:1: cannot load "//web/lib/helpers2.star": no file web/lib/helpers2.star (did you mean "//web/lib/helpers.star"?)`},
		{"web/hooks/name.star", `web/hooks/name.star:1:1: load: name hulp not found in module //web/lib/helpers.star (did you mean help?)`},
		{"web/hooks/out.star", `web/hooks/out.star:1:1: cannot load "../../../etc/x.star": it leaves the module tree`},
		{"one.star", `three.star:1:1: cannot load "//two.star": the files load each other: three.star → two.star → three.star (move what both need to a third file)`},
		{"self.star", `self.star:1:1: cannot load "//self.star": the files load each other: self.star → self.star (move what both need to a third file)`},
		{"outer.star", "inner.star:2:14: floored division by zero"},
		{"std.star", `std.star:1:1: cannot load "@std//k8.star": no file @std//k8.star (did you mean "@std//k8s.star"?)`},
		{"gone.star", `gone.star: cannot load "gone.star": no file gone.star (did you mean "//one.star"?)`},
		{"many.star", "many.star:1:1: undefined: vlues (did you mean values?) (and 3 more errors in this file)"},
		{"syntax.star", "syntax.star:1:8: got ':', want ')'"},
		{"while.star", "while.star:2:5: there is no while loop (use for i in range(n), and break)"},
		{"import.star", `import.star:1:1: there is no import (env("NAME") reads a variable of the environment; leave the line out)`},
		{"fstring.star", `fstring.star:1:5: there are no f-strings (write "%s: %d" % (a, b), or "{}: {}".format(a, b))`},
		{"top.star", "top.star:1:1: if statement not within a function (put it into a def; at the top of a file stand only assignments, defs, loads and calls)"},
		{"damaged.star", "damaged.star:2:5: a byte here is 0: the file is damaged, write it again"},
		{"large.star", `large.star: cannot load "large.star": the file is larger than 1024 KiB`},
	}
	f := newFixture(t, files, nil)
	for _, tt := range tests {
		for range 2 { // the second is from the cache
			_, err := f.Load(t.Context(), tt.path)
			if err == nil || err.Error() != tt.want {
				t.Errorf("%s:\n got %v\nwant %s", tt.path, err, tt.want)
			}
		}
	}
}

func TestRender(t *testing.T) {
	f := newFixture(t, map[string]string{
		"outer.star": "load(\"//inner.star\", \"x\")\n",
		"inner.star": "def f():\n\treturn [\n\t\t1 // 0]\n\nx = f()\n",
		"many.star":  "vlues(1)\nx = exploed\n",
	}, nil)
	for path, want := range map[string]string{
		"outer.star": "inner.star:3:5: floored division by zero\n    \t\t1 // 0]\n    \t\t  ^\n  outer.star:1:1 in <toplevel>\n  inner.star:5:6 in <toplevel>\n  inner.star:3:5 in f\n",
		"many.star":  "many.star:1:1: undefined: vlues (did you mean values?)\n    vlues(1)\n    ^\n\nmany.star:2:5: undefined: exploed (did you mean explode?)\n    x = exploed\n        ^\n",
	} {
		_, err := f.Load(t.Context(), path)
		var e *Error
		if !errors.As(err, &e) {
			t.Fatalf("%s: %v", path, err)
		}
		if got := e.Render(); got != want {
			t.Errorf("%s:\n%s\nwant:\n%s", path, got, want)
		}
	}
}

// TestConcurrentCycle loads files that load each other from many goroutines: all
// must end.
func TestConcurrentCycle(t *testing.T) {
	for range 20 {
		f := newFixture(t, map[string]string{
			"a.star": "load(\"//b.star\", \"x\")\n", "b.star": "load(\"//c.star\", \"x\")\n", "c.star": "load(\"//a.star\", \"x\")\n",
			"ok.star": "load(\"//lib.star\", \"x\")\n", "lib.star": "x = 1\n",
		}, nil)
		var wg sync.WaitGroup
		for range 3 {
			for _, p := range []string{"a.star", "b.star", "c.star", "ok.star"} {
				wg.Go(func() {
					_, err := f.Load(t.Context(), p)
					if p == "ok.star" != (err == nil) {
						t.Errorf("%s: %v", p, err)
					}
				})
			}
		}
		wg.Wait()
	}
}

// TestWaitersGoOn: a loading that was cut short is not kept, and those who wait
// for it try themselves; one that panicked lets them go.
func TestWaitersGoOn(t *testing.T) {
	for _, how := range []string{"cancelled", "panics"} {
		t.Run(how, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				ctx, cancel := context.WithCancel(t.Context())
				defer cancel()
				began, first := make(chan struct{}), true
				f := newFixture(t, map[string]string{"a.star": "load(\"//slow.star\", \"x\")\n", "b.star": "load(\"//slow.star\", \"x\")\n", "slow.star": "x = wait()\n"}, func(o *Options) {
					o.Predeclared["wait"] = starlark.NewBuiltin("wait", func(*starlark.Thread, *starlark.Builtin, starlark.Tuple, []starlark.Tuple) (starlark.Value, error) {
						if !first {
							return starlark.None, nil
						}
						first = false
						close(began)
						<-ctx.Done()
						if how == "panics" {
							panic("boom")
						}
						return starlark.None, ctx.Err()
					})
				})
				var errA, errB error
				var wg sync.WaitGroup
				wg.Go(func() {
					if how == "panics" {
						_, errA = f.Load(context.Background(), "a.star")
					} else {
						_, errA = f.Load(ctx, "a.star")
					}
				})
				<-began
				wg.Go(func() { _, errB = f.Load(context.Background(), "b.star") })
				synctest.Wait()
				cancel()
				wg.Wait()
				if how == "cancelled" {
					if !errors.Is(errA, context.Canceled) || errB != nil {
						t.Errorf("the loader got %v, who waited %v", errA, errB)
					}
					return
				}
				for _, err := range []error{errA, errB} {
					if !errors.As(err, new(*PanicError)) {
						t.Errorf("got %v", err)
					}
				}
			})
		})
	}
}

// TestNestedLoadsShareLimits: what a file loads counts as its own, and the loaded
// file is not to blame.
func TestNestedLoadsShareLimits(t *testing.T) {
	f := newFixture(t, map[string]string{
		"big.star": "x = [i for i in range(30000)]\n",
		"a.star":   "y = [i for i in range(30000)]\nload(\"//big.star\", \"x\")\n",
	}, func(o *Options) { o.Limits = Limits{Steps: 400_000} })
	_, err := f.Load(t.Context(), "a.star")
	var l *LimitError
	if !errors.As(err, &l) || l.Limit != LimitSteps {
		t.Fatalf("got %v", err)
	}
	if !strings.HasPrefix(err.Error(), "big.star:1:") {
		t.Errorf("got %v", err)
	}
	if _, err := f.Load(t.Context(), "big.star"); err != nil {
		t.Errorf("big.star alone: %v", err)
	}
}

func TestCacheOfPrograms(t *testing.T) {
	cache := NewCache()
	for _, src := range []string{"x = 1\n", "x = 1\n", "x = 2\n"} {
		f := newFixture(t, map[string]string{"a.star": src}, func(o *Options) { o.Cache = cache })
		if _, err := f.Load(t.Context(), "a.star"); err != nil {
			t.Fatal(err)
		}
	}
	if n := len(cache.programs); n != 2 {
		t.Errorf("%d programs", n)
	}
}

func TestRealBuiltins(t *testing.T) {
	f := newFixture(t, map[string]string{
		"a.star": "x = regexx\n",
		"b.star": "def f(ctx):\n    metrics.sett(\"a\", 1)\n",
	}, func(o *Options) { o.Predeclared = nil })
	_, err := f.Load(t.Context(), "a.star")
	if err == nil || !strings.HasPrefix(err.Error(), "a.star:1:5: undefined: regexx") {
		t.Errorf("got %v", err)
	}
	globals, err := f.Load(t.Context(), "b.star")
	if err != nil {
		t.Fatal(err)
	}
	_, _, err = f.Call(t.Context(), globals["f"].(starlark.Callable), starlark.Tuple{starlark.None}, CallOptions{Context: &builtins.Context{Phase: spec.InRun, Log: &f.log}})
	if err == nil || !strings.Contains(err.Error(), "did you mean metrics.set?") {
		t.Errorf("got %v", err)
	}
}

// A step that does not end keeps nobody waiting longer than the limit and some patience,
// and the other files load meanwhile.
func TestALoadThatDoesNotEndIsGivenUp(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		released := make(chan struct{})
		f := newFixture(t, map[string]string{
			"a.star": "load(\"./lib.star\", \"x\")\n", "lib.star": "x = 1\nwait()\n", "b.star": "y = 1\n", "c.star": "load(\"./lib.star\", \"x\")\nz = x\n",
		}, func(o *Options) {
			o.Predeclared["wait"] = starlark.NewBuiltin("wait", func(*starlark.Thread, *starlark.Builtin, starlark.Tuple, []starlark.Tuple) (starlark.Value, error) {
				<-released
				return starlark.None, nil
			})
			o.Limits = Limits{Wall: 30 * time.Second}
		})
		begin := time.Now()
		go func() {
			if _, err := f.Load(t.Context(), "b.star"); err != nil || time.Since(begin) > 0 {
				t.Errorf("b.star waited: %v, %v", time.Since(begin), err)
			}
		}()
		_, err := f.Load(t.Context(), "a.star")
		const want = "a.star: stopped after 30s, the time limit of one run; it is in one step that does not end"
		if err == nil || err.Error() != want {
			t.Errorf("got %v, want %s", err, want)
		}
		if took := time.Since(begin); took != 31*time.Second {
			t.Errorf("it took %s", took)
		}
		close(released)
		synctest.Wait()
		if globals, err := f.Load(t.Context(), "c.star"); err != nil || globals["z"].String() != "1" {
			t.Errorf("what is asked for after it: %v, %v", globals, err)
		}
	})
}
