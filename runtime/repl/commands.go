package repl

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"path"
	"slices"
	"strings"
	"time"

	"github.com/starling-operator/starling/builtins"
	"github.com/starling-operator/starling/builtins/spec"
	"github.com/starling-operator/starling/modules/status"
	"github.com/starling-operator/starling/runtime/effect"
	"github.com/starling-operator/starling/runtime/engine"
	"github.com/starling-operator/starling/runtime/plan"
	"github.com/starling-operator/starling/runtime/script"
)

func (s *Session) cmdLoad(ctx context.Context, args []string) error {
	files, p, err := s.o.Files.star(args[0])
	if err != nil {
		return err
	}
	// A new host: the file as it is now, not as it was loaded before.
	host := script.New(script.Options{Files: files, Std: s.o.Files.Std, Context: func(p string) *builtins.Context {
		role := builtins.RoleHooks
		if path.Base(p) == "module.star" {
			role = builtins.RoleModule
		}
		return &builtins.Context{Phase: spec.InLoad, File: &builtins.File{Path: p, Role: role}, Log: said{s}}
	}, Governor: script.NewGovernor(script.GovernorOptions{})})
	globals, err := host.Load(ctx, p)
	if err != nil {
		return err
	}
	var names []string
	for _, name := range globals.Keys() {
		if !strings.HasPrefix(name, "_") {
			names = append(names, name)
			s.scope.Define(name, globals[name], true)
		}
	}
	if len(names) == 0 {
		s.out.note(args[0] + " exports no names")
		return nil
	}
	s.out.note("loaded " + strings.Join(names, ", "))
	return nil
}

// said logs what a file says while it is loaded.
type said struct{ s *Session }

func (l said) Log(level builtins.Level, msg string, fields []builtins.Field) {
	l.s.out.result(level.String() + ": " + msg + fieldsText(fields))
}

func (s *Session) cmdReload(ctx context.Context, _ []string) error {
	gen, err := s.o.Load(ctx, s.gen.Number+1)
	if err != nil {
		return err
	}
	if gen, err = s.prepare(gen); err != nil {
		return err
	}
	err = s.world.Reload(ctx, gen)
	s.tell()
	if err != nil && ctx.Err() == nil {
		return err // refused; else what follows was cut short
	}
	s.gen = gen
	s.scope.Use(gen.Host)
	s.out.note(fmt.Sprintf("generation %d", gen.Number))
	return err
}

func (s *Session) cmdApply(ctx context.Context, args []string) error {
	if args[0] == "-" {
		s.heredoc = true
		return nil
	}
	data, err := s.o.Files.read(args[0])
	if err != nil {
		return err
	}
	return s.apply(ctx, args[0], string(data))
}

// heredocLine takes in a line of :apply -.
func (s *Session) heredocLine(ctx context.Context, line string) error {
	s.scope.Skip(line)
	if strings.TrimSpace(line) == "." {
		return s.endHeredoc(ctx)
	}
	s.yaml = append(s.yaml, line)
	if size(s.yaml) > maxFile {
		return fmt.Errorf("the text is larger than %d MiB", maxFile>>20)
	}
	return nil
}

func (s *Session) endHeredoc(ctx context.Context) error {
	text, at := strings.Join(s.yaml, "\n"), s.scope.Line()-1
	s.yaml, s.heredoc = nil, false
	if err := s.apply(ctx, "the lines", text); err != nil {
		return s.at(at, fmt.Errorf(":apply: %w", err))
	}
	return nil
}

func (s *Session) apply(ctx context.Context, from, text string) error {
	objects, err := builtins.ParseObjects(text)
	if err != nil {
		return fmt.Errorf("%s: %w", from, err)
	}
	if len(objects) == 0 {
		return fmt.Errorf("%s: there is no object in it", from)
	}
	for _, obj := range objects {
		if err = s.byHand(func() error { return s.world.Apply(obj) }); err != nil {
			err = fmt.Errorf("%s: %w", from, err)
			break
		}
		s.out.note("applied " + effect.RefOf(obj).String())
	}
	return errors.Join(err, s.settle(ctx))
}

// settle lets happen what follows, and tells of it.
func (s *Session) settle(ctx context.Context) error {
	err := s.world.Settle(ctx)
	s.tell()
	return err
}

func (s *Session) cmdDelete(ctx context.Context, args []string) error {
	ref, err := s.kind(args[0])
	if err != nil {
		return err
	}
	ref.Name = args[1]
	if len(args) > 2 {
		ref.Namespace = args[2]
	}
	if err := s.byHand(func() error { return s.world.Delete(ref) }); err != nil {
		return err
	}
	s.out.note("deleted " + ref.String())
	return s.settle(ctx)
}

// byHand makes a change that :plan shows as one of the person at the session.
func (s *Session) byHand(change func() error) error {
	s.world.Store().As("hand")
	defer s.world.Store().As("")
	return change()
}

