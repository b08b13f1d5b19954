package main

import (
	"bytes"
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/json"
	"encoding/pem"
	"errors"
	"fmt"
	"io"
	"math/big"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"time"

	admissionv1 "k8s.io/api/admission/v1"
	authenticationv1 "k8s.io/api/authentication/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
)

const (
	admissionNamespace = "bench-admission"
	sideWebhook        = "bare-webhook"
	// askers is how many clients ask at once, each on its own connection.
	askers = 50
)

func admissionTree() map[string]string {
	return map[string]string{
		"guard/module.star": "module(enabled = True)\n",
		"guard/hooks/pods.star": `def check(ctx):
    pod = ctx.request.object
    if not pod.get("metadata.labels." + "` + teamLabel + `"):
        return deny("label ` + teamLabel + ` is missing")
    for c in pod.spec.containers:
        if not c.get("resources.limits.memory"):
            return deny("container %s has no memory limit" % c.name)

hook(check, on = [k8s.validate("v1", "Pod", namespaces = ["` + admissionNamespace + `"], failure_policy = "ignore")])
`,
	}
}

// asked is one side: where it answers, and how long it took.
type asked struct {
	url  string
	took []time.Duration
}

// measureAdmission asks a hook and a webhook in Go the same, directly: what the API
// server does is no part of it. All clients ask without a pause.
func measureAdmission(ctx context.Context, b *bench) error {
	rounds, each := 6, 100
	if b.quick {
		rounds, each = 3, 10
	}
	if err := b.makeNamespaces(ctx, admissionNamespace); err != nil {
		return err
	}
	certs := filepath.Join(b.dir, "admission.certs")
	pool, err := makeCerts(certs)
	if err != nil {
		return err
	}
	sides := map[string]*asked{}
	s, err := b.startGuard(ctx, certs)
	if err != nil {
		return err
	}
	if sides[sideHook], err = b.guardURL(ctx); err != nil {
		return err
	}
	self, err := os.Executable()
	if err != nil {
		return err
	}
	p, err := b.start(self, webhookCommand, "-certs", certs)
	if err != nil {
		return err
	}
	if err := wait(ctx, func() bool { return strings.HasSuffix(p.output.String(), "\n") }); err != nil {
		return err
	}
	sides[sideWebhook] = &asked{url: "https://" + strings.TrimSpace(p.output.String())}
	body, err := podReview()
	if err != nil {
		return err
	}
	clients := make([]*http.Client, askers)
	for i := range clients {
		clients[i] = &http.Client{Timeout: patience, Transport: &http.Transport{
			TLSClientConfig: &tls.Config{RootCAs: pool, MinVersion: tls.VersionTLS12}, MaxIdleConnsPerHost: 1,
		}}
	}
	names, used := []string{sideHook, sideWebhook}, map[string]time.Duration{}
	processes := map[string]*process{sideHook: s.process, sideWebhook: p}
	for round := range rounds + 1 {
		for turn := range names {
			name := names[(round+turn)%2]
			side := sides[name]
			before, _ := processes[name].cpu() // 0 where the system does not tell
			took, err := askAll(ctx, clients, side.url, body, each)
			if err != nil {
				return err
			}
			if round > 0 { // the first one makes the connections
				side.took = append(side.took, took...)
				after, _ := processes[name].cpu()
				used[name] += after - before
			}
		}
	}
	for _, at := range parts() {
		hook, bare := percentile(sides[sideHook].took, at.part), percentile(sides[sideWebhook].took, at.part)
		ratio, aim := float64(hook)/float64(bare), 1.5
		if at.part == 0.5 {
			aim = 1.2
		}
		b.table.add(row{
			what:     fmt.Sprintf("admission, %d at once, %s of %d", askers, at.name, len(sides[sideHook].took)),
			starling: millis(hook), bare: millis(bare), ratio: times(ratio), aim: verdict(fmt.Sprintf("≤ %.1f×", aim), ratio <= aim),
		})
	}
	if hook, bare := used[sideHook], used[sideWebhook]; bare > 0 {
		reviews := time.Duration(len(sides[sideHook].took))
		b.table.add(row{what: "… processor time of a review", starling: micros(hook / reviews), bare: micros(bare / reviews), ratio: times(float64(hook) / float64(bare))})
	}
	if err := errors.Join(s.stop(), p.stop()); err != nil {
		return err
	}
	return errors.Join(b.removeWebhook(ctx), b.removeNamespaces(ctx, admissionNamespace))
}

