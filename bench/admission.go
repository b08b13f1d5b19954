package main

import (
	"bytes"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"strings"
	"time"

	admissionv1 "k8s.io/api/admission/v1"
	authenticationv1 "k8s.io/api/authentication/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/starling-operator/starling/e2e/cluster"
	"github.com/starling-operator/starling/e2e/proxy"
	"github.com/starling-operator/starling/runtime/pki"
)

const (
	admissionNamespace = "bench-admission"
	// askers is how many clients ask at once, each on its own connection.
	askers = 50
)

// admission asks a hook and a webhook in Go the same, directly: what the API
// server does is no part of it. All clients ask without a pause.
func (b *bench) admission() {
	rounds, each := b.size(6, 3), b.size(100, 10)
	b.namespaces(admissionNamespace)
	b.Cleanup(b.removeWebhooks)
	certs, pool := b.makeCerts("admission.certs")
	address := b.freeAddress()
	s := b.startReady("admission", map[string]string{
		"guard/module.star":     plainModule,
		"guard/hooks/pods.star": text("guard.star"),
	}, "--webhook-address", address, "--webhook-url", "https://"+address, "--webhook-cert-dir", certs)
	bare, bareAddress := b.startBareReady(sideWebhook, "-certs", certs)
	sides := []struct {
		url     string
		process *cluster.Process
		took    []time.Duration
		used    time.Duration
	}{{url: b.webhookURL(), process: s.Process()}, {url: "https://" + bareAddress, process: bare}}
	ask := newAsker(b, pool)
	for round := range rounds + 1 {
		for turn := range sides {
			side := &sides[(round+turn)%2]
			var took []time.Duration
			used := b.cpuOf(func() { took = ask.all(each, side.url) }, side.process)
			if round > 0 { // the first one makes the connections
				side.took, side.used = append(side.took, took...), side.used+used
			}
		}
	}
	b.addParts(fmt.Sprintf("admission, %d at once, %%s", askers), sides[0].took, sides[1].took, 1.2, 1.5)
	if sides[1].used > 0 {
		reviews := time.Duration(len(sides[0].took))
		addBeside(b, "… processor time of a review", micros, sides[0].used/reviews, sides[1].used/reviews, 1.3)
	}
}

// webhookURL is where the hook tells the API server to ask.
func (b *bench) webhookURL() (url string) {
	api := b.client.AdmissionregistrationV1().ValidatingWebhookConfigurations()
	b.waitEvery(time.Second/10, "a webhook is registered", func() bool {
		list, err := api.List(b.ctx, metav1.ListOptions{LabelSelector: "starling.dev/module"})
		b.check(err)
		for _, c := range list.Items {
			if len(c.Webhooks) > 0 && c.Webhooks[0].ClientConfig.URL != nil {
				url = *c.Webhooks[0].ClientConfig.URL
			}
		}
		return url != ""
	})
	return url
}

// removeWebhooks takes away what stays of a starling that has stopped.
func (b *bench) removeWebhooks() {
	api := b.client.AdmissionregistrationV1().ValidatingWebhookConfigurations()
	b.check(api.DeleteCollection(b.ctx, metav1.DeleteOptions{}, metav1.ListOptions{}))
}

// asker is many clients that have the same Pod reviewed.
type asker struct {
	b       *bench
	clients []*http.Client
	body    []byte
}

func newAsker(b *bench, pool *x509.CertPool) *asker {
	a := &asker{b: b, clients: make([]*http.Client, askers)}
	for i := range a.clients {
		a.clients[i] = &http.Client{Timeout: patience, Transport: &http.Transport{
			TLSClientConfig: &tls.Config{RootCAs: pool, MinVersion: tls.VersionTLS12}, MaxIdleConnsPerHost: 1,
		}}
	}
	var err error
	a.body, err = podReview()
	b.check(err)
	return a
}

// all has every client ask n times, each one of the addresses, and returns how long each answer took.
func (a *asker) all(n int, urls ...string) []time.Duration {
	took := make([]time.Duration, len(a.clients)*n)
	a.b.each(len(a.clients), len(a.clients), func(i int) error {
		for j := range n {
			began := time.Now()
			if err := a.ask(a.clients[i], urls[i%len(urls)]); err != nil {
				return err
			}
			took[i*n+j] = time.Since(began)
		}
		return nil
	})
	return took
}

func (a *asker) ask(client *http.Client, url string) error {
	req, err := http.NewRequestWithContext(a.b.ctx, http.MethodPost, url, bytes.NewReader(a.body))
	if err != nil {
		return err
	}
	req.Header.Set("Content-Type", "application/json")
	resp, err := client.Do(req)
	if err != nil {
		return err
	}
	defer resp.Body.Close()
	answer, err := io.ReadAll(resp.Body)
	if err == nil && !bytes.Contains(answer, []byte(`"allowed":true`)) {
		err = fmt.Errorf("%s answers %d: %s", url, resp.StatusCode, bytes.TrimSpace(answer))
	}
	return err
}

// podReview is the review of a Pod that is as large as they are.
func podReview() ([]byte, error) {
	pod := corev1.Pod{
		TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "Pod"},
		ObjectMeta: metav1.ObjectMeta{Name: "web", Namespace: admissionNamespace,
			Labels: map[string]string{teamLabel: "web", "app.kubernetes.io/name": "web", "pod-template-hash": "5d9c7b5b8f"}},
	}
	for i := range 3 {
		c := corev1.Container{Name: fmt.Sprintf("container-%d", i), Image: "registry.example.com/team/image:1.2.3"}
		c.Resources.Limits = corev1.ResourceList{
			corev1.ResourceMemory: resource.MustParse("256Mi"), corev1.ResourceCPU: resource.MustParse("500m"),
		}
		for n := range 10 {
			c.Env = append(c.Env, corev1.EnvVar{Name: fmt.Sprintf("VARIABLE_%d", n), Value: strings.Repeat("v", 40)})
		}
		pod.Spec.Containers = append(pod.Spec.Containers, c)
	}
	raw, err := json.Marshal(pod)
	if err != nil {
		return nil, err
	}
	return json.Marshal(admissionv1.AdmissionReview{
		TypeMeta: metav1.TypeMeta{APIVersion: "admission.k8s.io/v1", Kind: "AdmissionReview"},
		Request: &admissionv1.AdmissionRequest{
			UID: "705ab4f5-6393-11e8-b7cc-42010a800002", Operation: admissionv1.Create,
			Kind:     metav1.GroupVersionKind{Version: "v1", Kind: "Pod"},
			Resource: metav1.GroupVersionResource{Version: "v1", Resource: "pods"},
			Name:     pod.Name, Namespace: pod.Namespace,
			UserInfo: authenticationv1.UserInfo{Username: "system:serviceaccount:kube-system:replicaset-controller",
				Groups: []string{"system:serviceaccounts", "system:authenticated"}},
			Object: runtime.RawExtension{Raw: raw},
		},
	})
}

// makeCerts writes the certificate that both sides show into a folder, and returns what trusts it.
func (b *bench) makeCerts(folder string) (dir string, pool *x509.CertPool) {
	cert, err := proxy.Certificate()
	b.check(err)
	crt, key, err := pki.PEM(cert)
	b.check(err)
	files := map[string]string{"tls.crt": string(crt), "ca.crt": string(crt), "tls.key": string(key)}
	return b.writeTree(folder, files), pki.Pool(cert.Leaf)
}
