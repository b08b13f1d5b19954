package e2e

import (
	"context"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"
	"helm.sh/helm/v3/pkg/action"
	"helm.sh/helm/v3/pkg/chart/loader"
	"helm.sh/helm/v3/pkg/release"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/yaml"

	"github.com/starling-operator/starling/modules/status"
)

// corpus is what charts/ holds: each chart by its module, with the values of an upgrade.
var corpus = map[string]string{
	"agent":      "{ratio: 0.25, nested: {a: {b: {c: deeper}}}}",
	"batch":      "{rows: 200, report: {enabled: true}}",
	"dashboards": "{title: Machines}",
	"database":   "{auth: {database: shop}, replicas: 2, backup: {enabled: true}}",
	"gateway":    `{controller: {kind: Deployment}, tcp: {"5432": db}, networkPolicy: {enabled: false}}`,
	"metrics":    "{metrics: {enabled: true}, apiService: {annotations: {a: b}}}",
	"migrate":    "{version: 2}",
	"monitors":   "{targets: {api: 4, web: null, mail: 1}}",
	"operator":   "{size: 5, watchNamespaces: [a, b]}",
	"policy":     "{timeoutSeconds: 9}",
	"shop":       "{workloads: {worker: null, mail: {replicas: 1, env: {}}}}",
	"umbrella":   "{pages: {enabled: false}, queue: {enabled: true}}",
	"web":        "{replicaCount: 2, autoscaling: {enabled: true}, service: {type: NodePort}}",
}

// corpusNamespace is that of a module's release.
func corpusNamespace(module string) string { return "charts-" + module }

// Charts as people publish them are released as Helm releases them: after an install, an
// upgrade and an uninstall the cluster holds the same objects as with Helm, but for what
// Starling notes on them.
//
// It is no parallel test: an APIService that nobody serves is in everybody's discovery.
func TestCharts(t *testing.T) {
	f := &fixture{t: t, ns: shared.Namespace(t), name: "starling", modules: copyCorpus(t)}
	var namespaces []string
	for module := range corpus {
		namespaces = append(namespaces, corpusNamespace(module))
	}
	ownNamespaces(t, namespaces...)
	t.Cleanup(func() { clearCorpus(t) })
	// As starling rbac says of the ClusterRole with an aggregationRule.
	f.grantPrintedAnd([]rbacv1.PolicyRule{allow("rbac.authorization.k8s.io", "clusterroles", "escalate")}, corpus)
	f.commands()

	f.start()
	f.waitCorpus(1)
	ours := []map[string]string{snapshot(t)}
	notes := corpusNotes(t)
	sections := map[string]string{}
	maps.Copy(sections, corpus)
	f.configure(sections)
	f.waitCorpus(2)
	ours, notes = append(ours, snapshot(t)), append(notes, corpusNotes(t)...)
	f.nothingToPlan()
	f.heals(ours[1])

	f.refusals(sections)

	off := map[string]string{}
	for module := range corpus {
		off[module+"Enabled"] = "false"
	}
	f.configure(off)
	for module := range corpus {
		f.waitState(module, status.ModuleOff)
		noRelease(t, corpusNamespace(module), module)
	}
	ours = append(ours, waitLeft(t, definedLater))
	for _, objects := range ours[1:] {
		if objects[definedLater] == "" {
			t.Errorf("%s is missing", definedLater)
		}
		delete(objects, definedLater)
	}
	f.stop()
	clearCorpus(t)

	helmDo(t, func(module string) error { return helmInstall(t, f.modules, module) })
	theirs := []map[string]string{snapshot(t)}
	theirNotes := corpusNotes(t)
	helmDo(t, func(module string) error { return helmUpgrade(t, f.modules, module) })
	theirs, theirNotes = append(theirs, snapshot(t)), append(theirNotes, corpusNotes(t)...)
	helmDo(t, func(module string) error {
		_, err := action.NewUninstall(helm(corpusNamespace(module))).Run(module)
		return err
	})
	theirs = append(theirs, waitLeft(t))

	for i, step := range []string{"install", "upgrade", "uninstall"} {
		if diff := cmp.Diff(theirs[i], ours[i]); diff != "" {
			t.Errorf("after the %s (-helm +starling):\n%s", step, diff)
		}
	}
	if diff := cmp.Diff(theirNotes, notes); diff != "" {
		t.Errorf("notes (-helm +starling):\n%s", diff)
	}
	if n := len(ours[0]); n < 60 {
		t.Errorf("the charts have made %d objects, want 60 or more", n)
	}
}

