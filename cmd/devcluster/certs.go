package main

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"os"
	"path/filepath"
	"time"

	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"
	"k8s.io/client-go/util/cert"
	"k8s.io/client-go/util/keyutil"
)

// certs issues the certificates of the cluster. Its authority and the key of
// ServiceAccount tokens are kept in the folder, so tokens and kubeconfigs made
// earlier stay good when the cluster starts again; all else is new at each start.
type certs struct {
	dir string
	ca  tls.Certificate
	pem []byte // ca, encoded
}

// newCerts opens or makes the authority and issues what the API server needs;
// ip is the address it listens on.
func newCerts(dir string, ip net.IP) (*certs, error) {
	c := &certs{dir: dir}
	if err := c.openAuthority(); err != nil {
		return nil, err
	}
	if _, _, err := keyutil.LoadOrGenerateKeyFile(c.path("sa.key")); err != nil {
		return nil, fmt.Errorf("%s is damaged or cannot be read; remove it: %w", c.path("sa.key"), err)
	}
	server := &x509.Certificate{
		Subject:     pkix.Name{CommonName: "kube-apiserver"},
		IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1), net.ParseIP(serviceIP), ip},
		DNSNames:    []string{"localhost", "kubernetes", "kubernetes.default", "kubernetes.default.svc", "kubernetes.default.svc.cluster.local"},
	}
	proxy := &x509.Certificate{Subject: pkix.Name{CommonName: proxyClient}}
	return c, errors.Join(c.write("apiserver", server), c.write(proxyClient, proxy))
}

func (c *certs) path(name string) string { return filepath.Join(c.dir, name) }

// openAuthority makes the folder and its authority, unless they are there.
func (c *certs) openAuthority() error {
	if err := os.MkdirAll(c.dir, 0o700); err != nil {
		return err
	}
	file := c.path("ca.crt")
	if _, err := os.Stat(file); errors.Is(err, fs.ErrNotExist) {
		if err := c.write("ca", &x509.Certificate{
			Subject: pkix.Name{CommonName: "devcluster"}, NotAfter: time.Now().AddDate(10, 0, 0),
			IsCA: true, BasicConstraintsValid: true,
			KeyUsage: x509.KeyUsageCertSign | x509.KeyUsageDigitalSignature,
		}); err != nil {
			return err
		}
	}
	var err error
	if c.ca, err = tls.LoadX509KeyPair(file, c.path("ca.key")); err != nil {
		return fmt.Errorf("%s is damaged; remove it together with ca.key: %w", file, err)
	}
	c.pem, err = cert.EncodeCertificates(c.ca.Leaf)
	return err
}

// write issues a certificate into the folder.
func (c *certs) write(name string, t *x509.Certificate) error {
	crt, key, err := c.issue(t)
	if err != nil {
		return err
	}
	return errors.Join(os.WriteFile(c.path(name+".key"), key, 0o600), os.WriteFile(c.path(name+".crt"), crt, 0o600))
}

// issue makes a certificate with a new key for the subject and names of t, for one year; of the authority
// itself only the serial number and the begin are missing.
func (c *certs) issue(t *x509.Certificate) (crt, key []byte, err error) {
	private, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return nil, nil, err
	}
	by, signer := t, any(private)
	t.NotBefore = time.Now().Add(-time.Hour)
	if !t.IsCA {
		by, signer = c.ca.Leaf, c.ca.PrivateKey
		t.NotAfter = time.Now().AddDate(1, 0, 0)
		t.KeyUsage = x509.KeyUsageDigitalSignature
		t.ExtKeyUsage = []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth, x509.ExtKeyUsageServerAuth}
	}
	der, err := x509.CreateCertificate(rand.Reader, t, by, private.Public(), signer)
	if err != nil {
		return nil, nil, err
	}
	key, err = keyutil.MarshalPrivateKeyToPEM(private)
	return pem.EncodeToMemory(&pem.Block{Type: cert.CertificateBlockType, Bytes: der}), key, err
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
