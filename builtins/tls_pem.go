package builtins

import (
	"crypto"
	"crypto/rsa"
	"crypto/sha256"
	"crypto/x509"
	"encoding/hex"
	"encoding/pem"
	"errors"
	"fmt"
	"math/big"
	"strings"

	startime "go.starlark.net/lib/time"
	"go.starlark.net/starlark"
	"go.starlark.net/starlarkstruct"

	"github.com/starling-operator/starling/runtime/object"
)

// Keys and certificates as texts. The text may come from anywhere, and may be a
// key where a certificate belongs: errors show none of it.

const (
	// maxPEM is the largest text of certificates: what a Secret can hold.
	maxPEM = 1 << 20
	// maxCerts bounds the certificates of one text.
	maxCerts = 1000
	// maxKeyPEM is the largest text of a key; RSA of 8192 bits takes 6 KiB.
	maxKeyPEM = 16 << 10
	// maxRSA is the largest RSA key; larger ones take long to check.
	maxRSA = 8192
)

// sign signs a certificate for a public key. Without a random source signatures are the
// same for the same certificate (RFC 6979).
func (r *Run) sign(template, parent *x509.Certificate, public crypto.PublicKey, signer crypto.Signer) ([]byte, error) {
	serial, err := r.random(16)
	if err != nil {
		return nil, err
	}
	serial[0] = serial[0]&0x7f | 0x40 // positive, and always as long
	template.SerialNumber = new(big.Int).SetBytes(serial)
	der, err := x509.CreateCertificate(nil, template, parent, public, signer)
	if err != nil {
		return nil, fmt.Errorf("cannot sign: %s", strings.TrimPrefix(err.Error(), "x509: "))
	}
	return der, nil
}

// issue signs a certificate for key; chain are the certificates that go with it.
func (r *Run) issue(template, parent *x509.Certificate, key, signer crypto.Signer, chain string) (starlark.Value, error) {
	der, err := r.sign(template, parent, key.Public(), signer)
	if err != nil {
		return nil, err
	}
	text, err := keyPEM(key)
	if err != nil {
		return nil, err
	}
	v := starlarkstruct.FromStringDict(starlarkstruct.Default, starlark.StringDict{
		"cert":       starlark.String(certPEM(der)),
		"chain":      starlark.String(string(certPEM(der)) + chain),
		"key":        object.NewSecret(text),
		"not_before": startime.Time(template.NotBefore),
		"not_after":  startime.Time(template.NotAfter),
	})
	v.Freeze()
	return v, nil
}

func keyPEM(key crypto.Signer) (string, error) {
	pkcs8, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		return "", errors.New("the key cannot be written")
	}
	return string(pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: pkcs8})), nil
}

func certPEM(der []byte) []byte {
	return pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der})
}

// fingerprint is the SHA-256 of the certificate in hex.
func fingerprint(cert *x509.Certificate) string {
	sum := sha256.Sum256(cert.Raw)
	return hex.EncodeToString(sum[:])
}

// parseCerts reads all certificates of a text, at least one.
func parseCerts(text string) ([]*x509.Certificate, error) {
	if len(text) > maxPEM {
		return nil, fmt.Errorf("the text is larger than %d MiB", maxPEM>>20)
	}
	begun := strings.Count(text, "-----BEGIN ")
	switch {
	case begun == 0:
		return nil, errors.New("the text holds no certificate in PEM (-----BEGIN CERTIFICATE-----)")
	case begun > maxCerts:
		return nil, fmt.Errorf("the text holds %d PEM blocks, more than %d", begun, maxCerts)
	}
	var out []*x509.Certificate
	for rest := []byte(text); ; {
		var block *pem.Block
		if block, rest = pem.Decode(rest); block == nil {
			break
		}
		if strings.HasSuffix(block.Type, "PRIVATE KEY") {
			return nil, fmt.Errorf("PEM block %d is a private key, want certificates only", len(out)+1)
		}
		if block.Type != "CERTIFICATE" {
			return nil, fmt.Errorf("PEM block %d is no certificate", len(out)+1)
		}
		cert, err := x509.ParseCertificate(block.Bytes)
		if err != nil {
			return nil, fmt.Errorf("certificate %d is broken: its PEM is right, but what it holds is no X.509", len(out)+1)
		}
		if key, ok := cert.PublicKey.(*rsa.PublicKey); ok && key.N.BitLen() > maxRSA {
			return nil, fmt.Errorf("certificate %d has an RSA key of %d bits, more than %d", len(out)+1, key.N.BitLen(), maxRSA)
		}
		out = append(out, cert)
	}
	if len(out) != begun { // pem.Decode skips what it cannot read
		return nil, fmt.Errorf("the text begins %d PEM blocks, of which %d can be read", begun, len(out))
	}
	return out, nil
}

// parseKey reads a private key, of which nothing is in the error.
func parseKey(text string) (crypto.Signer, error) {
	if len(text) > maxKeyPEM {
		return nil, fmt.Errorf("the text is larger than %d KiB", maxKeyPEM>>10)
	}
	for rest := []byte(text); ; {
		var block *pem.Block
		if block, rest = pem.Decode(rest); block == nil {
			return nil, errors.New("the text holds no private key in PEM (-----BEGIN PRIVATE KEY-----)")
		}
		var key any
		var err error
		switch block.Type {
		case "PRIVATE KEY":
			key, err = x509.ParsePKCS8PrivateKey(block.Bytes)
		case "EC PRIVATE KEY":
			key, err = x509.ParseECPrivateKey(block.Bytes)
		case "RSA PRIVATE KEY":
			key, err = x509.ParsePKCS1PrivateKey(block.Bytes)
		case "ENCRYPTED PRIVATE KEY":
			return nil, errors.New("the private key is encrypted; give it in the clear, from a Secret")
		default: // such as EC PARAMETERS before the key
			continue
		}
		signer, ok := key.(crypto.Signer)
		if err != nil || !ok {
			return nil, errors.New("the private key is broken, or of a kind that signs nothing")
		}
		if key, ok := signer.Public().(*rsa.PublicKey); ok && key.N.BitLen() > maxRSA {
			return nil, fmt.Errorf("the RSA key has %d bits, more than %d", key.N.BitLen(), maxRSA)
		}
		return signer, nil
	}
}

// belongs reports whether the certificate is for the public half of key.
func belongs(key crypto.Signer, cert *x509.Certificate) bool {
	public, ok := key.Public().(interface{ Equal(crypto.PublicKey) bool })
	return ok && public.Equal(cert.PublicKey)
}
