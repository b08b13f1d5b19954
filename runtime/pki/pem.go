package pki

import (
	"crypto"
	"crypto/rsa"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"fmt"
	"strings"
)

// Texts may come from anywhere, and may be a key where a certificate belongs: errors show none of them.

const (
	// maxPEM is the largest text of certificates: what a Secret can hold.
	maxPEM = 1 << 20
	// maxCerts bounds the certificates of one text.
	maxCerts = 1000
	// maxKeyPEM is the largest text of a private key; RSA of 8192 bits takes 6 KiB.
	maxKeyPEM = 16 << 10
	// maxRSA is the largest RSA key; larger ones take long to check.
	maxRSA = 8192
)

// CertificatesPEM returns certificates as a text, in their order.
func CertificatesPEM(certs ...*x509.Certificate) (out []byte) {
	for _, c := range certs {
		out = append(out, encode("CERTIFICATE", c.Raw)...)
	}
	return out
}

// KeyPEM returns a private key as a text, in PKCS #8.
func KeyPEM(key crypto.PrivateKey) ([]byte, error) {
	pkcs8, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		return nil, errors.New("the key cannot be written")
	}
	return encode("PRIVATE KEY", pkcs8), nil
}

func encode(kind string, der []byte) []byte {
	return pem.EncodeToMemory(&pem.Block{Type: kind, Bytes: der})
}

// ParseCertificates reads all certificates of a text, at least one.
func ParseCertificates(text string) ([]*x509.Certificate, error) {
	if err := limit(text); err != nil {
		return nil, err
	}
	begun := strings.Count(text, "-----BEGIN ")
	switch {
	case begun == 0:
		return nil, errors.New("the text holds no certificate in PEM (-----BEGIN CERTIFICATE-----)")
	case begun > maxCerts:
		return nil, fmt.Errorf("the text holds %d PEM blocks, more than %d", begun, maxCerts)
	}
	var out []*x509.Certificate
	for block, rest := pem.Decode([]byte(text)); block != nil; block, rest = pem.Decode(rest) {
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
		if n := rsaBits(cert.PublicKey); n > maxRSA {
			return nil, fmt.Errorf("certificate %d has an RSA key of %d bits, more than %d", len(out)+1, n, maxRSA)
		}
		out = append(out, cert)
	}
	if len(out) != begun { // pem.Decode skips what it cannot read
		return nil, fmt.Errorf("the text begins %d PEM blocks, of which %d can be read", begun, len(out))
	}
	return out, nil
}

// ParseRequest reads a certificate request that its key has signed.
func ParseRequest(text string) (*x509.CertificateRequest, error) {
	if err := limit(text); err != nil {
		return nil, err
	}
	block, _ := pem.Decode([]byte(text))
	if block == nil || block.Type != "CERTIFICATE REQUEST" && block.Type != "NEW CERTIFICATE REQUEST" {
		return nil, errors.New("the text holds no certificate request in PEM (-----BEGIN CERTIFICATE REQUEST-----)")
	}
	request, err := x509.ParseCertificateRequest(block.Bytes)
	if err != nil {
		return nil, errors.New("it is broken: its PEM is right, but what it holds is no request")
	}
	if n := rsaBits(request.PublicKey); n > maxRSA {
		return nil, fmt.Errorf("its RSA key has %d bits, more than %d", n, maxRSA)
	}
	if request.CheckSignature() != nil {
		return nil, errors.New("its key has not signed it")
	}
	return request, nil
}

// ParseKey reads a private key.
func ParseKey(text string) (crypto.Signer, error) {
	if len(text) > maxKeyPEM {
		return nil, fmt.Errorf("the text is larger than %d KiB", maxKeyPEM>>10)
	}
	for block, rest := pem.Decode([]byte(text)); block != nil; block, rest = pem.Decode(rest) {
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
		return signer, limitKey(signer.Public())
	}
	return nil, errors.New("the text holds no private key in PEM (-----BEGIN PRIVATE KEY-----)")
}

// ParsePublicKey reads a public key, or that of a certificate or a private key, whichever the text holds first; of a
// private one signer is not nil.
func ParsePublicKey(text string) (public crypto.PublicKey, signer crypto.Signer, err error) {
	if err := limit(text); err != nil {
		return nil, nil, err
	}
	block, _ := pem.Decode([]byte(text))
	switch {
	case block == nil:
		return nil, nil, errors.New("the text holds no key in PEM that can be read")
	case block.Type == "CERTIFICATE":
		certs, err := ParseCertificates(text)
		if err != nil {
			return nil, nil, err
		}
		return certs[0].PublicKey, nil, nil
	case block.Type == "PUBLIC KEY":
		public, err := x509.ParsePKIXPublicKey(block.Bytes)
		if err != nil {
			return nil, nil, errors.New("the public key is broken")
		}
		return public, nil, limitKey(public)
	}
	if signer, err = ParseKey(text); err != nil {
		return nil, nil, err
	}
	return signer.Public(), signer, nil
}

func limit(text string) error {
	if len(text) > maxPEM {
		return fmt.Errorf("the text is larger than %d MiB", maxPEM>>20)
	}
	return nil
}

func limitKey(public crypto.PublicKey) error {
	if n := rsaBits(public); n > maxRSA {
		return fmt.Errorf("the RSA key has %d bits, more than %d", n, maxRSA)
	}
	return nil
}

// rsaBits returns the size of a key of RSA, 0 for others.
func rsaBits(public crypto.PublicKey) int {
	if key, ok := public.(*rsa.PublicKey); ok {
		return key.N.BitLen()
	}
	return 0
}
