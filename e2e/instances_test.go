package e2e

import (
	"encoding/json"
	"os"
	"strings"
	"testing"

	"github.com/itchyny/gojq"
	"helm.sh/helm/v3/pkg/action"
	"helm.sh/helm/v3/pkg/chart"
	"helm.sh/helm/v3/pkg/storage"
	"helm.sh/helm/v3/pkg/storage/driver"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/starling-operator/starling/modules/status"
)

// Two instances share namespaces. A module that goes from the tree of one is uninstalled,
// by that instance alone; what belongs to the other is neither taken over nor
// uninstalled, even under the same name.
func TestInstancesLeaveEachOtherAlone(t *testing.T) {
	t.Parallel()
	b := newFixture(t, trees(mirror("common", on), mirror("ours", on)))
	b.start()
	b.waitRevision(b.ns, "common", 1)
	b.waitRevision(b.ns, "ours", 1)

	a := b.beside("a", trees(mirror("common", on), mirror("web", on), mirror("old", on), probe()))
	a.start()
	a.waitRevision(a.ns, "web", 1)
	a.waitRevision(a.ns, "old", 1)
	a.waitState("common", status.ModuleFailed, "release common", "belongs to")
	a.waitReady()

	// Even an explicit no does not reach the release of another instance.
	a.configure(map[string]string{"commonEnabled": "false"})
	a.waitState("common", status.ModuleFailed, "belongs to")
	b.waitRevision(b.ns, "common", 1)

	a.restart(map[string]string{"common": "", "old": ""})
	a.waitReady()
	a.eventually("the module that went from the tree is uninstalled", func() error {
		return holds(a.said(), []string{`"message":"uninstalled"`})
	})
	a.waitState("web", status.ModuleReady)
	noRelease(t, a.ns, "old")
	if _, err := configMap(t, a.ns, "old"); err == nil {
		t.Error("the ConfigMap of that module is still there")
	}
	a.waitRevision(a.ns, "web", 1)
	b.waitRevision(b.ns, "common", 1)
	b.waitRevision(b.ns, "ours", 1)

	// Nor does B see anything to do in what A left.
	b.restart()
	b.waitReady()
	b.waitState("common", status.ModuleReady)
	a.waitRevision(a.ns, "web", 1)
	b.waitRevision(b.ns, "common", 1)
}

// A release that somebody installed with plain Helm stays theirs.
func TestReleaseOfPlainHelm(t *testing.T) {
	t.Parallel()
	f := newFixture(t, trees(mirror("web", on), probe()))
	install := action.NewInstall(helm(f.ns))
	install.ReleaseName, install.Namespace = "web", f.ns
	_, err := install.RunWithContext(t.Context(), &chart.Chart{
		Metadata: &chart.Metadata{APIVersion: chart.APIVersionV2, Name: "theirs", Version: "1.0.0"},
		Templates: []*chart.File{{Name: "templates/cm.yaml", Data: []byte(
			"apiVersion: v1\nkind: ConfigMap\nmetadata: {name: web}\ndata: {text: theirs}\n")}},
	}, nil)
	if err != nil {
		t.Fatal(err)
	}
	before := restingPicture(t, f.ns)

	f.start()
	f.waitReady()
	f.waitState("web", status.ModuleFailed, "release web", "belongs to", "another namespace")
	f.configure(map[string]string{"webEnabled": "false"})
	f.waitConfig(status.ConfigOK)
	f.probe()
	f.waitReady()

	f.restart(map[string]string{"web": ""})
	f.waitReady()
	f.probe()
	f.waitData("web", map[string]string{"text": "theirs"})
	after := takePicture(t, f.ns)
	for key, version := range before {
		if after[key] != version {
			t.Errorf("%s has changed", key)
		}
	}
}

