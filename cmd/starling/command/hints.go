package command

import (
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/starling-operator/starling/runtime/message"
)

// elsewhereNamed are names of commands in helm, kubectl and terraform, and the commands that do the same here.
var elsewhereNamed = map[string]string{
	"apply": "run TREE", "install": "run TREE", "upgrade": "run TREE",
	"diff": "plan TREE", "preview": "plan TREE",
	"lint": "check TREE", "validate": "check TREE", "vet": "check TREE",
	"template": "render TREE MODULE",
	"list":     "get modules", "ls": "get modules", "status": "get modules",
	"history": "get releases",
	"create":  "new module TREE NAME",
	"init":    "new module TREE NAME",
	"show":    "describe module NAME", "values": "explain values MODULE", "config": "explain values MODULE",
}

// How people do things that no command does.
const (
	asUninstall = "set <name>Enabled: \"false\" in the ConfigMap, or spec.enabled: false of the Module object, and wait until its state is off"
	asReconcile = "kubectl annotate module NAME starling.dev/reconcile=now"
	asEdit      = "edit the ConfigMap of the instance, or spec.values of the Module object: kubectl edit module NAME"
)

// elsewhereDone are words and flags of kubectl and helm, behind the command that they were given to, and how the same is
// done here.
var elsewhereDone = map[string]string{
	"uninstall": asUninstall, "delete": asUninstall, "remove": asUninstall, "disable": asUninstall,
	"reconcile": asReconcile, "sync": asReconcile, "refresh": asReconcile,
	"restart":  asReconcile + " has a module looked at again; the processes restart with kubectl rollout restart deployment starling",
	"rollback": "run follows the tree: bring the older files back there, as with git revert; starling get releases shows the revisions",
	"edit":     asEdit, "set": asEdit, "patch": asEdit,

	"get pods":   "starling get replicas shows the processes of the instance; kubectl get pods those of modules",
	"get pod":    "starling get replicas shows the processes of the instance; kubectl get pods those of modules",
	"get all":    "starling get modules shows all modules, and starling describe module NAME all that is known of one",
	"get values": "starling explain values MODULE",
	"get events": "kubectl describe module NAME shows the Events of a module, starling logs MODULE its log",
	"get logs":   "starling logs MODULE",
	"get config": "starling explain values MODULE",

	"get --all-namespaces": "leave it out: starling get shows the modules of all namespaces",
	"get -A":               "leave it out: starling get shows the modules of all namespaces",
	"get --selector":       "rows have no labels; name a module, or pick rows of -o json with jq",
	"get -l":               "rows have no labels; name a module, or pick rows of -o json with jq",
	"logs --since":         "--tail LINES shows the last lines; with -o json each has its time",
	"logs --previous":      "the lines of a process end with it: kubectl logs --previous, of its pod, shows them",
	"logs -p":              "the lines of a process end with it: kubectl logs --previous, of its pod, shows them",
	"logs --lines":         "--tail LINES",
}

// doneElsewhere finds a word or a flag in [elsewhereDone].
func doneElsewhere(cmd *cobra.Command, word string) string {
	for ; cmd.HasParent(); cmd = cmd.Parent() { // flags of get are those of get modules, too
		if done := elsewhereDone[strings.TrimPrefix(cmd.CommandPath(), cmd.Root().CommandPath()+" ")+" "+word]; done != "" {
			return done
		}
	}
	return ""
}

// mostMeant are the commands that people leave out before the name of a module.
var mostMeant = map[string]string{"describe": "module"}

