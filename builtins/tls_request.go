package builtins

import (
	"crypto/rsa"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"fmt"
	"strings"

	startime "go.starlark.net/lib/time"
	"go.starlark.net/starlark"
	"go.starlark.net/starlarkstruct"

	"github.com/starling-operator/starling/runtime/object"
)

// Certificate requests: whoever asks keeps the key, and an authority signs.

// callRequest makes a certificate request.
func callRequest(c *call) (starlark.Value, error) {
	name, dns, ips, err := c.certIdentity()
	if err != nil {
		return nil, err
	}
	subject, err := c.subject(name)
	if err != nil {
		return nil, err
	}
	key, err := c.newKey()
	if err != nil {
		return nil, err
	}
	der, err := x509.CreateCertificateRequest(nil, &x509.CertificateRequest{Subject: subject, DNSNames: dns, IPAddresses: ips}, key)
	if err != nil {
		return nil, fmt.Errorf("cannot sign: %s", strings.TrimPrefix(err.Error(), "x509: "))
	}
	text, err := keyPEM(key)
	if err != nil {
		return nil, err
	}
	v := starlarkstruct.FromStringDict(starlarkstruct.Default, starlark.StringDict{
		"request": starlark.String(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE REQUEST", Bytes: der})),
		"key":     object.NewSecret(text),
	})
	v.Freeze()
	return v, nil
}

// callSign signs a certificate request.
func callSign(c *call) (starlark.Value, error) {
	request, err := parseRequest(c.text("request"))
	if err != nil {
		return nil, fmt.Errorf("request: %w", err)
	}
	by, err := c.signer()
	if err != nil {
		return nil, err
	}
	template, err := c.certTemplate(request.Subject)
	if err != nil {
		return nil, err
	}
	template.DNSNames, template.IPAddresses = request.DNSNames, request.IPAddresses
	template.EmailAddresses, template.URIs = request.EmailAddresses, request.URIs
	template.KeyUsage = x509.KeyUsageDigitalSignature
	if template.ExtKeyUsage, err = c.certUsages(); err != nil {
		return nil, err
	}
	if template.NotAfter.After(by.cert.NotAfter) {
		template.NotAfter = by.cert.NotAfter
	}
	der, err := c.run.sign(template, by.cert, request.PublicKey, by.key)
	if err != nil {
		return nil, err
	}
	v := starlarkstruct.FromStringDict(starlarkstruct.Default, starlark.StringDict{
		"cert":       starlark.String(certPEM(der)),
		"chain":      starlark.String(string(certPEM(der)) + by.chain),
		"not_before": startime.Time(template.NotBefore),
		"not_after":  startime.Time(template.NotAfter),
	})
	v.Freeze()
	return v, nil
}

// parseRequest reads a request whose key has signed it.
func parseRequest(text string) (*x509.CertificateRequest, error) {
	if len(text) > maxPEM {
		return nil, fmt.Errorf("the text is larger than %d MiB", maxPEM>>20)
	}
	block, _ := pem.Decode([]byte(text))
	if block == nil || block.Type != "CERTIFICATE REQUEST" && block.Type != "NEW CERTIFICATE REQUEST" {
		return nil, errors.New("the text holds no certificate request in PEM (-----BEGIN CERTIFICATE REQUEST-----)")
	}
	request, err := x509.ParseCertificateRequest(block.Bytes)
	if err != nil {
		return nil, errors.New("it is broken: its PEM is right, but what it holds is no request")
	}
	if key, ok := request.PublicKey.(*rsa.PublicKey); ok && key.N.BitLen() > maxRSA {
		return nil, fmt.Errorf("its RSA key has %d bits, more than %d", key.N.BitLen(), maxRSA)
	}
	if request.CheckSignature() != nil {
		return nil, errors.New("its key has not signed it")
	}
	if n := len(request.DNSNames) + len(request.IPAddresses) + len(request.EmailAddresses) + len(request.URIs); n > maxCertNames {
		return nil, fmt.Errorf("it has %d names and addresses, a certificate is for %d at most", n, maxCertNames)
	}
	return request, nil
}
