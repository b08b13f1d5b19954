package workloads

import (
	"cmp"
	"maps"
	"slices"
	"strconv"
	"strings"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/utils/ptr"
)

// Annotations of Deployments and their ReplicaSets.
const (
	revisionAnnotation = "deployment.kubernetes.io/revision"
	desiredAnnotation  = "deployment.kubernetes.io/desired-replicas"
	maximumAnnotation  = "deployment.kubernetes.io/max-replicas"
	historyAnnotation  = "deployment.kubernetes.io/revision-history"
)

// rollout is a Deployment with its ReplicaSets.
type rollout struct {
	s   *State
	d   *appsv1.Deployment
	new *appsv1.ReplicaSet   // nil: it must be made
	old []*appsv1.ReplicaSet // oldest first
	out *Result
}

// deployments has each Deployment go on with its rollout, by one step.
func deployments(s *State) (out Result) {
	for _, d := range s.Deployments {
		if d.DeletionTimestamp != nil {
			continue
		}
		before := len(out.Writes)
		r := &rollout{s: s, d: d, out: &out}
		sets := owned(&out, s.ReplicaSets, owner{d, kindDeployment, d.Spec.Selector}, nil)
		if len(out.Writes) > before {
			continue // they are looked at as they are then
		}
		slices.SortStableFunc(sets, func(a, b *appsv1.ReplicaSet) int {
			return cmp.Or(a.CreationTimestamp.Compare(b.CreationTimestamp.Time), cmp.Compare(revisionOf(a), revisionOf(b)))
		})
		for _, rs := range sets {
			if r.new == nil && sameTemplate(&rs.Spec.Template, &d.Spec.Template) {
				r.new = rs
			} else {
				r.old = append(r.old, rs)
			}
		}
		if r.new != nil && r.annotate() {
			continue
		}
		created := r.step()
		if len(out.Writes) == before {
			r.cleanUp()
		}
		r.writeStatus(created)
	}
	return out
}

// step does the next thing that the rollout needs, if there is one. It returns the name of
// the ReplicaSet that it makes, "" for none.
func (r *rollout) step() (created string) {
	switch {
	case r.scale(), r.d.Spec.Paused:
	case r.recreates():
		return r.recreate()
	case r.new == nil:
		return r.create()
	default:
		r.roll()
	}
	return ""
}

// recreate takes all Pods of older templates away, and makes new ones when they are gone.
func (r *rollout) recreate() (created string) {
	switch {
	case r.scaleDownAll(), r.oldRuns():
	case r.new == nil:
		return r.create()
	default:
		r.resize(r.new, r.replicas())
	}
	return ""
}

func (r *rollout) replicas() int32 { return ptr.Deref(r.d.Spec.Replicas, 1) }

func (r *rollout) recreates() bool {
	return r.d.Spec.Strategy.Type == appsv1.RecreateDeploymentStrategyType
}

func (r *rollout) all() []*appsv1.ReplicaSet {
	all := slices.Clone(r.old)
	if r.new != nil {
		all = append(all, r.new)
	}
	return all
}

// oldRuns says whether Pods of older templates are there.
func (r *rollout) oldRuns() bool {
	return slices.ContainsFunc(r.old, func(rs *appsv1.ReplicaSet) bool {
		return rs.Status.Replicas > 0 || slices.ContainsFunc(controlledBy(r.s.Pods, rs), func(p *corev1.Pod) bool { return !finished(p) })
	})
}

// sameTemplate compares templates, the label with their hash aside.
func sameTemplate(a, b *corev1.PodTemplateSpec) bool {
	a, b = a.DeepCopy(), b.DeepCopy()
	delete(a.Labels, appsv1.DefaultDeploymentUniqueLabelKey)
	delete(b.Labels, appsv1.DefaultDeploymentUniqueLabelKey)
	return equality.Semantic.DeepEqual(a, b)
}

// create makes the ReplicaSet of the template; it returns its name.
func (r *rollout) create() string {
	d := r.d
	hash := freeHash(d, d.Spec.Template, ptr.Deref(d.Status.CollisionCount, 0), r.s.ReplicaSets)
	rs := &appsv1.ReplicaSet{
		TypeMeta: typeMeta(kindReplicaSet),
		ObjectMeta: metav1.ObjectMeta{
			Name: d.Name + "-" + hash, Namespace: d.Namespace,
			Labels:          with(d.Spec.Template.Labels, appsv1.DefaultDeploymentUniqueLabelKey, hash),
			OwnerReferences: []metav1.OwnerReference{*metav1.NewControllerRef(d, kindDeployment)},
		},
		Spec: appsv1.ReplicaSetSpec{MinReadySeconds: d.Spec.MinReadySeconds, Template: *d.Spec.Template.DeepCopy()},
	}
	rs.Spec.Selector = d.Spec.Selector.DeepCopy()
	rs.Spec.Selector.MatchLabels = with(rs.Spec.Selector.MatchLabels, appsv1.DefaultDeploymentUniqueLabelKey, hash)
	rs.Spec.Template.Labels = with(rs.Spec.Template.Labels, appsv1.DefaultDeploymentUniqueLabelKey, hash)
	rs.Annotations = r.annotations(nil, r.lastRevision()+1)
	rs.Spec.Replicas = new(r.newSize(0))
	r.out.create(rs)
	return rs.Name
}