// copyCorpus copies charts/, with a definition of 1 MiB beside the others of its operator.
func copyCorpus(t *testing.T) string {
	t.Helper()
	dir := t.TempDir()
	if err := os.CopyFS(dir, os.DirFS("charts")); err != nil {
		t.Fatal(err)
	}
	var huge strings.Builder
	huge.WriteString(`apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: plants.operator.charts.example}
spec:
  group: operator.charts.example
  names: {kind: Plant, listKind: PlantList, plural: plants, singular: plant}
  scope: Namespaced
  versions:
  - name: v1
    served: true
    storage: true
    schema:
      openAPIV3Schema:
        type: object
        properties:
          spec:
            type: object
            properties:
`)
	for i := 0; huge.Len() < 1<<20; i++ {
		fmt.Fprintf(&huge, "              field%d: {type: string, description: %q}\n", i, strings.Repeat(fmt.Sprintf("Says what part %d of a plant is for. ", i), 60))
	}
	if err := os.WriteFile(filepath.Join(dir, "operator", "chart", "crds", "plants.yaml"), []byte(huge.String()), 0o644); err != nil {
		t.Fatal(err)
	}
	return dir
}

// commands runs those that need no cluster on the corpus.
func (f *fixture) commands() {
	f.t.Helper()
	config := filepath.Join(f.t.TempDir(), "config.yaml")
	sections := map[string]any{}
	for module, text := range corpus {
		sections[module] = corpusValues(f.t, text)
	}
	data, err := yaml.Marshal(sections)
	if err == nil {
		err = os.WriteFile(config, data, 0o644)
	}
	if err != nil {
		f.t.Fatal(err)
	}
	for _, c := range []struct {
		code int
		says string
		args []string
	}{
		{0, "", []string{"check", f.modules}},
		{2, "its ClusterRole metrics-reader takes in others (aggregationRule)", []string{"rbac", f.modules}},
		{2, fmt.Sprintf("releases: %d to install, 0 to upgrade", len(corpus)), []string{"plan", "--offline", "--modules", f.modules}},
		{2, fmt.Sprintf("releases: %d to install, 0 to upgrade", len(corpus)), []string{"plan", "--offline", "--modules", f.modules, "--config", config}},
		{0, "", []string{"test", f.modules + "/..."}},
	} {
		cmd := exec.CommandContext(f.t.Context(), program(), c.args...)
		out, err := cmd.CombinedOutput()
		if code := cmd.ProcessState.ExitCode(); code != c.code || !strings.Contains(string(out), c.says) {
			f.t.Errorf("starling %s: exit code %d, want %d, and %q: %v\n%s", strings.Join(c.args, " "), code, c.code, c.says, err, out)
		}
	}
}

// waitCorpus waits until all releases are deployed as revision n.
func (f *fixture) waitCorpus(n int) {
	f.t.Helper()
	for module := range corpus {
		f.waitRevision(corpusNamespace(module), module, n)
		f.waitState(module, status.ModuleReady)
	}
}

