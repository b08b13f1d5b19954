package files

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"strings"

	"github.com/spf13/cobra"

	"github.com/starling-operator/starling/cmd/starling/command"
	"github.com/starling-operator/starling/cmd/starling/process"
	"github.com/starling-operator/starling/modules/check"
	"github.com/starling-operator/starling/modules/format"
	"github.com/starling-operator/starling/modules/migrate"
	"github.com/starling-operator/starling/modules/tree"
	"github.com/starling-operator/starling/runtime/bounded"
	"github.com/starling-operator/starling/runtime/message"
)

// newFrom holds the flags of `starling new` that bring old trees over.
type newFrom struct {
	addonOperator string
	shellOperator string
	flux          string
	globalHooks   string
	name          string
	links         bool // follow those that lead out of the old tree
	lambdas       bool
	quiet         bool
}

func (f *newFrom) flags(cmd *cobra.Command) {
	flags := cmd.Flags()
	flags.StringVar(&f.addonOperator, "from-addon-operator", "", "`folder` with modules of addon-operator to bring over, or several with : between them, as its MODULES_DIR")
	flags.StringVar(&f.globalHooks, "global-hooks", "", "with --from-addon-operator: `folder` of the global hooks, its GLOBAL_HOOKS_DIR")
	flags.StringVar(&f.shellOperator, "from-shell-operator", "", "`folder` with hooks of shell-operator to bring over, as one module that is on")
	flags.StringVar(&f.flux, "from-flux", "", "`file` with HelmReleases of Flux to bring over, each as a module, and with the sources of their charts; - is the standard input")
	flags.StringVar(&f.name, "name", "hooks", "with --from-shell-operator: `name` of the module")
	flags.BoolVar(&f.links, "follow-links", false, "follow links in the old tree that lead out of its folder: whoever writes them has files of this machine read")
	flags.BoolVar(&f.lambdas, "lambdas", false, "turn jq filters into Starlark lambdas where both mean the same; else they stay jq")
	flags.BoolVarP(&f.quiet, "quiet", "q", false, "print the summary alone")
}

// run brings a tree over when a flag names one; else the command is a group.
func (f *newFrom) run(cmd *cobra.Command, args []string, modules string) error {
	flags := cmd.Flags()
	switch {
	case len(args) > 0:
		return command.Group(cmd, args)
	case f.addonOperator != "" && f.shellOperator != "":
		return errors.New("--from-addon-operator and --from-shell-operator exclude each other: bring one over, then the other to another folder")
	case f.flux != "" && f.addonOperator+f.shellOperator != "":
		return errors.New("--from-flux excludes --from-addon-operator and --from-shell-operator: bring one over, then the other to another folder")
	case f.globalHooks != "" && f.addonOperator == "":
		return errors.New("--global-hooks means nothing without --from-addon-operator")
	case flags.Changed("name") && f.shellOperator == "":
		return errors.New("--name means nothing without --from-shell-operator")
	case (f.lambdas || f.links || f.quiet && f.flux == "") && f.addonOperator+f.shellOperator == "":
		return errors.New("--lambdas, --quiet and --follow-links mean nothing without --from-addon-operator or --from-shell-operator")
	case f.addonOperator != "":
		return f.fromAddonOperator(cmd, modules)
	case f.shellOperator != "":
		return f.fromShellOperator(cmd, modules)
	case f.flux != "":
		return f.fromFlux(cmd, modules)
	}
	return command.Group(cmd, nil)
}

func (f *newFrom) fromAddonOperator(cmd *cobra.Command, modules string) error {
	old, closeOld, err := tree.Open(f.addonOperator, f.links)
	if err != nil {
		return fmt.Errorf("cannot read %w", err)
	}
	defer closeOld()
	var global fs.FS
	if f.globalHooks != "" {
		var closeGlobal func()
		if global, closeGlobal, err = tree.Open(f.globalHooks, f.links); err != nil {
			return fmt.Errorf("cannot read %w", err)
		}
		defer closeGlobal()
	}
	r, err := migrate.AddonOperator(cmd.Context(), old, global, migrate.Options{Lambdas: f.lambdas})
	return f.write(cmd, modules, f.addonOperator, r, err)
}

func (f *newFrom) fromShellOperator(cmd *cobra.Command, modules string) error {
	hooks, closeHooks, err := tree.Open(f.shellOperator, f.links)
	if err != nil {
		return fmt.Errorf("cannot read %w", err)
	}
	defer closeHooks()
	r, err := migrate.ShellOperator(cmd.Context(), hooks, f.name, migrate.Options{Lambdas: f.lambdas})
	return f.write(cmd, modules, f.shellOperator, r, err)
}

func (f *newFrom) fromFlux(cmd *cobra.Command, modules string) error {
	name := f.flux
	read := func() ([]byte, error) { return bounded.File(f.flux, bounded.MaxYAML) }
	if f.flux == "-" {
		name = "standard input"
		read = func() ([]byte, error) { return io.ReadAll(io.LimitReader(cmd.InOrStdin(), bounded.MaxYAML+1)) }
	}
	data, err := read()
	if err != nil {
		return fmt.Errorf("cannot read %s: %w", name, err)
	}
	r, err := migrate.Flux(cmd.Context(), name, data)
	return f.write(cmd, modules, name, r, err)
}

// write formats and writes the tree that was made of an old one, unless that has failed, and says what is left to do.
func (f *newFrom) write(cmd *cobra.Command, modules, old string, r *migrate.Result, err error) error {
	if err != nil {
		return fmt.Errorf("%s: %w", old, err)
	}
	if err := allow(cmd.Context(), r); err != nil {
		return err
	}
	for i, file := range r.Files {
		if !strings.HasSuffix(file.Path, ".star") {
			continue
		}
		// One that cannot be formatted, for the characters in its comments, is no worse for that.
		if _, formatted, err := format.Read(file.Path, bytes.NewReader(file.Data)); err == nil {
			r.Files[i].Data = formatted
		}
	}
	made, err := migrate.Write(modules, r)
	if err != nil {
		return err
	}
	out := cmd.OutOrStdout()
	for _, n := range r.Notes {
		if n.Fate == migrate.Left && !f.quiet {
			fmt.Fprintln(out, n)
		}
	}
	fmt.Fprintf(out, "%s written to %s; %s brought over, %d with a difference, %d not: see %s there\n",
		message.Count(len(made), "file"), modules, message.Count(r.Count(migrate.Done), "part"), r.Count(migrate.Changed), r.Count(migrate.Left), migrate.ReportFile)
	return nil
}

// allow renders the charts, as starling check does, and names what they hold in module.star.
func allow(ctx context.Context, r *migrate.Result) error {
	t, err := r.Tree()
	if err != nil {
		return err
	}
	process.TameLibraries()
	result, err := check.Run(ctx, check.Options{Tree: t, Renderer: process.NewRenderer()})
	if err != nil {
		return err
	}
	if ctx.Err() != nil {
		return errors.New("stopped while rendering the charts")
	}
	r.Allow(result.Installs, result.Lookups)
	return nil
}
