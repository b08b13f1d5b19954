package secrets

import (
	"crypto"
	"crypto/x509"
	"crypto/x509/pkix"
	"errors"
	"fmt"
	"strings"
	"time"

	startime "go.starlark.net/lib/time"
	"go.starlark.net/starlark"
	"go.starlark.net/starlarkstruct"

	"github.com/starling-operator/starling/builtins/spec"
	"github.com/starling-operator/starling/runtime/pki"
)

// Certificates: tls. The result depends on the clock of the run, Run.Now, and on random bytes, Run.Random, and on
// nothing else: a run that is played again makes the same bytes, and so does a test, which has both from its world.

const (
	// maxCertDays is how long a certificate may last: a hundred years.
	maxCertDays = 36500
	// maxCertNames bounds the names and addresses of one certificate.
	maxCertNames = 100
	// maxCommonName is what X.509 allows.
	maxCommonName = 64
	// maxDepth bounds how many authorities may stand below one.
	maxDepth = 8
)

func tlsSpecs() []spec.Spec {
	const phases = spec.InRun | spec.InReview | spec.InTest
	pems := spec.Required("pem", spec.SecretText)
	days := func(value string) spec.Param { return spec.Optional("days", spec.Int, value).Between(1, maxCertDays) }
	return []spec.Spec{
		spec.New("tls.ca", phases, spec.Reads, callCA, append([]spec.Param{
			spec.Required("name", spec.String), days("3650"), spec.Keyword("ca", spec.Any, "None"),
			spec.Keyword("depth", spec.Int, "0").Between(0, maxDepth),
		}, subjectParams()...)...),
		spec.New("tls.cert", phases, spec.Reads, callCert, append([]spec.Param{
			spec.Required("ca", spec.Any), spec.Optional("dns", spec.Strings, "[]"), spec.Optional("ips", spec.Strings, "[]"),
			days("365"), spec.Keyword("name", spec.String, "None"),
			spec.Keyword("usages", spec.Strings, `["server"]`),
		}, subjectParams()...)...),
		spec.New("tls.csr", phases, spec.Reads, callRequest, append([]spec.Param{
			spec.Optional("dns", spec.Strings, "[]"), spec.Optional("ips", spec.Strings, "[]"),
			spec.Keyword("name", spec.String, "None"),
		}, subjectParams()...)...),
		spec.New("tls.sign", phases, spec.Reads, callSign, spec.Required("request", spec.SecretText),
			spec.Required("ca", spec.Any), days("365"),
			spec.Keyword("usages", spec.Strings, `["server"]`)),
		spec.Pure("tls.info", callCertInfo, pems, spec.Optional("default", spec.Any, "None")),
		spec.Pure("tls.split", callCertSplit, pems),
		spec.New("tls.verify", phases, spec.Reads, callCertVerify, spec.Required("cert", spec.SecretText),
			spec.Required("ca", spec.SecretText), spec.Optional("key", spec.SecretText, "None"),
			spec.Keyword("dns", spec.Strings, "[]"), spec.Keyword("ips", spec.Strings, "[]")),
	}
}

func callCA(c *spec.Call) (starlark.Value, error) {
	name := c.Str("name")
	if name == "" {
		return nil, errors.New("name: is empty")
	}
	subject, err := subjectOf(c, name)
	if err != nil {
		return nil, err
	}
	template, depth := certTemplate(c, subject, 3650), c.IntOr("depth", 0)
	template.IsCA, template.MaxPathLen, template.MaxPathLenZero = true, depth, depth == 0
	template.KeyUsage |= x509.KeyUsageCertSign | x509.KeyUsageCRLSign
	if v := c.Arg("ca"); v == nil || v == starlark.None {
		return issueNew(c, template, nil)
	}
	by, err := signerOf(c)
	if err != nil {
		return nil, err
	}
	if left := by.cert.MaxPathLen; (left > 0 || by.cert.MaxPathLenZero) && depth >= left {
		return nil, fmt.Errorf("ca: %d authorities may stand below it, and this one and those below it are %d; make it with a larger depth=", left, depth+1)
	}
	return issueNew(c, template, by)
}

func callCert(c *spec.Call) (starlark.Value, error) {
	by, err := signerOf(c)
	if err != nil {
		return nil, err
	}
	name, dns, ips, err := certIdentity(c)
	if err != nil {
		return nil, err
	}
	subject, err := subjectOf(c, name)
	if err != nil {
		return nil, err
	}
	template := certTemplate(c, subject, 365)
	template.DNSNames, template.IPAddresses = dns, ips
	if strings.HasPrefix(c.Str("algorithm"), "rsa") {
		template.KeyUsage |= x509.KeyUsageKeyEncipherment // for servers of TLS 1.2 without ECDHE
	}
	if template.ExtKeyUsage, err = certUsages(c); err != nil {
		return nil, err
	}
	return issueNew(c, template, by)
}

