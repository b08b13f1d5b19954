// Package test checks the built devcluster from outside. It does not import it: the
// control plane would be compiled and linked once more.
package test

import (
	"bufio"
	"bytes"
	"context"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/clientcmd"
)

// The tests run the built program: a process can hold one cluster in its life.

func program(t *testing.T) string {
	path := os.Getenv("STARLING_DEVCLUSTER")
	if path == "" {
		path = filepath.Join("..", "..", "..", "bin", "devcluster")
	}
	if _, err := os.Stat(path); err != nil {
		t.Fatalf("%v: run make devcluster first", err)
	}
	return path
}

// running is a devcluster that has said that it is ready.
type running struct {
	t      *testing.T
	cmd    *exec.Cmd
	line   string // that it printed
	rest   *bufio.Scanner
	stderr *bytes.Buffer
}

func startCluster(t *testing.T, args ...string) *running {
	t.Helper()
	r := &running{t: t, cmd: exec.Command(program(t), args...), stderr: &bytes.Buffer{}}
	r.cmd.Stderr = r.stderr
	stdout, err := r.cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := r.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = r.cmd.Process.Kill() })
	r.rest = bufio.NewScanner(stdout)
	if !r.rest.Scan() {
		_ = r.cmd.Wait()
		t.Fatalf("no line on stdout; stderr: %s", r.stderr)
	}
	r.line = r.rest.Text()
	return r
}

// stop sends s and checks for a clean end without another word.
func (r *running) stop(s syscall.Signal) {
	r.t.Helper()
	if err := r.cmd.Process.Signal(s); err != nil {
		r.t.Fatal(err)
	}
	for r.rest.Scan() {
		r.t.Errorf("one more line on stdout: %s", r.rest.Text())
	}
	if err := r.cmd.Wait(); err != nil {
		r.t.Errorf("after %s: %v", s, err)
	}
	if r.stderr.Len() > 0 {
		r.t.Errorf("on stderr: %s", r.stderr)
	}
}

func client(t *testing.T, kubeconfig string) kubernetes.Interface {
	t.Helper()
	config, err := clientcmd.BuildConfigFromFlags("", kubeconfig)
	if err != nil {
		t.Fatal(err)
	}
	c, err := kubernetes.NewForConfig(config)
	if err != nil {
		t.Fatal(err)
	}
	return c
}

func eventually(t *testing.T, what string, check func() error) {
	t.Helper()
	var last error
	if err := wait.PollUntilContextTimeout(t.Context(), 20*time.Millisecond, 4*time.Minute, true, func(context.Context) (bool, error) {
		last = check()
		return last == nil, nil
	}); err != nil {
		t.Fatalf("%s: %v: %v", what, err, last)
	}
}

func ready(node *corev1.Node) bool {
	return slices.ContainsFunc(node.Status.Conditions, func(c corev1.NodeCondition) bool {
		return c.Type == corev1.NodeReady && c.Status == corev1.ConditionTrue
	})
}

func TestCluster(t *testing.T) {
	dir, kubeconfig := t.TempDir(), filepath.Join(t.TempDir(), "kubeconfig")
	first := startCluster(t, "--kubeconfig", kubeconfig, "--dir", dir, "--nodes", "2")
	want := regexp.MustCompile(`^ready: https://127\.0\.0\.1:\d+ kubeconfig=` + kubeconfig + ` log=` + dir + `/devcluster\.log \(\d+\.\ds\)$`)
	if !want.MatchString(first.line) {
		t.Errorf("stdout is %q, want %s", first.line, want)
	}
	if info, err := os.Stat(kubeconfig); err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("kubeconfig: %v, %v; want mode 0600", info, err)
	}
	c, ctx := client(t, kubeconfig), t.Context()

	v, err := c.Discovery().ServerVersion()
	if err != nil {
		t.Fatal(err)
	}
	if mod, err := os.ReadFile("../go.mod"); err != nil || !strings.Contains(string(mod), "\tk8s.io/kubernetes "+v.GitVersion+"\n") || !strings.HasPrefix(v.GitVersion, "v"+v.Major+"."+v.Minor+".") {
		t.Errorf("the server says it is %s (%s.%s), go.mod says otherwise (%v)", v.GitVersion, v.Major, v.Minor, err)
	}
	if _, err := c.CoreV1().ConfigMaps("default").Create(ctx, &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: "kept"}}, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	t.Run("nodes", func(t *testing.T) { testNodes(t, c) })
	t.Run("pods", func(t *testing.T) { testPods(t, c) })
	t.Run("folder in use", func(t *testing.T) {
		refused(t, "folder "+dir+" is in use by another devcluster", "--kubeconfig", filepath.Join(t.TempDir(), "k"), "--dir", dir)
	})
	if err := first.cmd.Process.Signal(syscall.SIGUSR1); err != nil {
		t.Fatal(err)
	}
	if !first.rest.Scan() || !strings.HasPrefix(first.rest.Text(), "compacted: etcd up to revision ") {
		t.Errorf("after SIGUSR1: %q, %s", first.rest.Text(), first.stderr)
	}
	first.stop(syscall.SIGINT)

	here, err := os.Getwd()
	if err != nil {
		t.Fatal(err)
	}
	relative, err := filepath.Rel(here, dir) // also of a path that hangs on the folder of the process
	if err != nil {
		t.Fatal(err)
	}
	second := startCluster(t, "--kubeconfig", kubeconfig, "--dir", relative, "--nodes", "2")
	if _, err := client(t, kubeconfig).CoreV1().ConfigMaps("default").Get(ctx, "kept", metav1.GetOptions{}); err != nil {
		t.Errorf("after a restart: %v", err)
	}
	_ = second.cmd.Process.Kill() // without a chance to clean up
	_ = second.cmd.Wait()

	third := startCluster(t, "--kubeconfig", kubeconfig, "--dir", dir)
	if _, err := client(t, kubeconfig).CoreV1().ConfigMaps("default").Get(ctx, "kept", metav1.GetOptions{}); err != nil {
		t.Errorf("after kill -9: %v", err)
	}
	third.stop(syscall.SIGTERM)
}

