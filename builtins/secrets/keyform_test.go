package secrets

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

// A token that nobody has signed costs little more than its bytes, however many values it has.
func TestUnsignedTokensAreNotRead(t *testing.T) {
	part := func(text string) string { return base64.RawURLEncoding.EncodeToString([]byte(text)) }
	many := `{"a":[` + strings.Repeat(`{"":0},`, 5000) + `0]}`
	signed := `{"alg":"HS256"}`
	for name, token := range map[string]string{
		"claims": part(signed) + "." + part(many) + "." + part("no signature"),
		"header": part(many[:len(many)-1]+`,"alg":"none"}`) + "." + part("{}") + ".",
	} {
		key, err := readTokenKey("0123456789abcdef0123456789abcdef")
		if err != nil {
			t.Fatal(err)
		}
		if n := testing.AllocsPerRun(10, func() {
			if verifiedClaims(token, key) != nil {
				t.Error("it is taken")
			}
		}); n > 100 {
			t.Errorf("%s: %.0f allocations", name, n)
		}
	}
}
