package builtins

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

	"github.com/starling-operator/starling/runtime/object"
	"github.com/starling-operator/starling/runtime/pki"
)

// Certificates: tls. The result depends on the clock of the run, Run.Now, and on
// random bytes, Run.Random, and on nothing else: a run that is played again makes the
// same bytes, and so does a test, which has both from its world.

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

func tlsSpecs() []Spec {
	const phases = PhaseRun | PhaseReview | PhaseTest
	pems := required("pem", TypeSecretText)
	return []Spec{
		{Name: "tls.ca", Phases: phases, Effect: EffectRead, call: callCA, Params: append([]Param{
			required("name", TypeString), optional("days", TypeInt, "3650"), keyword("ca", TypeAny, "None"),
			keyword("depth", TypeInt, "0"),
		}, subjectParams()...)},
		{Name: "tls.cert", Phases: phases, Effect: EffectRead, call: callCert, Params: append([]Param{
			required("ca", TypeAny), optional("dns", TypeStrings, "[]"), optional("ips", TypeStrings, "[]"),
			optional("days", TypeInt, "365"), keyword("name", TypeString, "None"),
			keyword("usages", TypeStrings, `["server"]`),
		}, subjectParams()...)},
		{Name: "tls.csr", Phases: phases, Effect: EffectRead, call: callRequest, Params: append([]Param{
			optional("dns", TypeStrings, "[]"), optional("ips", TypeStrings, "[]"),
			keyword("name", TypeString, "None"),
		}, subjectParams()...)},
		{Name: "tls.sign", Phases: phases, Effect: EffectRead, call: callSign, Params: []Param{
			required("request", TypeSecretText), required("ca", TypeAny), optional("days", TypeInt, "365"),
			keyword("usages", TypeStrings, `["server"]`),
		}},
		{Name: "tls.info", Phases: PhaseAny, call: callCertInfo,
			Params: []Param{pems, optional("default", TypeAny, "None")}},
		{Name: "tls.split", Phases: PhaseAny, call: callCertSplit, Params: []Param{pems}},
		{Name: "tls.verify", Phases: phases, Effect: EffectRead, call: callCertVerify, Params: []Param{
			required("cert", TypeSecretText), required("ca", TypeSecretText),
			optional("key", TypeSecretText, "None"), keyword("dns", TypeStrings, "[]"),
			keyword("ips", TypeStrings, "[]"),
		}},
	}
}

func callCA(c *call) (starlark.Value, error) {
	name := c.str("name")
	if name == "" {
		return nil, errors.New("name: is empty")
	}
	subject, err := c.subject(name)
	if err != nil {
		return nil, err
	}
	template, err := c.certTemplate(subject, 3650)
	if err != nil {
		return nil, err
	}
	depth := c.intOr("depth", 0)
	if depth < 0 || depth > maxDepth {
		return nil, fmt.Errorf("depth: %d is not between 0 and %d", depth, maxDepth)
	}
	template.IsCA, template.MaxPathLen, template.MaxPathLenZero = true, depth, depth == 0
	template.KeyUsage |= x509.KeyUsageCertSign | x509.KeyUsageCRLSign
	if v := c.arg("ca"); v == nil || v == starlark.None {
		return c.issueNew(template, nil)
	}
	by, err := c.signer()
	if err != nil {
		return nil, err
	}
	if left := by.cert.MaxPathLen; (left > 0 || by.cert.MaxPathLenZero) && depth >= left {
		return nil, fmt.Errorf("ca: %d authorities may stand below it, and this one and those below it are %d; make it with a larger depth=", left, depth+1)
	}
	return c.issueNew(template, by)
}

func callCert(c *call) (starlark.Value, error) {
	by, err := c.signer()
	if err != nil {
		return nil, err
	}
	name, dns, ips, err := c.certIdentity()
	if err != nil {
		return nil, err
	}
	subject, err := c.subject(name)
	if err != nil {
		return nil, err
	}
	template, err := c.certTemplate(subject, 365)
	if err != nil {
		return nil, err
	}
	template.DNSNames, template.IPAddresses = dns, ips
	if strings.HasPrefix(c.str("algorithm"), "rsa") {
		template.KeyUsage |= x509.KeyUsageKeyEncipherment // for servers of TLS 1.2 without ECDHE
	}
	if template.ExtKeyUsage, err = c.certUsages(); err != nil {
		return nil, err
	}
	return c.issueNew(template, by)
}

