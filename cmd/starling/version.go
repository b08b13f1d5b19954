package main

import (
	"fmt"
	"runtime"
	"runtime/debug"
	"strings"

	"github.com/spf13/cobra"

	"github.com/starling-operator/starling/cmd/starling/command"
)

// The linker sets these (-ldflags "-X main.version=v1.2.3"), and nothing else changes them. An empty one leaves it to
// the build info.
var (
	// version is that of a release.
	version string
	// commit is what was built, "+changed" if files differed from it; date is the commit's, as in RFC 3339.
	commit, date string
)

func newVersionCommand() *cobra.Command {
	return &cobra.Command{
		Use:     "version",
		Short:   "Print the version of this binary",
		Example: "  starling version",
		Args:    command.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			info, _ := debug.ReadBuildInfo()
			_, err := fmt.Fprintln(cmd.OutOrStdout(), versionLine(version, commit, date, info))
			return err
		},
	}
}

// versionLine returns "starling v1.2.3 (commit 0123456789ab, changed, of 2026-11-29; go1.26.0 linux/amd64)". Unknown
// parts are left out; info may be nil.
func versionLine(version, commit, date string, info *debug.BuildInfo) string {
	commit, changed := strings.CutSuffix(commit, "+changed")
	if commit == "" && info != nil {
		for _, s := range info.Settings {
			switch s.Key {
			case "vcs.revision":
				commit = s.Value
			case "vcs.modified":
				changed = s.Value == "true"
			case "vcs.time":
				date = s.Value
			}
		}
	}
	var about []string
	if commit != "" {
		commit = "commit " + commit[:min(12, len(commit))]
		if changed {
			commit += ", changed"
		}
		if day, _, is := strings.Cut(date, "T"); is {
			commit += ", of " + day
		}
		about = append(about, commit)
	}
	about = append(about, fmt.Sprintf("%s %s/%s", runtime.Version(), runtime.GOOS, runtime.GOARCH))
	return fmt.Sprintf("starling %s (%s)", releaseOf(version, info), strings.Join(about, "; "))
}

// shortVersion returns "v1.2.3", for logs and the status.
func shortVersion() string {
	info, _ := debug.ReadBuildInfo()
	return releaseOf(version, info)
}

// releaseOf returns the linked version, else the one the build info knows.
func releaseOf(linked string, info *debug.BuildInfo) string {
	if linked == "" && info != nil {
		linked = info.Main.Version
	}
	if linked == "" || linked == "(devel)" {
		return "(not a release)"
	}
	return linked
}
