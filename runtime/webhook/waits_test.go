package webhook

import (
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/starling-operator/starling/runtime/generation"
)

const oneHook = `
def f(ctx):
    pass

hook(f, on = [k8s.validate("v1", "ConfigMap", failure_policy = "fail", name = "v")])
`

// answers says whether a manager is ready and answers at these paths, and at no others of hooks.
func (w *world) answers(paths ...string) func() error {
	return func() error {
		var got []string
		for path, r := range *w.manager.server.routes.Load() {
			if !r.modules {
				got = append(got, path)
			}
		}
		slices.Sort(got)
		if !slices.Equal(got, paths) || !w.manager.Ready() || w.manager.server.cert.Load() == nil {
			return fmt.Errorf("ready %t, it answers at %q, want %q", w.manager.Ready(), got, paths)
		}
		return nil
	}
}

// A right that Starling lacks keeps what needs it from being registered, and nobody from being answered: neither hooks of
// other modules nor, after a restart, those that are registered.
func TestALackOfRightsSilencesNobody(t *testing.T) {
	files := map[string]string{
		"web/hooks/a.star": oneHook,
		"lamp/hooks/a.star": `
def up(o):
    return o

hook(on = [k8s.convert("lamps.example.com.x", {("v1", "v2"): up, ("v2", "v1"): up})])
`,
	}
	const name, path = "ns.starling.web.a.f.v", "/validate/web/a.f/v"
	convert := ""
	for _, resource := range []string{"customresourcedefinitions", "validatingwebhookconfigurations", "mutatingwebhookconfigurations"} {
		for _, code := range []int{http.StatusForbidden, http.StatusInternalServerError} {
			t.Run(fmt.Sprint(resource, " ", code), func(t *testing.T) {
				w := newWorld(t, files)
				putDefinition(w, nil)
				if convert == "" {
					for _, b := range bindingsOf(w.gen) {
						if b.binding.Convert != nil {
							convert = pathOf(b.hook, b.binding)
						}
					}
				}
				deny := func(code int) {
					for _, verb := range []string{"list ", "watch "} {
						w.api.Deny(verb+resource, code)
					}
				}
				start := func(old *world, standby bool) (*world, func() error) {
					next := newWorldOn(old)
					next.standby = standby
					var mu sync.Mutex
					var said error
					next.run(func(o *Options) {
						o.Registered = func(hook string, err error) { mu.Lock(); defer mu.Unlock(); said = err }
					})
					next.serve("web", true)
					next.serve("lamp", true)
					return next, func() error { mu.Lock(); defer mu.Unlock(); return said }
				}
				ofKinds := resource == "customresourcedefinitions"
				if ofKinds { // what needs no such right is registered at the first start, too
					deny(code)
				}
				first, said := start(w, false)
				first.eventually("the first one answers", first.answers(convert, path))
				first.eventually("registered", first.hasNames(name))
				if ofKinds {
					first.eventually("it is told why nothing is converted", func() error {
						if said() == nil {
							return errors.New("it is not")
						}
						return nil
					})
				}
				first.stop()

				deny(code)
				var stops []func()
				for _, standby := range []bool{false, true} {
					next, said := start(w, standby)
					stops = append(stops, next.stop)
					next.eventually(fmt.Sprintf("after a restart (it stands by: %t)", standby), next.answers(convert, path))
					if standby || !ofKinds {
						continue
					}
					deny(0)
					next.eventually("the right comes", func() error {
						if !strings.Contains(fmt.Sprint(w.api.Object(definitions, kindDefinition, "", "lamps.example.com.x")), convert) {
							return errors.New("it does not convert")
						}
						return said()
					})
					deny(code)
				}
				if got := w.names(); !slices.Equal(got, []string{name}) {
					t.Errorf("registered are %q", got)
				}
				for _, stop := range stops {
					stop()
				}
			})
		}
	}
}

// Registrations of a hook stay while nobody knows whether it answers, for its snapshots are not complete. Other hooks of
// its module answer.
func TestWhatAHookThatWaitsHasRegisteredStays(t *testing.T) {
	w := newWorld(t, map[string]string{"web/hooks/a.star": oneHook, "web/hooks/b.star": oneHook})
	const nameA, nameB, pathA, pathB = "ns.starling.web.a.f.v", "ns.starling.web.b.f.v", "/validate/web/a.f/v", "/validate/web/b.f/v"
	web := w.gen.Modules["web"]
	a, b := web.Hooks[:1], web.Hooks[1:]
	w.run()
	w.manager.Serve(web, a, b)
	w.eventually("one answers", w.answers(pathA))
	w.eventually("one is registered", w.hasNames(nameA))
	w.manager.Serve(web, web.Hooks, nil)
	w.eventually("both are registered", w.hasNames(nameA, nameB))
	w.manager.Serve(web, a, b)
	w.stop()

	next := newWorldOn(w)
	next.run()
	next.manager.Serve(web, a, b)
	putStale(w, "gone", "gone")
	next.eventually("after a restart", next.answers(pathA))
	next.eventually("both stay", next.hasNames(nameA, nameB))
	next.manager.Serve(web, web.Hooks, nil)
	next.eventually("both answer", next.answers(pathA, pathB))
	next.manager.Serve(web, []*generation.Hook{}, web.Hooks)
	putStale(w, "gone", "gone")
	next.eventually("both wait", next.hasNames(nameA, nameB))
	if err := next.answers(pathA, pathB)(); err != nil { // it is said what they wait for
		t.Error(err)
	}
	next.manager.Serve(web, a, nil)
	next.eventually("it is known that the other does not answer", next.hasNames(nameA))
}

// A hook that cannot be registered is told of, once, also while it cannot be seen what is registered; so is the end of that.
func TestWhyAHookIsNotAsked(t *testing.T) {
	for _, verbs := range [][]string{{"watch", "list"}, {"patch"}} {
		t.Run(verbs[0], func(t *testing.T) {
			w := newWorld(t, map[string]string{"web/hooks/a.star": twoHooks})
			deny := func(code int) {
				for _, verb := range verbs {
					w.api.Deny(verb+" validatingwebhookconfigurations", code)
				}
			}
			deny(http.StatusForbidden)
			told := make(chan string, 100)
			w.run(func(o *Options) { o.Registered = func(hook string, err error) { told <- fmt.Sprint(hook, ": ", err) } })
			w.serve("web", true)
			first := <-told
			if !strings.Contains(first, "web/") || !strings.Contains(first, "not allowed to ") {
				t.Errorf("it is told %q", first)
			}
			deny(0)
			for last := first; !strings.HasSuffix(last, "<nil>"); {
				if last = <-told; last == first {
					t.Errorf("it is told again: %s", last)
				}
			}
			w.stop()
		})
	}
}
