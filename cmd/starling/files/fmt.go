package files

import (
	"bytes"
	"errors"
	"fmt"
	"slices"

	"github.com/spf13/cobra"

	"github.com/starling-operator/starling/cmd/starling/command"
	"github.com/starling-operator/starling/modules/format"
	"github.com/starling-operator/starling/runtime/message"
	"github.com/starling-operator/starling/runtime/script"
)

type fmtFlags struct{ list, diff bool }

func newFmtCommand() *cobra.Command {
	f := &fmtFlags{}
	cmd := &cobra.Command{
		Use:   "fmt [PATH...]",
		Short: "Format .star files, as buildifier does",
		Long: `Writes .star files in the one form that buildifier gives them, and prints the
names of those that changed. PATH is a file, a folder with all below it (the
default is the current one), or - for stdin, which is written to stdout. A file
that does not parse is an error and stays as it is.`,
		Example: `  starling fmt
  starling fmt --check addons
  starling fmt - < hook.star`,
		RunE: f.run,
	}
	cmd.Flags().BoolVarP(&f.list, "list", "l", false, "write nothing: print the names of files that are not formatted; exit code 1 if there are any")
	cmd.Flags().BoolVar(&f.list, "check", false, "the same as --list")
	cmd.Flags().BoolVarP(&f.diff, "diff", "d", false, "write nothing: print what would change; exit code 1 if there is anything")
	command.TreeFlag(cmd, true)
	return cmd
}

func (f *fmtFlags) run(cmd *cobra.Command, args []string) error {
	if len(args) == 0 {
		args = []string{"."}
	}
	stdin := slices.Contains(args, "-")
	if stdin && len(args) > 1 {
		return errors.New("- is stdin, and stands alone")
	}
	write := !f.list && !f.diff
	files := []string{"<stdin>"}
	if !stdin {
		var err error
		if files, err = format.Find(args); err != nil {
			return err
		}
	}
	var broken, changed int
	for _, path := range files {
		var src, formatted []byte
		var err error
		if stdin {
			src, formatted, err = format.Read(path, cmd.InOrStdin())
		} else {
			src, formatted, err = format.File(path, write)
		}
		if err != nil {
			broken++
			fmt.Fprint(cmd.ErrOrStderr(), rendered(err))
			continue
		}
		if !bytes.Equal(src, formatted) {
			changed++
		}
		if err := f.print(cmd, path, src, formatted, stdin); err != nil {
			return err
		}
	}
	switch {
	case broken > 0:
		return fmt.Errorf("%s cannot be formatted", message.Count(broken, "file"))
	case changed > 0 && !write:
		return fmt.Errorf("%s not formatted; run: starling fmt", message.Count(changed, "file"))
	}
	return nil
}

// print shows what the flags ask for of one file that has been formatted.
func (f *fmtFlags) print(cmd *cobra.Command, path string, src, formatted []byte, stdin bool) error {
	out, same := cmd.OutOrStdout(), bytes.Equal(src, formatted)
	if f.list && !same || !f.list && !f.diff && !stdin && !same {
		fmt.Fprintln(out, message.Clean(path))
	}
	if f.diff && !same {
		text, err := format.Diff(path, src, formatted)
		if err != nil {
			return err
		}
		fmt.Fprint(out, message.Lines(text))
	}
	if stdin && !f.list && !f.diff {
		_, err := out.Write(formatted)
		return err
	}
	return nil
}

// rendered is an error in the form for people: with its source line and a caret when it
// has a place.
func rendered(err error) string {
	if at, ok := errors.AsType[*script.Error](err); ok {
		return message.Lines(at.Render())
	}
	return message.Line(err.Error()) + "\n"
}
