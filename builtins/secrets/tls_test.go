package secrets_test

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/rsa"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"io"
	"math/big"
	mathrand "math/rand/v2"
	"net"
	"strings"
	"testing"
	"time"

	"go.starlark.net/starlark"
	"go.starlark.net/starlarkstruct"
	"go.starlark.net/syntax"

	"github.com/starling-operator/starling/builtins"
	"github.com/starling-operator/starling/builtins/spec"
	"github.com/starling-operator/starling/runtime/object"
	"github.com/starling-operator/starling/runtime/pki"
)

var testNow = time.Date(2026, time.March, 1, 10, 30, 0, 0, time.UTC)

func tlsRun(seed byte, now time.Time) *builtins.Context {
	return inRun(now, mathrand.NewChaCha8([32]byte{seed}))
}

func inRun(now time.Time, random io.Reader) *builtins.Context {
	return &builtins.Context{Phase: spec.InRun, Run: &builtins.Run{Now: now, Random: random}}
}

func exec(t *testing.T, c *builtins.Context, src string) (starlark.Value, error) {
	t.Helper()
	thread := &starlark.Thread{}
	builtins.Attach(thread, c)
	globals, err := starlark.ExecFileOptions(&syntax.FileOptions{}, thread, "x.star", src, builtins.Predeclared())
	return globals["r"], err
}

// Clock and random bytes of the run alone decide what is made, keys and signatures
// too: a run that is played again makes the same.
func TestCertificatesComeFromTheRun(t *testing.T) {
	const src = `
ca = tls.ca("CA")
c = tls.cert(ca, dns = ["web"])
q = tls.csr(dns = ["web"], algorithm = "ecdsa-p384")
e = tls.ca("E", algorithm = "ed25519")
s = tls.ca("R", algorithm = "rsa-2048")
r = [ca.cert, reveal(ca.key), c.cert, reveal(c.key), q.request, reveal(q.key), reveal(e.key), e.cert, s.cert, reveal(s.key),
    bcrypt.hash("x", cost = 4), reveal(jwt.sign({"sub": "x"}, s.key))]
`
	issue := func(seed byte, now time.Time) string {
		t.Helper()
		v, err := exec(t, tlsRun(seed, now), src)
		if err != nil {
			t.Fatal(err)
		}
		return v.String()
	}
	first := issue(1, testNow)
	for range 3 { // what is random by half would show
		if issue(1, testNow) != first {
			t.Fatal("the same clock and random bytes made other certificates")
		}
	}
	if issue(2, testNow) == first || issue(1, testNow.Add(time.Hour)) == first {
		t.Error("another run made the same certificates")
	}
	if _, err := exec(t, inRun(testNow, strings.NewReader("short")), src); err == nil || !strings.Contains(err.Error(), "no random bytes") {
		t.Errorf("got %v", err)
	}
}

// A key of RSA is one that the library takes for right, and a request holds what was asked.
func TestKeysAndRequests(t *testing.T) {
	v, err := exec(t, tlsRun(3, testNow), `
k = tls.ca("R", algorithm = "rsa-2048")
q = tls.csr(dns = ["web", "web.web.svc"], ips = ["10.0.0.1"], name = "system:node:web", organizations = ["system:nodes"], units = ["u"], country = "DE")
r = (reveal(k.key), q.request, reveal(q.key))
`)
	if err != nil {
		t.Fatal(err)
	}
	text := func(i int) string { return string(v.(starlark.Tuple)[i].(starlark.String)) }
	signer, err := pki.ParseKey(text(0))
	if err != nil {
		t.Fatal(err)
	}
	key := signer.(*rsa.PrivateKey)
	if err := key.Validate(); err != nil || key.N.BitLen() != 2048 || key.Primes[0].Cmp(key.Primes[1]) == 0 {
		t.Errorf("%v, %d bits", err, key.N.BitLen())
	}
	block, _ := pem.Decode([]byte(text(1)))
	request, err := x509.ParseCertificateRequest(block.Bytes)
	if err != nil {
		t.Fatal(err)
	}
	if err := request.CheckSignature(); err != nil {
		t.Error(err)
	}
	if got := request.Subject.String(); got != "CN=system:node:web,OU=u,O=system:nodes,C=DE" || len(request.DNSNames) != 2 || len(request.IPAddresses) != 1 {
		t.Errorf("%s, %v, %v", got, request.DNSNames, request.IPAddresses)
	}
	if own, err := pki.ParseKey(text(2)); err != nil || !own.Public().(*ecdsa.PublicKey).Equal(request.PublicKey) {
		t.Errorf("the key is another one: %v", err)
	}
}

