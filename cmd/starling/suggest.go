package main

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
}

// mostMeant are the commands that people leave out before the name of a module.
var mostMeant = map[string]string{"describe": "module", "explain": "values"}

// unknownCommand is the error for a word that names none of cmd's commands.
func unknownCommand(cmd *cobra.Command, word string) error {
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
	if kind := mostMeant[cmd.Name()]; kind != "" && message.Nearest(word, names) == "" {
		return fmt.Errorf("unknown command %q for %s; as in: %s %s %s", word, cmd.CommandPath(), cmd.CommandPath(), kind, word)
	}
	return fmt.Errorf("unknown command %q for %s%s", word, cmd.CommandPath(), hint(cmd, word, names, ""))
}

// explainFlag adds what was meant to the error for an unknown flag.
func explainFlag(cmd *cobra.Command, err error) error {
	var unknown *pflag.NotExistError
	var invalid *pflag.InvalidValueError
	if errors.As(err, &invalid) {
		return fmt.Errorf("--%s %q: %s", invalid.GetFlag().Name, invalid.GetValue(), wanted(invalid))
	}
	if args := cmd.Flags().Args(); cmd.HasAvailableSubCommands() && len(args) > 0 { // a flag of a command that there is not
		return unknownCommand(cmd, args[0])
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

// withNearFolder adds to an error about a path that is not there the one beside it that was probably meant.
func withNearFolder(arg string, err error) error {
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
