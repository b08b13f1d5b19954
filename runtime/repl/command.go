package repl

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/starling-operator/starling/runtime/message"
)

// ErrQuit says that :quit was typed.
var ErrQuit = errors.New("quit")

// command is one of the commands that begin with a colon.
type command struct {
	name string // without the colon
	args string // as help shows them
	doc  string
	run  func(s *Session, ctx context.Context, args []string) error
	// complete returns what the argument that follows args may become; nil: nothing.
	complete func(s *Session, args []string, begun string) []Candidate
}

// commands are all of them, as help shows them.
func commands() []command {
	return []command{
		{"help", "[NAME]", "tells what there is, or about one name: :help k8s.apply", (*Session).cmdHelp, (*Session).completeHelp},
		{"load", "FILE.star", "runs a file as a module's file is loaded, and takes over the names that it exports", (*Session).cmdLoad, filesNamed(".star")},
		{"reload", "", "reads the module tree anew and puts it in force, as starling run does; the cluster and your names stay", (*Session).cmdReload, nil},
		{"apply", "FILE.yaml|-", "applies the objects of a file, as kubectl would; with - those of the lines that follow, up to a line with a single dot", (*Session).cmdApply, filesNamed(".yaml", ".yml", ".json")},
		{"delete", "KIND NAME [NAMESPACE]", "deletes an object", (*Session).cmdDelete, (*Session).completeKind},
		{"run", "HOOK [KEY]", "runs a hook now, with all that triggers it as its events; HOOK is its id, or an end of it that is like no other", (*Session).cmdRun, (*Session).completeHook},
		{"runs", "", "shows the runs so far", (*Session).cmdRuns, nil},
		{"values", "[MODULE] [PATH]", "shows the values of a module, or what is at a path in them", (*Session).cmdValues, (*Session).completeValues},
		{"modules", "", "shows what has become of the modules", (*Session).cmdModules, nil},
		{"plan", "", "shows all that is not as it was before the session, as starling plan does", (*Session).cmdPlan, nil},
		{"time", "[DURATION]", "shows the time of the world, or moves it on, and lets everything happen that falls due: :time 1h", (*Session).cmdTime, nil},
		{"quit", "", "ends the session, as Ctrl-D does", func(*Session, context.Context, []string) error { return ErrQuit }, nil},
	}
}

// command carries out a line that begins with a colon.
func (s *Session) command(ctx context.Context, line string) error {
	words := strings.Fields(line[1:])
	if len(words) == 0 {
		return errors.New("a command follows the colon, see :help")
	}
	var names []string
	for _, c := range commands() {
		if c.name != words[0] {
			names = append(names, c.name)
			continue
		}
		if least, most := c.arity(); len(words)-1 < least || len(words)-1 > most {
			return fmt.Errorf("write :%s", strings.TrimSpace(c.name+" "+c.args))
		}
		if err := c.run(s, ctx, words[1:]); err != nil {
			if errors.Is(err, ErrQuit) {
				return err
			}
			return fmt.Errorf(":%s: %w", c.name, err)
		}
		return nil
	}
	return fmt.Errorf("there is no command :%s%s", words[0], didYouMean(words[0], ":", names))
}

// didYouMean is the end of an error about a name that there is not.
func didYouMean(name, prefix string, names []string) string {
	if near := message.Nearest(name, names); near != "" {
		return "; did you mean " + prefix + near + "?"
	}
	return ", see :help"
}

// arity is how many arguments the command takes.
func (c *command) arity() (least, most int) {
	for arg := range strings.FieldsSeq(c.args) {
		if most++; !strings.HasPrefix(arg, "[") {
			least++
		}
	}
	return least, most
}

func (s *Session) cmdHelp(_ context.Context, args []string) error {
	if len(args) == 0 {
		var rows [][2]string
		for _, c := range commands() {
			rows = append(rows, [2]string{strings.TrimSpace(":" + c.name + " " + c.args), c.doc})
		}
		s.out.result("All else is Starlark, run as a hook: k8s.list(\"v1\", \"Pod\"), values.get(\"global\"), _ is the last result.\n\n" +
			message.Rows(rows) + "\n\n" + s.families())
		return nil
	}
	if name, colon := strings.CutPrefix(args[0], ":"); colon {
		var names []string
		for _, c := range commands() {
			if c.name == name {
				s.out.result(strings.TrimSpace(":"+c.name+" "+c.args) + "\n\n" + c.doc)
				return nil
			}
			names = append(names, c.name)
		}
		return fmt.Errorf("there is no command :%s%s", name, didYouMean(name, ":", names))
	}
	text, err := s.helpName(args[0])
	if err == nil {
		s.out.result(text)
	}
	return err
}
