package e2e

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"context"
	"crypto"
	"crypto/rsa"
	"crypto/sha256"
	"crypto/tls"
	"crypto/x509"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"encoding/pem"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"

	authenticationv1 "k8s.io/api/authentication/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"

	"github.com/starling-operator/starling/e2e/cluster"
)

var providers = schema.GroupVersionResource{Group: "example.org", Version: "v1", Resource: "providers"}

// The promises of examples/from-go: servers of Go's own library, and the API server, take the certificates
// and the token, a status says who does not answer, and the files of an image are there.
func TestFromGo(t *testing.T) {
	t.Parallel()
	t.Cleanup(func() {
		_ = shared.Dynamic.Resource(definitions).Delete(context.Background(), "providers.example.org", metav1.DeleteOptions{})
		_ = shared.Client.CertificatesV1().CertificateSigningRequests().Delete(context.Background(), "scraper-client", metav1.DeleteOptions{})
	})
	const refresh = "hush-refresh-75"
	registry := newRegistry(t, refresh, map[string]string{"version": "1.2.3", "bin/tool": "\x7fELF\x00\xff"})
	f := copied(t, "from-go",
		"https://registry.example.com", registry.URL, "registry.example.com", registry.Listener.Addr().String(), "*.example.com", "127.0.0.1")
	f.grantPrinted()
	f.secret("registry", map[string]string{"refresh-token": refresh})
	f.start()
	f.waitReady()

	// client-certificate
	auth := f.waitKey("auth-client", "tls.crt")
	bundle := f.waitConfigMap("auth-ca").Data["ca.crt"]
	if got := groupsSeen(t, auth, bundle); got != "ingress-nginx [ingress-nginx:auth]" {
		t.Errorf("the server sees %s", got)
	}

	// endpoint-status
	up := httptest.NewServer(http.NotFoundHandler())
	t.Cleanup(up.Close)
	for name, url := range map[string]string{"broken": up.URL, "unreachable": "http://" + cluster.Address()} {
		shared.Apply(t, fmt.Sprintf("{apiVersion: example.org/v1, kind: Provider, metadata: {name: %s, namespace: %s}, spec: {url: %q}}", name, f.ns, url))
		f.eventually("the status of "+name, func() error {
			o, err := shared.Dynamic.Resource(providers).Namespace(f.ns).Get(t.Context(), name, metav1.GetOptions{})
			if err != nil {
				return err
			}
			if status, _ := o.Object["status"].(map[string]any); status["state"] != name {
				return fmt.Errorf("it is %v", status)
			}
			return nil
		})
	}

	// token-issuer
	tokens := f.waitKey("mesh-tokens", "east")
	claims, err := verified(string(tokens.Data["east"]), f.waitConfigMap("mesh-ca").Data["ca.crt"])
	if err != nil || claims["aud"] != "east" || claims["iss"] != "mesh" {
		t.Errorf("the token says %v, %v", claims, err)
	}

	// certificate-request
	scraper := f.waitKey("scraper-client", "tls.crt")
	if got := knownAs(t, scraper); got.Username != "scraper" || !slices.Contains(got.Groups, "monitoring:scrapers") {
		t.Errorf("the API server sees %+v", got)
	}

	// registry-release
	release := f.waitConfigMap("release")
	if got := release.BinaryData; len(got) != 2 || string(got["version"]) != "1.2.3" || string(got["bin_tool"]) != "\x7fELF\x00\xff" {
		t.Errorf("the release holds %q", got)
	}
	if !strings.HasPrefix(release.Annotations["example.com/digest"], "sha256:") {
		t.Errorf("its annotations are %v", release.Annotations)
	}

	secret := func(s *corev1.Secret) string { return strings.Split(string(s.Data["tls.key"]), "\n")[1] }
	noSecrets(t, []byte(f.said()), refresh, secret(auth), secret(scraper), string(tokens.Data["east"]))
}

// waitKey waits until a Secret holds something under a key.
func (f *fixture) waitKey(name, key string) (s *corev1.Secret) {
	f.t.Helper()
	f.eventually("Secret "+name, func() (err error) {
		if s, err = shared.Client.CoreV1().Secrets(f.ns).Get(f.t.Context(), name, metav1.GetOptions{}); err != nil {
			return err
		}
		if len(s.Data[key]) == 0 {
			return fmt.Errorf("it holds no %s yet", key)
		}
		return nil
	})
	return s
}

func (f *fixture) waitConfigMap(name string) (cm *corev1.ConfigMap) {
	f.t.Helper()
	f.eventually("ConfigMap "+name, func() (err error) {
		cm, err = shared.Client.CoreV1().ConfigMaps(f.ns).Get(f.t.Context(), name, metav1.GetOptions{})
		return err
	})
	return cm
}

