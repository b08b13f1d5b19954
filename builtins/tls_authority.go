package builtins

import (
	"bytes"
	"crypto"
	"crypto/x509"
	"errors"
	"fmt"
	"time"

	"go.starlark.net/starlark"
)

// signer is an authority, with the certificates that those below it have to show.
type signer struct {
	cert  *x509.Certificate
	key   crypto.Signer
	chain string
}

// signer reads ca=, which must be good at the time of the run.
func (c *call) signer() (*signer, error) {
	cert, key, err := authority(c.arg("ca"))
	if err != nil {
		return nil, fmt.Errorf("ca: %w", err)
	}
	if now := c.run.Now; now.After(cert.NotAfter) || now.Before(cert.NotBefore) {
		return nil, fmt.Errorf("ca: it is good from %s to %s, and now is %s; make a new one",
			cert.NotBefore.Format(time.RFC3339), cert.NotAfter.Format(time.RFC3339), now.UTC().Format(time.RFC3339))
	}
	out := &signer{cert: cert, key: key}
	if selfSigned(cert) {
		return out, nil
	}
	out.chain = string(certPEM(cert.Raw))
	if text, ok := openText(member(c.arg("ca"), "chain")); ok && text != "" {
		above, err := parseCerts(text)
		if err != nil {
			return nil, fmt.Errorf("ca: chain: %w", err)
		}
		for _, a := range above {
			if !a.Equal(cert) && !selfSigned(a) {
				out.chain += string(certPEM(a.Raw))
			}
		}
	}
	return out, nil
}

func selfSigned(cert *x509.Certificate) bool {
	return bytes.Equal(cert.RawIssuer, cert.RawSubject) &&
		cert.CheckSignature(cert.SignatureAlgorithm, cert.RawTBSCertificate, cert.Signature) == nil
}

// authority reads what tls.ca returned, or what is like it. Of a bundle of
// certificates it is the one that belongs to the key.
func authority(v starlark.Value) (*x509.Certificate, crypto.Signer, error) {
	cert, okCert := openText(member(v, "cert"))
	text, okKey := openText(member(v, "key"))
	if !okCert || !okKey {
		return nil, nil, fmt.Errorf("got %s, want what tls.ca returns, or a struct or dict with the texts cert and key", v.Type())
	}
	bundle, err := parseCerts(cert)
	if err != nil {
		return nil, nil, fmt.Errorf("cert: %w", err)
	}
	key, err := parseKey(text)
	if err != nil {
		return nil, nil, fmt.Errorf("key: %w", err)
	}
	for _, ca := range bundle {
		switch {
		case !belongs(key, ca):
		case !ca.IsCA || ca.KeyUsage != 0 && ca.KeyUsage&x509.KeyUsageCertSign == 0:
			return nil, nil, errors.New("its certificate is no authority's")
		default:
			return ca, key, nil
		}
	}
	return nil, nil, errors.New("the key is not that of its certificate")
}
