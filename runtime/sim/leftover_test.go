package sim

import (
	"errors"
	"strings"
	"testing"
	"testing/fstest"
	"time"

	"github.com/starling-operator/starling/modules/status"
	"github.com/starling-operator/starling/modules/tree"
)

// agents is a module with a DaemonSet per name, and a hook that counts its passes.
func agents(t *testing.T) *World {
	t.Helper()
	read, err := tree.Read(fstest.MapFS{
		"web/module.star": {Data: []byte("module(enabled = True)\n")},
		"web/hooks/a.star": {Data: []byte(`
def after(ctx):
    ctx.state.set("n", ctx.state.get("n", 0) + 1)

hook(after, on = [after_helm()])
`)},
		"web/Chart.yaml":  {Data: []byte("apiVersion: v2\nname: web\nversion: 1.0.0\n")},
		"web/values.yaml": {Data: []byte("agents: [a]\n")},
		"web/templates/agents.yaml": {Data: []byte(`{{- range .Values.agents }}
---
apiVersion: apps/v1
kind: DaemonSet
metadata: {name: {{ . }}}
spec:
  selector: {matchLabels: {app: {{ . }}}}
  template: {metadata: {labels: {app: {{ . }}}}, spec: {containers: [{name: a, image: a}]}}
{{- end }}
`)},
		"web/openapi/config-values.yaml": {Data: []byte("type: object\nproperties: {agents: {type: array, items: {type: string}}}\n")},
	}, tree.Options{})
	w := world(t, read, err)
	if err := w.Start(t.Context()); err != nil {
		t.Fatal(err)
	}
	w.wantAgents(t, "a")
	return w
}

func (w *World) wantAgents(t *testing.T, want ...string) {
	t.Helper()
	list, err := w.List("apps/v1", "DaemonSet", nil, "", "")
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, obj := range list {
		got = append(got, obj["metadata"].(map[string]any)["name"].(string))
	}
	if strings.Join(got, " ") != strings.Join(want, " ") {
		t.Errorf("DaemonSets %q, want %q", got, want)
	}
}

func (w *World) wantModule(t *testing.T, state status.ModuleState, text string) {
	t.Helper()
	if m := w.Status().Modules[0]; m.State != state || !strings.Contains(m.Reason, text) {
		t.Errorf("module is %s: %s; want %s: %s", m.State, m.Reason, state, text)
	}
}

func (w *World) say(t *testing.T, config map[string]string) {
	t.Helper()
	if err := w.Configure(config); err != nil {
		t.Fatal(err)
	}
	if err := w.Settle(t.Context()); err != nil {
		t.Fatal(err)
	}
}

func (w *World) wait(t *testing.T, d time.Duration) {
	t.Helper()
	if err := w.Advance(t.Context(), d); err != nil {
		t.Fatal(err)
	}
}

var errRefused = errors.New("not today")

// Helm takes an object that it cannot delete as deleted.
func TestWhatAnUpgradeCannotDeleteIsTriedAgain(t *testing.T) {
	w := agents(t)
	w.Store().FailNext("delete", "DaemonSet", errRefused, 4)
	w.say(t, map[string]string{"web": "agents: [b]"})
	w.wantAgents(t, "a", "b")
	w.wantModule(t, status.ModuleFailed, "DaemonSet a")
	if m := w.Status().Modules[0]; !strings.Contains(m.Reason, "not today") || strings.Contains(m.Reason, "\n") {
		t.Errorf("reason %q", m.Reason)
	}
	w.Stop() // a restart forgets nothing
	if err := w.Start(t.Context()); err != nil {
		t.Fatal(err)
	}
	w.wantAgents(t, "a", "b")
	w.wantModule(t, status.ModuleFailed, "DaemonSet a")
	w.wait(t, 10*time.Minute)
	w.wantAgents(t, "b")
	w.wantModule(t, status.ModuleReady, "")
	// A change that was done late has its after_helm hooks run, too.
	w.say(t, map[string]string{"web": "agents: [b, c]"})
	before := len(w.Runs)
	w.Store().FailNext("delete", "DaemonSet", errRefused, 2)
	w.say(t, map[string]string{"web": "agents: [b]"})
	w.wantModule(t, status.ModuleFailed, "DaemonSet c")
	w.wait(t, 10*time.Minute)
	w.wantModule(t, status.ModuleReady, "")
	if n := len(w.Runs) - before; n != 1 {
		t.Errorf("after_helm ran %d times, want once", n)
	}
	w.wantAgents(t, "b")
	// One that comes back into the chart stays.
	w.Store().FailNext("delete", "DaemonSet", errRefused, 2)
	w.say(t, map[string]string{"web": "agents: [c]"})
	w.say(t, map[string]string{"web": "agents: [b, c]"})
	w.wait(t, 10*time.Minute)
	w.wantAgents(t, "b", "c")
	w.wantModule(t, status.ModuleReady, "")
}

// The next revision deletes an object that only a failed revision has made.
func TestWhatAFailedRevisionMadeIsDeleted(t *testing.T) {
	w := agents(t)
	w.Store().FailAfter("apply", "DaemonSet", errRefused, 1)
	w.say(t, map[string]string{"web": "agents: [b, c]"})
	w.wantModule(t, status.ModuleFailed, "not today")
	w.wantAgents(t, "a", "b")
	w.say(t, map[string]string{"web": "agents: [d]"})
	w.wait(t, 10*time.Minute)
	w.wantAgents(t, "d")
	w.wantModule(t, status.ModuleReady, "")

	w.Store().FailAfter("apply", "DaemonSet", errRefused, 1)
	w.say(t, map[string]string{"web": "agents: [e, f]"})
	w.wantAgents(t, "d", "e")
	w.say(t, map[string]string{"webEnabled": "false"})
	w.wait(t, 10*time.Minute)
	w.wantAgents(t)
}

// The record of a release goes last.
func TestAnUninstallThatCannotDelete(t *testing.T) {
	w := agents(t)
	w.Store().FailNext("delete", "DaemonSet", errRefused, 2)
	w.say(t, map[string]string{"web": "agents: [b]"})
	w.wantAgents(t, "a", "b")
	w.Store().FailNext("delete", "DaemonSet", errRefused, 3)
	w.say(t, map[string]string{"webEnabled": "false"})
	for try := 0; ; try++ {
		refs, err := w.Installed(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		if list, err := w.List("apps/v1", "DaemonSet", nil, "", ""); err != nil || len(refs) == 0 && len(list) > 0 {
			t.Fatalf("%d DaemonSets without a record, %v", len(list), err)
		}
		if len(refs) == 0 {
			break
		}
		w.wantModule(t, status.ModuleFailed, "not today")
		if try == 10 {
			t.Fatal("never uninstalled")
		}
		w.wait(t, 10*time.Minute)
	}
	w.wantAgents(t)
	w.wantModule(t, status.ModuleOff, "")
}
