package e2e

import (
	"bytes"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"fmt"
	"net"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/starling-operator/starling/runtime/pki"
)

// certify makes a certificate that was made some time ago and lives for some time,
// by an authority, or by itself.
func certify(t *testing.T, age, life time.Duration, names []net.IP, authority *tls.Certificate) *tls.Certificate {
	t.Helper()
	made := time.Now().Add(-age)
	c := &x509.Certificate{
		Subject:   pkix.Name{CommonName: fmt.Sprint("e2e ", made.UnixNano())},
		NotBefore: made.Add(-pki.Backdate), NotAfter: made.Add(life), IPAddresses: names,
		KeyUsage: x509.KeyUsageDigitalSignature, ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth},
	}
	if authority == nil {
		c.IsCA, c.BasicConstraintsValid, c.KeyUsage, c.ExtKeyUsage = true, true, x509.KeyUsageCertSign, nil
	}
	out, err := pki.Issue(c, authority)
	if err != nil {
		t.Fatal(err)
	}
	return out
}

func pemOf(t *testing.T, c *tls.Certificate) (cert, private []byte) {
	t.Helper()
	cert, private, err := pki.PEM(c)
	if err != nil {
		t.Fatal(err)
	}
	return cert, private
}

// The certificates that an instance finds are about to be followed by others, all of
// them within some seconds: the serving certificate, the authority, and then the old
// authority goes. Meanwhile ten clients ask without a pause, and none of their requests
// fails, though failure_policy is "fail".
func TestRotationUnderLoad(t *testing.T) {
	t.Parallel()
	f := newFixture(t, trees(probe(), map[string]string{"web/module.star": on, "web/hooks/guard.star": `
def check(ctx):
    return deny("no") if ctx.request.object.get("data.deny") else None

hook(check, on = [k8s.validate("v1", "ConfigMap", failure_policy = "fail", namespace_labels = {"e2e": "$NS"})])
`}), webhookRole(mirrors))
	ns := f.labelled()
	secrets := shared.Client.CoreV1().Secrets(f.ns)
	data := map[string][]byte{}
	args := webhookArgs(t)
	// The leaf is due after wait, the authority after twice that. The new authority is
	// relied on 1.5 waits later, a hundredth of its life, and the old one goes as long after that. A machine that has not
	// begun to ask by then gets more time, and so has its API server, which has to learn of the bundle.
	for wait := 4 * time.Second; ; wait *= 3 {
		life := 150 * wait
		due := time.Now().Add(wait)
		ca := certify(t, life*2/3-2*wait, life, nil, nil)
		leaf := certify(t, life*2/3-wait, life, []net.IP{net.IPv4(127, 0, 0, 1)}, ca)
		data["ca.crt"], data["ca.key"] = pemOf(t, ca)
		data["tls.crt"], data["tls.key"] = pemOf(t, leaf)
		if _, err := secrets.Create(t.Context(), &corev1.Secret{
			ObjectMeta: metav1.ObjectMeta{Name: "starling-webhooks", Labels: map[string]string{"starling.dev/instance": f.ns + ".starling"}}, Data: data,
		}, metav1.CreateOptions{}); err != nil {
			t.Fatal(err)
		}
		f.start(args...)
		f.refused(ns, newConfigMap("bad", map[string]string{"deny": "yes"}), "denied the request: no")
		if time.Now().Before(due.Add(-time.Second)) {
			break
		}
		t.Logf("it took more than %s until it answered: once more", wait)
		f.stop()
		if err := secrets.Delete(t.Context(), "starling-webhooks", metav1.DeleteOptions{}); err != nil {
			t.Fatal(err)
		}
	}

	stop := make(chan struct{})
	var asked atomic.Int64
	var clients sync.WaitGroup
	for i := range 10 {
		clients.Go(func() {
			cm := newConfigMap(fmt.Sprint("cm-", i), nil)
			for {
				select {
				case <-stop:
					return
				default:
				}
				if _, err := shared.Client.CoreV1().ConfigMaps(ns).Create(t.Context(), cm, metav1.CreateOptions{DryRun: []string{metav1.DryRunAll}}); err != nil {
					t.Errorf("%s: after %d requests: %v", time.Now().UTC().Format(time.StampMilli), asked.Load(), err)
					return
				}
				asked.Add(1)
			}
		})
	}
	seen := map[string]bool{string(data["tls.crt"]): true}
	f.eventually("the old authority is gone", func() error {
		s, err := secrets.Get(t.Context(), "starling-webhooks", metav1.GetOptions{})
		if err != nil {
			return err
		}
		seen[string(s.Data["tls.crt"])] = true
		if n := bytes.Count(s.Data["ca.crt"], []byte("BEGIN")); n != 1 || bytes.Equal(s.Data["ca.crt"], data["ca.crt"]) {
			return fmt.Errorf("%d authorities", n)
		}
		return nil
	})
	close(stop)
	clients.Wait()
	if len(seen) < 3 || asked.Load() < 100 {
		t.Errorf("%d certificates while %d requests were made", len(seen), asked.Load())
	}
	for _, what := range []string{"made a new serving certificate", "made an authority that follows the one before", "dropped 1 old authorities"} {
		f.eventually("the log tells of it", func() error { return holds(f.process.Output(), []string{what}) })
	}
	// The API server knows the bundle that is in the Secret.
	s, err := secrets.Get(t.Context(), "starling-webhooks", metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	f.eventually("the bundle of the configuration is that of the Secret", func() error {
		all, err := shared.Client.AdmissionregistrationV1().ValidatingWebhookConfigurations().List(t.Context(), metav1.ListOptions{LabelSelector: "starling.dev/instance=" + f.ns + ".starling"})
		if err != nil {
			return err
		}
		if len(all.Items) != 1 || !bytes.Equal(all.Items[0].Webhooks[0].ClientConfig.CABundle, s.Data["ca.crt"]) {
			return fmt.Errorf("it is not")
		}
		return nil
	})
	f.refused(ns, newConfigMap("bad", map[string]string{"deny": "yes"}), "denied the request: no")
}
