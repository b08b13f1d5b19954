package workloads

import (
	"slices"
	"strconv"
	"strings"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/utils/ptr"
)

// revisionHash is the label of a StatefulSet's revisions that holds their hash.
const revisionHash = "controller.kubernetes.io/hash"

// ordered is a StatefulSet with what belongs to it.
type ordered struct {
	s         *State
	set       *appsv1.StatefulSet
	revisions revisions
	pods      []*corev1.Pod
	replicas  []*corev1.Pod // by ordinal; nil: it is missing
	condemned []*corev1.Pod // beyond the replicas
	current   string        // the revision of Pods below the partition
	out       *Result
}

// statefulSets has each StatefulSet go on by one step.
func statefulSets(s *State) (out Result) {
	for _, set := range s.StatefulSets {
		if set.DeletionTimestamp != nil {
			continue
		}
		before := len(out.Writes)
		by := owner{set, kindStatefulSet, set.Spec.Selector}
		o := &ordered{s: s, set: set, revisions: s.revisionsOf(by, &set.Spec.Template, &out), out: &out}
		o.pods = owned(&out, s.Pods, by, func(name string) bool { return o.ordinal(name) >= 0 })
		if len(out.Writes) > before || o.revisions.keep(by, set.Spec.Template.Labels, revisionHash, &out) {
			continue // they are looked at as they are then
		}
		o.sort()
		o.giveClaims()
		o.step()
		o.writeStatus()
		o.revisions.trim(set.Spec.RevisionHistoryLimit, o.uses, &out)
	}
	return out
}

func (o *ordered) start() int {
	if o.set.Spec.Ordinals == nil {
		return 0
	}
	return int(o.set.Spec.Ordinals.Start)
}

// ordinal is the number in the name of a Pod, -1 for one that has none.
func (o *ordered) ordinal(name string) int {
	text, of := strings.CutPrefix(name, o.set.Name+"-")
	if n, err := strconv.Atoi(text); of && err == nil {
		return n
	}
	return -1
}

// sort finds the Pods by their names.
func (o *ordered) sort() {
	o.replicas = make([]*corev1.Pod, ptr.Deref(o.set.Spec.Replicas, 1))
	for _, p := range o.pods {
		switch n := o.ordinal(p.Name); {
		case n >= o.start() && n < o.start()+len(o.replicas):
			o.replicas[n-o.start()] = p
		default:
			o.condemned = append(o.condemned, p)
		}
	}
	slices.SortFunc(o.condemned, func(a, b *corev1.Pod) int { return o.ordinal(b.Name) - o.ordinal(a.Name) })
	if o.current = o.set.Status.CurrentRevision; find(o.revisions.list, o.set.Namespace, o.current) == nil {
		o.current = o.revisions.update.Name
	}
}

// healthy says whether a Pod has what the next one waits for.
func (o *ordered) healthy(p *corev1.Pod) bool {
	is, next := available(p, o.set.Spec.MinReadySeconds, o.s.Now)
	o.out.at(next)
	return is && p.DeletionTimestamp == nil
}

// step makes Pods in order, takes those away that are too many, and replaces those of
// older revisions: one after the other, unless the set says Parallel.
func (o *ordered) step() {
	inOrder := o.set.Spec.PodManagementPolicy != appsv1.ParallelPodManagement
	for i, p := range o.replicas {
		switch {
		case p == nil:
			o.create(i)
		case finished(p) && p.DeletionTimestamp == nil:
			o.out.delete(p) // the next step makes it anew
		case p.Status.Phase == corev1.PodPending:
			o.claimVolumes(p)
		}
		if inOrder && (p == nil || !o.healthy(p)) {
			return
		}
	}
	for i, p := range o.condemned {
		// In order a Pod that is not healthy goes only when it is the last such one.
		waits := p.DeletionTimestamp != nil || !o.healthy(p) && slices.ContainsFunc(o.condemned[i+1:], o.unhealthy)
		if inOrder && waits {
			return
		}
		if p.DeletionTimestamp == nil {
			o.out.delete(p)
		}
		if inOrder {
			return
		}
	}
	if o.set.Spec.UpdateStrategy.Type != appsv1.OnDeleteStatefulSetStrategyType {
		o.replace()
	}
}