// groupsSeen is whom a server with this bundle sees when a client comes with the certificate of a Secret.
func groupsSeen(t *testing.T, s *corev1.Secret, bundle string) string {
	t.Helper()
	server := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		subject := r.TLS.PeerCertificates[0].Subject
		fmt.Fprint(w, subject.CommonName, " ", subject.Organization)
	}))
	t.Cleanup(server.Close)
	server.TLS = &tls.Config{ClientAuth: tls.RequireAndVerifyClientCert, ClientCAs: x509.NewCertPool()}
	server.TLS.ClientCAs.AppendCertsFromPEM([]byte(bundle))
	server.StartTLS()
	pair, err := tls.X509KeyPair(s.Data["tls.crt"], s.Data["tls.key"])
	if err != nil {
		t.Fatal(err)
	}
	client := server.Client()
	client.Transport.(*http.Transport).TLSClientConfig.Certificates = []tls.Certificate{pair}
	req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, server.URL, nil)
	if err != nil {
		t.Fatal(err)
	}
	resp, err := client.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	return readAll(resp.Body)
}

// knownAs is whom the API server sees when a client comes with the certificate of a Secret.
func knownAs(t *testing.T, s *corev1.Secret) authenticationv1.UserInfo {
	t.Helper()
	config := rest.AnonymousClientConfig(shared.Config)
	config.CertData, config.KeyData = s.Data["tls.crt"], s.Data["tls.key"]
	client, err := kubernetes.NewForConfig(config)
	if err != nil {
		t.Fatal(err)
	}
	review, err := client.AuthenticationV1().SelfSubjectReviews().Create(t.Context(), &authenticationv1.SelfSubjectReview{}, metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	return review.Status.UserInfo
}

// verified returns the claims of a token that the key of RSA in a certificate has signed.
func verified(token, cert string) (claims map[string]any, err error) {
	block, _ := pem.Decode([]byte(cert))
	parsed, err := x509.ParseCertificate(block.Bytes)
	if err != nil {
		return nil, err
	}
	key, ok := parsed.PublicKey.(*rsa.PublicKey)
	if !ok || !parsed.IsCA || len(parsed.Subject.Organization) != 1 {
		return nil, fmt.Errorf("the authority is %s, with a key %T", parsed.Subject, parsed.PublicKey)
	}
	parts := strings.Split(token, ".")
	if len(parts) != 3 {
		return nil, fmt.Errorf("the token has %d parts", len(parts))
	}
	signature, err := base64.RawURLEncoding.DecodeString(parts[2])
	if err != nil {
		return nil, err
	}
	sum := sha256.Sum256([]byte(parts[0] + "." + parts[1]))
	if err := rsa.VerifyPKCS1v15(key, crypto.SHA256, sum[:], signature); err != nil {
		return nil, err
	}
	text, err := base64.RawURLEncoding.DecodeString(parts[1])
	if err != nil {
		return nil, err
	}
	return claims, json.Unmarshal(text, &claims)
}

// newRegistry serves acme/addons:stable, an image of one layer with these files, to those who get a token
// for their refresh token.
func newRegistry(t *testing.T, refresh string, files map[string]string) *httptest.Server {
	t.Helper()
	var layer bytes.Buffer
	packed := gzip.NewWriter(&layer)
	w := tar.NewWriter(packed)
	for name, text := range files {
		err := w.WriteHeader(&tar.Header{Name: name, Mode: 0o644, Size: int64(len(text))})
		if err == nil {
			_, err = io.WriteString(w, text)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	if err := errors.Join(w.Close(), packed.Close()); err != nil {
		t.Fatal(err)
	}
	sum := sha256.Sum256(layer.Bytes())
	digest := "sha256:" + hex.EncodeToString(sum[:])

	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch known := r.Header.Get("Authorization") == "Bearer access-76"; {
		case r.Method == http.MethodPost && r.URL.Path == "/token" && r.PostFormValue("refresh_token") == refresh:
			io.WriteString(w, `{"access_token": "access-76"}`)
		case !known:
			w.WriteHeader(http.StatusUnauthorized)
		case r.URL.Path == "/v2/acme/addons/manifests/stable":
			fmt.Fprintf(w, `{"schemaVersion": 2, "layers": [{"digest": %q}]}`, digest)
		case r.URL.Path == "/v2/acme/addons/blobs/"+digest:
			w.Write(layer.Bytes())
		default:
			w.WriteHeader(http.StatusNotFound)
		}
	}))
	t.Cleanup(server.Close)
	return server
}
