//go:build e2e

package cluster

import (
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/rs/zerolog"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/starling-operator/starling/builtins"
	e2e "github.com/starling-operator/starling/e2e/cluster"
	"github.com/starling-operator/starling/runtime/effect"
)

// patient is the limit of what does not come to it.
const patient = 3 * time.Minute

// A command and a log go by way of the real API server: its rights, its checks of Pod and container, its
// TLS connection to the kubelet. No kubelet runs here: a server in its place, with TLS too, speaks as
// kubelets since Kubernetes 1.36 do. How a container runtime runs, ends and kills commands is not
// shown.
func TestRealExecAndLogs(t *testing.T) {
	t.Parallel()
	w := newRealWorld(t)
	node := w.ns + "-kubelet"
	shared.Kubelet(t, node, func(rw http.ResponseWriter, r *http.Request) {
		if of := "/containerLogs/" + w.ns + "/db-0/db"; r.URL.Path == of {
			_, _ = fmt.Fprintf(rw, "%s lines", r.URL.Query().Get("tailLines"))
			return
		}
		if of := "/exec/" + w.ns + "/db-0/db"; r.URL.Path != of {
			t.Errorf("the kubelet is asked for %s, want %s", r.URL.Path, of)
		}
		p := e2e.OpenSocket(rw, r)
		defer p.Close()
		argv := r.URL.Query()["command"]
		switch argv[0] {
		case "cat":
			in, err := p.Input()
			if err != nil {
				t.Errorf("the input of the command: %v", err)
			}
			p.Say(1, in)
			p.End(0)
		case "false":
			p.Say(2, "no")
			p.End(3)
		case "sleep":
			_, _ = io.Copy(io.Discard, p.In)
		case "gone":
			p.Say(1, "half of i")
		}
	})
	db := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: "db-0"}, Spec: corev1.PodSpec{NodeName: node, Containers: []corev1.Container{{Name: "db", Image: "db"}}}}
	e2e.Eventually(t, patient, "the Pod", func() error { // its ServiceAccount comes
		_, err := shared.Client.CoreV1().Pods(w.ns).Create(t.Context(), db, metav1.CreateOptions{})
		return err
	})
	pod := effect.Ref{APIVersion: "v1", Kind: "Pod", Namespace: w.ns, Name: "db-0"}
	client := w.clientOf(t, "may", "create", "get")
	run := func(argv ...string) (builtins.Executed, error) {
		e := effect.Exec{Pod: pod, Container: "db", Argv: argv, Timeout: patient, MaxBytes: 1 << 20}
		switch argv[0] {
		case "cat":
			e.Stdin = []byte(strings.Repeat("in and out ", 10_000))
		case "sleep":
			e.Timeout = time.Second
		}
		return client.Exec(t.Context(), e)
	}
	if got, err := run("cat"); err != nil || got.Code != 0 || len(got.Stdout) != 110_000 {
		t.Errorf("cat: %d, %d bytes, %v", got.Code, len(got.Stdout), err)
	}
	if got, err := run("false"); err != nil || got.Code != 3 || string(got.Stderr) != "no" {
		t.Errorf("false: %+v, %v", got, err)
	}
	_, err := run("sleep")
	unanswered(t, err, "within 1s")
	_, err = run("gone")
	unanswered(t, err, "the connection ended before the command")
	q := effect.LogQuery{Pod: pod, Container: "db", Tail: 7, Timeout: patient, MaxBytes: 1 << 20}
	if text, err := client.Logs(t.Context(), q); err != nil || string(text) != "7 lines" {
		t.Errorf("log: %q, %v", text, err)
	}

	e := effect.Exec{Pod: pod, Container: "other", Argv: []string{"true"}, Timeout: patient, MaxBytes: 1}
	_, err = client.Exec(t.Context(), e)
	unanswered(t, err, "container other is not valid for pod db-0")
	q.Container = "other"
	_, err = client.Logs(t.Context(), q)
	unanswered(t, err, "container other is not valid for pod db-0")
	e.Pod.Name = "db-1"
	_, err = client.Exec(t.Context(), e)
	unanswered(t, err, `pods "db-1" not found`)
	// A WebSocket is a get, but that alone is not enough.
	_, err = w.clientOf(t, "may-not", "get").Exec(t.Context(), effect.Exec{Pod: pod, Container: "db", Argv: []string{"cat"}, Timeout: patient, MaxBytes: 1})
	if !builtins.Unanswered(err) || !strings.Contains(err.Error(), `not allowed to create pods/exec in namespace `+w.ns) {
		t.Errorf("without the right to create: %v", err)
	}
}

// clientOf is a client with these verbs on pods/exec, and the right to read logs.
func (w *realWorld) clientOf(t *testing.T, name string, verbs ...string) *Client {
	t.Helper()
	file := shared.ServiceAccountKubeconfig(t, w.ns, name, e2e.Access{Namespaced: map[string][]rbacv1.PolicyRule{w.ns: {
		{APIGroups: []string{""}, Resources: []string{"pods/exec"}, Verbs: verbs},
		{APIGroups: []string{""}, Resources: []string{"pods/log"}, Verbs: []string{"get"}},
	}}})
	config, _, err := LoadConfig(file, "")
	if err != nil {
		t.Fatal(err)
	}
	client, err := New(Options{Config: config, Log: zerolog.Nop()})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(client.Close)
	return client
}
