package workloads

import (
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/types"
)

// Failure says which Pods fail.
type Failure struct {
	// Namespace is where they are.
	Namespace string
	// Labels selects them, as a text that kubectl takes; "" selects all.
	Labels string
	// ExitCode is that of their containers; 0 means 1.
	ExitCode int32
	// Times is how often containers fail, restarts and Pods of the same Job together; 0 means
	// always.
	Times int
}

// Failures say which Pods fail now. Their zero value says that none does. They remember which
// ones have failed already, because one try of a Pod either fails or succeeds.
type Failures struct {
	rules []*rule
	hit   map[string]*rule // by uid of the Pod and its number of restarts
}

type rule struct {
	Failure
	selector labels.Selector
}

// Add has more Pods fail: those that run fail now, those that come fail when they would
// become ready, or succeed.
func (f *Failures) Add(one Failure) error {
	selector, err := labels.Parse(one.Labels)
	if err != nil {
		return fmt.Errorf("labels: %w", err)
	}
	if one.ExitCode == 0 {
		one.ExitCode = 1
	}
	f.rules = append(f.rules, &rule{one, selector})
	return nil
}

// Clear has the Pods of a namespace that were to fail by these labels fail no more. It says
// whether there were such ones.
func (f *Failures) Clear(namespace, of string) bool {
	before := len(f.rules)
	f.rules = slices.DeleteFunc(f.rules, func(r *rule) bool { return r.Namespace == namespace && r.Labels == of })
	for key, r := range f.hit {
		if r.Namespace == namespace && r.Labels == of {
			delete(f.hit, key)
		}
	}
	return len(f.rules) < before
}

// Of returns the Pods that fail now, as [State.Failing] has them.
func (f *Failures) Of(pods []*corev1.Pod) map[types.UID]int32 {
	out := map[types.UID]int32{}
	for _, p := range pods {
		if finished(p) || p.DeletionTimestamp != nil {
			continue
		}
		restarts, _ := restart(&p.Status)
		if !backOff(&p.Status).IsZero() {
			restarts++ // the next try
		}
		key := fmt.Sprint(p.UID, " ", restarts)
		r := f.hit[key]
		if r == nil {
			if r = f.next(p); r == nil {
				continue
			}
		}
		if f.hit == nil {
			f.hit = map[string]*rule{}
		}
		f.hit[key] = r
		out[p.UID] = r.ExitCode
	}
	return out
}

// next is the rule by which the next try of a Pod fails, or nil.
func (f *Failures) next(p *corev1.Pod) *rule {
	for i, r := range f.rules {
		if r.Namespace != p.Namespace || !r.selector.Matches(labels.Set(p.Labels)) {
			continue
		}
		if r.Times > 0 {
			if r.Times--; r.Times == 0 {
				f.rules = slices.Delete(f.rules, i, i+1)
			}
		}
		return r
	}
	return nil
}
