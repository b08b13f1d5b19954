package e2e

import (
	"encoding/json"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/starling-operator/starling/runtime/record"
)

// recorded is a module whose hook reads a Secret, takes random bytes, and writes.
const recorded = `
def copy(ctx):
    password = k8s.secret("source", "password")
    settings = k8s.get("v1", "ConfigMap", "settings")
    log.info("copies", names = [o.metadata.name for o in ctx.snapshots["configmap"]])
    values.set("token", password)
    k8s.apply({"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "copy"}, "stringData": {
        "password": password, "salt": random.string(20), "at": str(ctx.now), "mode": settings.data.mode,
    }})
    if settings.data.mode == "broken":
        fail("the mode is broken, with " + reveal(password))

hook(copy, on = [k8s.watch("v1", "ConfigMap", namespaces = ["$NS"], object_names = ["settings"])])
`

func TestRecordedRunsReplayWithTheProcessGone(t *testing.T) {
	t.Parallel()
	const secret = "hush-record-71"
	role := least{HooksIn: map[string][]rbacv1.PolicyRule{"$NS": {
		allow("", "configmaps", "get", "list", "watch"), allow("", "secrets", "get", "create", "patch"),
	}}}
	f := newFixture(t, map[string]string{
		"copier/module.star": `module(enabled = True, namespace = "$NS", grants = [
    grant("v1", "Secret", verbs = ["get", "apply"]), grant("v1", "ConfigMap", verbs = ["get"])])`,
		"copier/hooks/copy.star": recorded,
	}, role)
	f.create(&corev1.Secret{ObjectMeta: metav1.ObjectMeta{Name: "source"}, StringData: map[string]string{"password": secret}})
	f.setMode("fine")
	f.start()
	f.waitRuns("copier/hooks/copy.star:copy", 1)
	f.setMode("broken")

	var runs []record.Header
	f.eventually("a run that failed is recorded", func() error {
		out, err := f.process.Get(t.Context(), "runs", "copier")
		if err != nil {
			return err
		}
		if err := json.Unmarshal(out, &runs); err != nil {
			return err
		}
		if len(runs) < 2 || !runs[0].Failed() {
			return fmt.Errorf("there are %+v", runs)
		}
		return nil
	})
	if !strings.Contains(runs[0].Error, "the mode is broken") {
		t.Errorf("the process has not said why it failed: %+v", runs[0])
	}
	fine := runs[len(runs)-1]
	if fine.Failed() || fine.Hook != "copier/hooks/copy.star:copy" || fine.Steps == 0 || fine.Generation != 1 {
		t.Errorf("the first run is %+v", fine)
	}
	dump, err := f.process.Get(t.Context(), "runs", fine.ID)
	if err != nil {
		t.Fatal(err)
	}
	noSecrets(t, dump, secret)

	f.stop()
	// A thief of the folder finds nothing of use.
	noSecrets(t, allBytes(t, f.process.StateDir), secret, "settings", "k8s.apply", "stringData")

	// The key comes out of the cluster now.
	for _, run := range []record.Header{fine, runs[0]} {
		out, err := f.replay(run.ID)
		if err != nil || !strings.Contains(out, "# the same as recorded\n") {
			t.Errorf("replay of %s: %v\n%s", run.ID, err, out)
		}
		if !strings.Contains(out, "k8s.apply v1 Secret "+f.ns+"/copy\n") != run.Failed() || strings.Contains(out, "error: ") != run.Failed() {
			t.Errorf("replay of %s shows\n%s", run.ID, out)
		}
		noSecrets(t, []byte(out), secret)
	}
	// Another version of the hook.
	f.write(map[string]string{"copier/hooks/copy.star": strings.ReplaceAll(recorded, "random.string(20)", `"x"`)})
	out, err := f.replay(fine.ID, "--modules", f.modules)
	if err == nil || !strings.Contains(out, "\n-     stringData:") && !strings.Contains(out, "not the same as recorded") {
		t.Errorf("another version: %v\n%s", err, out)
	}
	f.write(map[string]string{"copier/hooks/copy.star": strings.ReplaceAll(recorded, `"settings")`, `"others")`)})
	if out, err = f.replay(fine.ID, "--modules", f.modules); err == nil || !strings.Contains(out, "the record has no answer to k8s.get of v1 ConfigMap "+f.ns+"/others: the recorded run did not ask") {
		t.Errorf("a read that was not made then: %v\n%s", err, out)
	}

	// A record of another version.
	file := filepath.Join(f.process.StateDir, "records", fine.ID+".run")
	data, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(file, []byte(strings.Replace(string(data), `"format":1,`, `"format":99,`, 1)), 0o600); err != nil {
		t.Fatal(err)
	}
	if out, err = f.replay(fine.ID); err == nil || !strings.Contains(out, "is a record of another version: starling "+fine.Version+" wrote it in format 99") {
		t.Errorf("another version: %v\n%s", err, out)
	}
}

// create makes an object in the namespace of the instance.
func (f *fixture) create(s *corev1.Secret) {
	f.t.Helper()
	if _, err := shared.Client.CoreV1().Secrets(f.ns).Create(f.t.Context(), s, metav1.CreateOptions{}); err != nil {
		f.t.Fatal(err)
	}
}

// setMode writes the ConfigMap that the hook watches.
func (f *fixture) setMode(mode string) {
	f.t.Helper()
	maps := shared.Client.CoreV1().ConfigMaps(f.ns)
	cm := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: "settings"}, Data: map[string]string{"mode": mode}}
	_, err := maps.Update(f.t.Context(), cm, metav1.UpdateOptions{})
	if err != nil {
		_, err = maps.Create(f.t.Context(), cm, metav1.CreateOptions{})
	}
	if err != nil {
		f.t.Fatal(err)
	}
}

// replay runs `starling replay` and returns all that it has said.
func (f *fixture) replay(id string, args ...string) (string, error) {
	args = append([]string{"replay", id, "--namespace", f.ns, "--name", f.name, "--state-dir", f.process.StateDir, "--kubeconfig", f.kube}, args...)
	out, err := exec.CommandContext(f.t.Context(), program(), args...).CombinedOutput()
	return string(out), err
}

// allBytes are all files of a folder, one after the other.
func allBytes(t *testing.T, dir string) []byte {
	t.Helper()
	var all []byte
	if err := filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err != nil || !d.Type().IsRegular() {
			return err
		}
		data, err := os.ReadFile(path)
		all = append(all, data...)
		return err
	}); err != nil {
		t.Fatal(err)
	}
	return all
}
