package modules

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/starling-operator/starling/modules/release/owned"
	"github.com/starling-operator/starling/modules/status"
	"github.com/starling-operator/starling/runtime/effect"
)

var noon = time.Date(2026, 5, 1, 12, 0, 0, 0, time.UTC)

func web(state status.ModuleState, revision int) Facts {
	f := Facts{ChartVersion: "1.2.0", Module: status.Module{Name: "web", State: state, Enabled: true}}
	if revision >= 0 {
		f.Module.Release = &status.Release{Name: "web", Namespace: "apps", Revision: revision}
		f.Module.Released = state == status.ModuleReady
	}
	return f
}

func (s *Status) short() string {
	var out []string
	for _, c := range s.Conditions {
		out = append(out, fmt.Sprintf("%s=%s/%s", c.Type, c.Status, c.Reason))
	}
	return strings.Join(out, " ")
}

func TestConditions(t *testing.T) {
	refused := web(status.ModuleReady, 2)
	refused.Module.Config.Refused = []string{"Module web: config web: text: must be a string"}
	failing := web(status.ModuleReady, 2)
	failing.Hooks = []status.Hook{{ID: "web/a", State: status.HookRunning, LastError: "no"}, {ID: "web/b"}}
	upgrading := web(status.ModuleReady, 2)
	upgrading.Module.Upgrading = true
	failed := web(status.ModuleFailed, 2)
	failed.Module.LastError = "values: text is required"
	rolledBack := failed
	rolledBack.Module.Stalled = true
	unready, held := web(status.ModuleWaiting, 2), web(status.ModuleWaiting, 2)
	unready.Module.Released, held.Module.Reason = true, "values: host: is required"
	edited, contested := web(status.ModuleReady, 2), web(status.ModuleReady, 2)
	edited.Module.Drifted = []status.Drifted{{Object: "ConfigMap apps/web", Missing: true}}
	contested.Module.Drifted = []status.Drifted{{Object: "ConfigMap apps/web"}, {Object: "Service apps/web", By: []string{"kubectl-edit"}, Contested: true}}
	unseen, both := web(status.ModuleReady, 2), edited
	unseen.Module.Unseen = []string{"2 of kind Job: no role"}
	both.Module.Unseen = unseen.Module.Unseen
	off := web(status.ModuleOff, -1)
	off.Module.Enabled = false
	for name, tt := range map[string]struct {
		f    Facts
		want []string
	}{
		"ready":         {web(status.ModuleReady, 2), []string{"Ready=True/Ready", "Enabled=True", "ValuesValid=True", "HooksHealthy=True/NoHooks", "Released=True", "Drifted=False/AsReleased", "Reconciling=False", "Stalled=False"}},
		"no chart":      {web(status.ModuleReady, -1), []string{"Ready=True", "Released=False/NoChart"}},
		"upgrading":     {upgrading, []string{"Ready=Unknown/Upgrading", "Released=False/Upgrading", "Reconciling=True/Upgrading", "Stalled=False"}},
		"refused":       {refused, []string{"Ready=True", "ValuesValid=False/Refused"}},
		"a hook fails":  {failing, []string{"Ready=True", "HooksHealthy=False/Failing"}},
		"drifted":       {edited, []string{"Ready=True", "Drifted=True/Drifted", "Reconciling=False"}},
		"contested":     {contested, []string{"Ready=True", "Drifted=True/Contested"}},
		"not seen":      {unseen, []string{"Ready=True", "Drifted=Unknown/NotSeen"}},
		"not all seen":  {both, []string{"Ready=True", "Drifted=True/Drifted"}},
		"failed":        {failed, []string{"Ready=False/Failed", "ValuesValid=False/Invalid", "Released=False/Failed", "Reconciling=True/Retrying", "Stalled=False"}},
		"unready":       {unready, []string{"Ready=Unknown/Waiting", "Released=True"}},
		"held":          {held, []string{"ValuesValid=False/Invalid", "Released=False"}},
		"rolled back":   {rolledBack, []string{"Ready=False/Failed", "Reconciling=False", "Stalled=True/Failed"}},
		"broken":        {web(status.ModuleBroken, -1), []string{"Ready=False/Broken", "Reconciling=False", "Stalled=True"}},
		"off":           {off, []string{"Ready=False/Off", "Enabled=False/Off", "Released=False/NotInstalled", "Reconciling=False", "Stalled=False"}},
		"paused":        {web(status.ModulePaused, 2), []string{"Ready=False/Paused", "Released=False/Paused", "Reconciling=False"}},
		"starting":      {web(status.ModuleStarting, -1), []string{"Ready=Unknown/Starting", "Reconciling=True/Starting"}},
		"uninstalling":  {web(status.ModuleUninstalling, 2), []string{"Ready=False/Uninstalling", "Reconciling=True"}},
		"not installed": {web(status.ModuleReleasing, -1), []string{"Ready=Unknown/Releasing", "Released=False/NotInstalled"}},
	} {
		s := statusOf("ops/starling", tt.f, 1, nil, noon)
		for _, want := range tt.want {
			if !strings.Contains(s.short(), want) {
				t.Errorf("%s: %s lacks %s", name, s.short(), want)
			}
		}
	}
}

