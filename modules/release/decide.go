package release

import (
	"fmt"
	"strings"
	"time"

	"github.com/starling-operator/starling/modules/chart"
	"github.com/starling-operator/starling/modules/helm"
	"github.com/starling-operator/starling/runtime/effect"
)

// Labels on the release beside those of its instance and its module (Helm keeps them on the Secret of each revision).
const (
	// LabelInputs is the digest of all that went into the render; it begins with inputsLookup where that looked
	// something up.
	LabelInputs = "starling.dev/inputs"
	// LabelManifest is the digest of what the chart renders to.
	LabelManifest = "starling.dev/manifest"
	// LabelChart is the digest of the chart.
	LabelChart = "starling.dev/chart"
	// LabelTried is on a revision that has failed for good: a digest of how it was tried. It is on the revision that takes
	// its place, too, with LabelBack: the numbers of the one that has failed, and of the one that was brought back.
	LabelTried = "starling.dev/tried"
	LabelBack  = "starling.dev/rolled-back"
)

// inputsLookup begins LabelInputs when the render looked up objects in the cluster: only another render can tell
// whether they hold what they held (docs/decisions/0003).
const inputsLookup = "lookup"

// step is what Reconcile does next.
type step string

const (
	// stepNothing: the chart and its inputs are those of the last revision. Its objects are not looked at.
	stepNothing step = "nothing"
	// stepRender: only the rendered manifest can tell whether something changed.
	stepRender step = "render"
	// stepNote: the manifest is the same, its inputs are not: note the new digest
	// in the record, so that the next time needs no render.
	stepNote step = "note"
	// stepInstall: there is no release.
	stepInstall step = "install"
	// stepReplace: the release was uninstalled and its history kept; install after it.
	stepReplace step = "replace"
	// stepUpgrade: a new revision is due.
	stepUpgrade step = "upgrade"
	// stepRollback: the last revision has failed, and the last good one takes its place.
	stepRollback step = "rollback"
	// stepRecover: the last revision is one that a process died on, or not the only one that is deployed; mark it
	// failed, or the others superseded.
	stepRecover step = "recover"
	// stepFinishUninstall: an uninstall was cut off; end it, then look again.
	stepFinishUninstall step = "finish-uninstall"
	// stepRefuse: the release is not ours to touch. stepWait: somebody works on it with helm. stepOlder: a process with a
	// newer module tree has made it of another chart.
	stepRefuse step = "refuse"
	stepWait   step = "wait"
	stepOlder  step = "older"
)

// revision is what the labels of a release's newest Secret tell.
type revision struct {
	// Number is Helm's revision; 0 means that there is no release.
	Number int
	Status helm.Status
	Labels map[string]string
	// Also are older revisions that are deployed by their labels, too: a write of Helm's that was to supersede them
	// has failed.
	Also []int
	// Whole: an uninstall has begun, and has deleted nothing.
	Whole bool
	// UID is that of the Secret, Made is when that was made.
	UID  string
	Made time.Time
}

// want is what the release should carry.
type want struct {
	Instance, Module string
	// Inputs is the digest of the inputs, Chart that of the chart alone.
	Inputs, Chart string
	// Rendered says that Manifest and Lookups are known.
	Rendered bool
	// Manifest is the digest of the rendered chart.
	Manifest string
	// Lookups is the digest of what the render read from the cluster; "" where it read nothing.
	Lookups string
	// Adopt takes over a release that belongs to no starling. Now tells whether helm still works on one.
	Adopt bool
	Now   time.Time
	// Older is that of [Options].
	Older string
	// Tried is LabelTried of a revision that fails, "" without rollbacks.
	Tried string
	// Again: somebody asks for another try.
	Again bool
}

// same says that a revision has the inputs, as far as is known.
func (w want) same(last revision) bool {
	return last.Labels[LabelInputs] == w.inputsLabel()
}

// tried says that the inputs have failed already, and nothing has changed since.
func (w want) tried(last revision) bool {
	return w.Tried != "" && !w.Again && last.Labels[LabelTried] == w.Tried && w.same(last)
}

// inputsLabel is the value that LabelInputs should have.
func (w want) inputsLabel() string {
	if w.Lookups == "" {
		return w.Inputs
	}
	return (inputsLookup + "." + chart.Digest(w.Inputs+w.Lookups))[:chart.DigestLength]
}

// number is that of the next revision. A try with the inputs of the last one, which has failed, is the same revision,
// also with other random values: else failures would leave nothing to roll back to.
func (w want) number(last revision) int {
	again := w.same(last) && last.Labels[LabelChart] == w.Chart
	if w.tried(last) { // this one brings back an earlier one, or tries to once more
		again = last.Labels[LabelBack] != ""
	}
	if again && last.Status == helm.StatusFailed {
		return last.Number
	}
	return last.Number + 1
}

