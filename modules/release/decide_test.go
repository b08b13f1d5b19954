package release

import (
	"testing"
	"time"

	helmrelease "helm.sh/helm/v3/pkg/release"
	"k8s.io/apimachinery/pkg/util/validation"

	"github.com/starling-operator/starling/modules/chart"
	"github.com/starling-operator/starling/runtime/effect"
)

func TestDecide(t *testing.T) {
	ours := func(status helmrelease.Status, inputs, manifest string) revision {
		return revision{Number: 3, Status: status, Labels: map[string]string{
			effect.InstanceLabel: "ops.starling", effect.ModuleLabel: "web", LabelInputs: inputs, LabelManifest: manifest,
		}}
	}
	given := func(status helmrelease.Status, module string) revision {
		return revision{Number: 3, Status: status, Labels: map[string]string{effect.ModuleLabel: module, LabelInputs: "i2", LabelManifest: "m"}}
	}
	before := want{Instance: "ops.starling", Module: "web", Inputs: "i2"}
	after := func(manifest string, lookups bool) want {
		w := before
		w.Rendered, w.Manifest = true, manifest
		if lookups {
			w.Lookups = "a"
		}
		return w
	}
	lookedUp, lookedElse := after("m", true).inputsLabel(), inputsLookup+".x"
	if errs := validation.IsValidLabelValue(lookedUp); len(errs) > 0 || len(lookedUp) != chart.DigestLength {
		t.Errorf("%q cannot be a label: %v", lookedUp, errs)
	}
	tests := []struct {
		name string
		last revision
		want want
		step step
		why  string
	}{
		{"nothing there", revision{}, before, stepRender, "not installed"},
		{"nothing there, rendered", revision{}, after("m", false), stepInstall, "not installed"},
		{"no label", revision{Number: 1, Status: helmrelease.StatusDeployed}, before, stepRefuse,
			"no starling (it was installed with helm or by another operator)"},
		{"no label, pending", revision{Number: 1, Status: helmrelease.StatusPendingInstall}, before, stepRefuse,
			"no starling (it was installed with helm or by another operator)"},
		{"no label, adopted", revision{Number: 1, Status: helmrelease.StatusDeployed}, adopting(before), stepRender, "taken over from helm"},
		{"no label, adopted, rendered", revision{Number: 1, Status: helmrelease.StatusFailed}, adopting(after("m", false)), stepUpgrade, "taken over from helm"},
		{"no label, pending, adopted", revision{Number: 1, Status: helmrelease.StatusPendingUpgrade}, adopting(before), stepWait,
			"is pending-upgrade: helm works on revision 1 of it, or was cut off; it is taken over once that has ended, or at 01:00:00 UTC, " +
				"or at once by: kubectl annotate --overwrite module web starling.dev/reconcile=again"},
		{"no label, pending, adopted, asked for again", revision{Number: 1, Status: helmrelease.StatusPendingInstall}, again(adopting(before)), stepRecover,
			"helm has left it pending-install"},
		{"no label, pending for long, adopted", revision{Number: 1, Status: helmrelease.StatusPendingRollback, Made: time.Time{}.Add(-mostHelm)},
			adopting(before), stepRecover, "helm has left it pending-rollback"},
		{"no label, uninstalling, adopted", revision{Number: 1, Status: helmrelease.StatusUninstalling}, adopting(before), stepWait,
			"is uninstalling with helm: if that was cut off, end it with helm uninstall"},
		{"no label, uninstalled, adopted", revision{Number: 1, Status: helmrelease.StatusUninstalled}, adopting(after("m", false)), stepReplace,
			"uninstalled with helm, and its history kept"},
		{"another instance is never adopted", revision{Number: 1, Status: helmrelease.StatusDeployed, Labels: map[string]string{effect.InstanceLabel: "x.starling"}},
			adopting(before), stepRefuse, "the starling instance x.starling"},
		{"another instance", revision{Number: 1, Status: helmrelease.StatusDeployed, Labels: map[string]string{effect.InstanceLabel: "x.starling"}},
			before, stepRefuse, "the starling instance x.starling"},
		{"another module", revision{Number: 1, Status: helmrelease.StatusFailed,
			Labels: map[string]string{effect.InstanceLabel: "ops.starling", effect.ModuleLabel: "db"}}, before, stepRefuse, "module db"},
		{"given back", given(helmrelease.StatusDeployed, "web"), before, stepRender, "given back by another instance"},
		{"given back, rendered", given(helmrelease.StatusDeployed, "web"), after("m", false), stepUpgrade, "given back by another instance"},
		{"given back, failed", given(helmrelease.StatusFailed, "web"), after("m", false), stepUpgrade, "the last revision failed"},
		{"given back, of another module", given(helmrelease.StatusDeployed, "db"), before, stepRefuse,
			"no starling (it was installed with helm or by another operator)"},
		{"tried, failed", triedAs(ours(helmrelease.StatusFailed, "i2", "m"), ""), rollsBack(after("m", false)), stepRollback, "the last revision failed, and is not tried again"},
		{"tried, failed, other inputs", triedAs(ours(helmrelease.StatusFailed, "i1", "m"), ""), rollsBack(after("m", false)), stepUpgrade, "the last revision failed"},
		{"tried, failed, no rollback any more", triedAs(ours(helmrelease.StatusFailed, "i2", "m"), ""), after("m", false), stepUpgrade, "the last revision failed"},
		{"failed on the way", ours(helmrelease.StatusFailed, "i2", "m"), rollsBack(after("m", false)), stepUpgrade, "the last revision failed"},
		{"rolled back", triedAs(ours(helmrelease.StatusDeployed, "i2", "n"), "3.1"), rollsBack(before), stepNothing, "inputs unchanged"},
		{"rolled back, asked for again", triedAs(ours(helmrelease.StatusDeployed, "i2", "n"), "3.1"), again(rollsBack(before)), stepRender, "what was rolled back is tried again"},
		{"rolled back, tried in another way", triedAs(ours(helmrelease.StatusDeployed, "i2", "n"), "3.1"), after("m", false), stepUpgrade, "what was rolled back is tried again"},
		{"rolled back, other inputs", triedAs(ours(helmrelease.StatusDeployed, "i1", "n"), "3.1"), rollsBack(after("m", false)), stepUpgrade, "manifest changed"},
		{"rolled back, the inputs of what is there", triedAs(ours(helmrelease.StatusDeployed, "i1", "m"), "3.1"), rollsBack(after("m", false)), stepNote, "inputs changed, manifest unchanged"},
		{"a rollback that failed", triedAs(ours(helmrelease.StatusFailed, "i2", "n"), "3.1"), rollsBack(after("m", false)), stepRollback, "the last revision failed, and is not tried again"},
		{"pending install", ours(helmrelease.StatusPendingInstall, "i2", "m"), before, stepRecover,
			"the last revision is pending-install and nobody works on it"},
		{"pending upgrade, same inputs", ours(helmrelease.StatusPendingUpgrade, "i2", "m"), before, stepRecover,
			"the last revision is pending-upgrade and nobody works on it"},
		{"pending rollback", ours(helmrelease.StatusPendingRollback, "i2", "m"), before, stepRecover,
			"the last revision is pending-rollback and nobody works on it"},
		{"a status we do not know", ours("strange", "i2", "m"), before, stepRecover,
			"the last revision is strange and nobody works on it"},
		{"uninstalling", ours(helmrelease.StatusUninstalling, "i2", "m"), before, stepFinishUninstall, "an uninstall was cut off"},
		{"uninstalled", ours(helmrelease.StatusUninstalled, "i2", "m"), before, stepRender, "uninstalled with its history kept"},
		{"uninstalled, rendered", ours(helmrelease.StatusUninstalled, "i2", "m"), after("m", false), stepReplace,
			"uninstalled with its history kept"},
		{"failed, same inputs", ours(helmrelease.StatusFailed, "i2", "m"), before, stepRender, "the last revision failed"},
		{"failed, same manifest", ours(helmrelease.StatusFailed, "i2", "m"), after("m", false), stepUpgrade, "the last revision failed"},
		{"superseded", ours(helmrelease.StatusSuperseded, "i2", "m"), after("m", false), stepUpgrade, "the last revision is not deployed"},
		{"same inputs", ours(helmrelease.StatusDeployed, "i2", "m"), before, stepNothing, "inputs unchanged"},
		{"other inputs", ours(helmrelease.StatusDeployed, "i1", "m"), before, stepRender, "inputs changed"},
		{"other inputs, same manifest", ours(helmrelease.StatusDeployed, "i1", "m"), after("m", false), stepNote,
			"inputs changed, manifest unchanged"},
		{"other manifest", ours(helmrelease.StatusDeployed, "i1", "m"), after("n", false), stepUpgrade, "manifest changed"},
		{"looked things up", ours(helmrelease.StatusDeployed, lookedUp, "m"), before, stepRender, "inputs changed"},
		{"looked the same up", ours(helmrelease.StatusDeployed, lookedUp, "m"), after("m", true), stepNothing, "inputs and lookups unchanged"},
		{"looked the same up, and renders by chance", ours(helmrelease.StatusDeployed, lookedUp, "n"), after("m", true), stepNothing, "inputs and lookups unchanged"},
		{"looked another thing up", ours(helmrelease.StatusDeployed, lookedElse, "m"), after("n", true), stepUpgrade, "manifest changed"},
		{"looked another thing up, same manifest", ours(helmrelease.StatusDeployed, lookedElse, "m"), after("m", true), stepNothing, "manifest unchanged"},
		{"begins to look things up", ours(helmrelease.StatusDeployed, "i1", "m"), after("m", true), stepNote,
			"inputs changed, manifest unchanged"},
		{"no longer looks things up", ours(helmrelease.StatusDeployed, lookedUp, "m"), after("m", false), stepNote,
			"inputs changed, manifest unchanged"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			if step, why := decide(tt.last, tt.want); step != tt.step || why != tt.why {
				t.Errorf("%s (%s), want %s (%s)", step, why, tt.step, tt.why)
			}
		})
	}
}

func adopting(w want) want {
	w.Adopt = true
	return w
}

// rollsBack is what is wanted of a module with rollbacks, again that after somebody has asked for another try.
func rollsBack(w want) want { w.Tried = "t"; return w }

func again(w want) want { w.Again = true; return w }

// triedAs is a revision whose inputs have failed for good; back: it brings back an earlier one.
func triedAs(r revision, back string) revision {
	r.Labels[LabelTried], r.Labels[LabelBack] = "t", back
	return r
}