// testNodes adds and deletes a node as a user with kubectl would.
func testNodes(t *testing.T, c kubernetes.Interface) {
	ctx := t.Context()
	node := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "added", Labels: map[string]string{"type": "fake"}}}
	if _, err := c.CoreV1().Nodes().Create(ctx, node, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	eventually(t, "the added node", func() error {
		n, err := c.CoreV1().Nodes().Get(ctx, "added", metav1.GetOptions{})
		if err != nil {
			return err
		}
		if !ready(n) || len(n.Spec.Taints) > 0 || n.Labels[corev1.LabelHostname] != "added" {
			return fmt.Errorf("labels %v, taints %v, conditions %v", n.Labels, n.Spec.Taints, n.Status.Conditions)
		}
		lease, err := c.CoordinationV1().Leases(corev1.NamespaceNodeLease).Get(ctx, "added", metav1.GetOptions{})
		if err == nil && lease.OwnerReferences[0].UID != n.UID {
			err = fmt.Errorf("the lease belongs to %s", lease.OwnerReferences[0].UID)
		}
		return err
	})

	// Down by hand stays down.
	_, err := c.CoreV1().Nodes().Patch(ctx, "added", "application/strategic-merge-patch+json",
		[]byte(`{"status":{"conditions":[{"type":"Ready","status":"False"}]}}`), metav1.PatchOptions{}, "status")
	if err != nil {
		t.Fatal(err)
	}
	eventually(t, "the taint of a node that is down", func() error {
		n, err := c.CoreV1().Nodes().Get(ctx, "added", metav1.GetOptions{})
		if err == nil && len(n.Spec.Taints) == 0 {
			err = fmt.Errorf("no taint; conditions %v", n.Status.Conditions)
		}
		return err
	})

	if err := c.CoreV1().Nodes().Delete(ctx, "added", metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	eventually(t, "the deleted node's lease", func() error {
		if _, err := c.CoordinationV1().Leases(corev1.NamespaceNodeLease).Get(ctx, "added", metav1.GetOptions{}); err == nil {
			return fmt.Errorf("still there")
		}
		return nil
	})
}

// testPods runs a pod, one that ends, and deletes the first.
func testPods(t *testing.T, c kubernetes.Interface) {
	ctx, pods := t.Context(), c.CoreV1().Pods("default")
	for name, policy := range map[string]corev1.RestartPolicy{"server": corev1.RestartPolicyAlways, "job": corev1.RestartPolicyNever} {
		_, err := pods.Create(ctx, &corev1.Pod{
			ObjectMeta: metav1.ObjectMeta{Name: name},
			Spec:       corev1.PodSpec{RestartPolicy: policy, Containers: []corev1.Container{{Name: "main", Image: "none"}}},
		}, metav1.CreateOptions{})
		if err != nil {
			t.Fatal(err)
		}
	}
	phase := func(name string, want corev1.PodPhase) {
		t.Helper()
		eventually(t, "pod "+name, func() error {
			p, err := pods.Get(ctx, name, metav1.GetOptions{})
			if err == nil && p.Status.Phase != want {
				err = fmt.Errorf("phase %s, want %s", p.Status.Phase, want)
			}
			return err
		})
	}
	phase("server", corev1.PodRunning)
	phase("job", corev1.PodSucceeded)
	if err := pods.Delete(ctx, "server", metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	eventually(t, "the deleted pod", func() error {
		if _, err := pods.Get(ctx, "server", metav1.GetOptions{}); err == nil {
			return fmt.Errorf("still there")
		}
		return nil
	})
}

// refused runs devcluster and expects exit code 1 and one line on stderr that
// holds want.
func refused(t *testing.T, want string, args ...string) {
	t.Helper()
	var stdout, stderr bytes.Buffer
	cmd := exec.CommandContext(t.Context(), program(t), args...)
	cmd.Stdout, cmd.Stderr = &stdout, &stderr
	_ = cmd.Run()
	got := stderr.String()
	if cmd.ProcessState.ExitCode() != 1 || stdout.Len() > 0 || strings.Count(got, "\n") != 1 || !strings.Contains(got, want) {
		t.Errorf("devcluster %s: exit code %d, stdout %q, stderr %q; want 1, nothing and one line with %q",
			strings.Join(args, " "), cmd.ProcessState.ExitCode(), stdout.String(), got, want)
	}
}

func TestRefused(t *testing.T) {
	dir := t.TempDir()
	foreign := filepath.Join(dir, "foreign")
	if err := os.WriteFile(foreign, []byte("clusters: [{name: production, cluster: {server: https://example.com}}]\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	taken, err := os.CreateTemp(dir, "file")
	if err != nil {
		t.Fatal(err)
	}
	defer taken.Close()
	l := listen(t)
	k := filepath.Join(dir, "kubeconfig")
	for _, test := range []struct {
		name, want string
		args       []string
	}{
		{"no kubeconfig", "--kubeconfig FILE is missing", nil},
		{"unknown flag", "-colour", []string{"--colour"}},
		{"argument", `unexpected argument "up"`, []string{"--kubeconfig", k, "up"}},
		{"nodes", "--nodes -1", []string{"--kubeconfig", k, "--nodes=-1"}},
		{"no folder", filepath.Join(dir, "none") + " does not exist", []string{"--kubeconfig", filepath.Join(dir, "none", "k")}},
		{"a folder", "is a directory", []string{"--kubeconfig", dir}},
		{"foreign file", "is not one of devcluster's", []string{"--kubeconfig", foreign}},
		{"port in use", "address already in use", []string{"--kubeconfig", k, "--addr", l}},
		{"bad address", "--addr nowhere", []string{"--kubeconfig", k, "--addr", "nowhere"}},
		{"dir is a file", taken.Name(), []string{"--kubeconfig", k, "--dir", taken.Name()}},
	} {
		t.Run(test.name, func(t *testing.T) { refused(t, test.want, test.args...) })
	}
	entries, err := os.ReadDir(dir)
	if err != nil || len(entries) != 2 {
		t.Errorf("something was left behind: %v, %v", entries, err)
	}
}

// TestInterruptedStart stops a cluster that is not ready yet. One that was ready before we
// came to that tells nothing.
func TestInterruptedStart(t *testing.T) {
	for range 5 {
		if !interrupted(t) {
			return
		}
	}
	t.Skip("it is always ready before it can be stopped")
}

// interrupted says whether the cluster was ready before it was stopped.
func interrupted(t *testing.T) (ready bool) {
	t.Helper()
	dir := t.TempDir()
	cmd := exec.Command(program(t), "--kubeconfig", filepath.Join(dir, "kubeconfig"), "--dir", filepath.Join(dir, "data"))
	var output bytes.Buffer
	cmd.Stdout, cmd.Stderr = &output, &output
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	eventually(t, "the API server's certificate", func() error { // made just before it starts
		_, err := os.Stat(filepath.Join(dir, "data", "pki", "apiserver.crt"))
		return err
	})
	_ = cmd.Process.Signal(os.Interrupt)
	err := cmd.Wait()
	if err == nil && strings.HasPrefix(output.String(), "ready: ") {
		return true
	}
	if err != nil || output.Len() > 0 {
		t.Errorf("%v, printed %q; want exit code 0 and nothing", err, output.String())
	}
	if entries, err := os.ReadDir(dir); err != nil || len(entries) != 1 {
		t.Errorf("left behind beside the data: %v, %v", entries, err)
	}
	return false
}

// TestSharedVersions holds our module versions to those of the root module: what
// both import is then compiled once.
func TestSharedVersions(t *testing.T) {
	ours, root := versions(t, "../go.mod"), versions(t, "../../../go.mod")
	built, err := exec.Command("go", "list", "-deps", "-f", "{{with .Module}}{{.Path}}{{end}}", "..").Output()
	if err != nil {
		t.Fatal(err)
	}
	for module := range strings.FieldsSeq(string(built)) {
		if a, b := ours[module], root[module]; a != b && b != "" {
			t.Errorf("%s is %s here and %s in the root go.mod: raise the lower one with go get", module, a, b)
			delete(root, module) // say it once
		}
	}
}

// versions reads what a go.mod requires; a replacement counts.
func versions(t *testing.T, file string) map[string]string {
	data, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	found := map[string]string{}
	for line := range strings.Lines(string(data)) {
		words := strings.Fields(line)
		switch {
		case len(words) >= 4 && words[1] == "=>":
			found[words[0]] = words[3]
		case len(words) >= 2 && strings.HasPrefix(words[1], "v"):
			found[words[0]] = words[1]
		}
	}
	return found
}

// listen takes a port for the time of the test and returns its address.
func listen(t *testing.T) string {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = l.Close() })
	return l.Addr().String()
}
