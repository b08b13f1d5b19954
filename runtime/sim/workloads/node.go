package workloads

import (
	"cmp"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/selection"
	"k8s.io/klog/v2"
)

// evictAfter is how long Pods stay on a Node that is not ready, unless they tolerate more
// or less. In a real cluster they get tolerations that say so when they are made.
const evictAfter = 300 * time.Second

// nodeReady says whether a Node is ready; one that says nothing of it is, so that tests
// need not.
func nodeReady(n *corev1.Node) bool {
	c := readiness(n)
	return c == nil || c.Status == corev1.ConditionTrue
}

func readiness(n *corev1.Node) *corev1.NodeCondition {
	for i := range n.Status.Conditions {
		if n.Status.Conditions[i].Type == corev1.NodeReady {
			return &n.Status.Conditions[i]
		}
	}
	return nil
}

func nodeIP(n *corev1.Node) string {
	for _, a := range n.Status.Addresses {
		if a.Type == corev1.NodeInternalIP {
			return a.Address
		}
	}
	return ""
}

// lostNodes deletes the Pods of Nodes that are gone or have a taint that these do not
// tolerate, has those on Nodes that are not ready be not ready, and evicts them after a time.
func lostNodes(s *State) (out Result) {
	if s.Nodeless {
		return out
	}
	for _, p := range s.Pods {
		if p.Spec.NodeName == "" || p.DeletionTimestamp != nil {
			continue
		}
		n := find(s.Nodes, "", p.Spec.NodeName)
		if n == nil {
			out.delete(p)
			continue
		}
		if finished(p) {
			continue
		}
		if at, leaves := s.leaves(p, n); leaves && at.After(s.Now) {
			out.at(at)
		} else if leaves {
			out.delete(p)
			continue
		}
		if c := conditionOf(p, corev1.PodReady); !nodeReady(n) && (c == nil || c.Status == corev1.ConditionTrue) {
			changed := p.DeepCopy()
			s.setPodCondition(&changed.Status, corev1.PodReady, corev1.ConditionFalse, "")
			out.updateStatus(changed)
		}
	}
	return out
}

// leaves says whether a Pod has to leave its Node because of a taint, and when.
func (s *State) leaves(p *corev1.Pod, n *corev1.Node) (at time.Time, leaves bool) {
	for _, t := range taintsOf(n) {
		if t.Effect != corev1.TaintEffectNoExecute {
			continue
		}
		stays, limited := toleratesFor(p, t)
		if !limited {
			continue
		}
		since := s.Now
		switch c := conditionOf(p, corev1.PodReady); {
		case t.TimeAdded != nil:
			since = t.TimeAdded.Time
		case !nodeReady(n) && c != nil && c.Status != corev1.ConditionTrue:
			since = c.LastTransitionTime.Time
		case stays > 0 && nodeReady(n):
			continue // nobody knows since when
		}
		at, leaves = Earlier(at, since.Add(stays)), true
	}
	return at, leaves
}

// toleratesFor is how long a Pod stays on a Node with a taint; limited is false for one that
// stays for ever.
func toleratesFor(p *corev1.Pod, t corev1.Taint) (stays time.Duration, limited bool) {
	if t.Key == corev1.TaintNodeNotReady || t.Key == corev1.TaintNodeUnreachable {
		stays = evictAfter
	}
	for _, one := range p.Spec.Tolerations {
		if !tolerates(one, t) {
			continue
		}
		if one.TolerationSeconds == nil {
			return 0, false
		}
		return time.Duration(*one.TolerationSeconds) * time.Second, true
	}
	return stays, true
}

// scheduler gives each Pod that has none a Node: of those it may run on, the one with
// the fewest Pods, the first by name among equals.
func scheduler(s *State) (out Result) {
	load := map[string]int{}
	for _, p := range s.Pods {
		if !finished(p) {
			load[p.Spec.NodeName]++
		}
	}
	for _, p := range s.Pods {
		c := conditionOf(p, corev1.PodScheduled)
		scheduled := c != nil && c.Status == corev1.ConditionTrue
		if p.DeletionTimestamp != nil || finished(p) || scheduled || len(p.Spec.SchedulingGates) > 0 {
			continue
		}
		changed := p.DeepCopy()
		if p.Spec.NodeName == "" {
			node, why := s.placeFor(p, load)
			if why != "" {
				if c == nil || c.Message != why {
					s.setPodCondition(&changed.Status, corev1.PodScheduled, corev1.ConditionFalse, corev1.PodReasonUnschedulable)
					conditionOf(changed, corev1.PodScheduled).Message = why
					out.updateStatus(changed)
				}
				continue
			}
			if node != "" {
				load[node]++
				changed.Spec.NodeName = node
				out.update(changed)
				continue // its status follows: it has a new version by then
			}
		}
		s.setPodCondition(&changed.Status, corev1.PodScheduled, corev1.ConditionTrue, "")
		conditionOf(changed, corev1.PodScheduled).Message = ""
		out.updateStatus(changed)
	}
	return out
}

