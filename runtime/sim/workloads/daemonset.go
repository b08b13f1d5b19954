package workloads

import (
	"cmp"
	"slices"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// daemonSets has each DaemonSet have one Pod on each Node that it fits.
func daemonSets(s *State) (out Result) {
	for _, ds := range s.DaemonSets {
		if ds.DeletionTimestamp != nil {
			continue
		}
		before := len(out.Writes)
		by := owner{ds, kindDaemonSet, ds.Spec.Selector}
		r := s.revisionsOf(by, &ds.Spec.Template, &out)
		pods := owned(&out, s.Pods, by, nil)
		if len(out.Writes) > before || r.keep(by, ds.Spec.Template.Labels, appsv1.DefaultDaemonSetUniqueLabelKey, &out) {
			continue // they are looked at as they are then
		}
		d := &daemon{s: s, ds: ds, pods: pods, hash: r.update.Labels[appsv1.DefaultDaemonSetUniqueLabelKey], out: &out, on: map[string][]*corev1.Pod{}}
		d.spec = d.pod("").Spec
		for _, p := range pods {
			if node := daemonNode(p); !finished(p) || p.DeletionTimestamp == nil {
				d.on[node] = append(d.on[node], p)
			}
		}
		for _, pods := range d.on {
			slices.SortStableFunc(pods, func(a, b *corev1.Pod) int {
				return cmp.Or(trueFirst(a.Spec.NodeName != "", b.Spec.NodeName != ""), a.CreationTimestamp.Compare(b.CreationTimestamp.Time))
			})
		}
		if !d.place() {
			d.replace()
		}
		d.writeStatus()
		r.trim(ds.Spec.RevisionHistoryLimit, d.uses, &out)
	}
	return out
}

// daemon is a DaemonSet with its Pods.
type daemon struct {
	s    *State
	ds   *appsv1.DaemonSet
	pods []*corev1.Pod
	hash string         // of the template as it is now
	spec corev1.PodSpec // of its Pods, whatever their Node
	on   map[string][]*corev1.Pod
	out  *Result
}

// daemonNode is the Node that a Pod of a DaemonSet is for.
func daemonNode(p *corev1.Pod) string {
	if p.Spec.NodeName != "" {
		return p.Spec.NodeName
	}
	if a := p.Spec.Affinity; a != nil && a.NodeAffinity != nil && a.NodeAffinity.RequiredDuringSchedulingIgnoredDuringExecution != nil {
		for _, term := range a.NodeAffinity.RequiredDuringSchedulingIgnoredDuringExecution.NodeSelectorTerms {
			for _, f := range term.MatchFields {
				if f.Key == metav1.ObjectNameField && len(f.Values) == 1 {
					return f.Values[0]
				}
			}
		}
	}
	return ""
}

// pod is the one for a Node.
func (d *daemon) pod(node string) *corev1.Pod {
	p := newPod(&d.ds.Spec.Template, d.ds, kindDaemonSet)
	p.Labels = with(p.Labels, appsv1.DefaultDaemonSetUniqueLabelKey, d.hash)
	if generation := d.ds.Annotations[appsv1.DeprecatedTemplateGeneration]; generation != "" {
		p.Labels["pod-template-generation"] = generation
	}
	p.Spec.Tolerations = tolerations(p.Spec.Tolerations, p.Spec.HostNetwork)
	if node == "" {
		return p
	}
	if p.Spec.Affinity == nil {
		p.Spec.Affinity = &corev1.Affinity{}
	}
	if p.Spec.Affinity.NodeAffinity == nil {
		p.Spec.Affinity.NodeAffinity = &corev1.NodeAffinity{}
	}
	// The DaemonSet has looked at its other requirements already.
	p.Spec.Affinity.NodeAffinity.RequiredDuringSchedulingIgnoredDuringExecution = &corev1.NodeSelector{NodeSelectorTerms: []corev1.NodeSelectorTerm{{
		MatchFields: []corev1.NodeSelectorRequirement{{Key: metav1.ObjectNameField, Operator: corev1.NodeSelectorOpIn, Values: []string{node}}},
	}}}
	return p
}

// tolerations are those that each Pod of a DaemonSet has beside its template's.
func tolerations(have []corev1.Toleration, hostNetwork bool) []corev1.Toleration {
	add := func(key string, effect corev1.TaintEffect) {
		one := corev1.Toleration{Key: key, Operator: corev1.TolerationOpExists, Effect: effect}
		if !slices.Contains(have, one) {
			have = append(have, one)
		}
	}
	add(corev1.TaintNodeNotReady, corev1.TaintEffectNoExecute)
	add(corev1.TaintNodeUnreachable, corev1.TaintEffectNoExecute)
	add(corev1.TaintNodeDiskPressure, corev1.TaintEffectNoSchedule)
	add(corev1.TaintNodeMemoryPressure, corev1.TaintEffectNoSchedule)
	add(corev1.TaintNodePIDPressure, corev1.TaintEffectNoSchedule)
	add(corev1.TaintNodeUnschedulable, corev1.TaintEffectNoSchedule)
	if hostNetwork {
		add(corev1.TaintNodeNetworkUnavailable, corev1.TaintEffectNoSchedule)
	}
	return have
}

// wants says whether a Node should have a Pod of the set, keeps whether it may keep one
// that it has: a taint NoSchedule makes nobody go.
func (d *daemon) wants(n *corev1.Node) bool {
	return d.keeps(n) && tolerated(n, d.spec.Tolerations, corev1.TaintEffectNoSchedule)
}

func (d *daemon) keeps(n *corev1.Node) bool {
	return n.DeletionTimestamp == nil && matches(&d.spec, n) && tolerated(n, d.spec.Tolerations, corev1.TaintEffectNoExecute)
}

// place makes the Pods that are missing, and deletes those that have ended, are too many, or
// on a Node that should have none or is gone. It says whether that was to do.
func (d *daemon) place() bool {
	before := len(d.out.Writes)
	for _, n := range d.s.Nodes {
		pods := d.on[n.Name]
		if len(pods) == 0 && d.wants(n) {
			d.out.create(d.pod(n.Name))
		}
		first := d.keeps(n)
		for _, p := range pods {
			if p.DeletionTimestamp != nil {
				continue
			}
			if !first || finished(p) {
				d.out.delete(p)
			} else {
				first = false
			}
		}
	}
	for _, p := range d.pods {
		// Nobody would ever run these; those that ran there go with the Node.
		if p.Spec.NodeName == "" && p.DeletionTimestamp == nil && find(d.s.Nodes, "", daemonNode(p)) == nil {
			d.out.delete(p)
		}
	}
	return len(d.out.Writes) > before
}

// current is the Pod of a Node that is not about to go, or nil.
func (d *daemon) current(node string) *corev1.Pod {
	for _, p := range d.on[node] {
		if p.DeletionTimestamp == nil {
			return p
		}
	}
	return nil
}

// replace deletes Pods of older templates: those that are not available, and of the others
// as many as may be missing.
func (d *daemon) replace() {
	if d.ds.Spec.UpdateStrategy.Type == appsv1.OnDeleteDaemonSetStrategyType {
		return
	}
	wanted, missing := int32(0), int32(0)
	var old []*corev1.Pod
	for _, n := range d.s.Nodes {
		if d.wants(n) {
			wanted++
		}
		p := d.current(n.Name)
		if p == nil {
			if len(d.on[n.Name]) > 0 {
				missing++
			}
			continue
		}
		is, next := available(p, d.ds.Spec.MinReadySeconds, d.s.Now)
		d.out.at(next)
		if !is {
			missing++
		}
		switch outdated := p.Labels[appsv1.DefaultDaemonSetUniqueLabelKey] != d.hash; {
		case outdated && !is:
			d.out.delete(p)
		case outdated:
			old = append(old, p)
		}
	}
	most := int32(1)
	if u := d.ds.Spec.UpdateStrategy.RollingUpdate; u != nil && u.MaxUnavailable != nil {
		most = max(1, scaled(u.MaxUnavailable, wanted, true))
	}
	for _, p := range old[:min(max(0, int(most-missing)), len(old))] {
		d.out.delete(p)
	}
}

// uses says whether a Pod is of a revision.
func (d *daemon) uses(name string) bool {
	for _, pods := range d.on {
		for _, p := range pods {
			if d.ds.Name+"-"+p.Labels[appsv1.DefaultDaemonSetUniqueLabelKey] == name {
				return true
			}
		}
	}
	return false
}

func (d *daemon) writeStatus() {
	status := *d.ds.Status.DeepCopy()
	status.ObservedGeneration = d.ds.Generation
	status.DesiredNumberScheduled, status.CurrentNumberScheduled, status.NumberMisscheduled = 0, 0, 0
	status.UpdatedNumberScheduled = 0
	var first []*corev1.Pod
	for _, n := range d.s.Nodes {
		pods := d.on[n.Name]
		if !d.wants(n) {
			if len(pods) > 0 {
				status.NumberMisscheduled++
			}
			continue
		}
		status.DesiredNumberScheduled++
		if len(pods) == 0 {
			continue
		}
		status.CurrentNumberScheduled++
		first = append(first, pods[0])
		if pods[0].Labels[appsv1.DefaultDaemonSetUniqueLabelKey] == d.hash {
			status.UpdatedNumberScheduled++
		}
	}
	c := d.out.count(first, d.ds.Spec.MinReadySeconds, d.s.Now)
	status.NumberReady, status.NumberAvailable = c.ready, c.available
	status.NumberUnavailable = status.DesiredNumberScheduled - c.available
	if !equality.Semantic.DeepEqual(status, d.ds.Status) {
		changed := d.ds.DeepCopy()
		changed.Status = status
		d.out.updateStatus(changed)
	}
}
