package pki

import (
	"bytes"
	"crypto"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"io"
	"math/big"
	"strings"
	"time"
)

// Backdate is how much before it was made a certificate begins to hold, for clocks that are late.
const Backdate = 5 * time.Minute

// Sign makes a certificate for a public key, with a random serial number. Signatures take no random bytes: those of
// the same certificate are the same (RFC 6979).
func Sign(template, authority *x509.Certificate, public crypto.PublicKey, by crypto.Signer, random io.Reader) (*x509.Certificate, error) {
	serial := make([]byte, 16)
	if err := read(random, serial); err != nil {
		return nil, err
	}
	serial[0] = serial[0]&0x7f | 0x40 // positive, and always as long
	template.SerialNumber = new(big.Int).SetBytes(serial)
	der, err := x509.CreateCertificate(nil, template, authority, public, by)
	if err != nil {
		return nil, signError(err)
	}
	cert, err := x509.ParseCertificate(der)
	if err != nil {
		return nil, signError(err)
	}
	return cert, nil
}

// SignRequest makes a certificate request, in PEM.
func SignRequest(template *x509.CertificateRequest, key crypto.Signer) ([]byte, error) {
	der, err := x509.CreateCertificateRequest(nil, template, key)
	if err != nil {
		return nil, signError(err)
	}
	return encode("CERTIFICATE REQUEST", der), nil
}

func signError(err error) error {
	return errors.New("cannot sign: " + strings.TrimPrefix(err.Error(), "x509: "))
}

// Issue makes a certificate with a new key of ECDSA. An authority signs it, and it ends with that at the latest;
// without one it signs itself. The template gets its serial number, and the end.
func Issue(template *x509.Certificate, authority *tls.Certificate) (*tls.Certificate, error) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return nil, err
	}
	if authority == nil {
		authority = &tls.Certificate{Leaf: template, PrivateKey: key}
	}
	by, ok := authority.PrivateKey.(crypto.Signer)
	if !ok {
		return nil, errors.New("cannot sign: the key of the authority signs nothing")
	}
	EndWith(template, authority.Leaf)
	cert, err := Sign(template, authority.Leaf, key.Public(), by, rand.Reader)
	if err != nil {
		return nil, err
	}
	return &tls.Certificate{Certificate: [][]byte{cert.Raw}, PrivateKey: key, Leaf: cert}, nil
}

// EndWith has a certificate end with its authority at the latest.
func EndWith(template, authority *x509.Certificate) {
	if template.NotAfter.After(authority.NotAfter) {
		template.NotAfter = authority.NotAfter
	}
}

// KeyPair reads a certificate and its key from PEM. Its Leaf is there, whatever GODEBUG says.
func KeyPair(cert, key []byte) (*tls.Certificate, error) {
	pair, err := tls.X509KeyPair(cert, key)
	if err == nil && pair.Leaf == nil {
		pair.Leaf, err = x509.ParseCertificate(pair.Certificate[0])
	}
	return &pair, err
}

// PEM returns a certificate and its key as the files tls.crt and tls.key hold them.
func PEM(cert *tls.Certificate) (crt, key []byte, err error) {
	key, err = KeyPEM(cert.PrivateKey)
	return CertificatesPEM(cert.Leaf), key, err
}

// Pool returns certificates as a pool of authorities.
func Pool(certs ...*x509.Certificate) *x509.CertPool {
	pool := x509.NewCertPool()
	for _, c := range certs {
		pool.AddCert(c)
	}
	return pool
}

// SelfSigned reports whether a certificate is signed by its own key.
func SelfSigned(cert *x509.Certificate) bool {
	return bytes.Equal(cert.RawIssuer, cert.RawSubject) &&
		cert.CheckSignature(cert.SignatureAlgorithm, cert.RawTBSCertificate, cert.Signature) == nil
}

// Belongs reports whether a certificate is for the public half of a key.
func Belongs(key crypto.Signer, cert *x509.Certificate) bool {
	public, ok := key.Public().(interface{ Equal(crypto.PublicKey) bool })
	return ok && public.Equal(cert.PublicKey)
}
