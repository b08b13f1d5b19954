package builtins

import (
	"crypto/x509"
	"crypto/x509/pkix"
	"errors"
	"fmt"
	"strings"
	"time"

	"go.starlark.net/starlark"

	"github.com/starling-operator/starling/runtime/object"
)

// Certificates: tls. The result depends on the clock of the run, Run.Now, and on
// random bytes, Run.Random, and on nothing else: a run that is played again makes the
// same bytes, and so does a test, which has both from its world. crypto/ecdsa ignores a random source that it is given (since Go 1.26),
// so keys are made of the bytes themselves, and signatures are those of RFC 6979,
// which need no randomness.

const (
	// maxCertDays is how long a certificate may last: a hundred years.
	maxCertDays = 36500
	// maxCertNames bounds the names and addresses of one certificate.
	maxCertNames = 100
	// maxCommonName is what X.509 allows.
	maxCommonName = 64
	// maxDepth bounds how many authorities may stand below one.
	maxDepth = 8
	// certBackdate lets clocks that are late take a certificate at once.
	certBackdate = 5 * time.Minute
)

func tlsSpecs() []Spec {
	const (
		phases    = PhaseRun | PhaseReview | PhaseTest
		caReturns = "a struct: cert (PEM), chain (PEM: cert, and after it the authorities between it and the one that signs itself), key (a secret, PEM), not_before and not_after (times)"
		ofRun     = " It begins five minutes before the time of the run, for clocks that are late."
	)
	pems := Param{Name: "pem", Type: TypeSecretText, Doc: "Certificates in PEM, at most 1 MiB and 1000 of them."}
	return []Spec{
		{Name: "tls.ca", Phases: phases, Effect: EffectRead, call: callCA, Returns: caReturns,
			Doc: "Makes a certificate authority with a new key, which may sign certificates." + ofRun + " It is another one in each run, so keep it in a Secret, and make it when it is not there.",
			Params: append([]Param{
				{Name: "name", Type: TypeString, Doc: "Its common name, 1 to 64 characters."},
				{Name: "days", Type: TypeInt, Default: "3650", Doc: "How long it lasts, 1 to 36500."},
				{Name: "ca", Type: TypeAny, Default: "None", Keyword: true, Doc: "The authority that signs it, as tls.cert takes it: the new one stands between that and the certificates. None: it signs itself."},
				{Name: "depth", Type: TypeInt, Default: "0", Keyword: true, Doc: "How many authorities may stand between it and a certificate, 0 to 8."},
			}, subjectParams()...)},
		{Name: "tls.cert", Phases: phases, Effect: EffectRead, call: callCert, Returns: caReturns,
			Doc: "Makes a certificate with a new key, signed by an authority." + ofRun + " It ends with the authority at the latest. One of dns, ips and name must be given. A server below an authority that another one has signed shows chain.",
			Params: append([]Param{
				{Name: "ca", Type: TypeAny, Doc: "The authority: what tls.ca returned, or a struct or dict with cert and key (texts in PEM, secret or not)."},
				{Name: "dns", Type: TypeStrings, Default: "[]", Doc: "DNS names, lower case; \"*.\" may stand in front."},
				{Name: "ips", Type: TypeStrings, Default: "[]", Doc: "IP addresses; with dns at most 100."},
				{Name: "days", Type: TypeInt, Default: "365", Doc: "How long it lasts, 1 to 36500."},
				{Name: "name", Type: TypeString, Default: "None", Keyword: true, Doc: "Its common name, at most 64 characters; None: the first DNS name that is no longer."},
				{Name: "usages", Type: TypeStrings, Default: `["server"]`, Keyword: true, Doc: "Its usages: \"server\", \"client\" or both."},
			}, subjectParams()...)},
		{Name: "tls.csr", Phases: phases, Effect: EffectRead, call: callRequest,
			Returns: "a struct: request (PEM) and key (a secret, PEM)",
			Doc:     "Makes a certificate request with a new key, for an authority that is elsewhere. One of dns, ips and name must be given. request of @std//certs.star sends it as a CertificateSigningRequest and waits.",
			Params: append([]Param{
				{Name: "dns", Type: TypeStrings, Default: "[]", Doc: "DNS names, lower case; \"*.\" may stand in front."},
				{Name: "ips", Type: TypeStrings, Default: "[]", Doc: "IP addresses; with dns at most 100."},
				{Name: "name", Type: TypeString, Default: "None", Keyword: true, Doc: "Its common name, at most 64 characters; None: the first DNS name that is no longer."},
			}, subjectParams()...)},
		{Name: "tls.sign", Phases: phases, Effect: EffectRead, call: callSign,
			Returns: "a struct: cert (PEM), chain (PEM, as of tls.cert), not_before and not_after (times)",
			Doc:     "Signs a certificate request of somebody else, whose subject, names and addresses it takes as they are: look at the request, or know who asks." + ofRun + " It ends with the authority at the latest.",
			Params: []Param{
				{Name: "request", Type: TypeSecretText, Doc: "The request in PEM, which its key must have signed."},
				{Name: "ca", Type: TypeAny, Doc: "The authority, as tls.cert takes it."},
				{Name: "days", Type: TypeInt, Default: "365", Doc: "How long it lasts, 1 to 36500."},
				{Name: "usages", Type: TypeStrings, Default: `["server"]`, Keyword: true, Doc: "Its usages: \"server\", \"client\" or both."},
			}},
		{Name: "tls.info", Phases: PhaseAny, call: callCertInfo,
			Params:  []Param{pems, {Name: "default", Type: TypeAny, Default: "None", Doc: "The result when the text is no certificate; not given: that is an error."}},
			Returns: "a struct: subject, issuer, name (the common name), organizations, units and countries (lists), algorithm (as tls.cert takes it, \"\" for others), serial and sha256 (hex), not_before and not_after (times), dns and ips (lists), is_ca",
			Doc:     "Tells what a certificate says. Of several it is the first, which in a chain is the one that a server shows."},
		{Name: "tls.split", Phases: PhaseAny, call: callCertSplit, Params: []Param{pems},
			Returns: "a list of texts in PEM, each with a line end",
			Doc:     "Takes a bundle of certificates apart, in its order; what stands between them is left out. \"\".join(…) makes a bundle. A text that holds none is an error."},
		{Name: "tls.verify", Phases: phases, Effect: EffectRead, call: callCertVerify, Returns: "True or False",
			Doc: "Reports whether a certificate is good at the time of the run: signed by an authority, not too old, for these names, and of this key. Anything wrong gives False, a text that is no certificate too.",
			Params: []Param{
				{Name: "cert", Type: TypeSecretText, Doc: "The certificate in PEM; those that stand after it may lie between it and the authority."},
				{Name: "ca", Type: TypeSecretText, Doc: "The authority in PEM, or a bundle of several, one of which must have signed."},
				{Name: "key", Type: TypeSecretText, Default: "None", Doc: "The private key that must be that of the certificate; None: not looked at."},
				{Name: "dns", Type: TypeStrings, Default: "[]", Keyword: true, Doc: "Names, all of which it must be for."},
				{Name: "ips", Type: TypeStrings, Default: "[]", Keyword: true, Doc: "Addresses, all of which it must be for."},
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
	template, err := c.certTemplate(subject)
	if err != nil {
		return nil, err
	}
	depth := c.intOr("depth", 0)
	if depth < 0 || depth > maxDepth {
		return nil, fmt.Errorf("depth: %d is not between 0 and %d", depth, maxDepth)
	}
	template.IsCA, template.MaxPathLen, template.MaxPathLenZero = true, depth, depth == 0
	template.KeyUsage = x509.KeyUsageDigitalSignature | x509.KeyUsageCertSign | x509.KeyUsageCRLSign
	if v := c.arg("ca"); v == nil || v == starlark.None {
		key, err := c.newKey()
		if err != nil {
			return nil, err
		}
		return c.run.issue(template, template, key, key, "")
	}
	by, err := c.signer()
	if err != nil {
		return nil, err
	}
	if left := by.cert.MaxPathLen; (left > 0 || by.cert.MaxPathLenZero) && depth >= left {
		return nil, fmt.Errorf("ca: %d authorities may stand below it, and this one and those below it are %d; make it with a larger depth=", left, depth+1)
	}
	return c.issueBy(template, by)
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
	template, err := c.certTemplate(subject)
	if err != nil {
		return nil, err
	}
	template.DNSNames, template.IPAddresses = dns, ips
	template.KeyUsage = x509.KeyUsageDigitalSignature
	if strings.HasPrefix(c.str("algorithm"), "rsa") {
		template.KeyUsage |= x509.KeyUsageKeyEncipherment // for servers of TLS 1.2 without ECDHE
	}
	if template.ExtKeyUsage, err = c.certUsages(); err != nil {
		return nil, err
	}
	return c.issueBy(template, by)
}

// issueBy signs a certificate for a new key.
func (c *call) issueBy(template *x509.Certificate, by *signer) (starlark.Value, error) {
	if template.NotAfter.After(by.cert.NotAfter) {
		template.NotAfter = by.cert.NotAfter
	}
	key, err := c.newKey()
	if err != nil {
		return nil, err
	}
	return c.run.issue(template, by.cert, key, by.key, by.chain)
}

// certTemplate is what all certificates have: a subject, and an end.
func (c *call) certTemplate(subject pkix.Name) (*x509.Certificate, error) {
	dflt := 365
	if c.spec.Name == "tls.ca" {
		dflt = 3650
	}
	days := c.intOr("days", dflt)
	if days < 1 || days > maxCertDays {
		return nil, fmt.Errorf("days: %d is not between 1 and %d", days, maxCertDays)
	}
	now := c.run.Now.UTC().Truncate(time.Second)
	return &x509.Certificate{
		Subject:               subject,
		NotBefore:             now.Add(-certBackdate),
		NotAfter:              now.Add(time.Duration(days) * 24 * time.Hour),
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
	certs, err := parseCerts(c.text("pem"))
	if err != nil && c.arg("default") != nil {
		return c.arg("default"), nil
	}
	if err != nil {
		return nil, fmt.Errorf("pem: %w", err)
	}
	return certInfo(certs[0]), nil
}

func callCertSplit(c *call) (starlark.Value, error) {
	certs, err := parseCerts(c.text("pem"))
	if err != nil {
		return nil, fmt.Errorf("pem: %w", err)
	}
	out := make([]starlark.Value, len(certs))
	for i, cert := range certs {
		out[i] = starlark.String(certPEM(cert.Raw))
	}
	return starlark.NewList(out), nil
}

func callCertVerify(c *call) (starlark.Value, error) {
	certs, err := parseCerts(c.text("cert"))
	if err != nil {
		return starlark.False, nil
	}
	trusted, err := parseCerts(c.text("ca"))
	if err != nil {
		return starlark.False, nil
	}
	if c.arg("key") != nil {
		if key, err := parseKey(c.text("key")); err != nil || !belongs(key, certs[0]) {
			return starlark.False, nil
		}
	}
	roots, between := x509.NewCertPool(), x509.NewCertPool()
	for _, cert := range trusted {
		roots.AddCert(cert)
	}
	for _, cert := range certs[1:] {
		between.AddCert(cert)
	}
	if _, err := certs[0].Verify(x509.VerifyOptions{
		Roots: roots, Intermediates: between, CurrentTime: c.run.Now,
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