// kind finds a kind by the names that kubectl takes: its own, its plural, short ones.
func (s *Session) kind(name string) (effect.Ref, error) {
	var names []string
	for _, k := range s.world.Store().Kinds() {
		all := append([]string{k.Kind, k.Plural, k.Singular}, k.ShortNames...)
		if slices.ContainsFunc(all, func(n string) bool { return strings.EqualFold(n, name) }) {
			version := k.Version
			if k.Group != "" {
				version = k.Group + "/" + version
			}
			return effect.Ref{APIVersion: version, Kind: k.Kind}, nil
		}
		names = append(names, k.Kind)
	}
	return effect.Ref{}, fmt.Errorf("there is no kind %s%s", name, didYouMean(name, "", names))
}

func (s *Session) cmdRun(ctx context.Context, args []string) error {
	id, err := s.findHook(args[0])
	if err != nil {
		return err
	}
	key := ""
	if len(args) > 1 {
		key = args[1]
	}
	n := len(s.world.Runs)
	s.called, s.calledKey, s.caught = id, key, false
	err = s.world.Call(ctx, id, key)
	s.called = ""
	s.tell()
	for i := n; err == nil && i < len(s.world.Runs); i++ {
		if r := &s.world.Runs[i]; r.Hook == id && r.Key == key {
			for _, line := range effectLines(r.Effects) {
				s.out.result(line)
			}
			break
		}
	}
	if errors.Is(err, engine.ErrNotReady) {
		return s.notRunning(id, err)
	}
	return err
}

// notRunning says why a hook does not run, as far as that is its module's fault.
func (s *Session) notRunning(hook string, err error) error {
	for _, m := range s.world.Status().Modules {
		if strings.HasPrefix(hook, m.Name+"/") && m.State != status.ModuleReady {
			return fmt.Errorf("module %s is %s: %s", m.Name, m.State, m.Reason)
		}
	}
	return err
}

// findHook finds a hook by its id, or an end of it that is like no other.
func (s *Session) findHook(name string) (string, error) {
	var found, all []string
	for _, id := range s.world.Hooks() {
		switch {
		case id == s.hook:
			continue
		case id == name, s.local(id) == name:
			return id, nil
		case strings.HasSuffix(id, name) && strings.ContainsAny(id[len(id)-len(name)-1:][:1], ":/"):
			found = append(found, id)
		}
		_, function, _ := strings.Cut(id, ":")
		all = append(all, s.local(id), function)
	}
	switch len(found) {
	case 1:
		return found[0], nil
	case 0:
		return "", fmt.Errorf("there is no hook %s%s", name, didYouMean(name, "", all))
	}
	return "", fmt.Errorf("%s may be %s", name, strings.Join(found, " or "))
}

// maxRuns is how many runs :runs shows.
const maxRuns = 100

func (s *Session) cmdRuns(context.Context, []string) error {
	var lines []string
	for i := range s.world.Runs {
		r := &s.world.Runs[i]
		if r.Hook == s.hook {
			continue
		}
		what := summary(r.Effects)
		if err := runError(r); err != nil {
			what = "failed: " + strings.ReplaceAll(err.Error(), "\n", "; ")
		}
		lines = append(lines, s.title(r)+": "+what)
	}
	if more := len(lines) - maxRuns; more > 0 {
		lines = append([]string{"… and more before"}, lines[more:]...)
	}
	for _, line := range lines {
		s.out.result(line)
	}
	return nil
}

func (s *Session) cmdModules(context.Context, []string) error {
	var b bytes.Buffer
	if err := status.PrintModules(&b, s.world.Status().Modules, status.Options{Now: s.world.Now()}); err != nil {
		return err
	}
	s.out.result(strings.TrimRight(b.String(), "\n"))
	return nil
}

func (s *Session) cmdPlan(ctx context.Context, _ []string) error {
	p, err := s.begun.Plan(ctx)
	if err != nil {
		return err
	}
	var b bytes.Buffer
	if err := p.Print(&b, plan.PrintOptions{}); err != nil {
		return err
	}
	s.out.result(strings.TrimRight(b.String(), "\n"))
	return nil
}

func (s *Session) cmdTime(ctx context.Context, args []string) error {
	if len(args) == 0 {
		s.out.result(s.world.Now().UTC().Format(time.RFC3339))
		return nil
	}
	d, err := time.ParseDuration(args[0])
	if err != nil || d < 0 {
		return fmt.Errorf("%q is no time to move on by; write 30s, 5m or 1h30m", args[0])
	}
	if err := s.settle(ctx); err != nil {
		return err
	}
	err = s.world.Advance(ctx, d)
	s.tell()
	s.out.note("it is " + s.world.Now().UTC().Format(time.RFC3339))
	return err
}