// With module(adopt = True) a release of plain Helm is upgraded in place, also one whose records were in
// ConfigMaps, and an object that is there already is taken into the release.
func TestReleaseOfPlainHelmIsAdopted(t *testing.T) {
	t.Parallel()
	f := newFixture(t, trees(mirror("web", `module(enabled = True, namespace = "$NS", adopt = True)`), probe()))
	inConfigMaps := helm(f.ns) // as HELM_DRIVER=configmap has it
	inConfigMaps.Releases = storage.Init(driver.NewConfigMaps(shared.Client.CoreV1().ConfigMaps(f.ns)))
	install := action.NewInstall(inConfigMaps)
	install.ReleaseName, install.Namespace = "web", f.ns
	if _, err := install.RunWithContext(t.Context(), &chart.Chart{
		Metadata: &chart.Metadata{APIVersion: chart.APIVersionV2, Name: "theirs", Version: "1.0.0"},
		Templates: []*chart.File{{Name: "templates/cm.yaml", Data: []byte(
			"apiVersion: v1\nkind: ConfigMap\nmetadata: {name: theirs}\ndata: {text: theirs}\n")}},
	}, nil); err != nil {
		t.Fatal(err)
	}
	f.makeSecrets()
	shared.Apply(t, "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: web, namespace: "+f.ns+"}\ndata: {old: \"1\"}\n")
	f.start()
	f.waitReady()
	f.waitState("web", status.ModuleReady)
	rel := f.waitRevision(f.ns, "web", 2)
	if rel.Chart.Metadata.Name == "theirs" {
		t.Error("the release was not upgraded")
	}
	if _, err := configMap(t, f.ns, "theirs"); !apierrors.IsNotFound(err) {
		t.Errorf("an object of the old chart is left: %v", err)
	}
	f.restart()
	f.waitReady()
	f.waitRevision(f.ns, "web", 2)
}

// makeSecrets makes Secrets of the records of releases in ConfigMaps, by the program of docs/from-addon-operator.md.
func (f *fixture) makeSecrets() {
	f.t.Helper()
	page, err := os.ReadFile("../docs/from-addon-operator.md")
	if err != nil {
		f.t.Fatal(err)
	}
	_, rest, _ := strings.Cut(string(page), "| jq '")
	program, _, found := strings.Cut(rest, "' | kubectl create")
	query, err := gojq.Parse(program)
	if err != nil || !found {
		f.t.Fatalf("the page has no program: %v", err)
	}
	list, err := shared.Client.CoreV1().ConfigMaps(f.ns).List(f.t.Context(), metav1.ListOptions{LabelSelector: "owner=helm"})
	if err != nil || len(list.Items) != 1 {
		f.t.Fatalf("%d records, %v", len(list.Items), err)
	}
	var plain any
	through(f.t, list, &plain)
	made, _ := query.Run(plain).Next()
	var secrets corev1.SecretList
	through(f.t, made, &secrets)
	for _, s := range secrets.Items {
		if _, err := shared.Client.CoreV1().Secrets(f.ns).Create(f.t.Context(), &s, metav1.CreateOptions{}); err != nil {
			f.t.Fatal(err)
		}
	}
}

// through reads JSON of one thing as another one.
func through(t *testing.T, from, into any) {
	t.Helper()
	data, err := json.Marshal(from)
	if err == nil {
		err = json.Unmarshal(data, into)
	}
	if err != nil {
		t.Fatal(err)
	}
}

// A tree that lost all its modules, or is gone, is a mistake, never a wish: the start
// fails with one clear line and nothing is uninstalled.
func TestEmptyTreeUninstallsNothing(t *testing.T) {
	t.Parallel()
	f := newFixture(t, mirror("web", on))
	f.start()
	f.waitRevision(f.ns, "web", 1)
	f.stop()
	before := restingPicture(t, f.ns)

	f.write(map[string]string{"web": ""})
	f.start()
	f.fails(f.modules, "no module")
	f.write(map[string]string{".": ""})
	f.start()
	f.fails(f.modules, "cannot read the modules folder")
	before.same(t, f.ns)
}

