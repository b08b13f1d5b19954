// Package pki makes and reads certificates and their keys.
package pki

import (
	"crypto"
	"crypto/ecdsa"
	"crypto/ed25519"
	"crypto/elliptic"
	"crypto/rsa"
	"fmt"
	"io"
	"strings"
	"sync"

	"filippo.io/keygen"
)

// secretSize is how many random bytes a key is made of: more than FIPS 186-5 wants of any of them.
const secretSize = 48

// algorithms are the kinds of keys that [NewKey] makes, by their names.
var algorithms = map[string]func(secret []byte) (crypto.Signer, error){
	"ecdsa-p256": func(b []byte) (crypto.Signer, error) { return keygen.ECDSA(elliptic.P256(), b) },
	"ecdsa-p384": func(b []byte) (crypto.Signer, error) { return keygen.ECDSA(elliptic.P384(), b) },
	"ed25519":    func(b []byte) (crypto.Signer, error) { return ed25519.NewKeyFromSeed(b[:ed25519.SeedSize]), nil },
	"rsa-2048":   func(b []byte) (crypto.Signer, error) { return keygen.RSA(2048, b) },
	"rsa-3072":   func(b []byte) (crypto.Signer, error) { return keygen.RSA(3072, b) },
	"rsa-4096":   func(b []byte) (crypto.Signer, error) { return keygen.RSA(4096, b) },
}

// Known reports whether [NewKey] makes keys of an algorithm.
func Known(algorithm string) bool { return algorithms[algorithm] != nil }

// NewKey makes a key of an algorithm that is [Known]. The same random bytes make the same key: crypto's functions
// take theirs from the system, whatever source they are given (since Go 1.26).
func NewKey(algorithm string, random io.Reader) (crypto.Signer, error) {
	if !Known(algorithm) {
		return nil, fmt.Errorf("there are no keys of %q", algorithm)
	}
	secret := make([]byte, secretSize)
	if err := read(random, secret); err != nil {
		return nil, err
	}
	if of, is := random.(remembering); is {
		return of.keys.key(algorithm, secret)
	}
	return algorithms[algorithm](secret)
}

// maxKeys bounds how many keys are remembered.
const maxKeys = 200

// Keys remembers keys by the random bytes that they were made of. A simulated cluster has the same bytes in each order
// of a test, and one key of RSA costs as much as all the rest of an order. It is safe for concurrent use.
type Keys struct {
	mu   sync.Mutex
	made map[string]crypto.Signer // by algorithm and secret
}

// From returns a source of the same bytes; [NewKey] makes a key of it only once. Nil Keys remember nothing.
func (k *Keys) From(random io.Reader) io.Reader {
	if k == nil {
		return random
	}
	return remembering{random, k}
}

// remembering is a source of random bytes for which keys are remembered.
type remembering struct {
	io.Reader
	keys *Keys
}

func (k *Keys) key(algorithm string, secret []byte) (crypto.Signer, error) {
	k.mu.Lock()
	defer k.mu.Unlock()
	of := algorithm + " " + string(secret)
	if known := k.made[of]; known != nil {
		return known, nil
	}
	key, err := algorithms[algorithm](secret)
	if err != nil {
		return nil, err
	}
	if k.made == nil || len(k.made) >= maxKeys {
		k.made = map[string]crypto.Signer{}
	}
	k.made[of] = key
	return key, nil
}

func read(random io.Reader, to []byte) error {
	if _, err := io.ReadFull(random, to); err != nil {
		return fmt.Errorf("no random bytes: %w", err)
	}
	return nil
}

// Algorithm names the kind of a public key as [NewKey] does, "" for others.
func Algorithm(public any) string {
	switch public := public.(type) {
	case *ecdsa.PublicKey:
		return "ecdsa-" + strings.ToLower(strings.ReplaceAll(public.Curve.Params().Name, "-", ""))
	case ed25519.PublicKey:
		return "ed25519"
	case *rsa.PublicKey:
		return fmt.Sprintf("rsa-%d", public.N.BitLen())
	}
	return ""
}
