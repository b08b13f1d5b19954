package tlsfiles

import (
	"crypto/x509"
	"crypto/x509/pkix"
	"errors"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/starling-operator/starling/runtime/bounded"
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

// A new certificate is shown soon; a broken one never.
func TestCertificatesAreReadAgain(t *testing.T) {
	dir := t.TempDir()
	writeCert(t, dir, "one.example")
	pair, err := OpenPair(dir, "--certs")
	if err != nil {
		t.Fatal(err)
	}
	shown := func(later time.Duration) string {
		t.Helper()
		pair.read = pair.read.Add(-later)
		cert, err := pair.get()
		if err != nil {
			t.Fatal(err)
		}
		return cert.Leaf.Subject.CommonName
	}
	if got := shown(0); got != "one.example" {
		t.Errorf("shows %s", got)
	}
	writeCert(t, dir, "two.example")
	if got := shown(0); got != "one.example" {
		t.Errorf("shows %s at once", got)
	}
	if got := shown(reread); got != "two.example" {
		t.Errorf("shows %s", got)
	}
	if err := os.WriteFile(filepath.Join(dir, "tls.key"), []byte("half"), 0o600); err != nil {
		t.Fatal(err)
	}
	if got := shown(reread); got != "two.example" {
		t.Errorf("shows %s", got)
	}
	// A volume of a Secret: ..data leads to the folder of the version in force.
	later := filepath.Join(dir, "..later")
	if err := os.Mkdir(later, 0o700); err != nil {
		t.Fatal(err)
	}
	writeCert(t, later, "three.example")
	if err := os.Symlink("..later", filepath.Join(dir, "..data")); err != nil {
		t.Fatal(err)
	}
	if got := shown(reread); got != "three.example" {
		t.Errorf("shows %s", got)
	}
}

// While the file of authorities is broken, the last good ones count; at the start it is an error.
func TestAuthoritiesAreReadAgain(t *testing.T) {
	dir := t.TempDir()
	file := filepath.Join(dir, "tls.crt")
	if _, err := OpenAuthorities(file, "--ca"); err == nil || err.Error() != "--ca "+file+": it is not there" {
		t.Errorf("no file: %v", err)
	}
	if err := os.WriteFile(file, []byte("half"), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := OpenAuthorities(file, "--ca"); err == nil || err.Error() != "--ca "+file+" holds no certificate in PEM" {
		t.Errorf("no PEM: %v", err)
	}
	writeCert(t, dir, "one.example")
	a, err := OpenAuthorities(file, "--ca")
	if err != nil {
		t.Fatal(err)
	}
	one, _ := a.get()
	writeCert(t, dir, "two.example")
	a.read = a.read.Add(-reread)
	two, err := a.get()
	if err != nil || two.Equal(one) {
		t.Errorf("a new file: %v", err)
	}
	for what, put := range map[string]func() error{
		"an empty file": func() error { return os.WriteFile(file, nil, 0o600) },
		"a large file": func() error {
			writeCert(t, dir, "three.example")
			return os.Truncate(file, bounded.MaxPEM+1)
		},
		"a folder": func() error { return os.Mkdir(file, 0o700) },
		"a pipe":   func() error { return pipe(file) }, // nobody writes: to open it takes for ever
	} {
		if err := errors.Join(os.Remove(file), put()); err != nil {
			t.Fatal(err)
		}
		a.read = a.read.Add(-reread)
		if still, err := a.get(); err != nil || !still.Equal(two) {
			t.Errorf("%s: %v", what, err)
		}
	}
}
