package pki

import (
	"bytes"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"errors"
	"io"
	"reflect"
	"strings"
	"testing"
	"time"
)

// The same random bytes make the same key, of the kind that is asked for; others make another one.
func TestKeysAreMadeOfTheirBytes(t *testing.T) {
	for _, algorithm := range []string{"ecdsa-p256", "ecdsa-p384", "ed25519", "rsa-2048"} {
		text := func(seed string) string {
			t.Helper()
			key, err := NewKey(algorithm, strings.NewReader(strings.Repeat(seed, secretSize)))
			if err != nil {
				t.Fatal(err)
			}
			if got := Algorithm(key.Public()); got != algorithm {
				t.Errorf("%s: made one of %s", algorithm, got)
			}
			out, err := KeyPEM(key)
			if err != nil {
				t.Fatal(err)
			}
			if again, err := ParseKey(string(out)); err != nil || Algorithm(again.Public()) != algorithm {
				t.Errorf("%s cannot be read: %v", algorithm, err)
			}
			return string(out)
		}
		if one := text("1"); one != text("1") || one == text("2") {
			t.Errorf("%s: not made of the random bytes", algorithm)
		}
	}
	if _, err := NewKey("ed25519", strings.NewReader("short")); !errors.Is(err, io.ErrUnexpectedEOF) || !strings.HasPrefix(err.Error(), "no random bytes: ") {
		t.Errorf("few bytes: %v", err)
	}
	if Known("rsa-1024") || Known("ecdsa-p224") {
		t.Error("weak keys are made")
	}
}

// The same bytes make the same key, remembered or not; another algorithm, or other bytes, make another one.
func TestKeysAreMadeOnce(t *testing.T) {
	keys := &Keys{}
	made := func(algorithm, seed string, keys *Keys) any {
		t.Helper()
		key, err := NewKey(algorithm, keys.From(strings.NewReader(strings.Repeat(seed, secretSize))))
		if err != nil {
			t.Fatal(err)
		}
		return key
	}
	for _, algorithm := range []string{"ecdsa-p256", "rsa-2048"} {
		one := made(algorithm, "1", keys)
		if !reflect.DeepEqual(one, made(algorithm, "1", nil)) {
			t.Errorf("%s: another key than without", algorithm)
		}
		if made(algorithm, "1", keys) != one {
			t.Errorf("%s: made again", algorithm)
		}
		if reflect.DeepEqual(made(algorithm, "2", keys), one) {
			t.Errorf("%s: one key of two secrets", algorithm)
		}
	}
}

// A certificate is read from its texts as it is made, and ends with its authority.
func TestCertificatesOfAnAuthority(t *testing.T) {
	now := time.Now()
	authority, err := Issue(&x509.Certificate{
		Subject: pkix.Name{CommonName: "a"}, NotBefore: now, NotAfter: now.Add(time.Hour),
		IsCA: true, BasicConstraintsValid: true, KeyUsage: x509.KeyUsageCertSign,
	}, nil)
	if err != nil {
		t.Fatal(err)
	}
	made, err := Issue(&x509.Certificate{DNSNames: []string{"web"}, NotBefore: now, NotAfter: now.Add(2 * time.Hour)}, authority)
	if err != nil {
		t.Fatal(err)
	}
	if err := made.Leaf.CheckSignatureFrom(authority.Leaf); err != nil || !made.Leaf.NotAfter.Equal(authority.Leaf.NotAfter) {
		t.Errorf("ends at %s: %v", made.Leaf.NotAfter, err)
	}
	if !SelfSigned(authority.Leaf) || SelfSigned(made.Leaf) {
		t.Error("who has signed is mistaken")
	}
	if n := made.Leaf.SerialNumber; n.BitLen() != 127 || n.Cmp(authority.Leaf.SerialNumber) == 0 {
		t.Errorf("its serial number is %x", n)
	}
	crt, key, err := PEM(made)
	if err != nil {
		t.Fatal(err)
	}
	if read, err := tls.X509KeyPair(crt, key); err != nil || !bytes.Equal(read.Certificate[0], made.Certificate[0]) {
		t.Errorf("cannot be read: %v", err)
	}
	other := &tls.Certificate{Leaf: authority.Leaf, PrivateKey: "none"}
	if _, err := Issue(&x509.Certificate{}, other); err == nil || err.Error() != "cannot sign: the key of the authority signs nothing" {
		t.Errorf("no key: %v", err)
	}
}
