package secrets

import (
	"encoding/base64"
	"errors"
	"fmt"

	"go.starlark.net/starlark"
	"golang.org/x/crypto/bcrypt"
	//lint:ignore SA1019 bcrypt is made of this cipher; nothing is encrypted with it here
	"golang.org/x/crypto/blowfish"

	"github.com/starling-operator/starling/builtins/spec"
)

// Hashes of passwords: bcrypt. The library of Go takes its salt from the system, so that a run that is played again
// would make another hash: the salt comes from the run here, and the library checks.

const (
	minBcryptCost, maxBcryptCost = 4, 12
	// maxBcryptText is what bcrypt looks at; it would cut the rest.
	maxBcryptText = 72
	// bcryptSum is how much of the last block a hash shows.
	bcryptSum = 23
)

// bcryptText is the alphabet of hashes.
var bcryptText = base64.NewEncoding("./ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789").WithPadding(base64.NoPadding)

func bcryptSpecs() []spec.Spec {
	password := spec.Required("password", spec.SecretText)
	return []spec.Spec{
		spec.New("bcrypt.hash", spec.InRun|spec.InReview, spec.Reads, callBcryptHash, password,
			spec.Optional("cost", spec.Int, "10").Between(minBcryptCost, maxBcryptCost)),
		spec.New("bcrypt.verify", spec.InRun|spec.InReview, spec.Reads, callBcryptVerify, password,
			spec.Required("hash", spec.SecretText)),
	}
}

func passwordOf(c *spec.Call) ([]byte, error) {
	password := c.Text("password")
	if n := len(password); n < 1 || n > maxBcryptText {
		return nil, fmt.Errorf("password: it has %d bytes, bcrypt takes 1 to %d", n, maxBcryptText)
	}
	return []byte(password), nil
}

func callBcryptHash(c *spec.Call) (starlark.Value, error) {
	password, err := passwordOf(c)
	if err != nil {
		return nil, err
	}
	salt, err := Random(c.Random, 16)
	if err != nil {
		return nil, err
	}
	hash, err := bcryptHash(password, salt, c.IntOr("cost", bcrypt.DefaultCost))
	return starlark.String(hash), err
}

// bcryptHash is the function of Provos and Mazières: a cipher whose key is set up 2^cost
// times, of password and salt in turn, encrypts a text 64 times.
func bcryptHash(password, salt []byte, cost int) (string, error) {
	key := append(append([]byte{}, password...), 0)
	cipher, err := blowfish.NewSaltedCipher(key, salt)
	if err != nil {
		return "", errors.New("the password cannot be hashed")
	}
	for range uint64(1) << cost {
		blowfish.ExpandKey(key, cipher)
		blowfish.ExpandKey(salt, cipher)
	}
	text := []byte("OrpheanBeholderScryDoubt")
	for at := 0; at < len(text); at += blowfish.BlockSize {
		for range 64 {
			cipher.Encrypt(text[at:], text[at:])
		}
	}
	return fmt.Sprintf("$2a$%02d$%s%s", cost, bcryptText.EncodeToString(salt), bcryptText.EncodeToString(text[:bcryptSum])), nil
}

func callBcryptVerify(c *spec.Call) (starlark.Value, error) {
	password, err := passwordOf(c)
	if err != nil {
		return nil, err
	}
	hash := []byte(c.Text("hash"))
	cost, err := bcrypt.Cost(hash)
	if err != nil || cost > maxBcryptCost {
		return starlark.False, nil
	}
	return starlark.Bool(bcrypt.CompareHashAndPassword(hash, password) == nil), nil
}
