// Package owned tells whether anybody has changed what one manager owns of an object, from
// metadata.managedFields alone: no values are read and none are compared.
//
// The API server notes under each manager the fields that it has written last. Somebody else who gives such a field
// another value takes it over; the same value again, or a field beside, leaves the entry as it is. So a digest of the
// entry differs when a value does (decision 32 has the cases that were measured, and those in which this is not so).
package owned

import (
	"bytes"
	"cmp"
	"crypto/sha256"
	"fmt"
	"math"
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/structured-merge-diff/v6/fieldpath"
)

// Digest stands for the fields that a manager owns of an object. The zero Digest says that
// nothing is known. Compare two with [Digest.Same].
type Digest [16]byte

// handover is a field that a controller of Kubernetes takes over where it is told to.
type handover struct {
	at                   fieldpath.Path
	manager, subresource string
}

var handovers = []handover{
	// A HorizontalPodAutoscaler writes the subresource scale.
	{fieldpath.MakePathOrDie("spec", "replicas"), "kube-controller-manager", "scale"},
	// The rules of a ClusterRole with an aggregationRule.
	{fieldpath.MakePathOrDie("rules"), "clusterrole-aggregation-controller", ""},
}

// The last byte of a digest says who owns the field of a handover, the others stand for all other
// fields. No kind of Kubernetes has two such fields; of a custom kind the first counts.
const handoverByte = len(Digest{}) - 1

const (
	ownedByNobody = iota
	ownedByManager
	handedOver
	ownedByOthers
)

// Same says whether seen shows no change since d. Somebody who comes to own spec.replicas changes
// nothing if d did not own it, and neither does a HorizontalPodAutoscaler; the same goes for the
// rules of a ClusterRole and the controller that gathers them.
func (d Digest) Same(seen Digest) bool {
	if [handoverByte]byte(d[:]) != [handoverByte]byte(seen[:]) {
		return false
	}
	by := seen[handoverByte]
	return d[handoverByte] != ownedByManager || by == ownedByManager || by == handedOver
}

// Stable is the same for most pairs of digests that are [Digest.Same], for sums over many objects.
// Not so when an autoscaler has come to own spec.replicas that d did not own.
func (d Digest) Stable() Digest {
	switch d[handoverByte] {
	case handedOver:
		d[handoverByte] = ownedByManager
	case ownedByOthers:
		d[handoverByte] = ownedByNobody
	}
	return d
}

// Of returns the digest of what manager owns, by the entries of metadata.managedFields. It covers all entries of the
// manager but those of subresources, without times and API versions; fields at or below the paths of ignore do not
// count. false: there is no such entry. Somebody has cleared managedFields, or the API server keeps none for the kind.
func Of(fields []metav1.ManagedFieldsEntry, manager string, ignore []Path) (Digest, bool) {
	sets := map[metav1.ManagedFieldsOperationType]*fieldpath.Set{}
	for i := range fields {
		e := &fields[i]
		if e.Manager != manager || e.Subresource != "" {
			continue
		}
		set := setOf(e)
		if set == nil {
			continue
		}
		if before := sets[e.Operation]; before != nil {
			set = set.Union(before)
		}
		sets[e.Operation] = set
	}
	if len(sets) == 0 {
		return Digest{}, false
	}
	sum := sha256.New()
	for _, operation := range []metav1.ManagedFieldsOperationType{metav1.ManagedFieldsOperationApply, metav1.ManagedFieldsOperationUpdate} {
		set := without(sets[operation], ignore)
		if set == nil || set.Empty() {
			continue
		}
		text, err := set.ToJSON() // sorted
		if err != nil {
			return Digest{}, false
		}
		fmt.Fprintf(sum, "%s %d ", operation, len(text))
		sum.Write(text)
	}
	d := Digest(sum.Sum(nil))
	for _, h := range handovers {
		if slices.ContainsFunc(ignore, pathOf(h.at).within) {
			continue
		}
		if d[handoverByte] = h.by(fields, manager); d[handoverByte] != ownedByNobody {
			return d, true
		}
	}
	d[handoverByte] = ownedByNobody
	return d, true
}

// HandedOver are the fields of an object that controllers have taken over.
func HandedOver(fields []metav1.ManagedFieldsEntry) []Path { return Unchanged(fields, nil) }

// Finished says whether a Job has finished. A status without conditions is that of one that has not; a
// Job that is suspended counts as finished.
func Finished(fields []metav1.ManagedFieldsEntry) bool {
	return slices.ContainsFunc(fields, func(e metav1.ManagedFieldsEntry) bool {
		return e.Subresource == "status" && has(&e, conditionsPath)
	})
}

