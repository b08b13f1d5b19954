package main

import (
	"github.com/spf13/cobra"

	"github.com/starling-operator/starling/modules/status"
)

func newGetReleasesCommand(flags *getFlags) *cobra.Command {
	return &cobra.Command{
		Use:     "releases [MODULE|NAMESPACE/NAME]",
		Aliases: []string{"release"},
		Short:   "Show the Helm releases of modules",
		Example: `  starling get releases
  starling get releases ingress-nginx -o json`,
		Args: atMostOneName,
		RunE: func(cmd *cobra.Command, args []string) error {
			return flags.list(cmd, func() (*listing, error) {
				st, err := flags.ask(cmd)
				if err != nil {
					return nil, err
				}
				releases := status.Releases(st.Modules)
				if len(args) == 1 {
					if releases, err = findReleases(st.Modules, releases, args[0]); err != nil {
						return nil, err
					}
				}
				l := newListing("release", releases, releaseName)
				l.notes = notesOf(st)
				return l, nil
			})
		},
	}
}

func releaseName(r status.ModuleRelease) string { return r.Namespace + "/" + r.Name }

// findReleases returns the release of a module, which may have none, or the one of that name.
func findReleases(modules []status.Module, releases []status.ModuleRelease, name string) ([]status.ModuleRelease, error) {
	var found []status.ModuleRelease
	for _, r := range releases {
		if name == r.Module || name == releaseName(r) {
			found = append(found, r)
		}
	}
	if len(found) > 0 {
		return found, nil
	}
	_, err := findModule(modules, name)
	return nil, err
}