// placeFor is the Node for a Pod, "" in a cluster without; why says what the Pod
// waits for.
func (s *State) placeFor(p *corev1.Pod, load map[string]int) (node, why string) {
	for _, v := range p.Spec.Volumes {
		if v.PersistentVolumeClaim == nil {
			continue
		}
		claim := find(s.Claims, p.Namespace, v.PersistentVolumeClaim.ClaimName)
		if claim == nil {
			return "", `persistentvolumeclaim "` + v.PersistentVolumeClaim.ClaimName + `" not found`
		}
		if claim.Status.Phase != corev1.ClaimBound {
			return "", "pod has unbound immediate PersistentVolumeClaims"
		}
	}
	if s.Nodeless {
		return "", ""
	}
	var fit []*corev1.Node
	for _, n := range s.Nodes {
		if n.DeletionTimestamp == nil && matches(&p.Spec, n) &&
			tolerated(n, p.Spec.Tolerations, corev1.TaintEffectNoSchedule) && tolerated(n, p.Spec.Tolerations, corev1.TaintEffectNoExecute) {
			fit = append(fit, n)
		}
	}
	if len(fit) == 0 {
		return "", "no Node is ready for this Pod, and matches its selectors and tolerations"
	}
	return slices.MinFunc(fit, func(a, b *corev1.Node) int {
		return cmp.Or(cmp.Compare(load[a.Name], load[b.Name]), cmp.Compare(a.Name, b.Name))
	}).Name, ""
}

// matches says whether a Node is one of those that a Pod asks for, by its selector and its
// required affinity.
func matches(spec *corev1.PodSpec, n *corev1.Node) bool {
	return labels.SelectorFromSet(spec.NodeSelector).Matches(labels.Set(n.Labels)) && affine(spec.Affinity, n)
}

// taintsOf are the taints of a Node, with those that a cluster gives it for what it is.
func taintsOf(n *corev1.Node) []corev1.Taint {
	out := slices.Clone(n.Spec.Taints)
	if n.Spec.Unschedulable {
		out = append(out, corev1.Taint{Key: corev1.TaintNodeUnschedulable, Effect: corev1.TaintEffectNoSchedule})
	}
	if nodeReady(n) {
		return out
	}
	one := corev1.Taint{Key: corev1.TaintNodeNotReady, Effect: corev1.TaintEffectNoSchedule}
	c := readiness(n)
	if c.Status == corev1.ConditionUnknown {
		one.Key = corev1.TaintNodeUnreachable
	}
	out = append(out, one)
	one.Effect = corev1.TaintEffectNoExecute
	if !c.LastTransitionTime.IsZero() {
		one.TimeAdded = &c.LastTransitionTime
	}
	return append(out, one)
}

// tolerated says whether all taints of a Node with an effect are tolerated.
func tolerated(n *corev1.Node, tolerations []corev1.Toleration, effect corev1.TaintEffect) bool {
	return !slices.ContainsFunc(taintsOf(n), func(t corev1.Taint) bool {
		return t.Effect == effect && !slices.ContainsFunc(tolerations, func(one corev1.Toleration) bool { return tolerates(one, t) })
	})
}

func tolerates(one corev1.Toleration, t corev1.Taint) bool {
	return one.ToleratesTaint(klog.Background(), &t, false)
}

// affine says whether a Node has what a Pod requires: one of the terms.
func affine(a *corev1.Affinity, n *corev1.Node) bool {
	if a == nil || a.NodeAffinity == nil || a.NodeAffinity.RequiredDuringSchedulingIgnoredDuringExecution == nil {
		return true
	}
	fields := labels.Set{metav1.ObjectNameField: n.Name}
	return slices.ContainsFunc(a.NodeAffinity.RequiredDuringSchedulingIgnoredDuringExecution.NodeSelectorTerms, func(term corev1.NodeSelectorTerm) bool {
		return matchesAll(term.MatchExpressions, labels.Set(n.Labels)) && matchesAll(term.MatchFields, fields)
	})
}

var operators = map[corev1.NodeSelectorOperator]selection.Operator{
	corev1.NodeSelectorOpIn: selection.In, corev1.NodeSelectorOpNotIn: selection.NotIn,
	corev1.NodeSelectorOpExists: selection.Exists, corev1.NodeSelectorOpDoesNotExist: selection.DoesNotExist,
	corev1.NodeSelectorOpGt: selection.GreaterThan, corev1.NodeSelectorOpLt: selection.LessThan,
}

func matchesAll(requirements []corev1.NodeSelectorRequirement, set labels.Set) bool {
	for _, r := range requirements {
		one, err := labels.NewRequirement(r.Key, operators[r.Operator], r.Values)
		if err != nil || !one.Matches(set) {
			return false
		}
	}
	return true
}
