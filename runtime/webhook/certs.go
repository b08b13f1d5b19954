package webhook

import (
	"crypto/ecdsa"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"fmt"
	"net"
	"slices"
	"time"

	"github.com/starling-operator/starling/runtime/pki"
)

const (
	authorityLife = 10 * 365 * 24 * time.Hour
	leafLife      = 90 * 24 * time.Hour
	// maxSpread is how long a new authority is known before it is relied on, and an old one is kept after that.
	maxSpread = 10 * time.Minute
)

// lookAgain is how often the Secret is read when nothing falls due.
const lookAgain = 7 * 24 * time.Hour

// The keys of the Secret. Other programs may read tls.crt, tls.key and ca.crt there.
const (
	keyLeaf         = "tls.crt"
	keyLeafKey      = "tls.key"
	keyBundle       = "ca.crt"
	keyAuthorityKey = "ca.key"
)

// material is what the Secret holds.
type material struct {
	// authorities are those that are trusted, the newest first.
	authorities []*x509.Certificate
	// newest is the first of them with its key; nil when that is not there or not the right one.
	newest *tls.Certificate
	// leaf is the serving certificate, nil without one that can be used.
	leaf *tls.Certificate
}

// plan says what to do about a [material].
type plan struct {
	// authority: make a new one.
	authority bool
	// leaf: make a new serving certificate, by the newest authority.
	leaf bool
	// drop are old authorities that nobody needs any more.
	drop []*x509.Certificate
	// next is when to look again, if nothing must be done now.
	next time.Time
}

func (p plan) idle() bool { return !p.authority && !p.leaf && len(p.drop) == 0 }

// made is when a certificate of ours was made.
func made(c *x509.Certificate) time.Time { return c.NotBefore.Add(pki.Backdate) }

// renewal is when two thirds of a certificate's life are over.
func renewal(c *x509.Certificate) time.Time { return made(c).Add(c.NotAfter.Sub(made(c)) * 2 / 3) }

// spread is how long the one that follows an authority is known before it is relied
// on: a hundredth of its life, ten minutes at most.
func spread(old *x509.Certificate) time.Duration {
	return min(max(old.NotAfter.Sub(made(old))/100, time.Second), maxSpread)
}

// plan determines what to do. It is pure: the clock is given. published says
// that all who must trust the authorities know of all of them.
//
// An authority is followed by a new one in good time. First all learn of the new one, then it signs a new serving
// certificate, and only when that has been served for a while the old one goes: at no time is a certificate served
// that somebody does not trust.
func (m *material) plan(now time.Time, names []string, published bool) plan {
	p := plan{next: now.Add(lookAgain)}
	later := func(t time.Time) {
		if t.After(now) && t.Before(p.next) {
			p.next = t
		}
	}
	for _, c := range m.authorities {
		if !c.NotAfter.After(now) {
			p.drop = append(p.drop, c)
		}
		later(c.NotAfter)
	}
	if m.newest == nil || !renewal(m.authorities[0]).After(now) {
		p.authority = true
		// The served certificate stays until all have learned of the new one.
		p.leaf = m.leafTrouble(now, names) != ""
		return p
	}
	later(renewal(m.authorities[0]))
	if m.leafTrouble(now, names) != "" {
		p.leaf = true
		return p
	}
	later(m.leaf.Leaf.NotAfter)
	newest, due := m.authorities[0], renewal(m.leaf.Leaf)
	if len(m.authorities) == 1 {
		later(due)
		p.leaf = !due.After(now)
		return p
	}
	wait := spread(m.authorities[1])
	if !signedBy(m.leaf.Leaf, newest) {
		// The old authority still stands for it.
		ready := made(newest).Add(wait)
		later(ready)
		p.leaf = published && !ready.After(now)
		return p
	}
	later(due)
	if p.leaf = !due.After(now); p.leaf {
		return p
	}
	if served := made(m.leaf.Leaf).Add(wait); served.After(now) {
		later(served)
	} else {
		p.drop = slices.Clone(m.authorities[1:])
	}
	return p
}

// leafTrouble says why the serving certificate is of no use, or "".
func (m *material) leafTrouble(now time.Time, names []string) string {
	if m.leaf == nil {
		return "there is none"
	}
	leaf := m.leaf.Leaf
	switch {
	case !leaf.NotAfter.After(now) || leaf.NotBefore.After(now):
		return "it does not hold now"
	case !slices.ContainsFunc(m.authorities, func(c *x509.Certificate) bool {
		return c.NotAfter.After(now) && signedBy(leaf, c)
	}):
		return "no authority stands for it"
	}
	for _, name := range names {
		if leaf.VerifyHostname(name) != nil {
			return "it is not for " + name
		}
	}
	return ""
}