// A field that the API server has dropped leaves a module ready; kubectl get modules shows it as the message of Ready.
func TestReadyNamesAFieldThatWasDropped(t *testing.T) {
	const said = "web/templates/a.yaml:6: Deployment web has no field spec.replcias: the API server drops it (did you mean replicas?)"
	f := web(status.ModuleReady, 2)
	f.Module.Problems, f.Module.Unknown = []string{said}, []string{said}
	for _, c := range statusOf("ops/starling", f, 1, nil, noon).Conditions {
		if c.Type == "Ready" && (c.Status != "True" || c.Message != said) {
			t.Errorf("Ready is %s: %s", c.Status, c.Message)
		}
	}
}

// A hook that fails leaves a module ready; kubectl get modules shows it as the message of Ready.
func TestReadyNamesAHookThatFails(t *testing.T) {
	f := web(status.ModuleReady, 2)
	f.Hooks = []status.Hook{{ID: "web/a", State: status.HookFailed, LastError: "web/a.star:3:1: no"}, {ID: "web/b", LastError: "no"}, {ID: "web/c", State: status.HookOff, LastError: "no"}}
	const want = "web/a: web/a.star:3:1: no; and 1 more: starling get hooks"
	s := statusOf("ops/starling", f, 1, nil, noon)
	if ready := s.condition("Ready"); ready.Status != "True" || ready.Message != want {
		t.Errorf("Ready is %s: %q", ready.Status, ready.Message)
	}
	f.Hooks = f.Hooks[2:]
	if ready := statusOf("ops/starling", f, 1, s, noon).condition("Ready"); ready.Message != "" {
		t.Errorf("Ready says of a hook that is off: %q", ready.Message)
	}
}

// The same facts have the same status, however late; a condition keeps its time while it says the same.
func TestStatusRests(t *testing.T) {
	first := statusOf("ops/starling", web(status.ModuleReady, 2), 1, nil, noon)
	_, text := first.encode()
	if _, again := statusOf("ops/starling", web(status.ModuleReady, 2), 1, decode(text), noon.Add(time.Hour)).encode(); again != text {
		t.Errorf("an hour later:\n%s\nbefore:\n%s", again, text)
	}
	unseen := statusOf("ops/starling", web(status.ModuleReady, 0), 1, first, noon.Add(time.Hour))
	if _, again := unseen.encode(); again != text {
		t.Errorf("after a restart, before the release was seen: %s", again)
	}
	next := statusOf("ops/starling", web(status.ModuleFailed, 2), 1, first, noon.Add(time.Hour))
	if ready, enabled := next.condition("Ready"), next.condition("Enabled"); !ready.LastTransitionTime.Time.Equal(noon.Add(time.Hour)) || !enabled.LastTransitionTime.Time.Equal(noon) {
		t.Errorf("times %v and %v", ready.LastTransitionTime, enabled.LastTransitionTime)
	}
}

// While a step is tried again, the time of that try stays: there is one write per try, not two.
func TestNextTry(t *testing.T) {
	f := web(status.ModuleFailed, 1)
	f.Module.LastError = "no"
	at := noon.Add(time.Minute)
	f.Module.NextTry = &at
	first := statusOf("ops/starling", f, 1, nil, noon)
	f.Module.NextTry = nil
	if now := statusOf("ops/starling", f, 1, first, at); now.NextTry == nil || !now.NextTry.Time.Equal(at) {
		t.Errorf("next try %v", now.NextTry)
	}
}

