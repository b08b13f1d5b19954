package admin

import (
	"crypto/tls"
	"crypto/x509"
	"errors"
	"io"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/starling-operator/starling/runtime/pki"
)

// issue writes a certificate that is its own authority to a folder, as tls.crt and tls.key.
func issue(t *testing.T) (dir string, cert *tls.Certificate) {
	t.Helper()
	cert, err := pki.Issue(&x509.Certificate{
		NotAfter: time.Now().Add(time.Hour), IsCA: true, BasicConstraintsValid: true, IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)},
		KeyUsage: x509.KeyUsageCertSign | x509.KeyUsageDigitalSignature, ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth, x509.ExtKeyUsageServerAuth},
	}, nil)
	if err != nil {
		t.Fatal(err)
	}
	dir = t.TempDir()
	crt, key, err := pki.PEM(cert)
	if err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(os.WriteFile(filepath.Join(dir, "tls.crt"), crt, 0o600), os.WriteFile(filepath.Join(dir, "tls.key"), key, 0o600)); err != nil {
		t.Fatal(err)
	}
	return dir, cert
}

// Probes of the kubelet show no certificate, so only metrics ask for one.
func TestMetricsOverTLS(t *testing.T) {
	o := options(t)
	o.ClientCA = "ca.crt"
	if _, err := New(o); err == nil || !strings.Contains(err.Error(), "--metrics-client-ca needs --metrics-cert-dir") {
		t.Errorf("authorities without TLS: %v", err)
	}
	o.CertDir = t.TempDir()
	if _, err := New(o); err == nil || !strings.Contains(err.Error(), "--metrics-cert-dir "+o.CertDir+": tls.crt and tls.key cannot be read") {
		t.Errorf("no certificate: %v", err)
	}
	o.CertDir, _ = issue(t)
	if _, err := New(o); err == nil || err.Error() != "--metrics-client-ca ca.crt: it is not there" {
		t.Errorf("no authorities: %v", err)
	}
	of, known := issue(t)
	_, stranger := issue(t)
	o.ClientCA = filepath.Join(of, "tls.crt")
	s, _ := start(t, o)
	for _, tt := range []struct {
		path string
		cert *tls.Certificate
		code int
	}{
		{"/metrics", known, 200},
		{"/metrics", nil, 403},
		{"/metrics", stranger, 0},
		{"/healthz", nil, 200},
		{"/readyz", nil, 200},
	} {
		config := &tls.Config{InsecureSkipVerify: true}
		if tt.cert != nil { // whatever the server says that it would take
			config.GetClientCertificate = func(*tls.CertificateRequestInfo) (*tls.Certificate, error) { return tt.cert, nil }
		}
		client := http.Client{Transport: &http.Transport{DisableKeepAlives: true, TLSClientConfig: config}}
		res, err := client.Get("https://" + s.Addr() + tt.path)
		code := 0
		if err == nil {
			code = res.StatusCode
			_, _ = io.Copy(io.Discard, res.Body)
			res.Body.Close()
		}
		if code != tt.code {
			t.Errorf("%s: %d %v, want %d", tt.path, code, err, tt.code)
		}
	}
	if code, _ := get(t, s, "/healthz"); code != 400 {
		t.Errorf("plain HTTP on a port of TLS: %d", code)
	}
}
