package secrets

import (
	"crypto"
	"crypto/x509"
	"errors"
	"fmt"
	"time"

	"go.starlark.net/starlark"

	"github.com/starling-operator/starling/builtins/spec"
	"github.com/starling-operator/starling/runtime/pki"
)

// signer is an authority, with the certificates that those below it have to show.
type signer struct {
	cert  *x509.Certificate
	key   crypto.Signer
	chain string
}

// signer reads ca=, which must be good at the time of the run.
func signerOf(c *spec.Call) (*signer, error) {
	out, err := authority(c.Arg("ca"))
	if err != nil {
		return nil, fmt.Errorf("ca: %w", err)
	}
	cert := out.cert
	if now := c.Now; now.After(cert.NotAfter) || now.Before(cert.NotBefore) {
		return nil, fmt.Errorf("ca: it is good from %s to %s, and now is %s; make a new one",
			cert.NotBefore.Format(time.RFC3339), cert.NotAfter.Format(time.RFC3339), now.UTC().Format(time.RFC3339))
	}
	if pki.SelfSigned(cert) {
		return out, nil
	}
	chain := []*x509.Certificate{cert}
	if text, ok := spec.OpenText(spec.Member(c.Arg("ca"), "chain")); ok && text != "" {
		above, err := pki.ParseCertificates(text)
		if err != nil {
			return nil, fmt.Errorf("ca: chain: %w", err)
		}
		for _, a := range above {
			if !a.Equal(cert) && !pki.SelfSigned(a) {
				chain = append(chain, a)
			}
		}
	}
	out.chain = string(pki.CertificatesPEM(chain...))
	return out, nil
}

// authority reads what tls.ca returned, or what is like it. Of a bundle of
// certificates it is the one that belongs to the key.
func authority(v starlark.Value) (*signer, error) {
	cert, okCert := spec.OpenText(spec.Member(v, "cert"))
	text, okKey := spec.OpenText(spec.Member(v, "key"))
	if !okCert || !okKey {
		return nil, fmt.Errorf("got %s, want what tls.ca returns, or a struct or dict with the texts cert and key", v.Type())
	}
	bundle, err := pki.ParseCertificates(cert)
	if err != nil {
		return nil, fmt.Errorf("cert: %w", err)
	}
	key, err := pki.ParseKey(text)
	if err != nil {
		return nil, fmt.Errorf("key: %w", err)
	}
	for _, ca := range bundle {
		switch {
		case !pki.Belongs(key, ca):
		case !ca.IsCA || ca.KeyUsage != 0 && ca.KeyUsage&x509.KeyUsageCertSign == 0:
			return nil, errors.New("its certificate is no authority's")
		default:
			return &signer{cert: ca, key: key}, nil
		}
	}
	return nil, errors.New("the key is not that of its certificate")
}