// annotations are those of a ReplicaSet: the Deployment's, its revision, and its size.
func (r *rollout) annotations(have map[string]string, revision int64) map[string]string {
	out := with(have, revisionAnnotation, strconv.FormatInt(revision, 10))
	for key, value := range r.d.Annotations {
		switch key {
		case corev1.LastAppliedConfigAnnotation, revisionAnnotation, desiredAnnotation, maximumAnnotation, historyAnnotation:
		default:
			out[key] = value
		}
	}
	r.annotateSize(out)
	return out
}

func (r *rollout) annotateSize(annotations map[string]string) {
	annotations[desiredAnnotation] = strconv.Itoa(int(r.replicas()))
	annotations[maximumAnnotation] = strconv.Itoa(int(r.replicas() + r.maxSurge()))
}

// annotate writes the revision to the new ReplicaSet and to the Deployment. An older one
// that has become the new one, by a rollback, gets a new revision.
func (r *rollout) annotate() bool {
	revision := max(revisionOf(r.new), r.lastRevision()+1)
	wanted := r.annotations(r.new.Annotations, revision)
	// The sizes change with the scale, which looks at the old ones.
	for _, key := range []string{desiredAnnotation, maximumAnnotation} {
		if value, ok := r.new.Annotations[key]; ok {
			wanted[key] = value
		}
	}
	if was := r.new.Annotations[revisionAnnotation]; was != "" && revision > revisionOf(r.new) {
		wanted[historyAnnotation] = strings.TrimPrefix(r.new.Annotations[historyAnnotation]+","+was, ",")
	}
	if !maps.Equal(wanted, r.new.Annotations) || r.new.Spec.MinReadySeconds != r.d.Spec.MinReadySeconds {
		rs := r.new.DeepCopy()
		rs.Annotations, rs.Spec.MinReadySeconds = wanted, r.d.Spec.MinReadySeconds
		r.out.update(rs)
		return true
	}
	if text := strconv.FormatInt(revision, 10); r.d.Annotations[revisionAnnotation] != text {
		d := r.d.DeepCopy()
		d.Annotations = with(d.Annotations, revisionAnnotation, text)
		r.out.updateStatus(d) // which leaves the generation as it is
		return true
	}
	return false
}

func revisionOf(rs *appsv1.ReplicaSet) int64 {
	n, _ := strconv.ParseInt(rs.Annotations[revisionAnnotation], 10, 64) // 0 without one
	return n
}

// lastRevision is the highest of the older ReplicaSets.
func (r *rollout) lastRevision() (last int64) {
	for _, rs := range r.old {
		last = max(last, revisionOf(rs))
	}
	return last
}

// resize writes how many Pods a ReplicaSet has; it says whether that was to do.
func (r *rollout) resize(rs *appsv1.ReplicaSet, size int32) bool {
	return size != sizeOf(rs) && r.rescale(rs, size)
}

// rescale does so, too, when the sizes of the Deployment alone have changed.
func (r *rollout) rescale(rs *appsv1.ReplicaSet, size int32) bool {
	changed := rs.DeepCopy()
	changed.Spec.Replicas = &size
	if changed.Annotations == nil {
		changed.Annotations = map[string]string{}
	}
	r.annotateSize(changed.Annotations)
	if size == sizeOf(rs) && maps.Equal(changed.Annotations, rs.Annotations) {
		return false
	}
	r.out.update(changed)
	return true
}

func sizeOf(rs *appsv1.ReplicaSet) int32 { return ptr.Deref(rs.Spec.Replicas, 1) }

func sizes(sets []*appsv1.ReplicaSet) (n int32) {
	for _, rs := range sets {
		n += sizeOf(rs)
	}
	return n
}

// maxSurge is how many Pods may be there beyond the replicas.
func (r *rollout) maxSurge() int32 {
	if u := r.d.Spec.Strategy.RollingUpdate; u != nil && !r.recreates() {
		return scaled(u.MaxSurge, r.replicas(), true)
	}
	return 0
}

// maxUnavailable is how many Pods may be missing; at least one may when none may surge.
func (r *rollout) maxUnavailable() int32 {
	u := r.d.Spec.Strategy.RollingUpdate
	if u == nil || r.recreates() || r.replicas() == 0 {
		return 0
	}
	n := scaled(u.MaxUnavailable, r.replicas(), false)
	if n == 0 && r.maxSurge() == 0 {
		n = 1
	}
	return min(n, r.replicas())
}

// scaled is a number, or so many percent of a total.
func scaled(v *intstr.IntOrString, total int32, up bool) int32 {
	if v == nil {
		return 0
	}
	n, err := intstr.GetScaledValueFromIntOrPercent(v, int(total), up)
	if err != nil {
		return 0
	}
	return int32(n)
}

// cleanUp deletes ReplicaSets that are beyond the history, once the rollout is complete, or
// while it is paused.
func (r *rollout) cleanUp() {
	if !r.d.Spec.Paused && (r.new == nil || !r.complete(&r.d.Status)) {
		return
	}
	old := slices.SortedStableFunc(slices.Values(r.old), func(a, b *appsv1.ReplicaSet) int { return cmp.Compare(revisionOf(a), revisionOf(b)) })
	for _, rs := range old[:max(0, len(old)-int(ptr.Deref(r.d.Spec.RevisionHistoryLimit, 10)))] {
		if sizeOf(rs) == 0 && rs.Status.Replicas == 0 && rs.DeletionTimestamp == nil && rs.Generation <= rs.Status.ObservedGeneration {
			r.out.delete(rs)
		}
	}
}
