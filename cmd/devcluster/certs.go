package main

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"errors"
	"fmt"
	"io/fs"
	"math/big"
	"net"
	"os"
	"path/filepath"
	"time"

	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"
)

// certs issues the certificates of the cluster. Its authority and the key of
// ServiceAccount tokens are kept in the folder, so tokens and kubeconfigs made
// earlier stay good when the cluster starts again; all else is new at each start.
type certs struct {
	dir string
	ca  *x509.Certificate
	key *ecdsa.PrivateKey // of ca
	pem []byte            // ca, encoded
}

// newCerts opens or makes the authority and issues what the API server needs;
// ip is the address it listens on.
func newCerts(dir string, ip net.IP) (*certs, error) {
	c := &certs{dir: dir}
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, err
	}
	if err := c.openAuthority(); err != nil {
		return nil, err
	}
	if _, err := c.openKey("sa.key"); err != nil {
		return nil, err
	}
	server := &x509.Certificate{
		Subject:     pkix.Name{CommonName: "kube-apiserver"},
		IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1), net.ParseIP(serviceIP), ip},
		DNSNames:    []string{"localhost", "kubernetes", "kubernetes.default", "kubernetes.default.svc", "kubernetes.default.svc.cluster.local"},
	}
	proxy := &x509.Certificate{Subject: pkix.Name{CommonName: proxyClient}}
	for name, cert := range map[string]*x509.Certificate{"apiserver": server, proxyClient: proxy} {
		crt, key, err := c.issue(cert)
		if err != nil {
			return nil, err
		}
		if err := errors.Join(os.WriteFile(c.path(name+".crt"), crt, 0o600), os.WriteFile(c.path(name+".key"), key, 0o600)); err != nil {
			return nil, err
		}
	}
	return c, nil
}

func (c *certs) path(name string) string { return filepath.Join(c.dir, name) }

func (c *certs) openAuthority() (err error) {
	if c.key, err = c.openKey("ca.key"); err != nil {
		return err
	}
	if c.pem, err = os.ReadFile(c.path("ca.crt")); err == nil {
		block, _ := pem.Decode(c.pem)
		if block == nil {
			return fmt.Errorf("%s is damaged; remove it together with ca.key", c.path("ca.crt"))
		}
		c.ca, err = x509.ParseCertificate(block.Bytes)
		return err
	}
	if !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	ca := &x509.Certificate{
		Subject: pkix.Name{CommonName: "devcluster"}, SerialNumber: big.NewInt(1),
		NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().AddDate(10, 0, 0),
		IsCA: true, BasicConstraintsValid: true,
		KeyUsage: x509.KeyUsageCertSign | x509.KeyUsageDigitalSignature,
	}
	der, err := x509.CreateCertificate(rand.Reader, ca, ca, c.key.Public(), c.key)
	if err != nil {
		return err
	}
	if c.ca, err = x509.ParseCertificate(der); err != nil {
		return err
	}
	c.pem = pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der})
	return os.WriteFile(c.path("ca.crt"), c.pem, 0o600)
}

// openKey reads a private key of the folder, or makes it.
func (c *certs) openKey(name string) (*ecdsa.PrivateKey, error) {
	data, err := os.ReadFile(c.path(name))
	if err == nil {
		block, _ := pem.Decode(data)
		if block == nil {
			return nil, fmt.Errorf("%s is damaged; remove it", c.path(name))
		}
		return x509.ParseECPrivateKey(block.Bytes)
	}
	if !errors.Is(err, fs.ErrNotExist) {
		return nil, err
	}
	key, encoded, err := newKey()
	if err != nil {
		return nil, err
	}
	return key, os.WriteFile(c.path(name), encoded, 0o600)
}

func newKey() (*ecdsa.PrivateKey, []byte, error) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return nil, nil, err
	}
	der, err := x509.MarshalECPrivateKey(key)
	return key, pem.EncodeToMemory(&pem.Block{Type: "EC PRIVATE KEY", Bytes: der}), err
}

// issue signs a certificate for the subject and names of t, for one year.
func (c *certs) issue(t *x509.Certificate) (crt, key []byte, err error) {
	private, key, err := newKey()
	if err != nil {
		return nil, nil, err
	}
	if t.SerialNumber, err = rand.Int(rand.Reader, new(big.Int).Lsh(big.NewInt(1), 120)); err != nil {
		return nil, nil, err
	}
	t.NotBefore, t.NotAfter = time.Now().Add(-time.Hour), time.Now().AddDate(1, 0, 0)
	t.KeyUsage = x509.KeyUsageDigitalSignature
	t.ExtKeyUsage = []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth, x509.ExtKeyUsageServerAuth}
	der, err := x509.CreateCertificate(rand.Reader, t, c.ca, private.Public(), c.key)
	return pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der}), key, err
}

// kubeconfig makes a kubeconfig of a user, who may belong to groups.
func (c *certs) kubeconfig(server, user string, groups ...string) (*clientcmdapi.Config, error) {
	crt, key, err := c.issue(&x509.Certificate{Subject: pkix.Name{CommonName: user, Organization: groups}})
	if err != nil {
		return nil, err
	}
	k := clientcmdapi.NewConfig()
	k.Clusters[contextName] = &clientcmdapi.Cluster{Server: server, CertificateAuthorityData: c.pem}
	k.AuthInfos[user] = &clientcmdapi.AuthInfo{ClientCertificateData: crt, ClientKeyData: key}
	k.Contexts[contextName] = &clientcmdapi.Context{Cluster: contextName, AuthInfo: user}
	k.CurrentContext = contextName
	return k, nil
}
