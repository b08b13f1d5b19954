package e2e

import (
	"crypto/tls"
	"crypto/x509"
	"net/http"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"
)

// With --webhook-client-ca reviews are for the bearer of the certificate that the real API
// server shows. A client that is not the API server gets no answer, and reviews go on.
func TestReviewsAreForTheAPIServerAlone(t *testing.T) {
	t.Parallel()
	f := newFixture(t, trees(probe(), map[string]string{"web/module.star": on, "web/hooks/guard.star": guard}), webhookRole(mirrors))
	ns := f.labelled()
	f.start(append(webhookArgs(t), "--webhook-client-ca="+shared.WebhookClientCA())...)
	f.waitReady()
	f.waitConfigurations(3)
	const no = "denied the request: CREATE of bad by "
	f.refused(ns, newConfigMap("bad", map[string]string{"deny": "yes"}), no)

	found, err := shared.Client.AdmissionregistrationV1().ValidatingWebhookConfigurations().List(t.Context(), metav1.ListOptions{LabelSelector: "starling.dev/instance=" + f.ns + ".starling"})
	if err != nil || len(found.Items) == 0 {
		t.Fatal(found, err)
	}
	asked := found.Items[0].Webhooks[0].ClientConfig
	server := x509.NewCertPool()
	server.AppendCertsFromPEM(asked.CABundle)
	ask := func(certificates ...tls.Certificate) (int, error) {
		client := &http.Client{Transport: &http.Transport{TLSClientConfig: &tls.Config{
			RootCAs: server, GetClientCertificate: func(*tls.CertificateRequestInfo) (*tls.Certificate, error) {
				return &append(certificates, tls.Certificate{})[0], nil
			},
		}}}
		answer, err := client.Post(*asked.URL, "application/json", strings.NewReader("{}"))
		if err != nil {
			return 0, err
		}
		return answer.StatusCode, answer.Body.Close()
	}
	if code, err := ask(); code != http.StatusForbidden {
		t.Errorf("without a certificate: %d, %v", code, err)
	}
	admin := rest.CopyConfig(shared.Config) // of the cluster's authority, as each kubelet's is
	known, err := tls.X509KeyPair(admin.CertData, admin.KeyData)
	if err != nil {
		t.Fatal(err)
	}
	if code, err := ask(known); err == nil {
		t.Errorf("with a certificate of another authority: %d", code)
	}
	f.refused(ns, newConfigMap("bad", map[string]string{"deny": "yes"}), no)
}
