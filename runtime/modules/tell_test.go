package modules

import (
	"encoding/json"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/starling-operator/starling/modules/status"
	"github.com/starling-operator/starling/runtime/effect"
)

// A process that stands by shows of a module what the one that leads has written to its object.
func TestAStatusTellsThoseThatStandBy(t *testing.T) {
	now := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	later := now.Add(time.Minute)
	own := effect.Instance{Namespace: "ops", Name: "starling"}
	standsBy := status.Module{Name: "web", State: status.ModuleWaiting, Reason: "stands by", Enabled: true, Problems: []string{"slow"}}
	object := func(s *Status) Object {
		text, err := json.Marshal(s)
		if err != nil {
			t.Fatal(err)
		}
		return Object{Name: "web", Status: string(text)}
	}
	for name, m := range map[string]status.Module{
		"ready":  {Name: "web", State: status.ModuleReady, Release: &status.Release{Name: "web", Namespace: "shop", Revision: 3}},
		"failed": {Name: "web", State: status.ModuleFailed, Reason: "hook a: boom", LastError: "boom", NextTry: &later},
		"off":    {Name: "web", State: status.ModuleOff, Reason: "webEnabled: false in values.yaml"},
	} {
		got := standsBy
		if !object(statusOf("ops/starling", Facts{Module: m}, 1, nil, now)).Tell(own, &got) {
			t.Errorf("%s: nothing is told", name)
		}
		want := m
		want.Enabled, want.Problems, want.Since = true, []string{"slow"}, now
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
	}
	for name, o := range map[string]Object{
		"no status":             {},
		"no JSON":               {Status: "{"},
		"another instance's":    object(statusOf("ops/other", Facts{Module: status.Module{State: status.ModuleReady}}, 1, nil, now)),
		"that of no module":     object(statusOfNone("ops/starling", "web", nil, 1, nil, now)),
		"one without any state": {Status: `{}`},
	} {
		got := standsBy
		if o.Tell(own, &got) || !cmp.Equal(got, standsBy) {
			t.Errorf("%s: %+v", name, got)
		}
	}
}

// A process that has not looked at a release shows the revision that its Module object has.
func TestARevisionIsTold(t *testing.T) {
	own, web := effect.Instance{Namespace: "ops", Name: "starling"}, status.Release{Name: "web", Namespace: "shop", Revision: 3}
	text, err := json.Marshal(statusOf("ops/starling", Facts{Module: status.Module{Name: "web", State: status.ModuleReady, Release: &web}}, 1, nil, time.Now()))
	if err != nil {
		t.Fatal(err)
	}
	for _, tt := range []struct {
		own    effect.Instance
		of     status.Release
		object Object
		want   int
	}{
		{own, status.Release{Name: "web", Namespace: "shop"}, Object{Status: string(text)}, 3},
		{own, status.Release{Name: "web", Namespace: "moved"}, Object{Status: string(text)}, 0},
		{own, status.Release{Name: "renamed", Namespace: "shop"}, Object{Status: string(text)}, 0},
		{effect.Instance{Namespace: "ops", Name: "other"}, status.Release{Name: "web", Namespace: "shop"}, Object{Status: string(text)}, 0},
		{own, status.Release{Name: "web", Namespace: "shop"}, Object{}, 0},
	} {
		if got := tt.object.Revision(tt.own, tt.of); got != tt.want {
			t.Errorf("%+v of %v: %d, want %d", tt.of, tt.own, got, tt.want)
		}
	}
}
