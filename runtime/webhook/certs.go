package webhook

import (
	"bytes"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"errors"
	"fmt"
	"math/big"
	"net"
	"slices"
	"time"
)

const (
	authorityLife = 10 * 365 * 24 * time.Hour
	leafLife      = 90 * 24 * time.Hour
	// backdate is how much before it was made a certificate begins to hold, for
	// clocks that are late.
	backdate = 5 * time.Minute
	// maxSpread is how long a new authority is known before it is relied on, and
	// an old one is kept after that.
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
	// key is the newest one's; nil when it is not there or not the right one.
	key *ecdsa.PrivateKey
	// leaf is the serving certificate, nil without one that can be used.
	leaf    *x509.Certificate
	leafKey *ecdsa.PrivateKey
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
func made(c *x509.Certificate) time.Time { return c.NotBefore.Add(backdate) }

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
// An authority is followed by a new one in good time. First all learn of the new
// one, then it signs a new serving certificate, and only when that has been served
// for a while the old one goes: at no time is a certificate served that somebody
// does not trust.
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
	if len(m.authorities) == 0 || m.key == nil || !renewal(m.authorities[0]).After(now) {
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
	later(m.leaf.NotAfter)
	newest, due := m.authorities[0], renewal(m.leaf)
	if len(m.authorities) == 1 {
		later(due)
		p.leaf = !due.After(now)
		return p
	}
	wait := spread(m.authorities[1])
	if !signedBy(m.leaf, newest) {
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
	if served := made(m.leaf).Add(wait); served.After(now) {
		later(served)
	} else {
		p.drop = slices.Clone(m.authorities[1:])
	}
	return p
}

// leafTrouble says why the serving certificate is of no use, or "".
func (m *material) leafTrouble(now time.Time, names []string) string {
	switch {
	case m.leaf == nil || m.leafKey == nil:
		return "there is none"
	case !m.leaf.NotAfter.After(now) || m.leaf.NotBefore.After(now):
		return "it does not hold now"
	case !slices.ContainsFunc(m.authorities, func(c *x509.Certificate) bool {
		return c.NotAfter.After(now) && signedBy(m.leaf, c)
	}):
		return "no authority stands for it"
	}
	for _, name := range names {
		if m.leaf.VerifyHostname(name) != nil {
			return "it is not for " + name
		}
	}
	return ""
}

func signedBy(c, authority *x509.Certificate) bool { return c.CheckSignatureFrom(authority) == nil }

// apply carries a plan out and returns what the Secret is to hold. who is part of
// the authority's name.
func (m *material) apply(p plan, now time.Time, who string, names []string) (*material, error) {
	out := &material{authorities: slices.Clone(m.authorities), key: m.key, leaf: m.leaf, leafKey: m.leafKey}
	out.authorities = slices.DeleteFunc(out.authorities, func(c *x509.Certificate) bool { return slices.Contains(p.drop, c) })
	if p.authority {
		cert, key, err := newAuthority(now, authorityLife, who)
		if err != nil {
			return nil, err
		}
		out.authorities, out.key = slices.Insert(out.authorities, 0, cert), key
	}
	if p.leaf {
		var err error
		if out.leaf, out.leafKey, err = newLeaf(now, leafLife, out.authorities[0], out.key, names); err != nil {
			return nil, err
		}
	}
	return out, nil
}

// newAuthority makes a certificate that signs others.
func newAuthority(now time.Time, life time.Duration, who string) (*x509.Certificate, *ecdsa.PrivateKey, error) {
	return sign(&x509.Certificate{
		// The time tells one authority from the next.
		Subject:   pkix.Name{CommonName: "starling webhooks of " + who, SerialNumber: now.UTC().Format(time.RFC3339Nano)},
		NotBefore: now.Add(-backdate), NotAfter: now.Add(life),
		IsCA: true, BasicConstraintsValid: true, MaxPathLenZero: true,
		KeyUsage: x509.KeyUsageCertSign | x509.KeyUsageDigitalSignature,
	}, nil, nil)
}

// newLeaf makes a certificate for a server of these names and addresses.
func newLeaf(now time.Time, life time.Duration, authority *x509.Certificate, by *ecdsa.PrivateKey, names []string) (*x509.Certificate, *ecdsa.PrivateKey, error) {
	t := &x509.Certificate{
		Subject:   pkix.Name{CommonName: "starling webhooks"},
		NotBefore: now.Add(-backdate), NotAfter: now.Add(life),
		KeyUsage: x509.KeyUsageDigitalSignature, ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth},
	}
	if t.NotAfter.After(authority.NotAfter) {
		t.NotAfter = authority.NotAfter
	}
	for _, name := range names {
		if ip := net.ParseIP(name); ip != nil {
			t.IPAddresses = append(t.IPAddresses, ip)
		} else {
			t.DNSNames = append(t.DNSNames, name)
		}
	}
	return sign(t, authority, by)
}

// sign makes a certificate with a new key, by an authority, or by itself.
func sign(t, authority *x509.Certificate, by *ecdsa.PrivateKey) (*x509.Certificate, *ecdsa.PrivateKey, error) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return nil, nil, err
	}
	if t.SerialNumber, err = rand.Int(rand.Reader, new(big.Int).Lsh(big.NewInt(1), 127)); err != nil {
		return nil, nil, err
	}
	if authority == nil {
		authority, by = t, key
	}
	der, err := x509.CreateCertificate(rand.Reader, t, authority, key.Public(), by)
	if err != nil {
		return nil, nil, err
	}
	cert, err := x509.ParseCertificate(der)
	return cert, key, err
}