// Takers returns the other managers of an object, the one that has written last first, without
// those that write its status only.
func Takers(fields []metav1.ManagedFieldsEntry, manager string) []string {
	others := slices.DeleteFunc(slices.Clone(fields), func(e metav1.ManagedFieldsEntry) bool {
		return e.Manager == manager && e.Subresource == "" || e.Subresource == "status" || e.Manager == ""
	})
	slices.SortStableFunc(others, func(a, b metav1.ManagedFieldsEntry) int {
		return cmp.Or(cmp.Compare(seconds(b.Time), seconds(a.Time)), cmp.Compare(a.Manager, b.Manager))
	})
	var names []string
	for _, e := range others {
		if !slices.Contains(names, e.Manager) {
			names = append(names, e.Manager)
		}
	}
	return names
}

// seconds is a time as managedFields keeps it; an entry without one is the oldest.
func seconds(t *metav1.Time) int64 {
	if t == nil {
		return math.MinInt64
	}
	return t.Unix()
}

var conditionsPath = fieldpath.MakePathOrDie("status", "conditions")

// by says who owns the field.
func (h handover) by(fields []metav1.ManagedFieldsEntry, manager string) (by byte) {
	for i := range fields {
		e := &fields[i]
		if !has(e, h.at) {
			continue
		}
		switch {
		case e.Manager == manager && e.Subresource == "":
			return ownedByManager
		case h.isOf(e, fields):
			by = handedOver
		case by == ownedByNobody:
			by = ownedByOthers
		}
	}
	return by
}

// isOf says whether an entry is that of the controller. Where the controllers of Kubernetes run in
// another program, as in k3s, the manager has that name: it writes the status of the object, too.
func (h handover) isOf(e *metav1.ManagedFieldsEntry, fields []metav1.ManagedFieldsEntry) bool {
	if e.Subresource != h.subresource {
		return false
	}
	return e.Manager == h.manager || h.subresource != "" && slices.ContainsFunc(fields, func(other metav1.ManagedFieldsEntry) bool {
		return other.Manager == e.Manager && other.Subresource == "status"
	})
}

// has says whether an entry holds a path. The text is searched for the last field of the path
// first, as most entries have none such.
func has(e *metav1.ManagedFieldsEntry, path fieldpath.Path) bool {
	field := *path[len(path)-1].FieldName
	return e.FieldsV1 != nil && bytes.Contains(e.FieldsV1.GetRawBytes(), []byte(`"f:`+field+`"`)) && hasIn(setOf(e), path)
}

// hasIn says whether a set holds a path, or something below it.
func hasIn(set *fieldpath.Set, path fieldpath.Path) bool {
	return set != nil && (set.Has(path) || !below(set, path).Empty())
}

// below is the part of a set below a path.
func below(set *fieldpath.Set, path fieldpath.Path) *fieldpath.Set {
	for _, e := range path {
		set = set.WithPrefix(e)
	}
	return set
}

// setOf reads the fields of an entry; nil: they cannot be read.
func setOf(e *metav1.ManagedFieldsEntry) *fieldpath.Set {
	if e.FieldsV1 == nil {
		return nil
	}
	set := &fieldpath.Set{}
	if set.FromJSON(e.FieldsV1.GetRawReader()) != nil {
		return nil
	}
	return set
}

// ofManager is what a manager owns of an object, but for subresources, and what all others own.
func ofManager(fields []metav1.ManagedFieldsEntry, manager string) (ours, theirs *fieldpath.Set) {
	ours, theirs = fieldpath.NewSet(), fieldpath.NewSet()
	for i := range fields {
		if set := setOf(&fields[i]); set != nil && fields[i].Manager == manager && fields[i].Subresource == "" {
			ours = ours.Union(set)
		} else if set != nil {
			theirs = theirs.Union(set)
		}
	}
	return ours, theirs
}

// without returns the fields of a set that are neither ignored nor those of a handover.
func without(set *fieldpath.Set, ignore []Path) *fieldpath.Set {
	apart := func(at fieldpath.Path) bool {
		return slices.ContainsFunc(handovers, func(h handover) bool { return h.at.Equals(at) })
	}
	if set == nil || len(ignore) == 0 && !slices.ContainsFunc(handovers, func(h handover) bool { return set.Has(h.at) }) {
		return set
	}
	out := fieldpath.NewSet()
	set.Iterate(func(at fieldpath.Path) {
		if !apart(at) && !slices.ContainsFunc(ignore, func(p Path) bool { return p.covers(at) }) {
			out.Insert(at.Copy())
		}
	})
	return out
}
