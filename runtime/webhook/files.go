package webhook

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"os"
	"path/filepath"
	"time"
)

// mounted reads the certificates from a folder with tls.crt, tls.key and ca.crt, as a
// volume of a Secret has them.
type mounted struct {
	dir string
	// last is what was read well: a folder that is being changed is read again.
	last certificates
}

// pollMounted is how often the folder is read. A kubelet takes a minute to bring a
// change, and certificates are followed by others long before they end, so nothing
// is won by watching the folder.
const pollMounted = 5 * time.Second

// maxPEM bounds a file.
const maxPEM = 1 << 20

func (m *mounted) look(_ context.Context, now time.Time, _ bool) (certificates, error) {
	got, err := m.read()
	if err != nil {
		if m.last.served == nil {
			return certificates{}, err
		}
		got = m.last // what there was still serves
	}
	got.next = now.Add(pollMounted)
	m.last = got
	return got, err
}

func (m *mounted) read() (certificates, error) {
	// A volume is changed by pointing ..data to another folder: reading all files
	// from one such folder gives what belongs together.
	dir := m.dir
	if real, err := filepath.EvalSymlinks(filepath.Join(dir, "..data")); err == nil {
		dir = real
	}
	files := map[string][]byte{}
	for _, name := range []string{keyLeaf, keyLeafKey, keyBundle} {
		data, err := readFile(filepath.Join(dir, name))
		if err != nil {
			return certificates{}, fmt.Errorf("certificates of webhooks: %s: %w", filepath.Join(m.dir, name), err)
		}
		files[name] = data
	}
	pair, err := tls.X509KeyPair(files[keyLeaf], files[keyLeafKey])
	if err != nil {
		return certificates{}, fmt.Errorf("certificates of webhooks: %s and %s in %s are no certificate with its key", keyLeaf, keyLeafKey, m.dir)
	}
	if !x509.NewCertPool().AppendCertsFromPEM(files[keyBundle]) {
		return certificates{}, fmt.Errorf("certificates of webhooks: %s holds no certificate", filepath.Join(m.dir, keyBundle))
	}
	return certificates{served: newServed(&pair), bundle: files[keyBundle]}, nil
}

func readFile(path string) ([]byte, error) {
	info, err := os.Stat(path)
	switch {
	case os.IsNotExist(err):
		return nil, fmt.Errorf("it is not there")
	case err != nil:
		return nil, fmt.Errorf("it cannot be read")
	case info.Size() > maxPEM:
		return nil, fmt.Errorf("it is larger than %d MiB", maxPEM>>20)
	}
	data, err := os.ReadFile(path)
	if err != nil {
		return nil, fmt.Errorf("it cannot be read")
	}
	return data, nil
}