func signedBy(c, authority *x509.Certificate) bool { return c.CheckSignatureFrom(authority) == nil }

// apply carries a plan out and returns what the Secret is to hold. who is part of the authority's name.
func (m *material) apply(p plan, now time.Time, who string, names []string) (*material, error) {
	out := &material{authorities: slices.Clone(m.authorities), newest: m.newest, leaf: m.leaf}
	out.authorities = slices.DeleteFunc(out.authorities, func(c *x509.Certificate) bool { return slices.Contains(p.drop, c) })
	var err error
	if p.authority {
		if out.newest, err = newAuthority(now, who); err != nil {
			return nil, err
		}
		out.authorities = slices.Insert(out.authorities, 0, out.newest.Leaf)
	}
	if p.leaf {
		if out.leaf, err = newLeaf(now, out.newest, names); err != nil {
			return nil, err
		}
	}
	return out, nil
}

// newAuthority makes a certificate that signs others.
func newAuthority(now time.Time, who string) (*tls.Certificate, error) {
	return pki.Issue(&x509.Certificate{
		// The time tells one authority from the next.
		Subject:   pkix.Name{CommonName: "starling webhooks of " + who, SerialNumber: now.UTC().Format(time.RFC3339Nano)},
		NotBefore: now.Add(-pki.Backdate), NotAfter: now.Add(authorityLife),
		IsCA: true, BasicConstraintsValid: true, MaxPathLenZero: true,
		KeyUsage: x509.KeyUsageCertSign | x509.KeyUsageDigitalSignature,
	}, nil)
}

// newLeaf makes a certificate for a server of these names and addresses.
func newLeaf(now time.Time, authority *tls.Certificate, names []string) (*tls.Certificate, error) {
	t := &x509.Certificate{
		Subject:   pkix.Name{CommonName: "starling webhooks"},
		NotBefore: now.Add(-pki.Backdate), NotAfter: now.Add(leafLife),
		KeyUsage: x509.KeyUsageDigitalSignature, ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth},
	}
	for _, name := range names {
		if ip := net.ParseIP(name); ip != nil {
			t.IPAddresses = append(t.IPAddresses, ip)
		} else {
			t.DNSNames = append(t.DNSNames, name)
		}
	}
	return pki.Issue(t, authority)
}

// parseMaterial reads the Secret. A part that cannot be read is as if it were not there.
func parseMaterial(data map[string][]byte) *material {
	m := &material{}
	for block, rest := pem.Decode(data[keyBundle]); block != nil; block, rest = pem.Decode(rest) {
		if c, err := x509.ParseCertificate(block.Bytes); err == nil && c.IsCA {
			m.authorities = append(m.authorities, c)
		}
	}
	if len(m.authorities) > 0 {
		m.newest = pair(pki.CertificatesPEM(m.authorities[0]), data[keyAuthorityKey])
	}
	m.leaf = pair(data[keyLeaf], data[keyLeafKey])
	return m
}

// pair returns a certificate with its key as [pki.Issue] makes them, nil when they cannot be read, do not belong
// together, or are of another kind. Clients get nothing that stands behind it.
func pair(cert, key []byte) *tls.Certificate {
	pair, err := pki.KeyPair(cert, key)
	if err != nil {
		return nil
	}
	if _, ours := pair.PrivateKey.(*ecdsa.PrivateKey); !ours {
		return nil
	}
	pair.Certificate = pair.Certificate[:1]
	return pair
}

// data is what the Secret is to hold.
func (m *material) data() (map[string][]byte, error) {
	crt, key, err := pki.PEM(m.leaf)
	if err != nil {
		return nil, err
	}
	authorityKey, err := pki.KeyPEM(m.newest.PrivateKey)
	return map[string][]byte{keyBundle: m.bundle(), keyLeaf: crt, keyLeafKey: key, keyAuthorityKey: authorityKey}, err
}

// bundle is what clients are to trust.
func (m *material) bundle() []byte { return pki.CertificatesPEM(m.authorities...) }

// String tells, for the log, what there is.
func (p plan) String() string {
	switch {
	case p.authority && p.leaf:
		return "made an authority and a serving certificate"
	case p.authority:
		return "made an authority that follows the one before"
	case p.leaf:
		return "made a new serving certificate"
	}
	return fmt.Sprintf("dropped %d old authorities", len(p.drop))
}
