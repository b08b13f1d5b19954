package e2e

import (
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// examples/certificates promises: a certificate is made once, handed to the chart,
// made anew when it is deleted, and renewed without a moment in which those who have the
// bundle are refused.
func TestCertificates(t *testing.T) {
	t.Parallel()
	f := example(t, "certificates")
	ownNamespaces(t, "web")
	f.start()
	f.waitReady()
	f.waitRevision("web", "web", 1)
	first := f.waitServing("web.web.svc", nil)
	var keys []string
	key := func(s *corev1.Secret) { keys = append(keys, strings.Split(string(s.Data["tls.key"]), "\n")[1]) }
	key(first)
	if first.Type != corev1.SecretTypeTLS || len(first.Data) != 3 {
		t.Errorf("the Secret is a %s with %d keys", first.Type, len(first.Data))
	}
	web, err := shared.Client.AppsV1().Deployments("web").Get(t.Context(), "web", metav1.GetOptions{})
	if err != nil || web.Spec.Template.Spec.Volumes[0].Secret.SecretName != "web-tls" {
		t.Fatalf("the pods do not mount the Secret: %v", err)
	}

	// Made once: neither a restart nor a run of the hook touches it.
	f.restart()
	f.waitReady()
	f.waitRuns("web/hooks/certificate.star:certificate", 1)
	again := f.waitServing("web.web.svc", nil)
	if again.ResourceVersion != first.ResourceVersion {
		t.Error("the Secret was written without need")
	}
	f.waitRevision("web", "web", 1)

	f.nothingToPlan()
	if err := shared.Client.CoreV1().Secrets("web").Delete(t.Context(), "web-tls", metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	second := f.waitServing("web.web.svc", first)
	key(second)

	// Another name, then the renewal: each in its steps. In the time of one the release must
	// follow, on a slow machine too.
	f.configure(map[string]string{"web": "{names: [web.example.org], days: 1, renewBefore: 86350s, overlap: 25s}"})
	third := f.waitServing("web.example.org", second)
	key(third)
	fourth := f.waitServing("web.example.org", third)
	key(fourth)

	said := []byte(f.said())
	for _, what := range []string{"modules", "hooks"} {
		out, err := f.process.Get(t.Context(), what)
		if err != nil {
			t.Fatal(err)
		}
		said = append(said, out...)
	}
	all, err := history("web", "web")
	if err != nil {
		t.Fatal(err)
	}
	for _, r := range all {
		said = append(said, r.Manifest+fmt.Sprint(r.Config)...)
	}
	noSecrets(t, said, keys...)
}

// waitServing waits until the Secret holds another certificate than before (nil: any)
// for this name, and the bundle in the ConfigMap is good for it. Until then, and from
// one certificate to the other, the bundle must be good for what is served: it is read
// first, as by a caller who learns late. (When the old one is gone or ended there is
// nothing to go on with.)
func (f *fixture) waitServing(name string, before *corev1.Secret) (now *corev1.Secret) {
	f.t.Helper()
	seen := map[string]bool{}
	f.eventually("a new certificate for "+name+" is served", func() error {
		data, err := configMap(f.t, "web", "web-ca")
		if err != nil {
			return err
		}
		if now, err = shared.Client.CoreV1().Secrets("web").Get(f.t.Context(), "web-tls", metav1.GetOptions{}); err != nil {
			return err
		}
		seen[fmt.Sprintf("%d authorities, next %v", strings.Count(string(now.Data["ca.crt"]), "BEGIN"), now.Data["next.crt"] != nil)] = true
		fresh := before == nil || !slices.Equal(now.Data["tls.crt"], before.Data["tls.crt"])
		served := name
		if !fresh {
			served = "web.web.svc"
		}
		if err := trusts(now, data["ca.crt"], served); err != nil {
			if before != nil && before.UID == now.UID {
				f.t.Errorf("a caller is refused: %v", err)
			}
			return err
		}
		if !fresh {
			return errors.New("the certificate is the old one")
		}
		return nil
	})
	if before != nil && before.UID == now.UID && !seen["2 authorities, next true"] {
		f.t.Errorf("the new authority was not announced: %v", seen)
	}
	return now
}

// trusts is what a client with the bundle does with a server that has the Secret.
func trusts(s *corev1.Secret, bundle, name string) error {
	pair, err := tls.X509KeyPair(s.Data["tls.crt"], s.Data["tls.key"])
	if err != nil {
		return err
	}
	roots := x509.NewCertPool()
	roots.AppendCertsFromPEM([]byte(bundle))
	_, err = pair.Leaf.Verify(x509.VerifyOptions{Roots: roots, DNSName: name})
	return err
}