// issueNew makes a new key, and a certificate for it that an authority signs; nil: it signs itself.
func (c *call) issueNew(template *x509.Certificate, by *signer) (starlark.Value, error) {
	key, text, err := c.newKey()
	if err != nil {
		return nil, err
	}
	if by == nil {
		by = &signer{cert: template, key: key}
	}
	fields, err := c.issue(template, by, key.Public())
	if err != nil {
		return nil, err
	}
	fields["key"] = text
	return frozen(fields), nil
}

// issue signs a certificate, which ends with its authority at the latest.
func (c *call) issue(template *x509.Certificate, by *signer, public crypto.PublicKey) (starlark.StringDict, error) {
	pki.EndWith(template, by.cert)
	cert, err := pki.Sign(template, by.cert, public, by.key, c.run.source())
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
func (c *call) certTemplate(subject pkix.Name, days int) (*x509.Certificate, error) {
	days = c.intOr("days", days)
	if days < 1 || days > maxCertDays {
		return nil, fmt.Errorf("days: %d is not between 1 and %d", days, maxCertDays)
	}
	now := c.run.Now.UTC().Truncate(time.Second)
	return &x509.Certificate{
		Subject:               subject,
		NotBefore:             now.Add(-pki.Backdate),
		NotAfter:              now.Add(time.Duration(days) * 24 * time.Hour),
		KeyUsage:              x509.KeyUsageDigitalSignature,
		BasicConstraintsValid: true,
	}, nil
}

// certUsages reads usages.
func (c *call) certUsages() ([]x509.ExtKeyUsage, error) {
	usages := c.strings("usages")
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
			return nil, fmt.Errorf(`usages: element %d: %q is none; use "server" or "client"`, i, clip(u))
		}
	}
	if len(out) == 0 || len(out) > 2 || len(out) == 2 && out[0] == out[1] {
		return nil, errors.New(`usages: give "server", "client" or both, once each`)
	}
	return out, nil
}

// openText returns the text of a string, bytes or secret.
func openText(v starlark.Value) (string, bool) {
	switch v := v.(type) {
	case starlark.String:
		return string(v), true
	case starlark.Bytes:
		return string(v), true
	case *object.Secret:
		return v.Reveal(), true
	}
	return "", false
}

// text returns the text of a [TypeSecretText] argument, "" when not given.
func (c *call) text(name string) string {
	s, _ := openText(c.arg(name))
	return s
}

func callCertInfo(c *call) (starlark.Value, error) {
	certs, err := pki.ParseCertificates(c.text("pem"))
	if err != nil && c.arg("default") != nil {
		return c.arg("default"), nil
	}
	if err != nil {
		return nil, fmt.Errorf("pem: %w", err)
	}
	return certInfo(certs[0]), nil
}

func callCertSplit(c *call) (starlark.Value, error) {
	certs, err := pki.ParseCertificates(c.text("pem"))
	if err != nil {
		return nil, fmt.Errorf("pem: %w", err)
	}
	out := make([]starlark.Value, len(certs))
	for i, cert := range certs {
		out[i] = starlark.String(pki.CertificatesPEM(cert))
	}
	return starlark.NewList(out), nil
}

func callCertVerify(c *call) (starlark.Value, error) {
	certs, err := pki.ParseCertificates(c.text("cert"))
	if err != nil {
		return starlark.False, nil
	}
	trusted, err := pki.ParseCertificates(c.text("ca"))
	if err != nil {
		return starlark.False, nil
	}
	if c.arg("key") != nil {
		if key, err := pki.ParseKey(c.text("key")); err != nil || !pki.Belongs(key, certs[0]) {
			return starlark.False, nil
		}
	}
	if _, err := certs[0].Verify(x509.VerifyOptions{
		Roots: pki.Pool(trusted...), Intermediates: pki.Pool(certs[1:]...), CurrentTime: c.run.Now,
		KeyUsages: []x509.ExtKeyUsage{x509.ExtKeyUsageAny},
	}); err != nil {
		return starlark.False, nil
	}
	for _, name := range append(c.strings("dns"), c.strings("ips")...) {
		if certs[0].VerifyHostname(name) != nil {
			return starlark.False, nil
		}
	}
	return starlark.True, nil
}
