package sim

import (
	"strings"
	"testing"
	"testing/fstest"
	"time"

	"github.com/starling-operator/starling/modules/status"
	"github.com/starling-operator/starling/modules/tree"
)

// Two modules that read each other's exports, in hooks of their releases and in enabled(), come to rest,
// or are stopped with a reason.
func TestModulesThatReadEachOther(t *testing.T) {
	const stage, startup = "before_helm()", "startup()"
	for _, c := range []struct {
		name, size, on, enabled string // of OTHER the size is read
		states                  map[string]status.ModuleState
		reason                  string
	}{
		{name: "they agree", size: `values.of("OTHER", "size") or 1`, on: stage,
			states: map[string]status.ModuleState{"a": status.ModuleReady, "b": status.ModuleReady}},
		{name: "each takes another one", size: `2 if values.of("OTHER", "size") == 1 else 1`, on: stage,
			states: map[string]status.ModuleState{"a": status.ModuleReady, "b": status.ModuleReady}},
		{name: "each wants more than the other", size: `(values.of("OTHER", "size") or 0) + 1`, on: stage,
			states: map[string]status.ModuleState{"a": status.ModuleReady, "b": status.ModuleReady},
			reason: "values still move after 40 runs of before_helm and after_helm hooks that have set each other off: global.exports."},
		{name: "on while the other has no size", size: "1", on: stage, enabled: `not values.of("OTHER", "size")`,
			states: map[string]status.ModuleState{"a": status.ModuleOff, "b": status.ModuleReady}},
		{name: "the same, found at once", size: "1", on: startup, enabled: `not values.of("OTHER", "size")`,
			states: map[string]status.ModuleState{"a": status.ModuleOff, "b": status.ModuleReady}},
		{name: "each waits for the other", size: "1", on: startup, enabled: `True if values.of("OTHER", "size") else waiting("no size of OTHER")`,
			states: map[string]status.ModuleState{"a": status.ModuleWaiting, "b": status.ModuleWaiting}, reason: "no size of "},
		{name: "each is on with the other", size: "1", on: startup, enabled: `bool(values.of("OTHER", "size"))`,
			states: map[string]status.ModuleState{"a": status.ModuleOff, "b": status.ModuleOff}},
	} {
		t.Run(c.name, func(t *testing.T) {
			fsys := fstest.MapFS{}
			for m, other := range map[string]string{"a": "b", "b": "a"} {
				fill := strings.NewReplacer("OTHER", other).Replace
				code := "module(enabled = True, exports = [\"size\"])\n"
				if c.enabled != "" {
					code += "\ndef enabled():\n    return " + fill(c.enabled) + "\n"
				}
				fsys[m+"/module.star"] = &fstest.MapFile{Data: []byte(code)}
				fsys[m+"/hooks/h.star"] = &fstest.MapFile{Data: []byte("def f(ctx):\n    values.set(\"size\", " + fill(c.size) + ")\n\nhook(f, on = [" + c.on + "])\n")}
				fsys[m+"/Chart.yaml"] = &fstest.MapFile{Data: []byte("apiVersion: v2\nname: " + m + "\nversion: 1.0.0\n")}
				fsys[m+"/templates/cm.yaml"] = &fstest.MapFile{Data: []byte("apiVersion: v1\nkind: ConfigMap\nmetadata: {name: " + m +
					"}\ndata: {size: \"{{ .Values.size }}\", other: \"{{ .Values.global.exports." + other + ".size }}\"}\n")}
			}
			read, err := tree.Read(fsys, tree.Options{})
			w := world(t, read, err)
			if err := w.Start(t.Context()); err != nil {
				t.Fatal(err)
			}
			runs := len(w.Runs)
			if err := w.Advance(t.Context(), time.Hour); err != nil || len(w.Runs) != runs || runs > 100 {
				t.Errorf("%d runs, an hour later %d: %v", runs, len(w.Runs), err)
			}
			reasons := ""
			for _, m := range w.Status().Modules {
				reasons += m.Reason + "\n"
				if m.State != c.states[m.Name] {
					t.Errorf("%s is %s: %s", m.Name, m.State, m.Reason)
				}
			}
			if c.reason != "" && !strings.Contains(reasons, c.reason) {
				t.Errorf("reasons %q, want %q", reasons, c.reason)
			}
		})
	}
}
