package webhook

import (
	"context"
	"crypto/rand"
	"crypto/rsa"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"fmt"
	"maps"
	"math/big"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/rs/zerolog"

	"github.com/starling-operator/starling/runtime/bounded"
)

var epoch = time.Date(2026, time.March, 1, 10, 0, 0, 0, time.UTC)

// memory is a certStore of two processes.
type memory struct {
	mu      sync.Mutex
	data    map[string][]byte
	version int
	writes  int
	// before is called before a write, once.
	before func()
}

func (v *memory) get(context.Context) (map[string][]byte, string, error) {
	v.mu.Lock()
	defer v.mu.Unlock()
	if v.data == nil {
		return nil, "", nil
	}
	return maps.Clone(v.data), fmt.Sprint(v.version), nil
}

func (v *memory) put(_ context.Context, data map[string][]byte, version string) error {
	if before := v.before; before != nil {
		v.before = nil
		before()
	}
	v.mu.Lock()
	defer v.mu.Unlock()
	if version == "" && v.data != nil || version != "" && version != fmt.Sprint(v.version) {
		return errConflict
	}
	v.data, v.version, v.writes = data, v.version+1, v.writes+1
	return nil
}

func own(v certStore) *ownCertificates {
	return &ownCertificates{store: v, who: "ns/starling", names: []string{"starling.ns.svc", "10.0.0.7"}, log: zerolog.Nop()}
}

func trusts(t *testing.T, bundle []byte, c certificates, now time.Time) error {
	t.Helper()
	pool := x509.NewCertPool()
	if !pool.AppendCertsFromPEM(bundle) {
		return errors.New("the bundle is empty")
	}
	for _, name := range []string{"starling.ns.svc", "10.0.0.7"} {
		if _, err := c.served.cert.Leaf.Verify(x509.VerifyOptions{DNSName: name, Roots: pool, CurrentTime: now}); err != nil {
			return err
		}
	}
	return nil
}

// Over 25 years of looking when we are told to, what is served is trusted by those
// who know the bundle of now, and by those who know the one from before the last look.
func TestCertificatesAreRotatedInTime(t *testing.T) {
	v := &memory{}
	source := own(v)
	var before []byte
	authorities, leaves := map[string]bool{}, map[string]bool{}
	looks := 0
	for now := epoch; now.Before(epoch.AddDate(25, 0, 0)); looks++ {
		got, err := source.look(t.Context(), now, true)
		if err != nil {
			t.Fatal(err)
		}
		if err := trusts(t, got.bundle, got, now); err != nil {
			t.Fatalf("%s: %v", now, err)
		}
		if before != nil {
			if err := trusts(t, before, got, now); err != nil {
				t.Fatalf("%s: with the bundle from before: %v", now, err)
			}
		}
		left := got.served.cert.Leaf.NotAfter.Sub(now)
		if left < leafLife/4 {
			t.Fatalf("%s: the certificate has %s left", now, left)
		}
		m := parseMaterial(v.data)
		if len(m.authorities) > 2 {
			t.Fatalf("%s: %d authorities", now, len(m.authorities))
		}
		authorities[m.authorities[0].SerialNumber.String()], leaves[m.leaf.Leaf.SerialNumber.String()] = true, true
		if !got.next.After(now) || got.next.Sub(now) > lookAgain {
			t.Fatalf("%s: the next look is at %s", now, got.next)
		}
		before, now = got.bundle, got.next
	}
	// 10 years, of which two thirds are used, and 60 days.
	if len(authorities) != 4 || len(leaves) < 145 || len(leaves) > 165 {
		t.Errorf("%d authorities and %d certificates in %d looks", len(authorities), len(leaves), looks)
	}
}

