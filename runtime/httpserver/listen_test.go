package httpserver

import (
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"errors"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/starling-operator/starling/builtins"
	"github.com/starling-operator/starling/runtime/pki"
)

// writeCert puts a certificate of that name into a folder.
func writeCert(t *testing.T, dir, name string) {
	t.Helper()
	cert, err := pki.Issue(&x509.Certificate{
		Subject: pkix.Name{CommonName: name}, DNSNames: []string{name}, NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour),
	}, nil)
	if err != nil {
		t.Fatal(err)
	}
	crt, key, err := pki.PEM(cert)
	if err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(os.WriteFile(filepath.Join(dir, "tls.crt"), crt, 0o600), os.WriteFile(filepath.Join(dir, "tls.key"), key, 0o600)); err != nil {
		t.Fatal(err)
	}
}

func TestReceivingOverTLS(t *testing.T) {
	dir := t.TempDir()
	if _, err := Listen("127.0.0.1:0", dir); err == nil || !strings.Contains(err.Error(), "cannot be read as a certificate and its key") {
		t.Fatalf("got %v", err)
	}
	writeCert(t, dir, "one.example")
	ln, err := Listen("127.0.0.1:0", dir)
	if err != nil {
		t.Fatal(err)
	}
	w := newWorld(t, &builtins.ReceiveBinding{Path: "/x"})
	w.s.Start(ln)
	defer w.s.Stop()
	client := &http.Client{Transport: &http.Transport{DisableKeepAlives: true, TLSClientConfig: &tls.Config{InsecureSkipVerify: true}}}
	resp, err := client.Post("https://"+ln.Addr().String()+"/x", "text/plain", strings.NewReader("x"))
	if err != nil {
		t.Fatal(err)
	}
	resp.Body.Close()
	if name := resp.TLS.PeerCertificates[0].Subject.CommonName; resp.StatusCode != 200 || name != "one.example" || len(w.asked) != 1 {
		t.Errorf("got %d from %s", resp.StatusCode, name)
	}
}
