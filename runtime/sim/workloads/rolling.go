package workloads

import (
	"cmp"
	"math"
	"slices"
	"strconv"

	appsv1 "k8s.io/api/apps/v1"
)

// newSize is the size of the new ReplicaSet, of that which it has: as large as maxSurge
// allows.
func (r *rollout) newSize(has int32) int32 {
	if r.recreates() {
		return r.replicas()
	}
	most, now := r.replicas()+r.maxSurge(), sizes(r.old)+has
	if now >= most {
		return has
	}
	return min(has+most-now, r.replicas())
}

// roll takes one step of a rolling update: first the new ReplicaSet grows, then the older
// ones shrink by as many Pods as are not needed for the least number of available ones.
func (r *rollout) roll() {
	size := sizeOf(r.new)
	switch {
	case size > r.replicas():
		size = r.replicas()
	case size < r.replicas():
		size = r.newSize(size)
	}
	if r.resize(r.new, size) {
		return
	}
	if sizes(r.old) == 0 {
		return
	}
	least := r.replicas() - r.maxUnavailable()
	missing := sizeOf(r.new) - r.new.Status.AvailableReplicas
	may := sizes(r.all()) - least - missing
	if may <= 0 {
		return
	}
	// Pods that are not available go first: nobody misses them.
	left := map[*appsv1.ReplicaSet]int32{}
	for _, rs := range r.old {
		down := min(may, max(0, sizeOf(rs)-rs.Status.AvailableReplicas))
		left[rs], may = sizeOf(rs)-down, may-down
	}
	spare := -least
	for _, rs := range r.all() {
		spare += rs.Status.AvailableReplicas
	}
	for _, rs := range r.old {
		down := min(max(0, spare), left[rs])
		left[rs], spare = left[rs]-down, spare-down
	}
	for _, rs := range r.old {
		r.resize(rs, left[rs])
	}
}

// scaleDownAll takes all Pods of older templates away; it says whether that was to do.
func (r *rollout) scaleDownAll() (done bool) {
	for _, rs := range r.old {
		done = r.resize(rs, 0) || done
	}
	return done
}

// scale follows a change of the replicas: each ReplicaSet grows or shrinks by its share. It
// says whether there was such a change. While a rollout is paused nobody else looks at the
// sizes, so it does that each time.
func (r *rollout) scale() bool {
	live := slices.DeleteFunc(r.all(), func(rs *appsv1.ReplicaSet) bool { return sizeOf(rs) == 0 })
	if !r.d.Spec.Paused && !slices.ContainsFunc(live, r.wasOfAnotherSize) {
		return false
	}
	switch {
	case len(live) == 0 && r.new != nil:
		return r.resize(r.new, r.replicas())
	case len(live) == 0 && len(r.old) > 0:
		return r.resize(r.old[len(r.old)-1], r.replicas())
	case len(live) == 0:
		return false
	case len(live) == 1:
		return r.rescale(live[0], r.replicas())
	case r.saturated():
		return r.scaleDownAll()
	case r.recreates():
		return false // the old ones go anyhow
	}
	return r.share(live)
}

// wasOfAnotherSize says whether a ReplicaSet was scaled for another number of replicas.
func (r *rollout) wasOfAnotherSize(rs *appsv1.ReplicaSet) bool {
	desired, err := strconv.Atoi(rs.Annotations[desiredAnnotation])
	return err == nil && int32(desired) != r.replicas()
}

// saturated says whether the new ReplicaSet has all Pods that the Deployment wants.
func (r *rollout) saturated() bool {
	return r.new != nil && !r.wasOfAnotherSize(r.new) && sizeOf(r.new) == r.replicas() && r.new.Status.AvailableReplicas == r.replicas()
}

// share gives each ReplicaSet its part of the change, the larger ones first, and the rest to
// the largest. It says whether that was to do.
func (r *rollout) share(live []*appsv1.ReplicaSet) (done bool) {
	most := int32(0)
	if r.replicas() > 0 {
		most = r.replicas() + r.maxSurge()
	}
	add := most - sizes(live)
	if add > 0 {
		slices.Reverse(live) // of two that are equal the newer one grows first
	}
	slices.SortStableFunc(live, func(a, b *appsv1.ReplicaSet) int { return cmp.Compare(sizeOf(b), sizeOf(a)) })
	left := add
	next := make([]int32, len(live))
	for i, rs := range live {
		before, err := strconv.Atoi(rs.Annotations[maximumAnnotation])
		if err != nil || before <= 0 {
			before = int(sizes(live))
		}
		part := int32(math.Round(float64(sizeOf(rs))*float64(most)/float64(before))) - sizeOf(rs)
		if add >= 0 {
			part = max(0, min(part, left))
		} else {
			part = min(0, max(part, left))
		}
		next[i], left = sizeOf(rs)+part, left-part
	}
	next[0] = max(0, next[0]+left)
	for i, rs := range live {
		done = r.rescale(rs, next[i]) || done
	}
	return done
}
