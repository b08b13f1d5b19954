package e2e

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"helm.sh/helm/v3/pkg/action"
	"helm.sh/helm/v3/pkg/chart"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/starling-operator/starling/modules/status"
)

// oldTree is that of an addon-operator: two modules with releases that it has installed, of which one gets a
// value from a hook, and the user's ConfigMap.
var oldTree = map[string]string{
	"values.yaml":                    "global: {zone: north}\n",
	"010-web/Chart.yaml":             "name: web\nversion: 0.2.0\n",
	"010-web/values.yaml":            "web: {text: default}\nwebEnabled: true\n",
	"010-web/templates/config.yaml":  oldTemplate("web", ".Values.web.text"),
	"020-feed/values.yaml":           "feedEnabled: true\n",
	"020-feed/templates/config.yaml": oldTemplate("feed", ".Values.feed.text"),
	"020-feed/hooks/discover.sh":     "#!/bin/bash\nif [[ $1 == --config ]]; then\n  cat <<EOF\nconfigVersion: v1\nkubernetes:\n- name: source\n  kind: cm\n  namespace: {nameSelector: {matchNames: [$NS]}}\n  labelSelector: {matchLabels: {e2e: $NS}}\n  jqFilter: '.data.text'\nEOF\nfi\ntouch $NS-was-run\n",
}

func oldTemplate(name, text string) string {
	return "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: " + name + "-config}\ndata:\n  zone: {{ .Values.global.zone }}\n  text: {{ " + text + " | quote }}\n"
}

// A tree of addon-operator is brought over, and Starling takes its releases over where they are: no
// object is deleted or made anew, and the release of a module whose hook is not written stays
// untouched until it is.
func TestATreeOfAddonOperatorIsTakenOver(t *testing.T) {
	t.Parallel()
	f := newFixture(t, nil)
	f.touch("source", "from a hook")
	for name, values := range map[string]map[string]any{
		"web":  {"web": map[string]any{"text": "from the user"}},
		"feed": {"feed": map[string]any{"text": "from a hook"}},
	} {
		values["global"] = map[string]any{"zone": "north"}
		install := action.NewInstall(helm(f.ns))
		install.ReleaseName, install.Namespace = name, f.ns
		if _, err := install.RunWithContext(t.Context(), &chart.Chart{
			Metadata:  &chart.Metadata{APIVersion: chart.APIVersionV1, Name: name, Version: "0.2.0"},
			Templates: []*chart.File{{Name: "templates/config.yaml", Data: []byte(oldTemplate(name, ".Values."+name+".text"))}},
		}, values); err != nil {
			t.Fatal(err)
		}
	}
	f.configure(map[string]string{"web": "text: from the user\n"})
	uids := func() (out [2]types.UID) {
		for i, name := range []string{"web-config", "feed-config"} {
			cm, err := shared.Client.CoreV1().ConfigMaps(f.ns).Get(t.Context(), name, metav1.GetOptions{})
			if err != nil {
				t.Fatal(err)
			}
			out[i] = cm.UID
		}
		return out
	}
	before := uids()

	old := t.TempDir()
	for name, text := range oldTree {
		path := filepath.Join(old, name)
		mode := os.FileMode(0o644)
		if strings.HasPrefix(text, "#!") {
			mode = 0o755
		}
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(strings.ReplaceAll(text, "$NS", f.ns)), mode); err != nil {
			t.Fatal(err)
		}
	}
	if out, err := exec.CommandContext(t.Context(), program(), "new", "--from-addon-operator", old, "--modules", f.modules).CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	f.start()
	f.waitState("web", status.ModuleReady)
	f.waitRevision(f.ns, "web", 2) // its objects have Starling's label now
	f.waitData("web-config", map[string]string{"zone": "north", "text": "from the user"})
	f.waitState("feed", status.ModuleWaiting, "not yet written")
	f.waitRevision(f.ns, "feed", 1)

	// The hook is written.
	edit := func(name, from, to string) string {
		text, err := os.ReadFile(filepath.Join(f.modules, name))
		if err != nil || !strings.Contains(string(text), from) {
			t.Fatalf("%s holds no %q: %s (%v)", name, from, text, err)
		}
		return strings.Replace(string(text), from, to, 1)
	}
	f.write(map[string]string{
		"020-feed/hooks/discover.star": edit("020-feed/hooks/discover.star", `fail("not yet written: 020-feed/hooks/discover.sh", permanent = True)`, `values.set("text", ctx.snapshots["source"][0])`),
		"020-feed/module.star":         edit("020-feed/module.star", `return waiting("not yet written: its hooks")`, "return True"),
	})
	f.waitState("feed", status.ModuleReady)
	f.waitRevision(f.ns, "feed", 2)
	f.waitData("feed-config", map[string]string{"zone": "north", "text": "from a hook"})
	if after := uids(); after != before {
		t.Errorf("objects were made anew: %v, then %v", before, after)
	}
	if _, err := os.Stat(f.ns + "-was-run"); err == nil {
		t.Error("the old hook was run")
	}
}