func TestTheLastTenRevisions(t *testing.T) {
	var s *Status
	for n := 1; n <= 12; n++ {
		s = statusOf("ops/starling", web(status.ModuleReady, n), 1, s, noon.Add(time.Duration(n)*time.Second))
	}
	if len(s.Revisions) != 10 || s.Revisions[0].Revision != 12 || s.Revisions[9].Revision != 3 {
		t.Errorf("revisions %+v", s.Revisions)
	}
	f := web(status.ModuleReady, 12)
	f.ChartVersion = "2.0.0" // the chart renders to the same: no revision is made of it
	if s = statusOf("ops/starling", f, 1, s, noon); s.Release.ChartVersion != "1.2.0" || len(s.Revisions) != 10 {
		t.Errorf("release %+v", s.Release)
	}
	if s = statusOf("ops/starling", web(status.ModuleReady, 1), 1, s, noon); len(s.Revisions) != 1 {
		t.Errorf("installed anew: %+v", s.Revisions)
	}
	if s = statusOf("ops/starling", web(status.ModuleOff, -1), 1, s, noon); s.Release != nil || len(s.Revisions) > 0 {
		t.Errorf("uninstalled: %+v", s)
	}
}

func TestEvents(t *testing.T) {
	broken := web(status.ModuleFailed, 1)
	broken.Module.LastError = "no"
	worse := web(status.ModuleFailed, 1)
	worse.Module.LastError = "not at all"
	var s *Status
	for i, tt := range []struct {
		f    Facts
		want string
	}{
		{web(status.ModuleStarting, -1), "[]"},
		{web(status.ModuleReady, 1), "[Installed]"},
		{web(status.ModuleReady, 1), "[]"},
		{web(status.ModuleReady, 2), "[Upgraded]"},
		{broken, "[Failed]"},
		{broken, "[]"},
		{worse, "[Failed]"},
		{web(status.ModuleOff, -1), "[Uninstalled]"},
		{web(status.ModuleReady, 1), "[Installed]"},
	} {
		next := statusOf("ops/starling", tt.f, 1, s, noon)
		var got []string
		for _, e := range eventsOf(s, next) {
			got = append(got, e.Reason)
		}
		if i == 4 { // from revision 2 back to 1: installed anew, and it failed
			got = got[len(got)-1:]
		}
		if fmt.Sprint(got) != tt.want {
			t.Errorf("%d: Events %v, want %s", i, got, tt.want)
		}
		s = next
	}
	var drift []string
	healed := web(status.ModuleReady, 1)
	healed.Repair = RepairOf([]effect.Ref{{Kind: "ConfigMap", Namespace: "apps", Name: "web"}, {Kind: "Secret", Namespace: "apps", Name: "web"}},
		[]owned.Edit{{Path: owned.Path{{Field: "data"}, {Field: "text"}}, By: "kubectl-edit"}}, noon)
	contested := healed
	contested.Module.Drifted = []status.Drifted{{Object: "ConfigMap apps/web", By: []string{"argo"}, Contested: true, Fields: []string{"data.text"}, Remedy: "End it"}, {Object: "Secret apps/web"}}
	for _, f := range []Facts{healed, healed, contested, contested, web(status.ModuleReady, 1)} {
		next := statusOf("ops/starling", f, 1, s, noon)
		for _, e := range eventsOf(s, next) {
			drift = append(drift, e.Reason+": "+e.Message)
		}
		s = next
	}
	if got, want := strings.Join(drift, "\n"), "Healed: ConfigMap apps/web and 1 more were put right: kubectl-edit had changed data.text; "+
		`module(ignore = ["ConfigMap/web data.text"]) leaves it so`+"\n"+
		"Contested: ConfigMap apps/web is contested by argo in data.text; and 1 more differ: starling get module web. End it"; got != want {
		t.Errorf("Events\n%s\nwant\n%s", got, want)
	}
	if got := eventsOf(nil, statusOf("ops/starling", web(status.ModuleReady, 7), 1, nil, noon)); len(got) > 0 {
		t.Errorf("a release that was there before its object: %v", got)
	}
}
