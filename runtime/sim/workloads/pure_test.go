package workloads

import (
	"reflect"
	"strconv"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
)

func TestIntervals(t *testing.T) {
	for _, test := range []struct {
		list []int
		text string
	}{{nil, ""}, {[]int{0}, "0"}, {[]int{0, 1}, "0,1"}, {[]int{0, 1, 2}, "0-2"}, {[]int{1, 3, 4, 5, 9}, "1,3-5,9"}} {
		if got := intervals(test.list); got != test.text {
			t.Errorf("%v: %q, want %q", test.list, got, test.text)
		}
		if got := parseIntervals(test.text); !reflect.DeepEqual(got, test.list) {
			t.Errorf("%q: %v, want %v", test.text, got, test.list)
		}
	}
}

// set is a ReplicaSet of a rollout: its size, and how many of its Pods are available.
func set(name string, size, available int32, desired, maximum int) *appsv1.ReplicaSet {
	return &appsv1.ReplicaSet{
		ObjectMeta: metav1.ObjectMeta{Name: name, Annotations: map[string]string{
			desiredAnnotation: strconv.Itoa(desired), maximumAnnotation: strconv.Itoa(maximum),
		}},
		Spec:   appsv1.ReplicaSetSpec{Replicas: &size},
		Status: appsv1.ReplicaSetStatus{Replicas: size, AvailableReplicas: available},
	}
}

func TestOneStepOfARollout(t *testing.T) {
	for _, test := range []struct {
		name               string
		replicas           int32
		surge, unavailable int32
		newest, old        *appsv1.ReplicaSet
		want               map[string]int32 // sizes that are written
	}{
		{"the new one grows by the surge", 10, 3, 2, set("new", 0, 0, 10, 13), set("old", 10, 10, 10, 13), map[string]int32{"new": 3}},
		{"the old one shrinks", 10, 3, 2, set("new", 3, 0, 10, 13), set("old", 10, 10, 10, 13), map[string]int32{"old": 8}},
		{"Pods that are not available go first", 10, 0, 2, set("new", 0, 0, 10, 10), set("old", 10, 7, 10, 10), map[string]int32{"old": 8}},
		{"nothing may go", 10, 3, 0, set("new", 3, 0, 10, 13), set("old", 10, 10, 10, 13), nil},
		{"the end", 10, 3, 2, set("new", 10, 10, 10, 13), set("old", 0, 0, 10, 13), nil},
		{"scaled in the middle of it", 20, 0, 2, set("new", 5, 5, 10, 10), set("old", 5, 5, 10, 10), map[string]int32{"new": 10, "old": 10}},
	} {
		d := &appsv1.Deployment{Spec: appsv1.DeploymentSpec{Replicas: &test.replicas, Strategy: appsv1.DeploymentStrategy{
			Type: appsv1.RollingUpdateDeploymentStrategyType,
			RollingUpdate: &appsv1.RollingUpdateDeployment{
				MaxSurge: new(intstr.FromInt32(test.surge)), MaxUnavailable: new(intstr.FromInt32(test.unavailable)),
			},
		}}}
		var out Result
		r := &rollout{s: &State{}, d: d, new: test.newest, old: []*appsv1.ReplicaSet{test.old}, out: &out}
		if !r.scale() {
			r.roll()
		}
		var got map[string]int32
		for _, w := range out.Writes {
			if got == nil {
				got = map[string]int32{}
			}
			got[w.Object.GetName()] = *w.Object.(*appsv1.ReplicaSet).Spec.Replicas
		}
		if !reflect.DeepEqual(got, test.want) {
			t.Errorf("%s: %v, want %v", test.name, got, test.want)
		}
	}
}
