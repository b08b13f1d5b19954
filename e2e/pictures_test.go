package e2e

import (
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/starling-operator/starling/e2e/cluster"
	"github.com/starling-operator/starling/modules/status"
)

// The pictures of terminals in README.md show what the commands print: docs/pictures has the texts, of which
// tools/pictures makes the pictures. PICTURES=write has the texts written anew.
func TestPictures(t *testing.T) {
	t.Parallel()
	own, err := cluster.Start() // its nodes are counted, and the operator's namespace has its usual name
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := own.Stop(); err != nil {
			t.Error(err)
		}
	})
	const ns = "starling-system"
	own.Apply(t, "{apiVersion: v1, kind: Namespace, metadata: {name: "+ns+"}}")
	f := &fixture{t: t, own: own, ns: ns, name: "starling", modules: filepath.Join(t.TempDir(), "addons"), kube: own.Kubeconfig}
	files := map[string]string{
		"shop/module.star": "module(enabled = True, requires = [\"hello\"])\n\ndef enabled():\n" +
			"    if not values.get(\"global.zone\"):\n        return waiting(\"no zone is known yet\")\n    return True\n",
		"legacy/module.star": "module(enabled = False)\n",
	}
	for _, name := range []string{"quickstart", "sysctl-tuner", "secret-copier"} {
		root := filepath.Join("..", "examples", name)
		err := filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
			if err != nil || d.IsDir() || filepath.Dir(path) == root {
				return err
			}
			text, err := os.ReadFile(path)
			rel, _ := filepath.Rel(root, path)
			files[rel] = string(text)
			return err
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	f.write(files)
	f.waitNode("fake-0")
	f.start()
	f.waitState("hello", status.ModuleReady)
	f.waitState("sysctl-tuner", status.ModuleReady)
	f.waitState("secret-copier", status.ModuleReady)
	f.waitState("shop", status.ModuleWaiting)
	out, err := f.process.Command(t.Context(), "get", "modules")
	if err != nil {
		t.Fatal(err, out)
	}
	showsPicture(t, "get-modules", "starling get modules", out)

	f.stop()
	own.AddNode(t, "fake-1", nil)
	own.Apply(t, "{apiVersion: v1, kind: ConfigMap, metadata: {name: starling, namespace: "+ns+"}, data: {hello: 'greeting: Good morning'}}")
	f.waitNode("fake-1")
	starling, err := filepath.Abs(program())
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.CommandContext(t.Context(), starling, "plan", "addons", "--kubeconfig", own.Kubeconfig, "--namespace", ns)
	cmd.Dir = filepath.Dir(f.modules)
	text, err := cmd.Output()
	if cmd.ProcessState.ExitCode() != 2 {
		t.Fatalf("%v\n%s", err, text)
	}
	showsPicture(t, "plan", "starling plan addons", string(text))
}

// waitNode waits until a node is Ready.
func (f *fixture) waitNode(name string) {
	f.t.Helper()
	f.eventually(name+" is ready", func() error {
		n, err := f.cluster().Client.CoreV1().Nodes().Get(f.t.Context(), name, metav1.GetOptions{})
		if err != nil {
			return err
		}
		for _, c := range n.Status.Conditions {
			if c.Type == corev1.NodeReady && c.Status == corev1.ConditionTrue {
				return nil
			}
		}
		return fmt.Errorf("its conditions are %v", n.Status.Conditions)
	})
}

// showsPicture compares a command and what it has printed with the text that a picture is made of.
func showsPicture(t *testing.T, name, command, printed string) {
	t.Helper()
	file := filepath.Join("..", "docs", "pictures", name+".txt")
	// Ages differ, and with them the width of their column.
	got := "$ " + command + "\n" + regexp.MustCompile(`\bAGE +`).ReplaceAllString(printed, "AGE   ")
	got = regexp.MustCompile(`\b(\d+[hms])+ +`).ReplaceAllString(got, "9s    ")
	got = regexp.MustCompile(`\b(\d+[hms])+\n`).ReplaceAllString(got, "9s\n")
	if os.Getenv("PICTURES") == "write" {
		if err := os.WriteFile(file, []byte(got), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(file)
	if err != nil || string(want) != got {
		t.Errorf("%s shows something else (%v): PICTURES=write go test -tags e2e ./e2e -run Pictures, then make pictures\n%s", file, err, got)
	}
}
