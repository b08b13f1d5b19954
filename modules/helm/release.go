package helm

import (
	"fmt"
	"strings"

	"helm.sh/helm/v3/pkg/release"
	"helm.sh/helm/v3/pkg/releaseutil"
	"helm.sh/helm/v3/pkg/time"
)

type (
	// Release is one revision of a release.
	Release = release.Release
	// Info is how it stands.
	Info = release.Info
	// Status is the word for that.
	Status = release.Status
	// Hook is a hook of a chart, and how it ran.
	Hook = release.Hook
	// HookEvent is a point in the life of a release.
	HookEvent = release.HookEvent
	// HookDeletePolicy says when a hook is deleted.
	HookDeletePolicy = release.HookDeletePolicy
	// HookExecution is when a hook ran, and how that ended.
	HookExecution = release.HookExecution
	// Time is one that is stored.
	Time = time.Time
)

// The words of Helm's records.
const (
	StatusDeployed        = release.StatusDeployed
	StatusFailed          = release.StatusFailed
	StatusPendingInstall  = release.StatusPendingInstall
	StatusPendingRollback = release.StatusPendingRollback
	StatusPendingUpgrade  = release.StatusPendingUpgrade
	StatusSuperseded      = release.StatusSuperseded
	StatusUninstalled     = release.StatusUninstalled
	StatusUninstalling    = release.StatusUninstalling

	HookAnnotation         = release.HookAnnotation
	HookPreInstall         = release.HookPreInstall
	HookPostInstall        = release.HookPostInstall
	HookPreUpgrade         = release.HookPreUpgrade
	HookPostUpgrade        = release.HookPostUpgrade
	HookPreRollback        = release.HookPreRollback
	HookPostRollback       = release.HookPostRollback
	HookPreDelete          = release.HookPreDelete
	HookPostDelete         = release.HookPostDelete
	HookTest               = release.HookTest
	HookBeforeHookCreation = release.HookBeforeHookCreation
	HookSucceeded          = release.HookSucceeded
	HookFailed             = release.HookFailed
	HookPhaseRunning       = release.HookPhaseRunning
	HookPhaseSucceeded     = release.HookPhaseSucceeded
	HookPhaseFailed        = release.HookPhaseFailed
)

// Parts splits what a chart renders to into hooks and manifest, as Helm stores them.
func Parts(files map[string]string) ([]*Hook, string, error) {
	hooks, manifests, err := releaseutil.SortManifests(files, nil, releaseutil.InstallOrder)
	if err != nil {
		return nil, "", err
	}
	var text strings.Builder
	for _, m := range manifests {
		fmt.Fprintf(&text, "---\n# Source: %s\n%s\n", m.Name, m.Content)
	}
	return hooks, text.String(), nil
}

// Keeps says whether an object with such annotations stays when its release ends, or holds it no more.
func Keeps(annotations map[string]string) bool {
	return strings.EqualFold(strings.TrimSpace(annotations["helm.sh/resource-policy"]), "keep")
}
