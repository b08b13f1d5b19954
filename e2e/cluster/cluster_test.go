package cluster

import (
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"os"
	"os/signal"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/clientcmd"
)

// playStarling in the environment makes this test binary play bin/starling.
const playStarling = "STARLING_E2E_PLAY"

var shared *Cluster

func TestMain(m *testing.M) {
	if os.Getenv(playStarling) != "" {
		play(os.Args[1:])
	}
	os.Exit(Main(m, &shared))
}

// play prints its arguments as JSON; as `run` it stays until SIGTERM.
func play(args []string) {
	terminated := make(chan os.Signal, 1)
	signal.Notify(terminated, syscall.SIGTERM)
	_ = json.NewEncoder(os.Stdout).Encode(args)
	if args[0] == "run" {
		fmt.Println(`{"level":"info","listen":"127.0.0.1:4711","message":"starling starts"}`)
	}
	if args[len(args)-1] == "--fail" {
		fmt.Fprintln(os.Stderr, "as asked")
		os.Exit(3)
	}
	if args[0] == "run" {
		<-terminated
		fmt.Println("terminated")
	}
	os.Exit(0)
}

func TestNamespace(t *testing.T) {
	var name string
	t.Run("Made & gone", func(t *testing.T) {
		name = shared.Namespace(t)
		if !strings.HasPrefix(name, "testnamespace-made-gone-") {
			t.Errorf("namespace %q is not named after its test", name)
		}
		if other := shared.Namespace(t); other == name {
			t.Errorf("a second namespace is called %q too", other)
		}
	})
	ns, err := shared.Client.CoreV1().Namespaces().Get(t.Context(), name, metav1.GetOptions{})
	if err == nil && ns.DeletionTimestamp == nil {
		t.Errorf("namespace %s stays after its test", name)
	}
}

func TestServiceAccountKubeconfig(t *testing.T) {
	ns, other := shared.Namespace(t), shared.Namespace(t)
	file := shared.ServiceAccountKubeconfig(t, ns, "narrow", Access{
		Cluster:    []rbacv1.PolicyRule{{Verbs: []string{"list"}, APIGroups: []string{""}, Resources: []string{"nodes"}}},
		Namespaced: map[string][]rbacv1.PolicyRule{ns: {{Verbs: []string{"get", "create"}, APIGroups: []string{""}, Resources: []string{"configmaps"}}}},
	})
	config, err := clientcmd.BuildConfigFromFlags("", file)
	if err != nil {
		t.Fatal(err)
	}
	client, err := kubernetes.NewForConfig(config)
	if err != nil {
		t.Fatal(err)
	}
	ctx := t.Context()
	cm := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: "a"}}
	if _, err := client.CoreV1().ConfigMaps(ns).Create(ctx, cm, metav1.CreateOptions{}); err != nil {
		t.Errorf("what the Role allows: %v", err)
	}
	if _, err := client.CoreV1().Nodes().List(ctx, metav1.ListOptions{}); err != nil {
		t.Errorf("what the ClusterRole allows: %v", err)
	}
	for what, err := range map[string]error{
		"delete a ConfigMap": client.CoreV1().ConfigMaps(ns).Delete(ctx, "a", metav1.DeleteOptions{}),
		"create a ConfigMap elsewhere": func() error {
			_, err := client.CoreV1().ConfigMaps(other).Create(ctx, cm, metav1.CreateOptions{})
			return err
		}(),
		"list Secrets": func() error {
			_, err := client.CoreV1().Secrets(ns).List(ctx, metav1.ListOptions{})
			return err
		}(),
	} {
		if !apierrors.IsForbidden(err) {
			t.Errorf("%s: got %v, want it forbidden", what, err)
		}
	}
}

func TestServiceAccountWithClusterRole(t *testing.T) {
	ns := shared.Namespace(t)
	file := shared.ServiceAccountKubeconfig(t, ns, "viewer", Access{ClusterRoles: []string{"view"}})
	config, err := clientcmd.BuildConfigFromFlags("", file)
	if err != nil {
		t.Fatal(err)
	}
	client, err := kubernetes.NewForConfig(config)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := client.CoreV1().ConfigMaps(metav1.NamespaceAll).List(t.Context(), metav1.ListOptions{}); err != nil {
		t.Error(err)
	}
}

