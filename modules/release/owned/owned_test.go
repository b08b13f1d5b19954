package owned

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

const (
	apply  = metav1.ManagedFieldsOperationApply
	update = metav1.ManagedFieldsOperationUpdate
)

// entry is one of managedFields; its manager may name a subresource: "kubectl scale".
func entry(manager string, op metav1.ManagedFieldsOperationType, fields string) metav1.ManagedFieldsEntry {
	name, sub, _ := strings.Cut(manager, " ")
	return metav1.ManagedFieldsEntry{Manager: name, Subresource: sub, Operation: op, APIVersion: "apps/v1", FieldsType: "FieldsV1", FieldsV1: metav1.NewFieldsV1(fields)}
}

const (
	ours      = `{"f:metadata":{"f:labels":{".":{},"f:app":{}}},"f:spec":{"f:replicas":{},"f:paused":{}}}`
	unscaled  = `{"f:metadata":{"f:labels":{".":{},"f:app":{}}},"f:spec":{"f:paused":{}}}`
	sorted    = `{"f:spec":{"f:paused":{},"f:replicas":{}},"f:metadata":{"f:labels":{"f:app":{},".":{}}}}`
	scale     = `{"f:spec":{"f:replicas":{}}}`
	unlabeled = `{"f:spec":{"f:replicas":{},"f:paused":{}}}`
	status    = `{"f:status":{"f:replicas":{},"f:conditions":{}}}`
)

func TestOf(t *testing.T) {
	before, ok := Of([]metav1.ManagedFieldsEntry{entry("st", update, ours)}, "st", nil)
	if !ok || before == (Digest{}) {
		t.Fatal(before, ok)
	}
	old := entry("st", update, ours)
	old.Time, old.APIVersion = &metav1.Time{Time: time.Unix(5, 0)}, "apps/v1beta1"
	for name, test := range map[string]struct {
		now  []metav1.ManagedFieldsEntry
		same bool
	}{
		"the same":                      {[]metav1.ManagedFieldsEntry{entry("st", update, ours)}, true},
		"in another order":              {[]metav1.ManagedFieldsEntry{entry("st", update, sorted)}, true},
		"at another time and version":   {[]metav1.ManagedFieldsEntry{old}, true},
		"others add something":          {[]metav1.ManagedFieldsEntry{entry("x", update, unscaled), entry("st", update, ours)}, true},
		"others write the status":       {[]metav1.ManagedFieldsEntry{entry("st", update, ours), entry("kube-controller-manager status", update, status)}, true},
		"its own status does not count": {[]metav1.ManagedFieldsEntry{entry("st", update, ours), entry("st status", update, status)}, true},
		"in two entries":                {[]metav1.ManagedFieldsEntry{entry("st", update, scale), entry("st", update, ours)}, true},
		"applied instead":               {[]metav1.ManagedFieldsEntry{entry("st", apply, ours)}, false},
		"a field is taken":              {[]metav1.ManagedFieldsEntry{entry("st", update, unlabeled), entry("x", update, `{"f:metadata":{"f:labels":{"f:app":{}}}}`)}, false},
		"replicas are removed":          {[]metav1.ManagedFieldsEntry{entry("st", update, unscaled)}, false},
		"somebody scales":               {[]metav1.ManagedFieldsEntry{entry("st", update, unscaled), entry("kubectl scale", update, scale)}, false},
		"the controller, but no scale":  {[]metav1.ManagedFieldsEntry{entry("st", update, unscaled), entry("kube-controller-manager", update, scale)}, false},
		"an autoscaler scales":          {[]metav1.ManagedFieldsEntry{entry("st", update, unscaled), entry("kube-controller-manager scale", update, scale)}, true},
		"an autoscaler, and a change":   {[]metav1.ManagedFieldsEntry{entry("st", update, `{"f:spec":{"f:paused":{}}}`), entry("kube-controller-manager scale", update, scale)}, false},
	} {
		t.Run(name, func(t *testing.T) {
			now, ok := Of(test.now, "st", nil)
			if !ok || before.Same(now) != test.same {
				t.Errorf("%x, %v, then %x", before, ok, now)
			}
		})
	}
	for name, now := range map[string][]metav1.ManagedFieldsEntry{
		"nothing": nil, "others": {entry("x", update, ours), entry("st status", update, ours)},
		"unreadable": {entry("st", update, "{")}, "none": {{Manager: "st", Operation: update}},
	} {
		if d, ok := Of(now, "st", nil); ok || d != (Digest{}) {
			t.Errorf("%s: %x", name, d)
		}
	}
}

