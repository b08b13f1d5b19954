package builtins

import (
	"crypto"
	"crypto/ecdsa"
	"crypto/ed25519"
	"crypto/elliptic"
	"crypto/rsa"
	"crypto/sha3"
	"errors"
	"fmt"
	"io"
	"math/big"
	"strings"
	"sync"
)

// New keys. The library makes them of random bytes that it takes from the system, whatever
// source it is given (since Go 1.26); those of a run must be the same when it is played
// again. So keys are made of the random bytes of the run.

// keyAlgorithms are the kinds of keys, by their names.
var keyAlgorithms = map[string]func(*Run) (crypto.Signer, error){
	"ecdsa-p256": func(r *Run) (crypto.Signer, error) { return r.newECDSA(elliptic.P256()) },
	"ecdsa-p384": func(r *Run) (crypto.Signer, error) { return r.newECDSA(elliptic.P384()) },
	"ed25519": func(r *Run) (crypto.Signer, error) {
		seed, err := r.random(ed25519.SeedSize)
		if err != nil {
			return nil, err
		}
		return ed25519.NewKeyFromSeed(seed), nil
	},
	"rsa-2048": func(r *Run) (crypto.Signer, error) { return r.newRSA(2048) },
	"rsa-3072": func(r *Run) (crypto.Signer, error) { return r.newRSA(3072) },
	"rsa-4096": func(r *Run) (crypto.Signer, error) { return r.newRSA(4096) },
}

// newKey makes a key of the kind that algorithm= says.
func (c *call) newKey() (crypto.Signer, error) {
	name := c.strOr("algorithm", "ecdsa-p256")
	newKey := keyAlgorithms[name]
	if newKey == nil {
		return nil, fmt.Errorf("algorithm: %q is none; use ecdsa-p256, ecdsa-p384, ed25519, rsa-2048, rsa-3072 or rsa-4096", clip(name))
	}
	return newKey(c.run)
}

// newECDSA makes a key of random bytes of the run. A number that is no key of the curve,
// one of four billion, is passed over.
func (r *Run) newECDSA(curve elliptic.Curve) (crypto.Signer, error) {
	for range 8 {
		b, err := r.random((curve.Params().BitSize + 7) / 8)
		if err != nil {
			return nil, err
		}
		if key, err := ecdsa.ParseRawPrivateKey(curve, b); err == nil {
			return key, nil
		}
	}
	return nil, errors.New("the random bytes make no key")
}

const (
	// rsaExponent is that of all keys.
	rsaExponent = 65537
	// maxPrimeTries is far more numbers than it takes to find a prime: one of some 700.
	maxPrimeTries = 100_000
)

// newRSA makes a key of two primes, as FIPS 186-5 does (A.1.3). The numbers to try come
// from a stream that 64 random bytes begin: each run keeps the random bytes that it takes.
func (r *Run) newRSA(bits int) (crypto.Signer, error) {
	seed, err := r.random(64)
	if err != nil {
		return nil, err
	}
	stream := sha3.NewSHAKE256()
	_, _ = stream.Write(seed)
	e, one := big.NewInt(rsaExponent), big.NewInt(1)
	for range 8 {
		p, err := prime(stream, bits/2)
		if err != nil {
			return nil, err
		}
		q, err := prime(stream, bits/2)
		if err != nil {
			return nil, err
		}
		// Primes that are close to each other would be found.
		if distance := new(big.Int).Sub(p, q); distance.BitLen() <= bits/2-100 {
			continue
		}
		n := new(big.Int).Mul(p, q)
		phi := new(big.Int).Mul(new(big.Int).Sub(p, one), new(big.Int).Sub(q, one))
		d := new(big.Int).ModInverse(e, phi)
		if n.BitLen() != bits || d == nil || d.BitLen() <= bits/2 {
			continue
		}
		key := &rsa.PrivateKey{PublicKey: rsa.PublicKey{N: n, E: rsaExponent}, D: d, Primes: []*big.Int{p, q}}
		key.Precompute()
		if key.Validate() == nil {
			return key, nil
		}
	}
	return nil, errors.New("the random bytes make no key")
}

// smallPrimes is the product of the primes below 4096. Most numbers share a factor with it, which is found in a
// fraction of the time that another test takes.
var smallPrimes = sync.OnceValue(func() *big.Int {
	product := big.NewInt(1)
	for n := range int64(4096) {
		if p := big.NewInt(n); p.ProbablyPrime(0) {
			product.Mul(product, p)
		}
	}
	return product
})

// prime takes numbers of a stream until one is a prime p, with its two upper bits set, of
// which p-1 has no factor in common with the exponent.
func prime(stream io.Reader, bits int) (*big.Int, error) {
	b, p, rest := make([]byte, bits/8), new(big.Int), new(big.Int)
	e, one := big.NewInt(rsaExponent), big.NewInt(1)
	for range maxPrimeTries {
		if _, err := io.ReadFull(stream, b); err != nil {
			return nil, err
		}
		b[0] |= 0xc0
		b[len(b)-1] |= 1
		p.SetBytes(b)
		if rest.GCD(nil, nil, p, smallPrimes()).Cmp(one) != 0 {
			continue
		}
		if rest.Mod(rest.Sub(p, one), e).Sign() != 0 && p.ProbablyPrime(20) {
			return p, nil
		}
	}
	return nil, errors.New("the random bytes make no key")
}

// algorithmOf names the kind of a key as algorithm= does, "" for others.
func algorithmOf(public any) string {
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