// refusals changes what Helm, and the API server, refuse: each module says why, and nobody
// else is touched.
func (f *fixture) refusals(sections map[string]string) {
	f.t.Helper()
	bad := maps.Clone(sections)
	bad["database"] = "{auth: {database: shop}, replicas: 2, backup: {enabled: true}, storage: {size: 3Gi}}"
	bad["web"] = "{replicas: 2}"
	bad["operator"] = "{size: 11}"
	f.configure(bad)
	f.waitState("database", status.ModuleFailed, "volumeClaimTemplates", "field is immutable")
	f.waitState("web", status.ModuleFailed, "additional properties 'replicas' not allowed")
	f.waitState("operator", status.ModuleFailed, "a widget has up to 10 parts")
	bad["database"] = "{auth: {database: shop}, replicas: 6}"
	f.configure(bad)
	f.waitState("database", status.ModuleFailed, "6 is more than 5")
	f.configure(sections)
	for module := range corpus {
		f.waitState(module, status.ModuleReady)
	}
	f.waitRevision(corpusNamespace("shop"), "shop", 2)
}

// helmDo calls fn for each chart, side by side; that whose kinds others use is first.
func helmDo(t *testing.T, fn func(module string) error) {
	t.Helper()
	if err := fn("operator"); err != nil {
		t.Fatalf("helm, operator: %v", err)
	}
	var all sync.WaitGroup
	var mu sync.Mutex
	failed := map[string]error{}
	for module := range corpus {
		if module == "operator" {
			continue
		}
		all.Go(func() {
			if err := fn(module); err != nil {
				mu.Lock()
				defer mu.Unlock()
				failed[module] = err
			}
		})
	}
	all.Wait()
	if len(failed) > 0 {
		t.Fatalf("helm: %v", failed)
	}
}

func helmInstall(t *testing.T, dir, module string) error {
	ch, err := loader.LoadDir(filepath.Join(dir, module, "chart"))
	if err != nil {
		return err
	}
	install := action.NewInstall(helm(corpusNamespace(module)))
	install.ReleaseName, install.Namespace = module, corpusNamespace(module)
	values := map[string]any{}
	if module == "database" { // as values.yaml of the tree says
		values = corpusValues(t, "{auth: {database: shop}}")
	}
	_, err = install.RunWithContext(t.Context(), ch, values)
	return err
}

func helmUpgrade(t *testing.T, dir, module string) error {
	ch, err := loader.LoadDir(filepath.Join(dir, module, "chart"))
	if err != nil {
		return err
	}
	upgrade := action.NewUpgrade(helm(corpusNamespace(module)))
	upgrade.Namespace = corpusNamespace(module)
	_, err = upgrade.RunWithContext(t.Context(), module, ch, corpusValues(t, corpus[module]))
	return err
}

func corpusValues(t *testing.T, text string) map[string]any {
	t.Helper()
	values := map[string]any{}
	if err := yaml.Unmarshal([]byte(text), &values); err != nil {
		t.Fatal(err)
	}
	return values
}

// corpusNotes are the notes of all releases, as they are now, by module.
func corpusNotes(t *testing.T) (out []string) {
	t.Helper()
	for _, module := range slices.Sorted(maps.Keys(corpus)) {
		all, err := history(corpusNamespace(module), module)
		if err != nil {
			t.Fatal(err)
		}
		last := all[len(all)-1]
		if last.Info.Status != release.StatusDeployed {
			t.Errorf("release %s is %s", module, last.Info.Status)
		}
		out = append(out, module+": "+last.Info.Notes)
	}
	return out
}

// clearCorpus deletes what releases leave behind.
func clearCorpus(t *testing.T) {
	t.Helper()
	for _, module := range slices.Sorted(maps.Keys(corpus)) {
		ns := corpusNamespace(module)
		for _, resource := range left {
			err := shared.Dynamic.Resource(resource).Namespace(ns).DeleteCollection(context.Background(), metav1.DeleteOptions{PropagationPolicy: new(metav1.DeletePropagationBackground)}, metav1.ListOptions{})
			if err != nil {
				t.Errorf("delete %s of %s: %v", resource.Resource, ns, err)
			}
		}
	}
	deleteDefinitions(t)
}
