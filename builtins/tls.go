package builtins

import (
	"crypto"
	"crypto/x509"
	"crypto/x509/pkix"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"strings"
	"time"

	startime "go.starlark.net/lib/time"
	"go.starlark.net/starlark"
	"go.starlark.net/starlarkstruct"
	"k8s.io/apimachinery/pkg/util/validation"

	"github.com/starling-operator/starling/runtime/object"
)

// Certificates: tls. The result depends on the clock of the run, Run.Now, and on
// random bytes, Run.Random, and on nothing else: a run that is played again makes the
// same bytes. crypto/ecdsa ignores a random source that it is given (since Go 1.26),
// so keys are made of the bytes themselves, and signatures are those of RFC 6979,
// which need no randomness.

const (
	// maxCertDays is how long a certificate may last: a hundred years.
	maxCertDays = 36500
	// maxCertNames bounds the names and addresses of one certificate.
	maxCertNames = 100
	// maxCommonName is what X.509 allows.
	maxCommonName = 64
	// certBackdate lets clocks that are late take a certificate at once.
	certBackdate = 5 * time.Minute
)

func tlsSpecs() []Spec {
	const (
		caReturns = "a struct: cert (PEM), key (a secret, PEM), not_before and not_after (times)"
		ofRun     = " It begins five minutes before the time of the run, for clocks that are late."
	)
	pems := Param{Name: "pem", Type: TypeSecretText, Doc: "Certificates in PEM, at most 1 MiB and 1000 of them."}
	return []Spec{
		{Name: "tls.ca", Phases: PhaseRun | PhaseReview, Effect: EffectRead, call: callCA, Returns: caReturns,
			Doc: "Makes a certificate authority with a new ECDSA P-256 key, which may sign certificates, but no further authorities." + ofRun + " It is another one in each run, so keep it in a Secret, and make it when it is not there.",
			Params: []Param{
				{Name: "name", Type: TypeString, Doc: "Its common name, 1 to 64 characters."},
				{Name: "days", Type: TypeInt, Default: "3650", Doc: "How long it lasts, 1 to 36500."},
			}},
		{Name: "tls.cert", Phases: PhaseRun | PhaseReview, Effect: EffectRead, call: callCert, Returns: caReturns,
			Doc: "Makes a certificate with a new ECDSA P-256 key, signed by an authority." + ofRun + " It ends with the authority at the latest. One of dns, ips and name must be given.",
			Params: []Param{
				{Name: "ca", Type: TypeAny, Doc: "The authority: what tls.ca returned, or a struct or dict with cert and key (texts in PEM, secret or not)."},
				{Name: "dns", Type: TypeStrings, Default: "[]", Doc: "DNS names, lower case; \"*.\" may stand in front."},
				{Name: "ips", Type: TypeStrings, Default: "[]", Doc: "IP addresses; with dns at most 100."},
				{Name: "days", Type: TypeInt, Default: "365", Doc: "How long it lasts, 1 to 36500."},
				{Name: "name", Type: TypeString, Default: "None", Keyword: true, Doc: "Its common name, at most 64 characters; None: the first DNS name that is no longer."},
				{Name: "usages", Type: TypeStrings, Default: `["server"]`, Keyword: true, Doc: "Its usages: \"server\", \"client\" or both."},
			}},
		{Name: "tls.info", Phases: PhaseAny, call: callCertInfo, Params: []Param{pems},
			Returns: "a struct: subject, issuer, name (the common name), serial and sha256 (hex), not_before and not_after (times), dns and ips (lists), is_ca",
			Doc:     "Tells what a certificate says. Of several it is the first, which in a chain is the one that a server shows. A text that is no certificate is an error."},
		{Name: "tls.split", Phases: PhaseAny, call: callCertSplit, Params: []Param{pems},
			Returns: "a list of texts in PEM, each with a line end",
			Doc:     "Takes a bundle of certificates apart, in its order; what stands between them is left out. \"\".join(…) makes a bundle. A text that holds none is an error."},
		{Name: "tls.verify", Phases: PhaseRun | PhaseReview, Effect: EffectRead, call: callCertVerify, Returns: "True or False",
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
	template, err := c.certTemplate(name)
	if err != nil {
		return nil, err
	}
	template.IsCA, template.MaxPathLenZero = true, true
	template.KeyUsage = x509.KeyUsageDigitalSignature | x509.KeyUsageCertSign | x509.KeyUsageCRLSign
	key, err := c.run.newKey()
	if err != nil {
		return nil, err
	}
	return c.run.issue(template, template, key, key)
}

func callCert(c *call) (starlark.Value, error) {
	parent, signer, err := authority(c.arg("ca"))
	if err != nil {
		return nil, fmt.Errorf("ca: %w", err)
	}
	if now := c.run.Now; now.After(parent.NotAfter) || now.Before(parent.NotBefore) {
		return nil, fmt.Errorf("ca: it is good from %s to %s, and now is %s; make a new one",
			parent.NotBefore.Format(time.RFC3339), parent.NotAfter.Format(time.RFC3339), now.UTC().Format(time.RFC3339))
	}
	dns, ips, err := c.certNames()
	if err != nil {
		return nil, err
	}
	name := c.str("name")
	if name == "" && len(dns) > 0 && len(dns[0]) <= maxCommonName {
		name = dns[0]
	}
	if name == "" && len(dns)+len(ips) == 0 {
		return nil, errors.New("it would be for nobody; give dns, ips or name")
	}
	template, err := c.certTemplate(name)
	if err != nil {
		return nil, err
	}
	template.DNSNames, template.IPAddresses = dns, ips
	template.KeyUsage = x509.KeyUsageDigitalSignature
	if template.ExtKeyUsage, err = c.certUsages(); err != nil {
		return nil, err
	}
	if template.NotAfter.After(parent.NotAfter) {
		template.NotAfter = parent.NotAfter
	}
	key, err := c.run.newKey()
	if err != nil {
		return nil, err
	}
	return c.run.issue(template, parent, key, signer)
}

// certTemplate is what all certificates have: a name, and an end.
func (c *call) certTemplate(name string) (*x509.Certificate, error) {
	if n := len([]rune(name)); n > maxCommonName {
		return nil, fmt.Errorf("name: %q has %d characters, a certificate takes %d", clip(name), n, maxCommonName)
	}
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
		Subject:               pkix.Name{CommonName: name},
		NotBefore:             now.Add(-certBackdate),
		NotAfter:              now.Add(time.Duration(days) * 24 * time.Hour),
		BasicConstraintsValid: true,
	}, nil
}

// certNames reads dns and ips.
func (c *call) certNames() ([]string, []net.IP, error) {
	dns := c.strings("dns")
	if n := len(dns) + len(c.strings("ips")); n > maxCertNames {
		return nil, nil, fmt.Errorf("dns and ips have %d elements, a certificate is for %d at most", n, maxCertNames)
	}
	for i, name := range dns {
		if len(validation.IsDNS1123Subdomain(strings.TrimPrefix(name, "*."))) > 0 {
			return nil, nil, fmt.Errorf("dns: element %d: %q is no DNS name: lower case letters, digits, - and dots", i, clip(name))
		}
	}
	var ips []net.IP
	for i, text := range c.strings("ips") {
		ip, err := netip.ParseAddr(text)
		if err != nil || ip.Zone() != "" {
			return nil, nil, fmt.Errorf("ips: element %d: %q is no IP address", i, clip(text))
		}
		ips = append(ips, ip.AsSlice())
	}
	return dns, ips, nil
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

// certInfo is the value of tls.info.
func certInfo(cert *x509.Certificate) starlark.Value {
	text := func(s string) starlark.Value { return starlark.String(strings.ToValidUTF8(s, "?")) }
	dns := make([]starlark.Value, len(cert.DNSNames))
	for i, name := range cert.DNSNames {
		dns[i] = text(name)
	}
	ips := make([]starlark.Value, len(cert.IPAddresses))
	for i, ip := range cert.IPAddresses {
		ips[i] = starlark.String(ip.String())
	}
	v := starlarkstruct.FromStringDict(starlarkstruct.Default, starlark.StringDict{
		"subject":    text(cert.Subject.String()),
		"issuer":     text(cert.Issuer.String()),
		"name":       text(cert.Subject.CommonName),
		"serial":     starlark.String(cert.SerialNumber.Text(16)),
		"sha256":     starlark.String(fingerprint(cert)),
		"not_before": startime.Time(cert.NotBefore),
		"not_after":  startime.Time(cert.NotAfter),
		"dns":        starlark.NewList(dns),
		"ips":        starlark.NewList(ips),
		"is_ca":      starlark.Bool(cert.IsCA),
	})
	v.Freeze()
	return v
}
