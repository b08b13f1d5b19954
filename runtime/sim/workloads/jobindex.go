package workloads

import (
	"slices"
	"strconv"
	"strings"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/utils/ptr"
)

func (b *batch) indexed() bool {
	return ptr.Deref(b.job.Spec.CompletionMode, batchv1.NonIndexedCompletion) == batchv1.IndexedCompletion
}

// indexOf is the index that a Pod works on; ok is false for one that has none.
func indexOf(p *corev1.Pod) (index int, ok bool) {
	index, err := strconv.Atoi(p.Annotations[batchv1.JobCompletionIndexAnnotation])
	return index, err == nil && index >= 0
}

// indexes are those that are done already, or whose Pods are in a phase; sorted.
func (b *batch) indexes(phase corev1.PodPhase) []int {
	done := parseIntervals(b.job.Status.CompletedIndexes)
	for _, p := range b.pods {
		if index, ok := indexOf(p); ok && p.Status.Phase == phase && !slices.Contains(done, index) {
			done = append(done, index)
		}
	}
	slices.Sort(done)
	return done
}

// missing are the indexes of the next Pods, at most so many; -1 for Jobs that are not
// indexed.
func (b *batch) missing(most int) (out []int) {
	if !b.indexed() {
		return slices.Repeat([]int{-1}, most)
	}
	taken := b.indexes(corev1.PodSucceeded)
	for _, p := range b.active {
		if index, ok := indexOf(p); ok {
			taken = append(taken, index)
		}
	}
	for i := range int(ptr.Deref(b.job.Spec.Completions, 0)) {
		if len(out) == most {
			break
		}
		if !slices.Contains(taken, i) {
			out = append(out, i)
		}
	}
	return out
}

// intervals writes sorted indexes as statuses do: "0-2,4".
func intervals(sorted []int) string {
	var parts []string
	for i := 0; i < len(sorted); {
		last := i
		for last+1 < len(sorted) && sorted[last+1] == sorted[last]+1 {
			last++
		}
		text := strconv.Itoa(sorted[i])
		switch {
		case last == i+1:
			text += "," + strconv.Itoa(sorted[last])
		case last > i:
			text += "-" + strconv.Itoa(sorted[last])
		}
		parts, i = append(parts, text), last+1
	}
	return strings.Join(parts, ",")
}

func parseIntervals(text string) (out []int) {
	for part := range strings.SplitSeq(text, ",") {
		from, to, is := strings.Cut(part, "-")
		if !is {
			to = from
		}
		first, err := strconv.Atoi(from)
		last, err2 := strconv.Atoi(to)
		for i := first; err == nil && err2 == nil && i <= last; i++ {
			out = append(out, i)
		}
	}
	return out
}