func TestApply(t *testing.T) {
	ns := shared.Namespace(t)
	group := ns + ".example.com" // CRDs are seen by all tests
	t.Cleanup(func() {
		crds := shared.Dynamic.Resource(schema.GroupVersionResource{Group: "apiextensions.k8s.io", Version: "v1", Resource: "customresourcedefinitions"})
		_ = crds.Delete(t.Context(), "lamps."+group, metav1.DeleteOptions{})
	})
	manifests := fmt.Sprintf(`# a kind that is not there yet, and one of it
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: lamps.%[1]s}
spec:
  group: %[1]s
  names: {kind: Lamp, plural: lamps}
  scope: Namespaced
  versions:
  - {name: v1, served: true, storage: true, schema: {openAPIV3Schema: {type: object, x-kubernetes-preserve-unknown-fields: true}}}
---
# nothing
---
apiVersion: %[1]s/v1
kind: Lamp
metadata: {name: desk, namespace: %[2]s}
spec: {lit: true}
`, group, ns)
	shared.Apply(t, manifests)
	shared.Apply(t, manifests)
	lamp, err := shared.Dynamic.Resource(schema.GroupVersionResource{Group: group, Version: "v1", Resource: "lamps"}).
		Namespace(ns).Get(t.Context(), "desk", metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	if got := lamp.Object["spec"]; !cmp.Equal(got, map[string]any{"lit": true}) {
		t.Errorf("spec is %v", got)
	}
}

func TestAddNode(t *testing.T) {
	shared.AddNode(t, "lab", map[string]string{"rack": "7"})
	Eventually(t, settleTimeout, "node lab is Ready", func() error {
		node, err := shared.Client.CoreV1().Nodes().Get(t.Context(), "lab", metav1.GetOptions{})
		if err != nil {
			return err
		}
		for _, c := range node.Status.Conditions {
			if c.Type == corev1.NodeReady && c.Status == corev1.ConditionTrue && node.Labels["rack"] == "7" {
				return nil
			}
		}
		return fmt.Errorf("labels %v, conditions %v", node.Labels, node.Status.Conditions)
	})
}

func TestEventually(t *testing.T) {
	calls := 0
	Eventually(t, time.Minute, "the third call", func() error {
		if calls++; calls < 3 {
			return errors.New("not yet")
		}
		return nil
	})
	if calls != 3 {
		t.Errorf("%d calls, want 3", calls)
	}
	if err := poll(time.Millisecond, func() error { return errors.New("never") }, nil); err == nil || err.Error() != "never" {
		t.Errorf("after the timeout: %v, want the last error", err)
	}
}

func TestStarling(t *testing.T) {
	t.Setenv("STARLING_BIN", os.Args[0])
	t.Setenv(playStarling, "1")
	printed := func(s *Starling, what string) {
		t.Helper()
		Eventually(t, settleTimeout, what, func() error {
			if out := s.Output(); !strings.Contains(out, what) {
				return fmt.Errorf("printed %q", out)
			}
			return nil
		})
	}

	s := shared.Starling(t, Options{Modules: "tree", Namespace: "ops", Args: []string{"--pause"}})
	printed(s, `["run","--modules","tree","--namespace","ops","--name","starling","--kubeconfig","`+shared.Kubeconfig+
		`","--listen","127.0.0.1:0","--state-dir","`+s.StateDir+`","--module-objects=false","--pause"]`)
	if len(filepath.Join(s.StateDir, "ops.starling.sock")) > 60 {
		t.Errorf("state folder %s leaves no room for a socket's name", s.StateDir)
	}
	if got := s.Address(); got != "127.0.0.1:4711" {
		t.Errorf("address %q", got)
	}
	got, err := s.Get(t.Context(), "modules", "app")
	if want := `["get","modules","app","-o","json","--namespace","ops","--name","starling","--state-dir","` + s.StateDir + "\"]\n"; err != nil || string(got) != want {
		t.Errorf("get: %s, %v; want %s", got, err, want)
	}
	if code := s.Stop(); code != 0 || !strings.HasSuffix(s.Output(), "terminated\n") {
		t.Errorf("stopped with exit code %d and %q", code, s.Output())
	}

	again := shared.Starling(t, Options{Modules: "tree", Namespace: "ops", Name: "b", Kubeconfig: "narrow", StateDir: s.StateDir})
	printed(again, `"--name","b","--kubeconfig","narrow","--listen","127.0.0.1:0","--state-dir","`+s.StateDir+`","--module-objects=false"]`)
	again.Kill()
	if code := again.Wait(time.Second); code != -1 {
		t.Errorf("killed: exit code %d, want -1", code)
	}

	failing := shared.Starling(t, Options{Modules: "tree", Namespace: "ops", Args: []string{"--fail"}})
	if code := failing.Wait(settleTimeout); code != 3 || !strings.Contains(failing.Output(), "as asked") {
		t.Errorf("exit code %d, want 3; printed %q", code, failing.Output())
	}
}

// An address is nobody else's, and may be listened at again and again.
func TestAddress(t *testing.T) {
	address := Address()
	if other := Address(); other == address {
		t.Errorf("%s is given twice", address)
	}
	for range 2 {
		ln, err := net.Listen("tcp", address)
		if err != nil {
			t.Fatal(err)
		}
		_ = ln.Close()
	}
}

func TestFind(t *testing.T) {
	if got, err := find("STARLING_NO_SUCH_VARIABLE", "devcluster"); err != nil || filepath.Base(got) != "devcluster" {
		t.Errorf("devcluster: %q, %v", got, err)
	}
	t.Setenv("STARLING_BIN", "/elsewhere/starling")
	if got, err := find("STARLING_BIN", "starling"); err != nil || got != "/elsewhere/starling" {
		t.Errorf("named by the environment: %q, %v", got, err)
	}
	root := t.TempDir()
	if err := os.WriteFile(filepath.Join(root, "go.mod"), []byte("module github.com/starling-operator/starling\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	t.Chdir(root)
	if _, err := find("STARLING_NO_SUCH_VARIABLE", "devcluster"); err == nil || !strings.Contains(err.Error(), "run make devcluster first") {
		t.Errorf("missing: %v", err)
	}
}

func TestStartSaysWhyNot(t *testing.T) {
	t.Setenv("STARLING_DEVCLUSTER", os.Args[0])
	t.Setenv(playStarling, "1")
	if _, err := Start(); err == nil || !strings.Contains(err.Error(), "--kubeconfig") {
		t.Errorf("got %v, want what the program printed", err)
	}
}
