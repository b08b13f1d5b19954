package files

import (
	"io"
	"os"
	"path/filepath"

	"github.com/spf13/cobra"

	"github.com/starling-operator/starling/cmd/starling/command"
	"github.com/starling-operator/starling/cmd/starling/process"
	"github.com/starling-operator/starling/lsp"
)

func newLSPCommand(version string) *cobra.Command {
	var links bool
	cmd := &cobra.Command{
		Use:   "lsp",
		Short: "Serve editors: diagnostics, completion, hover, definitions, rename, formatting",
		Long: `Speaks the language server protocol on stdin and stdout, for an editor that starts
it: it tells what starling check would say while you type, completes and explains
names, leads to definitions, renames, and formats. docs/editors.md has the
configuration for VS Code, Neovim, Helix and Zed.`,
		Example: `  starling lsp`,
		Args:    command.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			std := ""
			if cache, err := os.UserCacheDir(); err == nil {
				std = filepath.Join(cache, "starling", "std")
			}
			server := lsp.New(lsp.Options{
				Renderer: process.NewRenderer(), Version: version, StdDir: std, FollowLinks: links,
			})
			return server.Serve(cmd.Context(), pipes{cmd.InOrStdin(), cmd.OutOrStdout()})
		},
	}
	command.LinksFlag(cmd.Flags(), &links)
	// Editors name the stream by a flag that others have.
	cmd.Flags().Bool("stdio", true, "speak on stdin and stdout; there is no other way")
	return cmd
}

// pipes are stdin and stdout as one stream.
type pipes struct {
	io.Reader
	io.Writer
}

// Close ends the reading, where it can be ended.
func (p pipes) Close() error {
	if c, ok := p.Reader.(io.Closer); ok {
		return c.Close()
	}
	return nil
}
