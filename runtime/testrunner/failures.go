package testrunner

import (
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strings"

	"github.com/starling-operator/starling/builtins"
	"github.com/starling-operator/starling/runtime/message"
	"github.com/starling-operator/starling/runtime/script"
	"github.com/starling-operator/starling/runtime/sim"
)

// expected is a failure that the test has said may come.
type expected struct {
	of      string
	pattern *regexp.Regexp
	came    bool
	got     string // what has failed of it last, and does not match
}

// ExpectFailure says that a hook, or a module, may fail with errors that match.
func (w *world) ExpectFailure(of, pattern string) error {
	re, err := regexp.Compile(pattern)
	if err != nil {
		return fmt.Errorf("pattern: %w", err)
	}
	if of != "global" && w.o.Generation.Modules[of] == nil {
		if found, all := w.hooksNamed(of); len(found) == 0 {
			return noHook(of, append(all, append(w.o.Generation.Names, "global")...))
		}
	}
	w.expected = append(w.expected, &expected{of: of, pattern: re})
	w.look()
	return nil
}

// hooksNamed are the ids of the hooks that a test names so, and the ids of all.
func (w *world) hooksNamed(name string) (found, all []string) {
	for _, h := range w.o.Generation.Hooks() {
		all = append(all, h.ID)
	}
	slices.Sort(all)
	for _, id := range all {
		if w.names(name, id) {
			found = append(found, id)
		}
	}
	return found, all
}

// names says whether a test means the hook with this id.
func (w *world) names(name, id string) bool {
	local := strings.TrimPrefix(id, w.module+"/")
	_, function, _ := strings.Cut(local, ":")
	return id == name || local == name || function == name
}

// noHook says that no hook is named so, and which are.
func noHook(name string, all []string) error {
	var functions []string
	for _, id := range all {
		functions = append(functions, id[strings.LastIndexByte(id, ':')+1:])
	}
	switch near := message.Nearest(name, append(functions, all...)); {
	case len(all) == 0:
		return fmt.Errorf("there is no hook %q, and no other: the files of the module register none with hook(…)", name)
	case near != "":
		return fmt.Errorf("there is no hook %q; did you mean %q?", name, near)
	}
	return fmt.Errorf("there is no hook %q; there are %s", name, strings.Join(all, ", "))
}

// look notes which expected failures have come, and returns what fails unexpectedly.
func (w *world) look() []sim.Failure {
	var out []sim.Failure
	found := w.w.Failures()
	for _, name := range w.o.Generation.Names {
		for _, text := range w.w.Dropped(name) {
			f := sim.Failure{}
			f.Module, f.Reason = name, text
			found = append(found, f)
		}
	}
	for _, f := range found {
		same := func(other sim.Failure) bool { return w.said(other) == w.said(f) } // a values.yaml is wrong for its module and for the config
		if !w.expects(f) && !slices.ContainsFunc(out, same) {
			out = append(out, f)
		}
	}
	for _, r := range w.w.Runs {
		if err := r.Failure(); err != nil && !r.Asked {
			f := sim.Failure{Err: err}
			f.Hook, f.Key, f.Reason = r.Hook, r.Key, err.Error()
			w.expects(f)
		}
	}
	return out
}

// expects says whether the test has said that a failure may come. All that have said so
// are told.
func (w *world) expects(f sim.Failure) (yes bool) {
	for _, e := range w.expectedOf(f) {
		if e.pattern.MatchString(f.Reason) || e.pattern.MatchString(w.said(f)) || f.Err != nil && e.pattern.MatchString(f.Err.Error()) {
			e.came, yes = true, true
		} else {
			e.got = w.said(f)
		}
	}
	return yes
}

// expectedOf are those that the test has said of the hook, or the module, of a failure.
func (w *world) expectedOf(f sim.Failure) (out []*expected) {
	for _, e := range w.expected {
		if f.Hook == "" && e.of == f.Module || f.Hook != "" && w.names(e.of, f.Hook) {
			out = append(out, e)
		}
	}
	return out
}

// Failed implements [builtins.World].
func (w *world) Failed() error {
	found := w.look()
	if len(found) == 0 {
		return nil
	}
	out := &builtins.ExpectError{Msg: w.said(found[0])}
	switch n := len(found) - 1; n {
	case 0:
	case 1:
		out.Msg += " (and 1 other failure)"
	default:
		out.Msg += fmt.Sprintf(" (and %d other failures)", n)
	}
	if expected := w.expectedOf(found[0]); len(expected) > 0 {
		out.Msg += fmt.Sprintf("; t.expect_failure(%q) expected %q, got this", expected[0].of, expected[0].pattern)
	} else {
		out.Msg += fmt.Sprintf("; a test that expects it says so: t.expect_failure(%q, PATTERN)", w.shortName(found[0]))
	}
	for _, f := range found[:min(len(found), 5)] {
		if len(found) > 1 {
			out.Differences = append(out.Differences, w.said(f))
		}
		var at *script.Error
		if errors.As(f.Err, &at) { // its first line is in the message
			lines := strings.Split(strings.TrimRight(at.Render(), "\n"), "\n")
			out.Differences = append(out.Differences, lines[1:]...)
		}
	}
	return out
}

// said is one line about a failure.
func (w *world) said(f sim.Failure) string {
	switch {
	case f.Broken && w.o.told(f.Module):
		return fmt.Sprintf("module %s does not load, as said above", f.Module)
	case f.Hook == "":
		return fmt.Sprintf("module %s fails: %s", f.Module, f.Reason)
	case f.Key != "":
		return fmt.Sprintf("hook %s fails for %s: %s", f.Hook, f.Key, f.Reason)
	}
	return fmt.Sprintf("hook %s fails: %s", f.Hook, f.Reason)
}

// shortName is how a test names what has failed.
func (w *world) shortName(f sim.Failure) string {
	if f.Hook == "" {
		return f.Module
	}
	local := strings.TrimPrefix(f.Hook, w.module+"/")
	if _, function, ok := strings.Cut(local, ":"); ok {
		return function
	}
	return local
}

// ended is why a test that has come to its end has failed nonetheless, or nil.
func (w *world) ended() error {
	if err := w.Failed(); err != nil {
		return fmt.Errorf("at the end of the test: %w", err)
	}
	for _, e := range w.expected {
		switch {
		case !e.came && e.got != "":
			return &builtins.ExpectError{Msg: fmt.Sprintf("t.expect_failure: expected %q of %s, got %q", e.pattern, e.of, e.got)}
		case !e.came:
			return &builtins.ExpectError{Msg: fmt.Sprintf("t.expect_failure: %s has not failed with an error that matches %q", e.of, e.pattern)}
		}
	}
	return nil
}