func TestANewAuthorityIsNotReliedOnBeforeAllKnowIt(t *testing.T) {
	v := &memory{}
	source := own(v)
	first, err := source.look(t.Context(), epoch, false)
	if err != nil {
		t.Fatal(err)
	}
	late := epoch.Add(authorityLife * 2 / 3)
	for now := late; now.Before(late.Add(24 * time.Hour)); now = now.Add(10 * time.Minute) {
		got, err := source.look(t.Context(), now, false)
		if err != nil {
			t.Fatal(err)
		}
		if err := trusts(t, got.bundle, got, now); err != nil {
			t.Fatal(err)
		}
		// Not signed by the new authority, which nobody has been told of; when the
		// old certificate has run out there is no choice.
		if first.served.cert.Leaf.NotAfter.After(now) && !first.served.same(got.served) {
			t.Fatalf("%s: another certificate is served", now)
		}
	}
}

func TestTwoProcessesHaveOneAuthority(t *testing.T) {
	v := &memory{}
	var second certificates
	v.before = func() {
		var err error
		if second, err = own(v).look(t.Context(), epoch, false); err != nil {
			t.Error(err)
		}
	}
	first, err := own(v).look(t.Context(), epoch, false)
	if err != nil {
		t.Fatal(err)
	}
	if !first.served.same(second.served) || string(first.bundle) != string(second.bundle) || v.writes != 1 {
		t.Errorf("two authorities, %d writes", v.writes)
	}
}

func TestBrokenSecretsAreMended(t *testing.T) {
	v := &memory{}
	source := own(v)
	if _, err := source.look(t.Context(), epoch, true); err != nil {
		t.Fatal(err)
	}
	good := v.data
	for name, damage := range map[string]func(map[string][]byte){
		"no leaf":            func(d map[string][]byte) { delete(d, keyLeaf) },
		"no key":             func(d map[string][]byte) { delete(d, keyLeafKey) },
		"no bundle":          func(d map[string][]byte) { delete(d, keyBundle) },
		"no authority's key": func(d map[string][]byte) { delete(d, keyAuthorityKey) },
		"nothing":            func(d map[string][]byte) { clear(d) },
		"no PEM":             func(d map[string][]byte) { d[keyLeaf] = []byte("x") },
		"another one's key":  func(d map[string][]byte) { d[keyLeafKey] = d[keyAuthorityKey] },
		"PEM of nothing": func(d map[string][]byte) {
			d[keyBundle] = []byte("-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n")
		},
		"a broken block behind the leaf": func(d map[string][]byte) {
			d[keyLeaf] = append(slices.Clip(d[keyLeaf]), "-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n"...)
		},
		"an authority of RSA": func(d map[string][]byte) { d[keyBundle], d[keyAuthorityKey] = weakAuthority(t) },
		"a leaf as authority": func(d map[string][]byte) { d[keyBundle] = d[keyLeaf] },
	} {
		v.data = maps.Clone(good)
		damage(v.data)
		got, err := own(v).look(t.Context(), epoch, false)
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		if err := trusts(t, got.bundle, got, epoch); err != nil || len(got.served.cert.Certificate) != 1 {
			t.Errorf("%s: %v; %d certificates are sent", name, err, len(got.served.cert.Certificate))
		}
	}
	// Other names, as after --webhook-url has changed.
	v.data = good
	moved := own(v)
	moved.names = []string{"other.example.com"}
	got, err := moved.look(t.Context(), epoch, false)
	if err != nil || got.served.cert.Leaf.VerifyHostname("other.example.com") != nil {
		t.Errorf("the certificate is for other names: %v", err)
	}
	// A Secret that is deleted comes back as it was.
	source.last, v.data, v.version = good, nil, 0
	if got, err = source.look(t.Context(), epoch, true); err != nil || string(v.data[keyLeaf]) != string(good[keyLeaf]) {
		t.Errorf("%v", err)
	}
}