// A server with such a certificate is trusted by a client with the authority, and the client by
// the server: an authority of RSA, another one below it, keys of all kinds.
func TestCertificatesServe(t *testing.T) {
	v, err := exec(t, tlsRun(1, time.Now()), `
ca = tls.ca("CA", days = 1, algorithm = "rsa-2048", depth = 1)
low = tls.ca("low", ca = ca, algorithm = "ecdsa-p384")
c = tls.cert(ca, dns = ["web.local"], days = 10, algorithm = "rsa-2048")
e = tls.cert(low, name = "hook", organizations = ["web:auth"], usages = ["client"], algorithm = "ed25519")
r = (ca.cert, c.cert, reveal(c.key), e.chain, reveal(e.key), e.cert)
`)
	if err != nil {
		t.Fatal(err)
	}
	text := func(i int) []byte { return []byte(v.(starlark.Tuple)[i].(starlark.String)) }
	pair := func(cert, key int) tls.Certificate {
		t.Helper()
		out, err := tls.X509KeyPair(text(cert), text(key))
		if err != nil {
			t.Fatal(err)
		}
		return out
	}
	roots := x509.NewCertPool()
	roots.AppendCertsFromPEM(text(0))
	meet := func(of tls.Certificate) (*tls.Conn, error) {
		left, right := net.Pipe()
		t.Cleanup(func() { left.Close(); right.Close() })
		server := tls.Server(left, &tls.Config{Certificates: []tls.Certificate{pair(1, 2)}, ClientAuth: tls.RequireAndVerifyClientCert, ClientCAs: roots})
		served := make(chan error, 1)
		go func() {
			err := server.HandshakeContext(t.Context())
			left.Close()
			served <- err
		}()
		client := tls.Client(right, &tls.Config{RootCAs: roots, ServerName: "web.local", Certificates: []tls.Certificate{of}})
		if err := client.HandshakeContext(t.Context()); err != nil {
			t.Error(err)
		}
		right.Close()
		return server, <-served
	}
	server, err := meet(pair(3, 4))
	if err != nil {
		t.Fatal(err)
	}
	if got := server.ConnectionState().PeerCertificates[0].Subject; got.CommonName != "hook" || len(got.Organization) != 1 || got.Organization[0] != "web:auth" {
		t.Errorf("the client is %s", got)
	}
	for what, of := range map[string]tls.Certificate{"without the authority between": pair(5, 4), "of a server": pair(1, 2)} {
		if _, err := meet(of); err == nil {
			t.Errorf("a client with a certificate %s is trusted", what)
		}
	}
}

// The clock of the run decides what is good, not that of the machine.
func TestCertificatesEnd(t *testing.T) {
	context := tlsRun(1, testNow)
	v, err := exec(t, context, `
ca = tls.ca("CA", days = 30)
c = tls.cert(ca, dns = ["web"], days = 10)
r = struct(ca = ca, c = c)
`)
	if err != nil {
		t.Fatal(err)
	}
	for _, tt := range []struct {
		after time.Duration
		good  bool
		fails string
	}{
		{-time.Minute, true, ""},
		{-time.Hour, false, "ca: it is good from 2026-03-01T10:25:00Z to 2026-03-31T10:30:00Z, and now is 2026-03-01T09:30:00Z; make a new one"},
		{9 * 24 * time.Hour, true, ""},
		{11 * 24 * time.Hour, false, ""},
		{31 * 24 * time.Hour, false, "and now is 2026-04-01T10:30:00Z; make a new one"},
	} {
		now := tlsRun(2, testNow.Add(tt.after))
		good, err := call1(now, "tls.verify", attrOf(v, "c", "cert"), attrOf(v, "ca", "cert"))
		if err != nil || good != starlark.Bool(tt.good) {
			t.Errorf("%s: got %v, %v", tt.after, good, err)
		}
		_, err = call1(now, "tls.cert", attrOf(v, "ca"), starlark.NewList([]starlark.Value{starlark.String("web")}))
		if tt.fails == "" && err != nil || tt.fails != "" && (err == nil || !strings.HasSuffix(err.Error(), tt.fails)) {
			t.Errorf("%s: got %v, want %q", tt.after, err, tt.fails)
		}
	}
}

// Authorities of people may have keys of other kinds, with an intermediate one
// between; keys that take long to work with are refused.
func TestForeignAuthorities(t *testing.T) {
	root, rootKey := foreignCA(t, "root", nil, nil, 2048)
	middle, middleKey := foreignCA(t, "middle", root, rootKey, 2048)
	secret := object.NewSecret(middleKey.pem)
	c, err := call1(tlsRun(1, testNow), "tls.cert", starlarkstruct.FromStringDict(starlarkstruct.Default, starlark.StringDict{
		"cert": starlark.String(middle.pem), "key": secret,
	}), starlark.NewList([]starlark.Value{starlark.String("web")}))
	if err != nil {
		t.Fatal(err)
	}
	chain := attrOf(c, "cert").(starlark.String)
	for _, tt := range []struct {
		cert string
		want bool
	}{{string(chain) + middle.pem, true}, {string(chain), false}} {
		if got, err := call1(tlsRun(1, testNow), "tls.verify", starlark.String(tt.cert), starlark.String(root.pem), attrOf(c, "key")); err != nil || got != starlark.Bool(tt.want) {
			t.Errorf("got %v, %v, want %v", got, err, tt.want)
		}
	}
	large, _ := pemOfLargeKey(t)
	if _, err := call1(tlsRun(1, testNow), "tls.info", starlark.String(large)); err == nil || !strings.Contains(err.Error(), "has an RSA key of 8200 bits, more than 8192") {
		t.Errorf("got %v", err)
	}
}

