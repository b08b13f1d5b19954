package secrets

import (
	"crypto"
	"crypto/x509"
	"fmt"

	"go.starlark.net/starlark"

	"github.com/starling-operator/starling/builtins/spec"
	"github.com/starling-operator/starling/runtime/object"
	"github.com/starling-operator/starling/runtime/pki"
)

// Certificate requests: whoever asks keeps the key, and an authority signs.

// callRequest makes a certificate request.
func callRequest(c *spec.Call) (starlark.Value, error) {
	name, dns, ips, err := certIdentity(c)
	if err != nil {
		return nil, err
	}
	subject, err := subjectOf(c, name)
	if err != nil {
		return nil, err
	}
	key, text, err := newKey(c)
	if err != nil {
		return nil, err
	}
	request, err := pki.SignRequest(&x509.CertificateRequest{Subject: subject, DNSNames: dns, IPAddresses: ips}, key)
	if err != nil {
		return nil, err
	}
	return frozen(starlark.StringDict{"request": starlark.String(request), "key": text}), nil
}

// newKey makes a key of the kind that algorithm= says, and its text.
func newKey(c *spec.Call) (crypto.Signer, *object.Secret, error) {
	algorithm := c.StrOr("algorithm", "ecdsa-p256")
	if !pki.Known(algorithm) {
		return nil, nil, fmt.Errorf("algorithm: %q is none; use ecdsa-p256, ecdsa-p384, ed25519, rsa-2048, rsa-3072 or rsa-4096", spec.Clip(algorithm))
	}
	key, err := pki.NewKey(algorithm, c.Random)
	if err != nil {
		return nil, nil, err
	}
	text, err := pki.KeyPEM(key)
	return key, object.NewSecret(string(text)), err
}

// callSign signs a certificate request.
func callSign(c *spec.Call) (starlark.Value, error) {
	request, err := pki.ParseRequest(c.Text("request"))
	if err != nil {
		return nil, fmt.Errorf("request: %w", err)
	}
	if n := len(request.DNSNames) + len(request.IPAddresses) + len(request.EmailAddresses) + len(request.URIs); n > maxCertNames {
		return nil, fmt.Errorf("request: it has %d names and addresses, a certificate is for %d at most", n, maxCertNames)
	}
	by, err := signerOf(c)
	if err != nil {
		return nil, err
	}
	template := certTemplate(c, request.Subject, 365)
	template.DNSNames, template.IPAddresses = request.DNSNames, request.IPAddresses
	template.EmailAddresses, template.URIs = request.EmailAddresses, request.URIs
	if template.ExtKeyUsage, err = certUsages(c); err != nil {
		return nil, err
	}
	fields, err := issue(c, template, by, request.PublicKey)
	if err != nil {
		return nil, err
	}
	return frozen(fields), nil
}
