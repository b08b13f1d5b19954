package e2e

import (
	"context"
	"encoding/json"
	"encoding/pem"
	"fmt"
	"net/http"
	"net/http/httptest"
	"sync/atomic"
	"testing"

	admissionv1 "k8s.io/api/admission/v1"
	registrationv1 "k8s.io/api/admissionregistration/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/starling-operator/starling/modules/status"
)

// Eight modules, as many as Helm works on at a time, wait for a webhook that does not answer. A ninth one is installed
// and repaired while they wait.
func TestASlowWebhookHoldsUpNoOtherModule(t *testing.T) {
	t.Parallel()
	const behind = 8
	var waiting, lost atomic.Int64
	answers := make(chan struct{})
	server := httptest.NewTLSServer(http.HandlerFunc(func(rw http.ResponseWriter, r *http.Request) {
		var review admissionv1.AdmissionReview
		if json.NewDecoder(r.Body).Decode(&review) != nil || review.Request == nil {
			http.Error(rw, "no review", http.StatusBadRequest)
			return
		}
		waiting.Add(1)
		defer waiting.Add(-1)
		select {
		case <-answers:
		case <-r.Context().Done():
			lost.Add(1)
			return
		}
		review.Response = &admissionv1.AdmissionResponse{UID: review.Request.UID, Allowed: true}
		_ = json.NewEncoder(rw).Encode(review)
	}))
	t.Cleanup(func() { server.CloseClientConnections(); server.Close() })
	var files []map[string]string
	// The API server waits for half a minute. A machine that needs more for a module has further tries, with others.
	const tries = 5
	for i := range tries {
		files = append(files, mirror(fmt.Sprint("web", i), "module()\n"))
	}
	for i := range behind {
		name := fmt.Sprint("slow", i)
		slow := mirror(name, "module(enabled = True)\n")
		slow[name+"/templates/cm.yaml"] = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: {{ .Release.Name }}, labels: {slow: \"yes\"}}\n"
		files = append(files, slow)
	}
	f := newFixture(t, trees(files...))
	configurations := shared.Client.AdmissionregistrationV1().ValidatingWebhookConfigurations()
	made, err := configurations.Create(t.Context(), &registrationv1.ValidatingWebhookConfiguration{
		ObjectMeta: metav1.ObjectMeta{GenerateName: "slow-"},
		Webhooks: []registrationv1.ValidatingWebhook{{
			Name: "slow.example.org",
			ClientConfig: registrationv1.WebhookClientConfig{
				URL: new(server.URL), CABundle: pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: server.Certificate().Raw}),
			},
			NamespaceSelector: &metav1.LabelSelector{MatchLabels: map[string]string{"kubernetes.io/metadata.name": f.ns}},
			ObjectSelector:    &metav1.LabelSelector{MatchLabels: map[string]string{"slow": "yes"}},
			Rules: []registrationv1.RuleWithOperations{{
				Operations: []registrationv1.OperationType{registrationv1.OperationAll},
				Rule:       registrationv1.Rule{APIGroups: []string{""}, APIVersions: []string{"v1"}, Resources: []string{"configmaps"}},
			}},
			SideEffects: new(registrationv1.SideEffectClassNone), AdmissionReviewVersions: []string{"v1"}, TimeoutSeconds: new(int32(30)),
		}},
	}, metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = configurations.Delete(context.Background(), made.Name, metav1.DeleteOptions{}) })
	f.start()
	config := map[string]string{}
	for i := range tries {
		f.eventually("all writes wait for the webhook", func() error {
			if n := waiting.Load(); n != behind {
				return fmt.Errorf("%d do", n)
			}
			return nil
		})
		before, name := lost.Load(), fmt.Sprint("web", i)
		config[name+"Enabled"] = "true"
		f.configure(config)
		f.waitRevision(f.ns, name, 1)
		f.deleteConfigMap(name)
		f.eventually("its object is back", func() error {
			_, err := configMap(t, f.ns, name)
			return err
		})
		if ended := lost.Load() - before; ended == 0 {
			break
		} else if i == tries-1 {
			t.Errorf("%d writes have ended meanwhile: the ninth module had to wait for the others", ended)
		}
	}
	close(answers)
	for i := range behind {
		f.waitState(fmt.Sprint("slow", i), status.ModuleReady)
	}
}
