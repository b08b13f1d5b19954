package engine

import (
	"testing"

	"github.com/starling-operator/starling/runtime/effect"
	"github.com/starling-operator/starling/runtime/engine/repairs"
)

// The line that is told with contested objects can be pasted.
func TestTheLineThatLeavesAnObject(t *testing.T) {
	web := effect.Ref{APIVersion: "apps/v1", Kind: "Deployment", Namespace: "shop", Name: "web"}
	fields := []string{"spec.replicas", `metadata.annotations["a.io/x"]`}
	for want, contests := range map[string][]contest{
		`End the other writer, or leave it to that with module(ignore = ["Deployment/web"]). To leave one field alone, write its path after the name`: {{Ref: web}},
		`End the other writer, or leave it to that with module(ignore = ["Deployment/web spec.replicas", "Deployment/web metadata.annotations[\"a.io/x\"]"])`: {
			{web, repairs.Contest{Fields: fields}}},
		`End the other writer, or leave it to that with module(ignore = ["Deployment/web", "Deployment/web", "Deployment/web"]); 1 more: starling describe module. To leave one field alone, write its path after the name`: {
			{Ref: web}, {Ref: web}, {Ref: web}, {Ref: web}},
	} {
		if got := leaveIt(contests); got != want {
			t.Errorf("got %s", got)
		}
	}
	many := contest{web, repairs.Contest{Fields: append([]string{"spec.paused", "spec.minReadySeconds"}, fields...)}}
	if got := leaveIt([]contest{many}); got != leaveIt([]contest{{Ref: web}}) {
		t.Errorf("of many fields: %s", got)
	}
	got := contestedBy([]contest{{web, repairs.Contest{By: "argo", Fields: fields}}, {Ref: web}})
	const want = "Deployment shop/web is contested by argo in spec.replicas, one of 2 fields: it was put right 3 times within 10 minutes, and waits longer each time from now on (and 1 more)"
	if got != want {
		t.Errorf("got %s", got)
	}
}