// startGuard starts the starling that answers, and waits until it is ready.
func (b *bench) startGuard(ctx context.Context, certs string) (*starling, error) {
	address, err := freeAddress()
	if err != nil {
		return nil, err
	}
	s, err := b.startStarling(ctx, "admission", admissionTree(),
		"--webhook-address", address, "--webhook-url", "https://"+address, "--webhook-cert-dir", certs)
	if err != nil {
		return nil, err
	}
	return s, s.ready(ctx)
}

// freeAddress is one on which nobody listens.
func freeAddress() (string, error) {
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return "", err
	}
	return ln.Addr().String(), ln.Close()
}

// guardURL is where the hook tells the API server to ask.
func (b *bench) guardURL(ctx context.Context) (*asked, error) {
	late := time.Now().Add(patience)
	for time.Now().Before(late) {
		list, err := b.client.AdmissionregistrationV1().ValidatingWebhookConfigurations().List(ctx, metav1.ListOptions{LabelSelector: "starling.dev/module"})
		if err != nil {
			return nil, err
		}
		for _, c := range list.Items {
			if len(c.Webhooks) > 0 && c.Webhooks[0].ClientConfig.URL != nil {
				return &asked{url: *c.Webhooks[0].ClientConfig.URL}, nil
			}
		}
		if err := pause(ctx, time.Second/10); err != nil {
			return nil, err
		}
	}
	return nil, fmt.Errorf("no webhook is registered within %s", patience)
}

// removeWebhook takes away what stays of a starling that has stopped.
func (b *bench) removeWebhook(ctx context.Context) error {
	return b.client.AdmissionregistrationV1().ValidatingWebhookConfigurations().DeleteCollection(ctx, metav1.DeleteOptions{}, metav1.ListOptions{})
}

// askAll has every client ask n times and returns how long each answer took.
func askAll(ctx context.Context, clients []*http.Client, url string, body []byte, n int) ([]time.Duration, error) {
	took := make([]time.Duration, len(clients)*n)
	err := parallel(ctx, len(clients), len(clients), func(i int) error {
		for j := range n {
			began := time.Now()
			if err := ask(ctx, clients[i], url, body); err != nil {
				return err
			}
			took[i*n+j] = time.Since(began)
		}
		return nil
	})
	return took, err
}

func ask(ctx context.Context, client *http.Client, url string, body []byte) error {
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, url, bytes.NewReader(body))
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
	if err != nil {
		return err
	}
	if !bytes.Contains(answer, []byte(`"allowed":true`)) {
		return fmt.Errorf("%s answers %d: %s", url, resp.StatusCode, bytes.TrimSpace(answer))
	}
	return nil
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
		c.Resources.Limits = corev1.ResourceList{corev1.ResourceMemory: resource.MustParse("256Mi"), corev1.ResourceCPU: resource.MustParse("500m")}
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

// makeCerts writes the certificate that both sides show, and returns what trusts it.
func makeCerts(dir string) (*x509.CertPool, error) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return nil, err
	}
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "starling-bench"},
		NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(24 * time.Hour),
		IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)}, IsCA: true, BasicConstraintsValid: true,
		KeyUsage: x509.KeyUsageDigitalSignature | x509.KeyUsageCertSign, ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth},
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, &key.PublicKey, key)
	if err != nil {
		return nil, err
	}
	private, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		return nil, err
	}
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, err
	}
	cert := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der})
	for name, data := range map[string][]byte{
		"tls.crt": cert, "ca.crt": cert, "tls.key": pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: private}),
	} {
		if err := os.WriteFile(filepath.Join(dir, name), data, 0o600); err != nil {
			return nil, err
		}
	}
	pool := x509.NewCertPool()
	pool.AppendCertsFromPEM(cert)
	return pool, nil
}