// weakAuthority is one that crypto/rsa does not sign with.
func weakAuthority(t *testing.T) (bundle, key []byte) {
	t.Helper()
	t.Setenv("GODEBUG", "rsa1024min=0")
	private, err := rsa.GenerateKey(rand.Reader, 512)
	if err != nil {
		t.Fatal(err)
	}
	c := &x509.Certificate{
		SerialNumber: big.NewInt(1), NotBefore: epoch.Add(-time.Hour), NotAfter: epoch.AddDate(5, 0, 0), IsCA: true, BasicConstraintsValid: true,
	}
	der, err := x509.CreateCertificate(rand.Reader, c, c, private.Public(), private)
	if err != nil {
		t.Fatal(err)
	}
	t.Setenv("GODEBUG", "")
	return pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der}),
		pem.EncodeToMemory(&pem.Block{Type: "RSA PRIVATE KEY", Bytes: x509.MarshalPKCS1PrivateKey(private)})
}

func TestMountedCertificatesAreReadAgain(t *testing.T) {
	write := func(dir string, v *memory) {
		t.Helper()
		if err := os.MkdirAll(dir, 0o755); err != nil {
			t.Fatal(err)
		}
		for _, name := range []string{keyLeaf, keyLeafKey, keyBundle} {
			if err := os.WriteFile(filepath.Join(dir, name), v.data[name], 0o600); err != nil {
				t.Fatal(err)
			}
		}
	}
	stores := [2]*memory{{}, {}}
	for _, v := range stores {
		if _, err := own(v).look(t.Context(), time.Now(), false); err != nil {
			t.Fatal(err)
		}
	}
	dir := t.TempDir()
	m := &mounted{dir: dir}
	if _, err := m.look(t.Context(), epoch, false); err == nil || !strings.Contains(err.Error(), "tls.crt: it is not there") {
		t.Errorf("%v", err)
	}
	// As a kubelet does it: files are links into ..data, which is a link itself.
	write(filepath.Join(dir, "..1"), stores[0])
	point := func(to string) {
		t.Helper()
		if err := errors.Join(os.Symlink(to, filepath.Join(dir, "..new")), os.Rename(filepath.Join(dir, "..new"), filepath.Join(dir, "..data"))); err != nil {
			t.Fatal(err)
		}
	}
	point("..1")
	for _, name := range []string{keyLeaf, keyLeafKey, keyBundle} {
		if err := os.Symlink(filepath.Join("..data", name), filepath.Join(dir, name)); err != nil {
			t.Fatal(err)
		}
	}
	first, err := m.look(t.Context(), epoch, false)
	if err != nil || string(first.bundle) != string(stores[0].data[keyBundle]) {
		t.Fatal(err)
	}
	write(filepath.Join(dir, "..2"), stores[1])
	point("..2")
	second, err := m.look(t.Context(), epoch, false)
	both := string(stores[1].data[keyBundle]) + "\n" + string(stores[0].data[keyBundle])
	if err != nil || first.served.same(second.served) || string(second.bundle) != both {
		t.Errorf("the new certificate is not there, or the former authority is not: %v", err)
	}
	// A broken file is an error, and the certificate before still serves.
	for name, text := range map[string]string{keyLeaf: "x", keyBundle: "", keyLeafKey: strings.Repeat("x", bounded.MaxPEM+1)} {
		path := filepath.Join(dir, "..2", name)
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		got, err := m.look(t.Context(), epoch, false)
		if err == nil || !second.served.same(got.served) {
			t.Errorf("%s: %v", name, err)
		}
		if err := os.WriteFile(path, stores[1].data[name], 0o600); err != nil {
			t.Fatal(err)
		}
	}
	for at, want := range map[time.Duration]string{maxSpread - time.Second: both, maxSpread: string(stores[1].data[keyBundle])} {
		if got, err := m.look(t.Context(), epoch.Add(at), false); err != nil || string(got.bundle) != want {
			t.Errorf("after %s it is %s, %v", at, got.bundle, err)
		}
	}
}