// fails waits until the process has ended with an error: an exit code that is not 0,
// and one last line that holds the texts.
func (f *fixture) fails(texts ...string) {
	f.t.Helper()
	code := f.process.Wait(soon)
	out := f.process.Output()
	if code <= 0 {
		f.t.Errorf("exit code %d", code)
	}
	lines := strings.Split(strings.TrimSpace(out), "\n")
	last := lines[len(lines)-1]
	if !strings.HasPrefix(last, "error: ") {
		f.t.Errorf("the last line is no error: %s", last)
	}
	if err := holds(last, texts); err != nil {
		f.t.Error(err)
	}
	if strings.Contains(out, "goroutine ") {
		f.t.Errorf("it panicked: %s", out)
	}
}

// A module that requires another one waits until that is ready. When the requirement
// is switched off, the module that needs it is off too, but stays installed.
func TestRequires(t *testing.T) {
	t.Parallel()
	f := newFixture(t, trees(mirror("base", on), mirror("top", `module(enabled = True, requires = ["base"])`), probe(), map[string]string{
		"base/hooks/a.star": `
def gate(ctx):
    if not ctx.snapshots["cms"]:
        fail("not yet")

hook(gate, on = [k8s.watch("v1", "ConfigMap", name = "cms", namespaces = ["$NS"], labels = {"e2e": "$NS"},
                           filter = lambda o: o.data["text"] == "go" or None)])
`}))
	f.start()
	f.waitState("base", status.ModuleFailed, "not yet")
	f.waitState("top", status.ModuleBlocked, "waits for base to be ready")
	f.waitReady()
	noRelease(t, f.ns, "top")

	f.touch("gate", "go")
	base, top := f.waitRevision(f.ns, "base", 1), f.waitRevision(f.ns, "top", 1)
	if top.Info.FirstDeployed.Before(base.Info.FirstDeployed) {
		t.Error("the module was installed before its requirement")
	}

	f.configure(map[string]string{"baseEnabled": "false", "top": "text: later"})
	f.waitState("base", status.ModuleOff, "baseEnabled: false")
	f.waitState("top", status.ModuleOff, "requires base, which is off", "its release stays as it is")
	noRelease(t, f.ns, "base")
	f.probe()
	f.waitData("top", map[string]string{"text": "plain"})
	f.waitRevision(f.ns, "top", 1)

	f.configure(map[string]string{"top": "text: later"})
	f.waitRevision(f.ns, "base", 1)
	f.waitData("top", map[string]string{"text": "later"})
	f.waitRevision(f.ns, "top", 2)
}

// The promises of examples/dependencies.
func TestDependencies(t *testing.T) {
	t.Parallel()
	f := example(t, "dependencies")
	ownNamespaces(t, "database", "app")
	f.start()
	database, app := f.waitRevision("database", "database", 1), f.waitRevision("app", "app", 1)
	if app.Info.FirstDeployed.Before(database.Info.LastDeployed) {
		t.Errorf("app was installed at %s, database deployed at %s", app.Info.FirstDeployed, database.Info.LastDeployed)
	}
	if !strings.Contains(app.Manifest, "database.database.svc:5432") {
		t.Errorf("app does not know the database:\n%s", app.Manifest)
	}
	f.waitState("app", status.ModuleReady)

	f.configure(map[string]string{"databaseEnabled": "false"})
	f.waitState("database", status.ModuleOff, "databaseEnabled: false")
	f.waitState("app", status.ModuleOff, "requires database, which is off", "stays")
	noRelease(t, "database", "database")
	f.waitRevision("app", "app", 1)

	f.configure(map[string]string{"databaseEnabled": "true"})
	f.waitRevision("database", "database", 1)
	f.waitState("app", status.ModuleReady)
	f.waitRevision("app", "app", 1)
}
