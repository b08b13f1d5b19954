package release

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/starling-operator/starling/modules/chart"
	"github.com/starling-operator/starling/modules/helm"
	"github.com/starling-operator/starling/runtime/effect"
	"github.com/starling-operator/starling/runtime/lane"
)

// A revision that has failed for good says so by a label (LabelTried). The next look at the release sees that, in this
// process or in another one, and brings back the last revision that is deployed, as one more. That one has the digest
// of the inputs that have failed, so they count as done until something changes.

// final says that a revision has failed by what it is: by a hook, by its time, or by an answer of the API server that
// stays. All else is tried again.
func (l *life) final(err error) bool {
	_, trouble := errors.AsType[*lane.Passing](err)
	if l.ctx.Err() != nil {
		_, late := context.Cause(l.ctx).(errTimeout)
		return late && !trouble
	}
	var answer apierrors.APIStatus
	_, hook := errors.AsType[*ended](err)
	return hook || errors.As(err, &answer) && !transient(err)
}

// back is the manifest of the revision that is deployed.
func (r *reconcile) back() (rendering, error) {
	number, err := r.m.lastDeployed(r.ctx, r.t.Ref())
	if err != nil {
		return rendering{}, err
	}
	if number == 0 {
		return rendering{}, fmt.Errorf("revision %d failed, and there is no deployed revision to go back to", r.last.Number)
	}
	rel, _, err := r.m.read(r.ctx, r.t.Ref(), number)
	if err != nil {
		return rendering{}, err
	}
	text := rel.Manifest
	for _, h := range rel.Hooks {
		text += "\n---\n" + h.Manifest
		h.LastRun = helm.HookExecution{}
	}
	objects, err := chart.ObjectsOf(text)
	if err != nil {
		return rendering{}, fmt.Errorf("the stored manifest of revision %d cannot be read: %w", rel.Version, err)
	}
	if err := r.m.limit(r.t, r.m.placed(objects)); err != nil { // what a Secret holds allows nothing
		failed, _, lost := r.m.read(r.ctx, r.t.Ref(), r.last.Number)
		if lost != nil {
			return rendering{}, lost
		}
		return rendering{}, fmt.Errorf("revision %d is not rolled back to revision %d, as %w; it failed: %s", r.last.Number, rel.Version, err, failed.Info.Description)
	}
	return rendering{files: map[string]string{"": text}, objects: objects, chart: rel.Chart, back: rel}, nil
}

// rolledBack tells people that the release is not as its inputs say; "": it is.
func (r *reconcile) rolledBack() string {
	failed, to, is := strings.Cut(r.last.Labels[LabelBack], ".")
	if !is || !r.want.same(r.last) {
		return ""
	}
	why := "it failed"
	if number, err := strconv.Atoi(failed); err == nil {
		if rel, _, err := r.m.read(r.ctx, r.t.Ref(), number); err == nil { // else it is not kept any more
			why = rel.Info.Description
		}
	}
	return fmt.Sprintf("revision %s is rolled back to revision %s: %s; it is tried again once its values or files change, or by: kubectl annotate --overwrite module %s %s=again",
		failed, to, why, r.t.Module, effect.ReconcileAnnotation)
}
