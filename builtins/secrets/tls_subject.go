package secrets

import (
	"crypto/sha256"
	"crypto/x509"
	"crypto/x509/pkix"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"strings"

	startime "go.starlark.net/lib/time"
	"go.starlark.net/starlark"
	"k8s.io/apimachinery/pkg/util/validation"

	"github.com/starling-operator/starling/builtins/spec"
	"github.com/starling-operator/starling/runtime/pki"
)

// maxSubject bounds organizations and units, and the characters of each, as X.509 does.
const maxSubject, maxSubjectText = 16, 64

// subjectParams are those of all that has a subject and a new key.
func subjectParams() []spec.Param {
	return []spec.Param{
		spec.Keyword("organizations", spec.Strings, "[]"), spec.Keyword("units", spec.Strings, "[]"),
		spec.Keyword("country", spec.String, "None"), spec.Keyword("algorithm", spec.String, `"ecdsa-p256"`),
	}
}

// subject reads who a certificate is for.
func subjectOf(c *spec.Call, name string) (pkix.Name, error) {
	if n := len([]rune(name)); n > maxCommonName {
		return pkix.Name{}, fmt.Errorf("name: %q has %d characters, a certificate takes %d", spec.Clip(name), n, maxCommonName)
	}
	out := pkix.Name{CommonName: name, Organization: c.Strings("organizations"), OrganizationalUnit: c.Strings("units")}
	for what, texts := range map[string][]string{"organizations": out.Organization, "units": out.OrganizationalUnit} {
		if len(texts) > maxSubject {
			return out, fmt.Errorf("%s: has %d elements, a certificate takes %d", what, len(texts), maxSubject)
		}
		for i, text := range texts {
			if n := len([]rune(text)); n < 1 || n > maxSubjectText {
				return out, fmt.Errorf("%s: element %d has %d characters, a certificate takes 1 to %d", what, i, n, maxSubjectText)
			}
		}
	}
	country := c.Str("country")
	if country == "" {
		return out, nil
	}
	if len(country) != 2 || strings.Trim(country, "ABCDEFGHIJKLMNOPQRSTUVWXYZ") != "" {
		return out, fmt.Errorf("country: %q is none; use two capital letters, such as \"DE\"", spec.Clip(country))
	}
	out.Country = []string{country}
	return out, nil
}

// certIdentity reads dns, ips and name, one of which must be there.
func certIdentity(c *spec.Call) (name string, dns []string, ips []net.IP, err error) {
	name, dns = c.Str("name"), c.Strings("dns")
	if n := len(dns) + len(c.Strings("ips")); n > maxCertNames {
		return "", nil, nil, fmt.Errorf("dns and ips have %d elements, a certificate is for %d at most", n, maxCertNames)
	}
	for i, name := range dns {
		if len(validation.IsDNS1123Subdomain(strings.TrimPrefix(name, "*."))) > 0 {
			return "", nil, nil, fmt.Errorf("dns: element %d: %q is no DNS name: lower case letters, digits, - and dots", i, spec.Clip(name))
		}
	}
	for i, text := range c.Strings("ips") {
		ip, err := netip.ParseAddr(text)
		if err != nil || ip.Zone() != "" {
			return "", nil, nil, fmt.Errorf("ips: element %d: %q is no IP address", i, spec.Clip(text))
		}
		ips = append(ips, ip.AsSlice())
	}
	if name == "" && len(dns) > 0 && len(dns[0]) <= maxCommonName {
		name = dns[0]
	}
	if name == "" && len(dns)+len(ips) == 0 {
		return "", nil, nil, errors.New("it would be for nobody; give dns, ips or name")
	}
	return name, dns, ips, nil
}

// certInfo is the value of tls.info.
func certInfo(cert *x509.Certificate) starlark.Value {
	text := func(s string) starlark.Value { return starlark.String(strings.ToValidUTF8(s, "?")) }
	ips := make([]starlark.Value, len(cert.IPAddresses))
	for i, ip := range cert.IPAddresses {
		ips[i] = starlark.String(ip.String())
	}
	list := func(texts []string) starlark.Value {
		out := make([]starlark.Value, len(texts))
		for i, s := range texts {
			out[i] = text(s)
		}
		return starlark.NewList(out)
	}
	return frozen(starlark.StringDict{
		"subject": text(cert.Subject.String()),
		"issuer":  text(cert.Issuer.String()),
		"name":    text(cert.Subject.CommonName),

		"organizations": list(cert.Subject.Organization),
		"units":         list(cert.Subject.OrganizationalUnit),
		"countries":     list(cert.Subject.Country),
		"algorithm":     starlark.String(pki.Algorithm(cert.PublicKey)),

		"serial":     starlark.String(cert.SerialNumber.Text(16)),
		"sha256":     starlark.String(fmt.Sprintf("%x", sha256.Sum256(cert.Raw))),
		"not_before": startime.Time(cert.NotBefore),
		"not_after":  startime.Time(cert.NotAfter),
		"dns":        list(cert.DNSNames),
		"ips":        starlark.NewList(ips),
		"is_ca":      starlark.Bool(cert.IsCA),
	})
}
