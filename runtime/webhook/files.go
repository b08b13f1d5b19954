package webhook

import (
	"bytes"
	"context"
	"crypto/x509"
	"fmt"
	"path/filepath"
	"slices"
	"time"

	"github.com/starling-operator/starling/runtime/bounded"
	"github.com/starling-operator/starling/runtime/pki"
)

// mounted reads the certificates from a folder with tls.crt, tls.key and ca.crt, as a volume of a Secret has them.
type mounted struct {
	dir string
	// last is what was read well: a folder that is being changed is read again.
	last certificates
	// ca is ca.crt as it was read last, and former what it was until changed.
	ca, former []byte
	changed    time.Time
}

// pollMounted is how often the folder is read. A kubelet takes a minute to bring a change, and certificates are
// followed by others long before they end, so nothing is won by watching the folder.
const pollMounted = 5 * time.Second

func (m *mounted) look(_ context.Context, now time.Time, _ bool) (certificates, error) {
	got, err := m.read()
	if err != nil {
		if m.last.served == nil {
			return certificates{}, err
		}
		got = m.last // what there was still serves
	} else if !bytes.Equal(m.ca, got.bundle) {
		m.ca, m.former, m.changed = got.bundle, m.ca, now
	}
	if got.bundle = m.ca; m.former != nil && now.Sub(m.changed) < maxSpread { // a kubelet may bring it to other pods later
		got.bundle = slices.Concat(m.ca, []byte("\n"), m.former)
	}
	got.next = now.Add(pollMounted)
	m.last = got
	return got, err
}

func (m *mounted) find(ctx context.Context, now time.Time) (certificates, error) {
	return m.look(ctx, now, false)
}

func (m *mounted) read() (certificates, error) {
	files, err := bounded.Volume(m.dir, bounded.MaxPEM, keyLeaf, keyLeafKey, keyBundle)
	if err != nil {
		return certificates{}, fmt.Errorf("certificates of webhooks: %w", err)
	}
	pair, err := pki.KeyPair(files[keyLeaf], files[keyLeafKey])
	if err != nil {
		return certificates{}, fmt.Errorf("certificates of webhooks: %s and %s in %s are no certificate with its key", keyLeaf, keyLeafKey, m.dir)
	}
	if !x509.NewCertPool().AppendCertsFromPEM(files[keyBundle]) {
		return certificates{}, fmt.Errorf("certificates of webhooks: %s holds no certificate", filepath.Join(m.dir, keyBundle))
	}
	return certificates{served: &served{pair}, bundle: files[keyBundle]}, nil
}