// issueNew makes a new key, and a certificate for it that an authority signs; nil: it signs itself.
func issueNew(c *spec.Call, template *x509.Certificate, by *signer) (starlark.Value, error) {
	key, text, err := newKey(c)
	if err != nil {
		return nil, err
	}
	if by == nil {
		by = &signer{cert: template, key: key}
	}
	fields, err := issue(c, template, by, key.Public())
	if err != nil {
		return nil, err
	}
	fields["key"] = text
	return frozen(fields), nil
}

// issue signs a certificate, which ends with its authority at the latest.
func issue(c *spec.Call, template *x509.Certificate, by *signer, public crypto.PublicKey) (starlark.StringDict, error) {
	pki.EndWith(template, by.cert)
	cert, err := pki.Sign(template, by.cert, public, by.key, c.Random)
	if err != nil {
		return nil, err
	}
	text := starlark.String(pki.CertificatesPEM(cert))
	return starlark.StringDict{
		"cert":       text,
		"chain":      text + starlark.String(by.chain),
		"not_before": startime.Time(template.NotBefore),
		"not_after":  startime.Time(template.NotAfter),
	}, nil
}

func frozen(fields starlark.StringDict) starlark.Value {
	v := starlarkstruct.FromStringDict(starlarkstruct.Default, fields)
	v.Freeze()
	return v
}

// certTemplate returns what all certificates have: a subject, an end, a use.
func certTemplate(c *spec.Call, subject pkix.Name, days int) *x509.Certificate {
	now := c.Now.UTC().Truncate(time.Second)
	return &x509.Certificate{
		Subject:               subject,
		NotBefore:             now.Add(-pki.Backdate),
		NotAfter:              now.Add(time.Duration(c.IntOr("days", days)) * 24 * time.Hour),
		KeyUsage:              x509.KeyUsageDigitalSignature,
		BasicConstraintsValid: true,
	}
}

// certUsages reads usages.
func certUsages(c *spec.Call) ([]x509.ExtKeyUsage, error) {
	usages := c.Strings("usages")
	if usages == nil {
		usages = []string{"server"}
	}
	var out []x509.ExtKeyUsage
	for i, u := range usages {
		switch u {
		case "server":
			out = append(out, x509.ExtKeyUsageServerAuth)
		case "client":
			out = append(out, x509.ExtKeyUsageClientAuth)
		default:
			return nil, fmt.Errorf(`usages: element %d: %q is none; use "server" or "client"`, i, spec.Clip(u))
		}
	}
	if len(out) == 0 || len(out) > 2 || len(out) == 2 && out[0] == out[1] {
		return nil, errors.New(`usages: give "server", "client" or both, once each`)
	}
	return out, nil
}

func callCertInfo(c *spec.Call) (starlark.Value, error) {
	certs, err := pki.ParseCertificates(c.Text("pem"))
	if err != nil && c.Arg("default") != nil {
		return c.Arg("default"), nil
	}
	if err != nil {
		return nil, fmt.Errorf("pem: %w", err)
	}
	return certInfo(certs[0]), nil
}

func callCertSplit(c *spec.Call) (starlark.Value, error) {
	certs, err := pki.ParseCertificates(c.Text("pem"))
	if err != nil {
		return nil, fmt.Errorf("pem: %w", err)
	}
	out := make([]starlark.Value, len(certs))
	for i, cert := range certs {
		out[i] = starlark.String(pki.CertificatesPEM(cert))
	}
	return starlark.NewList(out), nil
}

func callCertVerify(c *spec.Call) (starlark.Value, error) {
	certs, err := pki.ParseCertificates(c.Text("cert"))
	if err != nil {
		return starlark.False, nil
	}
	trusted, err := pki.ParseCertificates(c.Text("ca"))
	if err != nil {
		return starlark.False, nil
	}
	if c.Arg("key") != nil {
		if key, err := pki.ParseKey(c.Text("key")); err != nil || !pki.Belongs(key, certs[0]) {
			return starlark.False, nil
		}
	}
	if _, err := certs[0].Verify(x509.VerifyOptions{
		Roots: pki.Pool(trusted...), Intermediates: pki.Pool(certs[1:]...), CurrentTime: c.Now,
		KeyUsages: []x509.ExtKeyUsage{x509.ExtKeyUsageAny},
	}); err != nil {
		return starlark.False, nil
	}
	for _, name := range append(c.Strings("dns"), c.Strings("ips")...) {
		if certs[0].VerifyHostname(name) != nil {
			return starlark.False, nil
		}
	}
	return starlark.True, nil
}