// owner says, for people, who a release belongs to when it is not (instance, module); "" when it is theirs.
func owner(labels map[string]string, instance, module string) string {
	switch of := labels[effect.InstanceLabel]; {
	case of == "":
		return "no starling (it was installed with helm or by another operator)"
	case of != instance:
		return fmt.Sprintf("the starling instance %s", of)
	case labels[effect.ModuleLabel] != module:
		return fmt.Sprintf("module %s", labels[effect.ModuleLabel])
	}
	return ""
}

// decide names the next step for a release and why. It is a pure function: last is what is there, w what should be. A
// caller carries the step out and, unless it ends the reconcile, asks again.
func decide(last revision, w want) (step, string) {
	if last.Number == 0 {
		return rendered(w, stepInstall, "not installed")
	}
	// An instance that had the module has given the release back.
	back := last.Labels[effect.InstanceLabel] == "" && last.Labels[effect.ModuleLabel] == w.Module
	if who := owner(last.Labels, w.Instance, w.Module); who != "" && !back {
		if !w.Adopt || last.Labels[effect.InstanceLabel] != "" {
			return stepRefuse, who
		}
		switch last.Status {
		case helm.StatusDeployed, helm.StatusFailed, helm.StatusSuperseded:
			return rendered(w, stepUpgrade, "taken over from helm")
		case helm.StatusUninstalled:
			return rendered(w, stepReplace, "uninstalled with helm, and its history kept")
		case helm.StatusUninstalling:
			return stepWait, "is uninstalling with helm: if that was cut off, end it with helm uninstall"
		}
		if end := last.Made.Add(mostHelm); !w.Again && w.Now.Before(end) {
			return stepWait, fmt.Sprintf("is %s: helm works on revision %d of it, or was cut off; it is taken over once that has ended, or at %s, "+
				"or at once by: kubectl annotate --overwrite module %s %s=again", last.Status, last.Number, end.UTC().Format(time.TimeOnly+" MST"), w.Module, effect.ReconcileAnnotation)
		}
		return stepRecover, fmt.Sprintf("helm has left it %s", last.Status)
	}
	if of := last.Labels[LabelChart]; w.Older != "" && !back && of != "" && of != w.Chart {
		return stepOlder, "has the chart of a newer module tree, and stays as it is until " + w.Older
	}
	switch last.Status {
	case helm.StatusUninstalling:
		if last.Whole {
			return stepRecover, "its uninstall has deleted nothing yet"
		}
		return stepFinishUninstall, "an uninstall was cut off"
	case helm.StatusUninstalled:
		return rendered(w, stepReplace, "uninstalled with its history kept")
	case helm.StatusFailed:
		if w.tried(last) {
			return rendered(w, stepRollback, "the last revision failed, and is not tried again")
		}
		return rendered(w, stepUpgrade, "the last revision failed")
	case helm.StatusSuperseded:
		return rendered(w, stepUpgrade, "the last revision is not deployed")
	case helm.StatusDeployed:
		if len(last.Also) > 0 {
			return stepRecover, fmt.Sprintf("revision %d is deployed, too", last.Also[0])
		}
	default: // pending-install, -upgrade, -rollback, unknown
		return stepRecover, fmt.Sprintf("the last revision is %s and nobody works on it", last.Status)
	}
	if back { // its objects get the labels of this instance, too
		return rendered(w, stepUpgrade, "given back by another instance")
	}
	if last.Labels[LabelBack] != "" && w.same(last) && !w.tried(last) {
		return rendered(w, stepUpgrade, "what was rolled back is tried again")
	}
	if last.Labels[LabelInputs] == w.Inputs {
		return stepNothing, "inputs unchanged"
	}
	if !w.Rendered {
		return stepRender, "inputs changed"
	}
	if w.same(last) { // a manifest that differs does so by chance
		return stepNothing, "inputs and lookups unchanged"
	}
	if last.Labels[LabelManifest] != w.Manifest {
		return stepUpgrade, "manifest changed"
	}
	if w.Lookups != "" && strings.HasPrefix(last.Labels[LabelInputs], inputsLookup+".") {
		return stepNothing, "manifest unchanged" // the next change of it finds another digest all the same
	}
	return stepNote, "inputs changed, manifest unchanged"
}

// rendered is next once the manifest is known, and stepRender before.
func rendered(w want, next step, why string) (step, string) {
	if !w.Rendered {
		return stepRender, why
	}
	return next, why
}
