package release

import (
	"testing"
)

// noRender is the reason of a reconcile that did not have to render.
const noRender = "inputs unchanged"

// Inputs that change nothing of the manifest are noted in the record: the Secret of the
// revision, which may be large, is not written. Each process finds them.
func TestDigestsStandBesideTheRevision(t *testing.T) {
	f := newManyFixture(t)
	reconcile := func(value, more, action string, skipped bool) Result {
		t.Helper()
		target := f.target(0, value, "apps")
		target.Values["more"] = more
		res, err := f.Reconcile(t.Context(), target)
		if err != nil || res.Action != action || (res.Reason == noRender) != skipped {
			t.Fatalf("%s (%s), without a render: %v, %v", res.Action, res.Reason, res.Reason == noRender, err)
		}
		return res
	}
	reconcile("1", "a", ActionInstalled, false)
	f.writes = nil
	reconcile("1", "b", ActionUnchanged, false)
	first, err := f.Last(t.Context(), "apps", f.target(0, "1", "apps").Name)
	if err != nil {
		t.Fatal(err)
	}
	rec, err := f.records.get(t.Context(), f.target(0, "1", "apps").Ref())
	if err != nil || rec.Digests == nil || rec.Digests.Inputs == first.Labels[LabelInputs] || rec.Digests.Manifest != first.Labels[LabelManifest] || len(f.writes) > 0 {
		t.Errorf("recorded is %+v, %v; Secrets are written: %q", rec.Digests, err, f.writes)
	}
	reconcile("1", "b", ActionUnchanged, true)
	f.Manager = f.manager()
	reconcile("1", "b", ActionUnchanged, true)
	reconcile("1", "a", ActionUnchanged, false)
	reconcile("2", "a", ActionUpgraded, false)
	if res := reconcile("2", "a", ActionUnchanged, true); res.Revision != 2 {
		t.Errorf("revision %d", res.Revision)
	}
	reconcile("1", "b", ActionUpgraded, false)
	reconcile("1", "c", ActionUnchanged, false)

	// The digests of a release that is gone say nothing of the next one.
	if _, err := f.Uninstall(t.Context(), f.target(0, "1", "apps").Ref(), 0); err != nil {
		t.Fatal(err)
	}
	reconcile("1", "c", ActionInstalled, false)
	reconcile("1", "c", ActionUnchanged, true)
	rec, err = f.records.get(t.Context(), f.target(0, "1", "apps").Ref())
	if err != nil || rec.Digests != nil {
		t.Errorf("recorded is %+v, %v", rec, err)
	}

	// Nor do those of a revision in whose place somebody has put another one.
	reconcile("1", "d", ActionUnchanged, false)
	rec, err = f.records.get(t.Context(), f.target(0, "1", "apps").Ref())
	if err != nil || rec.Digests == nil {
		t.Fatalf("recorded is %+v, %v", rec, err)
	}
	rec.Digests.Of = "another"
	if err := f.records.set(t.Context(), rec); err != nil {
		t.Fatal(err)
	}
	reconcile("1", "d", ActionUnchanged, false)
	reconcile("1", "d", ActionUnchanged, true)
}