// parseMaterial reads the Secret. A part that cannot be read is as if it were not there.
func parseMaterial(data map[string][]byte) *material {
	m := &material{}
	for rest := data[keyBundle]; len(rest) > 0; {
		var block *pem.Block
		if block, rest = pem.Decode(rest); block == nil {
			break
		}
		if c, err := x509.ParseCertificate(block.Bytes); err == nil && c.IsCA {
			m.authorities = append(m.authorities, c)
		}
	}
	if key := parseKey(data[keyAuthorityKey]); key != nil && len(m.authorities) > 0 && key.PublicKey.Equal(m.authorities[0].PublicKey) {
		m.key = key
	}
	if block, _ := pem.Decode(data[keyLeaf]); block != nil {
		key := parseKey(data[keyLeafKey])
		if c, err := x509.ParseCertificate(block.Bytes); err == nil && key != nil && key.PublicKey.Equal(c.PublicKey) {
			m.leaf, m.leafKey = c, key
		}
	}
	return m
}

func parseKey(data []byte) *ecdsa.PrivateKey {
	block, _ := pem.Decode(data)
	if block == nil {
		return nil
	}
	any, err := x509.ParsePKCS8PrivateKey(block.Bytes)
	if err != nil {
		return nil
	}
	key, _ := any.(*ecdsa.PrivateKey)
	return key
}

// data is what the Secret is to hold.
func (m *material) data() (map[string][]byte, error) {
	out := map[string][]byte{keyBundle: m.bundle(), keyLeaf: certPEM(m.leaf)}
	for name, key := range map[string]*ecdsa.PrivateKey{keyAuthorityKey: m.key, keyLeafKey: m.leafKey} {
		der, err := x509.MarshalPKCS8PrivateKey(key)
		if err != nil {
			return nil, errors.New("a new key cannot be encoded")
		}
		out[name] = pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: der})
	}
	return out, nil
}

func certPEM(c *x509.Certificate) []byte {
	return pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: c.Raw})
}

// bundle is what clients are to trust.
func (m *material) bundle() []byte {
	var b bytes.Buffer
	for _, c := range m.authorities {
		b.Write(certPEM(c))
	}
	return b.Bytes()
}

func (m *material) serving() *tls.Certificate {
	return &tls.Certificate{Certificate: [][]byte{m.leaf.Raw}, PrivateKey: m.leafKey, Leaf: m.leaf}
}

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
