package record

import (
	"bytes"
	"crypto/aes"
	"crypto/cipher"
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"errors"
	"fmt"
)

// KeySize is the size of a [Key], in bytes.
const KeySize = 32

// Key seals records. Its source is never kept beside them.
type Key struct {
	raw  []byte
	seal cipher.AEAD
	name []byte
	id   string
}

// NewKey makes a key of random bytes.
func NewKey() (*Key, error) {
	raw := make([]byte, KeySize)
	rand.Read(raw) // never fails
	return ParseKey(raw)
}

// ParseKey reads a key: 32 bytes, or these in base64, as they stand in the Secret.
func ParseKey(data []byte) (*Key, error) {
	raw := data
	if len(raw) != KeySize {
		text := bytes.TrimSpace(data)
		raw = make([]byte, base64.StdEncoding.DecodedLen(len(text)))
		n, err := base64.StdEncoding.Decode(raw, text)
		if err != nil || n != KeySize {
			return nil, fmt.Errorf("this is no key of records: it has %d bytes, want %d, or these in base64", len(data), KeySize)
		}
		raw = raw[:n]
	}
	k := &Key{raw: bytes.Clone(raw)}
	block, err := aes.NewCipher(k.derive("seal"))
	if err != nil {
		return nil, err
	}
	if k.seal, err = cipher.NewGCMWithRandomNonce(block); err != nil {
		return nil, err
	}
	k.name = k.derive("name")
	k.id = hex.EncodeToString(k.derive("id")[:4])
	return k, nil
}

// ID tells keys apart, and nothing of them.
func (k *Key) ID() string { return k.id }

// Bytes returns what [ParseKey] reads.
func (k *Key) Bytes() []byte { return bytes.Clone(k.raw) }

func (k *Key) derive(what string) []byte {
	mac := hmac.New(sha256.New, k.raw)
	mac.Write([]byte("starling records: " + what))
	return mac.Sum(nil)
}

// Name is what a part of a record is called: a keyed hash of what it holds, so that
// the name tells nothing of it to those without the key.
type Name [16]byte

// String returns the name of the part's file.
func (n Name) String() string { return hex.EncodeToString(n[:]) }

// nameOf names what holds this data, and these parts.
func (k *Key) nameOf(plain []byte, refs []Name) Name {
	mac := hmac.New(sha256.New, k.name)
	for _, r := range refs {
		mac.Write(r[:])
	}
	fmt.Fprintf(mac, "/%d/", len(refs))
	mac.Write(plain)
	return Name(mac.Sum(nil)[:16])
}

// sealed encrypts plain, and begins with a random nonce. about is not secret, and must be the same to open it.
func (k *Key) sealed(plain, about []byte) []byte { return k.seal.Seal(nil, nil, plain, about) }

// open is the reverse of sealed.
func (k *Key) open(data, about []byte) ([]byte, error) {
	plain, err := k.seal.Open(nil, nil, data, about)
	if err != nil {
		return nil, errors.New("it is broken, or sealed with another key")
	}
	return plain, nil
}