// UnknownCommand is the error for a word that names none of cmd's commands.
func UnknownCommand(cmd *cobra.Command, word string) error {
	var names []string
	for _, c := range cmd.Commands() {
		if c.IsAvailableCommand() {
			names = append(names, c.Name())
			names = append(names, c.Aliases...)
		}
	}
	if is := elsewhereNamed[word]; is != "" && !cmd.HasParent() {
		return fmt.Errorf("unknown command %q for %s; it is: %s %s", word, cmd.CommandPath(), cmd.CommandPath(), is)
	}
	done := doneElsewhere(cmd, word)
	if !cmd.HasParent() {
		done = elsewhereDone[word]
	}
	if done != "" {
		return fmt.Errorf("unknown command %q for %s; %s", word, cmd.CommandPath(), done)
	}
	if cmd.Name() == "explain" && message.Nearest(word, names) == "" {
		return fmt.Errorf("unknown command %q for %s; as in: %[2]s values %[1]s, or, for a controller: %[2]s controller %[1]s KEY", word, cmd.CommandPath())
	}
	if kind := mostMeant[cmd.Name()]; kind != "" && message.Nearest(word, names) == "" {
		return fmt.Errorf("unknown command %q for %s; as in: %s %s %s", word, cmd.CommandPath(), cmd.CommandPath(), kind, word)
	}
	return fmt.Errorf("unknown command %q for %s%s", word, cmd.CommandPath(), hint(cmd, word, names, ""))
}

// ExplainFlag adds what was meant to the error for an unknown flag.
func ExplainFlag(cmd *cobra.Command, err error) error {
	var unknown *pflag.NotExistError
	if invalid, ok := errors.AsType[*pflag.InvalidValueError](err); ok {
		return fmt.Errorf("--%s %q: %s", invalid.GetFlag().Name, invalid.GetValue(), wanted(invalid))
	}
	if args := cmd.Flags().Args(); cmd.HasAvailableSubCommands() && len(args) > 0 { // a flag of a command that there is not
		return UnknownCommand(cmd, args[0])
	}
	if !errors.As(err, &unknown) {
		return fmt.Errorf("%w; see: %s --help", err, cmd.CommandPath())
	}
	var names []string
	cmd.Flags().VisitAll(func(f *pflag.Flag) {
		if !f.Hidden {
			names = append(names, f.Name)
		}
	})
	word := unknown.GetSpecifiedName()
	dashes := "--"
	if short := unknown.GetSpecifiedShortnames(); short != "" {
		word, dashes = short, "-"
	}
	if done := doneElsewhere(cmd, dashes+word); done != "" {
		return fmt.Errorf("unknown flag %s%s for %s; %s", dashes, word, cmd.CommandPath(), done)
	}
	return fmt.Errorf("unknown flag %s%s for %s%s", dashes, word, cmd.CommandPath(), hint(cmd, word, names, "--"))
}

// wanted says what a flag takes, in words that are not Go's.
func wanted(invalid *pflag.InvalidValueError) string {
	switch invalid.GetFlag().Value.Type() {
	case "int":
		if name, value := invalid.GetFlag().Name, invalid.GetValue(); strings.Contains(value, "/") { // the number was forgotten
			return fmt.Sprintf("must be a whole number, as in --%s 10 %s", name, value)
		}
		return "must be a whole number"
	case "uint64":
		return "must be a whole number, 0 or more"
	case "bool":
		return "must be true or false"
	}
	return invalid.Unwrap().Error()
}

// hint returns "; did you mean …?" or, when nothing is near, where to look.
func hint(cmd *cobra.Command, word string, names []string, prefix string) string {
	if near := message.Nearest(word, names); near != "" {
		return fmt.Sprintf("; did you mean %s%s?", prefix, near)
	}
	return fmt.Sprintf("; see: %s --help", cmd.CommandPath())
}

// WithNearFolder adds to an error about a path that is not there the one beside it that was probably meant.
func WithNearFolder(arg string, err error) error {
	if _, gone := os.Stat(arg); !errors.Is(gone, fs.ErrNotExist) {
		return err
	}
	parent, name := filepath.Split(filepath.Clean(arg))
	beside, _ := os.ReadDir(cmp.Or(parent, "."))
	var names []string
	for _, entry := range beside {
		names = append(names, entry.Name())
	}
	if near := message.Nearest(name, names); near != "" {
		return fmt.Errorf("%w (did you mean %s?)", err, filepath.Join(parent, near))
	}
	return err
}