func (o *ordered) unhealthy(p *corev1.Pod) bool { return !o.healthy(p) }

// replace deletes Pods of older revisions, the last ones first: those that are not healthy,
// and of the others as many as may be missing. In order all are healthy here.
func (o *ordered) replace() {
	may := 1
	if u := o.set.Spec.UpdateStrategy.RollingUpdate; u != nil && u.MaxUnavailable != nil {
		may = max(1, int(scaled(u.MaxUnavailable, int32(len(o.replicas)), false)))
	}
	for _, p := range o.replicas {
		if p == nil || !o.healthy(p) {
			may--
		}
	}
	for i := len(o.replicas) - 1; i >= o.partition(); i-- {
		p := o.replicas[i]
		if p == nil || p.DeletionTimestamp != nil || finished(p) || revisionName(p) == o.revisions.update.Name {
			continue
		}
		if healthy := o.healthy(p); !healthy {
			o.out.delete(p)
		} else if may > 0 {
			o.out.delete(p)
			may--
		}
	}
}

func (o *ordered) partition() int {
	if u := o.set.Spec.UpdateStrategy.RollingUpdate; u != nil {
		return int(ptr.Deref(u.Partition, 0))
	}
	return 0
}

func revisionName(p *corev1.Pod) string { return p.Labels[appsv1.ControllerRevisionHashLabelKey] }

// create makes a Pod, and the claims that it mounts where they are missing.
func (o *ordered) create(i int) {
	template, revision := &o.set.Spec.Template, o.revisions.update.Name
	if i < o.partition() && o.current != revision {
		if old := find(o.revisions.list, o.set.Namespace, o.current); old != nil {
			template, revision = templateOf(old), old.Name
		}
	}
	p := newPod(template, o.set, kindStatefulSet)
	index := strconv.Itoa(o.start() + i)
	p.GenerateName, p.Name = o.set.Name+"-", o.set.Name+"-"+index
	p.Labels = with(p.Labels, appsv1.StatefulSetPodNameLabel, p.Name)
	p.Labels[appsv1.PodIndexLabel] = index
	p.Labels[appsv1.ControllerRevisionHashLabelKey] = revision
	p.Spec.Hostname, p.Spec.Subdomain = p.Name, o.set.Spec.ServiceName
	o.mountClaims(p)
	o.claimVolumes(p)
	o.out.create(p)
}

// uses says whether Pods, or the status, name a revision.
func (o *ordered) uses(name string) bool {
	if name == o.current {
		return true
	}
	for _, p := range o.pods {
		if revisionName(p) == name {
			return true
		}
	}
	return false
}

func (o *ordered) writeStatus() {
	status := *o.set.Status.DeepCopy()
	status.ObservedGeneration, status.CollisionCount = o.set.Generation, new(ptr.Deref(o.set.Status.CollisionCount, 0))
	status.CurrentRevision, status.UpdateRevision = o.current, o.revisions.update.Name
	c := o.out.count(o.pods, o.set.Spec.MinReadySeconds, o.s.Now)
	status.Replicas, status.ReadyReplicas, status.AvailableReplicas = c.all, c.ready, c.available
	status.CurrentReplicas, status.UpdatedReplicas = 0, 0
	for _, p := range o.pods {
		if p.DeletionTimestamp != nil {
			continue
		}
		if revisionName(p) == status.CurrentRevision {
			status.CurrentReplicas++
		}
		if revisionName(p) == status.UpdateRevision {
			status.UpdatedReplicas++
		}
	}
	all := int32(len(o.replicas))
	if status.UpdatedReplicas == all && status.ReadyReplicas == all && status.Replicas == all {
		status.CurrentReplicas, status.CurrentRevision = status.UpdatedReplicas, status.UpdateRevision
	}
	if !equality.Semantic.DeepEqual(status, o.set.Status) {
		changed := o.set.DeepCopy()
		changed.Status = status
		o.out.updateStatus(changed)
	}
}