// Replicas that a manager does not own are of others, whoever comes to own them.
func TestReplicasOfOthers(t *testing.T) {
	of := func(others ...metav1.ManagedFieldsEntry) Digest {
		d, _ := Of(append(others, entry("st", update, unscaled)), "st", nil)
		return d
	}
	nobody, taken, autoscaled := of(), of(entry("kubectl scale", update, scale)), of(entry("kube-controller-manager scale", update, scale))
	for _, before := range []Digest{nobody, taken, autoscaled} {
		for _, now := range []Digest{nobody, taken, autoscaled} {
			if !before.Same(now) {
				t.Errorf("%x, then %x", before, now)
			}
		}
	}
	own, _ := Of([]metav1.ManagedFieldsEntry{entry("st", update, ours)}, "st", nil)
	if nobody.Stable() != taken.Stable() || own.Stable() != autoscaled.Stable() || own.Stable() == taken.Stable() {
		t.Errorf("%x, %x, %x, %x", nobody.Stable(), taken.Stable(), autoscaled.Stable(), own.Stable())
	}
}

func TestRulesThatAreGathered(t *testing.T) {
	const rules, others = `{"f:aggregationRule":{},"f:rules":{}}`, `{"f:aggregationRule":{}}`
	before, _ := Of([]metav1.ManagedFieldsEntry{entry("st", update, rules)}, "st", nil)
	gathered, _ := Of([]metav1.ManagedFieldsEntry{entry("st", update, others), entry("clusterrole-aggregation-controller", apply, `{"f:rules":{}}`)}, "st", nil)
	taken, _ := Of([]metav1.ManagedFieldsEntry{entry("st", update, others), entry("kubectl", update, `{"f:rules":{}}`)}, "st", nil)
	if !before.Same(gathered) || before.Same(taken) || before.Stable() != gathered.Stable() {
		t.Errorf("%x, %x, %x", before, gathered, taken)
	}
	// Rules of another shape are fields as all others.
	of := func(text string) Digest {
		d, _ := Of([]metav1.ManagedFieldsEntry{entry("st", update, text)}, "st", nil)
		return d
	}
	if of(`{"f:rules":{".":{},"f:a":{}}}`).Same(of(`{"f:rules":{".":{}}}`)) {
		t.Error("a field below rules does not count")
	}
}

func TestIgnoredFieldsDoNotCount(t *testing.T) {
	const containers = `{"f:spec":{"f:containers":{"k:{\"name\":\"web\"}":{".":{},"f:image":{}},"k:{\"name\":\"log\"}":{".":{},"f:image":{}}}}}`
	for _, test := range []struct {
		path, before, after string
		same                bool
	}{
		{"metadata.labels.app", ours, `{"f:metadata":{"f:labels":{".":{}}},"f:spec":{"f:replicas":{},"f:paused":{}}}`, true},
		{"metadata.labels", ours, unlabeled, true},
		{"metadata.labels.app", ours, unlabeled, false}, // the map itself is gone, too
		{"metadata.labels[*]", ours, `{"f:metadata":{"f:labels":{".":{}}},"f:spec":{"f:replicas":{},"f:paused":{}}}`, true},
		{"spec.replicas", ours, unscaled, true},
		{"spec", ours, `{"f:metadata":{"f:labels":{".":{},"f:app":{}}}}`, true},
		{"spec.replicas", ours, unlabeled, false},
		{"spec.containers[name=web].image", containers, strings.Replace(containers, `"k:{\"name\":\"web\"}":{".":{},"f:image":{}}`, `"k:{\"name\":\"web\"}":{".":{}}`, 1), true},
		{"spec.containers[name=web]", containers, strings.Replace(containers, `"k:{\"name\":\"log\"}":{".":{},"f:image":{}}`, `"k:{\"name\":\"log\"}":{".":{}}`, 1), false},
		{"spec.containers[*].image", containers, `{"f:spec":{"f:containers":{"k:{\"name\":\"web\"}":{".":{}},"k:{\"name\":\"log\"}":{".":{}}}}}`, true},
	} {
		p, err := ParsePath(test.path)
		if err != nil {
			t.Fatal(err)
		}
		a, _ := Of([]metav1.ManagedFieldsEntry{entry("st", update, test.before)}, "st", []Path{p})
		b, _ := Of([]metav1.ManagedFieldsEntry{entry("st", update, test.after), entry("x", update, `{"f:metadata":{"f:labels":{"f:app":{}}}}`)}, "st", []Path{p})
		if a.Same(b) != test.same {
			t.Errorf("%s: %x, then %x", test.path, a, b)
		}
	}
}

