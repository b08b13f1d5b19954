package e2e

import (
	"context"
	"fmt"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/starling-operator/starling/modules/status"
)

// examples/sysctl-tuner promises: a DaemonSet, its parameters from values that
// the user's config overrides without a restart of the pods, bad names refused.
func TestSysctlTuner(t *testing.T) {
	t.Parallel()
	f := example(t, "sysctl-tuner")
	ownNamespaces(t, "sysctl-tuner")
	f.start()
	f.waitReady()
	f.waitRevision("sysctl-tuner", "sysctl-tuner", 1)
	params := func() string {
		data, err := configMap(t, "sysctl-tuner", "sysctl-tuner")
		if err != nil {
			t.Fatal(err)
		}
		return strings.Join(strings.Fields(data["params"]), " ")
	}
	if got, want := params(), "kernel.numa_balancing=0 net.core.somaxconn=4096 vm.swappiness=1"; got != want {
		t.Errorf("parameters %q, want %q", got, want)
	}
	daemons := shared.Client.AppsV1().DaemonSets("sysctl-tuner")
	before, err := daemons.Get(t.Context(), "sysctl-tuner", metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}

	f.configure(map[string]string{"sysctlTuner": "params: {vm.swappiness: 10, net.core.somaxconn: null}"})
	f.waitRevision("sysctl-tuner", "sysctl-tuner", 2)
	if got, want := params(), "kernel.numa_balancing=0 vm.swappiness=10"; got != want {
		t.Errorf("parameters %q, want %q", got, want)
	}
	after, err := daemons.Get(t.Context(), "sysctl-tuner", metav1.GetOptions{})
	if err != nil || after.Generation != before.Generation {
		t.Errorf("the pods restart for parameters: generation %d → %d, %v", before.Generation, after.Generation, err)
	}

	f.nothingToPlan()
	f.configure(map[string]string{"sysctlTuner": "params: {Swappiness: 10}"})
	f.waitState("sysctl-tuner", status.ModuleReady, "params", "lower-case words joined by dots")
	f.configure(map[string]string{"sysctlTuner": "sleep: 1"})
	f.waitState("sysctl-tuner", status.ModuleReady, "sleep")
	f.waitRevision("sysctl-tuner", "sysctl-tuner", 2)
}

// The promises of examples/secret-copier. Everything in the cluster is its business, so
// other tests run beside it but mind only their own objects.
func TestSecretCopier(t *testing.T) {
	t.Parallel()
	f := example(t, "secret-copier")
	source, before, foreign := shared.Namespace(t), shared.Namespace(t), shared.Namespace(t)
	name := f.ns // unique in the cluster
	t.Cleanup(func() { deleteCopies(t, name) })
	secrets := shared.Client.CoreV1().Secrets
	make := func(ns string, labels map[string]string, token string) {
		t.Helper()
		s := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Name: name, Labels: labels}, Data: map[string][]byte{"token": []byte(token)}}
		if _, err := secrets(ns).Create(t.Context(), s, metav1.CreateOptions{}); err != nil {
			t.Fatal(err)
		}
	}
	const marker, second = "marker-of-a-token-7f3a", "marker-of-a-token-91bc"
	make(source, map[string]string{"starling.dev/copy": "true"}, marker)
	make(foreign, nil, "theirs")

	f.start()
	f.waitReady()
	f.waitCopy(before, name, marker)
	s, err := secrets(before).Get(t.Context(), name, metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	if s.Labels["starling.dev/copied-by"] != "secret-copier" || s.Annotations["starling.dev/copied-from"] != source+"/"+name {
		t.Errorf("the copy does not say what it is: labels %v, annotations %v", s.Labels, s.Annotations)
	}

	// A namespace that comes gets its copy at once, and nothing else is written.
	f.waitCopy(shared.Namespace(t), name, marker)
	if again, err := secrets(before).Get(t.Context(), name, metav1.GetOptions{}); err != nil || again.ResourceVersion != s.ResourceVersion {
		t.Errorf("a copy that was as it should be was written: %v", err)
	}

	// A changed source changes its copies; a copy that someone changed is put right.
	patch(t, "secrets", source, name, map[string]any{"stringData": map[string]any{"token": second}})
	f.waitCopy(before, name, second)
	patch(t, "secrets", before, name, map[string]any{"stringData": map[string]any{"token": "tampered"}})
	f.waitCopy(before, name, second)

	if theirs, err := secrets(foreign).Get(t.Context(), name, metav1.GetOptions{}); err != nil || string(theirs.Data["token"]) != "theirs" || theirs.Labels != nil {
		t.Errorf("the Secret of somebody else was touched: %v", err)
	}
	f.eventually("the log warns of the name in use", func() error {
		return holds(f.process.Output(), []string{"a Secret that is not a copy has this name", foreign})
	})

	if err := secrets(source).Delete(t.Context(), name, metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	f.eventually("the copies go with their source", func() error {
		_, err := secrets(before).Get(t.Context(), name, metav1.GetOptions{})
		if err == nil {
			return fmt.Errorf("the copy in %s is still there", before)
		}
		if !apierrors.IsNotFound(err) {
			return err
		}
		return nil
	})
	if _, err := secrets(foreign).Get(t.Context(), name, metav1.GetOptions{}); err != nil {
		t.Errorf("the Secret of somebody else: %v", err)
	}

	// The data of Secrets is nowhere in logs, status or metrics, encoded or not.
	said := []byte(f.said())
	for _, what := range []string{"modules", "hooks"} {
		out, err := f.process.Get(t.Context(), what)
		if err != nil {
			t.Fatal(err)
		}
		said = append(said, out...)
	}
	_, page, err := f.http("/metrics")
	if err != nil {
		t.Fatal(err)
	}
	noSecrets(t, append(said, page...), marker, second, "tampered", "theirs")
}

func (f *fixture) waitCopy(ns, name, token string) {
	f.t.Helper()
	f.eventually("the copy in "+ns, func() error {
		s, err := shared.Client.CoreV1().Secrets(ns).Get(f.t.Context(), name, metav1.GetOptions{})
		if err != nil {
			return err
		}
		if got := string(s.Data["token"]); got != token {
			return fmt.Errorf("its token is %q, want %q", got, token)
		}
		return nil
	})
}

func deleteCopies(t *testing.T, name string) {
	ctx := context.Background() // the test's own has ended
	all, err := shared.Client.CoreV1().Secrets("").List(ctx, metav1.ListOptions{LabelSelector: "starling.dev/copied-by", FieldSelector: "metadata.name=" + name})
	if err != nil {
		t.Error(err)
		return
	}
	for _, s := range all.Items {
		_ = shared.Client.CoreV1().Secrets(s.Namespace).Delete(ctx, s.Name, metav1.DeleteOptions{})
	}
}
