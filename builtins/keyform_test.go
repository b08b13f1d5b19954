package builtins

import (
	"crypto/ed25519"
	"crypto/x509"
	"encoding/base64"
	"encoding/hex"
	"encoding/pem"
	"strings"
	"testing"
)

// A public key in any form but PEM is no shared secret: everybody could sign with it.
func TestKeysThatAreNoPEMAreRefused(t *testing.T) {
	public := ed25519.NewKeyFromSeed(make([]byte, 32)).Public()
	der, err := x509.MarshalPKIXPublicKey(public)
	if err != nil {
		t.Fatal(err)
	}
	text := string(pem.EncodeToMemory(&pem.Block{Type: "PUBLIC KEY", Bytes: der}))
	for name, key := range map[string]string{
		"DER": string(der), "base64": base64.StdEncoding.EncodeToString(der), "base64url": base64.RawURLEncoding.EncodeToString(der), "hex": hex.EncodeToString(der),
		"DER as text": strings.ToValidUTF8(string(der)+"\xff and what follows it, up to 32 bytes", "\uFFFD"),
		"JWK":         `{"kty":"OKP","crv":"Ed25519","x":"O2onvM62pC1io6jQKm8Nc2UyFXcd4kOmOsBIoYtZ2ik"}`,
		"JWKS":        `{"keys":[{"kty":"OKP","crv":"Ed25519","x":"O2onvM62pC1io6jQKm8Nc2UyFXcd4kOmOsBIoYtZ2ik"}]}`,
		"ssh":         "ssh-rsa AAAAB3NzaC1yc2EAAAADAQABAAABgQC7 me@here", "ssh2": "---- BEGIN SSH2 PUBLIC KEY ----\nAAAAB3NzaC1yc2EAAAADAQABAAABgQC7",
		"one dash less": strings.TrimPrefix(text, "-"), "PEM in base64": base64.StdEncoding.EncodeToString([]byte(text)),
	} {
		if _, err := readTokenKey(key); err == nil || !strings.Contains(err.Error(), "no shared key") {
			t.Errorf("%s: %v", name, err)
		}
	}
	for _, key := range []string{"0123456789abcdef0123456789abcdef", `{"a": "shared key of a service that likes JSON"}`, base64.StdEncoding.EncodeToString(make([]byte, 48)), text} {
		if _, err := readTokenKey(key); err != nil {
			t.Errorf("%q: %v", key, err)
		}
	}
}