func TestTakers(t *testing.T) {
	at := func(e metav1.ManagedFieldsEntry, seconds int64) metav1.ManagedFieldsEntry {
		e.Time = &metav1.Time{Time: time.Unix(seconds, 0)}
		return e
	}
	got := Takers([]metav1.ManagedFieldsEntry{
		at(entry("st", update, ours), 9), entry("ancient", update, ours), at(entry("kubectl-edit", update, ours), 3), at(entry("kubectl scale", update, scale), 7),
		at(entry("kubelet status", update, status), 8), at(entry("kubectl-edit", apply, ours), 4), at(entry("a", update, ours), 4),
	}, "st")
	if diff := cmp.Diff([]string{"kubectl", "a", "kubectl-edit", "ancient"}, got); diff != "" {
		t.Error(diff)
	}
}

func TestFinished(t *testing.T) {
	for fields, want := range map[string]bool{
		status: true, `{"f:status":{"f:ready":{},"f:startTime":{}}}`: false, `{"f:status":{"f:conditions":{"k:{\"type\":\"Complete\"}":{".":{}}}}}`: true,
	} {
		if got := Finished([]metav1.ManagedFieldsEntry{entry("st", update, ours), entry("kube-controller-manager status", update, fields)}); got != want {
			t.Errorf("%s: %v", fields, got)
		}
	}
	if Finished([]metav1.ManagedFieldsEntry{entry("st", update, status)}) {
		t.Error("a status in a manifest counts")
	}
}

func TestHandedOver(t *testing.T) {
	for managers, want := range map[string]bool{
		"kube-controller-manager scale": true, "kubectl scale": false, "kube-controller-manager": false,
		"k3s scale, k3s status": true, "k3s, k3s status": false, "kubectl scale, k3s status": false,
	} {
		var fields []metav1.ManagedFieldsEntry
		for manager := range strings.SplitSeq(managers, ", ") {
			text := scale
			if strings.HasSuffix(manager, "status") {
				text = status
			}
			fields = append(fields, entry(manager, update, text))
		}
		if got := HandedOver(fields) != nil; got != want {
			t.Errorf("%s: %v", managers, got)
		}
	}
}

// FuzzOf gives it entries as no API server writes them.
func FuzzOf(f *testing.F) {
	for _, text := range []string{ours, sorted, scale, unlabeled, status, "", "{", `{"f:a":1}`, `{"k:{}":{}}`, `{"v:1":{},"i:0":{}}`, `{".":{}}`} {
		f.Add(text, ours, "spec.replicas", true)
	}
	f.Fuzz(func(t *testing.T, a, b, path string, applied bool) {
		op := update
		if applied {
			op = apply
		}
		p, err := ParsePath(path)
		var ignore []Path
		if err == nil {
			ignore = []Path{p}
			if again, err := ParsePath(p.String()); err != nil || !slices.Equal(p, again) {
				t.Errorf("%q is %q again, and then %q, %v", path, p, again, err)
			}
		}
		list := []metav1.ManagedFieldsEntry{entry("st", update, a), entry("st", op, b), entry("x scale", update, b)}
		was, ok := Of(list, "st", ignore)
		slices.Reverse(list)
		now := metav1.Now()
		for i := range list {
			list[i].Time, list[i].APIVersion = &now, "v9"
		}
		if is, still := Of(list, "st", ignore); is != was || still != ok || !was.Same(is) {
			t.Errorf("%x, %v, and in another order %x, %v", was, ok, is, still)
		}
		Takers(list, "st")
		some := func() map[string]any { return map[string]any{"a": []any{map[string]any{"b": "c"}, "d"}} }
		Yield(some(), some(), some(), list, "st", ignore)
		Finished(list)
		HandedOver(list)
	})
}
