package command

import (
	"path/filepath"
	"regexp"
	"strings"

	"github.com/spf13/cobra"
)

// asPlugin is how people call the plugin of kubectl.
const asPlugin = "kubectl starling"

// CalledAs returns the arguments. A binary of the name kubectl-starling is a plugin of kubectl,
// whose help and hints Say `kubectl starling`; one of the name kubectl_complete-starling is asked
// by kubectl for what the shell may complete.
func CalledAs(root *cobra.Command, args []string) []string {
	switch name := strings.TrimSuffix(filepath.Base(args[0]), ".exe"); name {
	case "kubectl_complete-starling":
		args = append([]string{args[0], cobra.ShellCompRequestCmd}, args[1:]...)
	case "kubectl-starling":
	default:
		return args[1:]
	}
	root.Annotations = map[string]string{cobra.CommandDisplayNameAnnotation: asPlugin}
	Each(root, func(cmd *cobra.Command) {
		cmd.Example, cmd.Long = AsCalled(root, cmd.Example), AsCalled(root, cmd.Long)
	})
	return args[1:]
}

// ourCommand is a command in a text, such as that of a hint.
var ourCommand = regexp.MustCompile(`(^|[^a-z/.-])(?:kubectl )?starling ([a-z-]+)`)

// AsCalled puts in place of a command in a text what has the plugin do the same.
func AsCalled(cmd *cobra.Command, text string) string {
	root := cmd.Root()
	if root.DisplayName() != asPlugin {
		return text
	}
	return ourCommand.ReplaceAllStringFunc(text, func(found string) string {
		m := ourCommand.FindStringSubmatch(found)
		if sub, _, err := root.Find([]string{m[2]}); err != nil || sub == root {
			return found
		}
		return m[1] + asPlugin + " " + m[2]
	})
}

// Each calls f with a command and all below it.
func Each(cmd *cobra.Command, f func(*cobra.Command)) {
	f(cmd)
	for _, sub := range cmd.Commands() {
		Each(sub, f)
	}
}
