package secrets

import (
	"crypto/x509"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"slices"
	"strings"
)

// formOfKey says in which form a text holds a public or private key that is no PEM; "" for any other text.
func formOfKey(text string) string {
	trimmed := strings.TrimSpace(text)
	first, _, _ := strings.Cut(trimmed, " ")
	switch {
	case strings.HasPrefix(first, "ssh-"), strings.HasPrefix(first, "ecdsa-sha2-"), strings.HasPrefix(first, "sk-ssh-"), strings.HasPrefix(first, "sk-ecdsa-"):
		return "a key of SSH"
	case strings.Contains(trimmed, "---BEGIN "), strings.Contains(trimmed, "--- BEGIN "), strings.Contains(trimmed, "BEGIN PUBLIC KEY"), strings.Contains(trimmed, "BEGIN CERTIFICATE"):
		return "a key whose first line is broken"
	case strings.Contains(text, "\uFFFD"), isDER([]byte(text)): // the former: bytes that are no text
		return "a key in DER"
	}
	var jwk map[string]any
	if json.Unmarshal([]byte(trimmed), &jwk) == nil && (jwk["kty"] != nil || jwk["keys"] != nil) {
		return "a JWK"
	}
	packed := strings.Join(strings.Fields(trimmed), "")
	bare := strings.TrimRight(packed, "=")
	for _, decode := range []func(string) ([]byte, error){base64.RawStdEncoding.DecodeString, base64.RawURLEncoding.DecodeString, hex.DecodeString} {
		if data, err := decode(bare); err == nil && isDER(data) {
			return "a key in DER"
		}
	}
	if data, err := base64.RawStdEncoding.DecodeString(bare); err == nil && (strings.Contains(string(data), "-----BEGIN ") || strings.HasPrefix(string(data), "ssh-")) {
		return "a key in base64"
	}
	return ""
}

// isDER says whether data is a key or a certificate in DER.
func isDER(data []byte) bool {
	_, noPKIX := x509.ParsePKIXPublicKey(data)
	_, noPKCS1 := x509.ParsePKCS1PublicKey(data)
	_, noCertificate := x509.ParseCertificate(data)
	_, noPKCS8 := x509.ParsePKCS8PrivateKey(data)
	_, noPrivate := x509.ParsePKCS1PrivateKey(data)
	_, noEC := x509.ParseECPrivateKey(data)
	return slices.Contains([]error{noPKIX, noPKCS1, noCertificate, noPKCS8, noPrivate, noEC}, nil)
}