type withPEM struct {
	cert *x509.Certificate
	key  *rsa.PrivateKey
	pem  string
}

func foreignCA(t *testing.T, name string, parent, parentKey *withPEM, bits int) (cert, key *withPEM) {
	t.Helper()
	k, err := rsa.GenerateKey(rand.Reader, bits)
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: name}, IsCA: true, BasicConstraintsValid: true,
		NotBefore: testNow.Add(-time.Hour), NotAfter: testNow.Add(time.Hour),
	}
	by, signer := template, k
	if parent != nil {
		by, signer = parent.cert, parentKey.key
	}
	der, err := x509.CreateCertificate(rand.Reader, template, by, &k.PublicKey, signer)
	if err != nil {
		t.Fatal(err)
	}
	made, err := x509.ParseCertificate(der)
	if err != nil {
		t.Fatal(err)
	}
	text := pem.EncodeToMemory(&pem.Block{Type: "RSA PRIVATE KEY", Bytes: x509.MarshalPKCS1PrivateKey(k)})
	return &withPEM{cert: made, pem: string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der}))}, &withPEM{key: k, pem: string(text)}
}

// pemOfLargeKey makes a certificate for an RSA key that nobody has.
func pemOfLargeKey(t *testing.T) (string, error) {
	t.Helper()
	k, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	n := new(big.Int).Lsh(big.NewInt(1), 8199)
	template := &x509.Certificate{SerialNumber: big.NewInt(1), NotBefore: testNow, NotAfter: testNow}
	der, err := x509.CreateCertificate(rand.Reader, template, template, &rsa.PublicKey{N: n.Add(n, big.NewInt(1)), E: 65537}, k)
	if err != nil {
		t.Fatal(err)
	}
	return string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der})), nil
}

// call1 calls one builtin in a context.
func call1(c *builtins.Context, name string, args ...starlark.Value) (starlark.Value, error) {
	thread := &starlark.Thread{}
	builtins.Attach(thread, c)
	space, member, _ := strings.Cut(name, ".")
	return starlark.Call(thread, attrOf(builtins.Predeclared()[space], member), args, nil)
}

func attrOf(v starlark.Value, names ...string) starlark.Value {
	for _, name := range names {
		v = spec.Member(v, name)
	}
	return v
}

// Whatever the texts are, certificates and keys are read or refused in one line that
// shows nothing of them; what is split can be read again.
func FuzzPEM(f *testing.F) {
	v, err := exec(&testing.T{}, tlsRun(1, testNow), `
ca = tls.ca("CA")
c = tls.cert(ca, dns = ["web"], ips = ["::1"])
r = (ca.cert, c.cert, reveal(c.key))
`)
	if err != nil {
		f.Fatal(err)
	}
	text := func(i int) string { return string(v.(starlark.Tuple)[i].(starlark.String)) }
	f.Add(text(1), text(0), text(2))
	f.Add(text(1)+"\n# and\n"+text(0), text(0)+text(1), text(2)[:90])
	f.Add(text(0)[:300], "-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n", "-----BEGIN EC PRIVATE KEY-----\nMAA=\n-----END EC PRIVATE KEY-----\n")
	f.Add("-----BEGIN CERTIFICATE-----\r\nProc-Type: 4,ENCRYPTED\r\n\r\nMIIB\r\n-----END CERTIFICATE-----", "-----BEGIN -----BEGIN ", "-----BEGIN RSA PRIVATE KEY-----\nMAA=\n-----END RSA PRIVATE KEY-----\n")
	f.Fuzz(func(t *testing.T, cert, ca, key string) {
		c := tlsRun(1, testNow)
		messageOf := func(err error) {
			if err != nil && (strings.ContainsAny(err.Error(), "\n\r") || len(err.Error()) > 300) {
				t.Errorf("not fit for people: %q", err)
			}
		}
		_, err := call1(c, "tls.info", starlark.String(cert))
		messageOf(err)
		if parts, err := call1(c, "tls.split", starlark.String(ca)); err == nil {
			for i := range starlark.Len(parts) {
				if _, err := call1(c, "tls.info", parts.(*starlark.List).Index(i)); err != nil {
					t.Errorf("part %d of %q: %v", i, ca, err)
				}
			}
		}
		_, err = call1(c, "tls.verify", starlark.String(cert), starlark.String(ca), starlark.String(key))
		messageOf(err)
		authority := starlark.NewDict(2)
		_ = authority.SetKey(starlark.String("cert"), starlark.String(ca))
		_ = authority.SetKey(starlark.String("key"), object.NewSecret(key))
		_, err = call1(c, "tls.cert", authority, starlark.NewList([]starlark.Value{starlark.String("web")}))
		messageOf(err)
	})
}
