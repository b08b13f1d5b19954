// Package secrets is the builtins that make and check keys, certificates, tokens, hashes of passwords and random
// values.
package secrets

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"math"
	"math/bits"
	"slices"

	"go.starlark.net/starlark"

	"github.com/starling-operator/starling/builtins/spec"
	"github.com/starling-operator/starling/runtime/object"
)

// Random values. They are inputs of a run, as the time is: one that is played again gets the same ones.

const (
	maxRandom    = 64 << 10
	lettersDigit = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789"
)

// Specs are the builtins of this package.
func Specs() []spec.Spec {
	reveal := spec.Pure("reveal", callReveal, spec.Required("s", spec.Secret))
	return slices.Concat(randomSpecs(), tlsSpecs(), jwtSpecs(), bcryptSpecs(), []spec.Spec{reveal})
}

func callReveal(c *spec.Call) (starlark.Value, error) {
	return starlark.String(c.Arg("s").(*object.Secret).Reveal()), nil
}

func randomSpecs() []spec.Spec {
	n := spec.Required("n", spec.Int).Between(1, maxRandom)
	return []spec.Spec{
		spec.New("random.string", spec.InRun|spec.InReview, spec.Reads, callRandomString, n,
			spec.Optional("alphabet", spec.String, "None")),
		spec.New("random.int", spec.InRun|spec.InReview, spec.Reads, callRandomInt, spec.Required("min", spec.Int),
			spec.Required("max", spec.Int)),
		spec.New("random.uuid", spec.InRun|spec.InReview, spec.Reads, callRandomUUID),
		spec.New("random.bytes", spec.InRun|spec.InReview, spec.Reads, callRandomBytes, n),
	}
}

// Random reads n bytes.
func Random(source io.Reader, n int) ([]byte, error) {
	out := make([]byte, n)
	if _, err := io.ReadFull(source, out); err != nil {
		return nil, fmt.Errorf("no random bytes: %w", err)
	}
	return out, nil
}

// below returns a number from 0 to n-1, each as likely as any other. n is not 0.
func below(source io.Reader, n uint64) (uint64, error) {
	if n == 1 {
		return 0, nil
	}
	mask := uint64(math.MaxUint64) >> bits.LeadingZeros64(n-1)
	for {
		b, err := Random(source, 8)
		if err != nil {
			return 0, err
		}
		if v := binary.LittleEndian.Uint64(b) & mask; v < n {
			return v, nil
		}
	}
}

func callRandomString(c *spec.Call) (starlark.Value, error) {
	alphabet := []rune(c.StrOr("alphabet", lettersDigit))
	if len(alphabet) < 2 || len(alphabet) > 1000 {
		return nil, fmt.Errorf("alphabet: has %d characters, want 2 to 1000", len(alphabet))
	}
	seen := map[rune]bool{}
	for _, r := range alphabet {
		if seen[r] {
			return nil, fmt.Errorf("alphabet: %q is there twice", r)
		}
		seen[r] = true
	}
	text, err := Letters(c.Random, c.IntOr("n", 0), alphabet)
	return starlark.String(text), err
}

// Letters picks n letters of an alphabet, each as likely as any other.
func Letters(source io.Reader, n int, alphabet []rune) (string, error) {
	out := make([]rune, n)
	for i := range out {
		at, err := below(source, uint64(len(alphabet)))
		if err != nil {
			return "", err
		}
		out[i] = alphabet[at]
	}
	return string(out), nil
}

func callRandomInt(c *spec.Call) (starlark.Value, error) {
	low, high := c.IntOr("min", 0), c.IntOr("max", 0)
	if low > high {
		return nil, errors.New("max: must not be less than min")
	}
	at, err := below(c.Random, uint64(int64(high)-int64(low)+1)) // of 32 bits each
	if err != nil {
		return nil, err
	}
	return starlark.MakeInt64(int64(low) + int64(at)), nil
}

func callRandomUUID(c *spec.Call) (starlark.Value, error) {
	b, err := Random(c.Random, 16)
	if err != nil {
		return nil, err
	}
	b[6], b[8] = b[6]&0x0f|0x40, b[8]&0x3f|0x80 // version 4, variant of RFC 9562
	return starlark.String(fmt.Sprintf("%x-%x-%x-%x-%x", b[:4], b[4:6], b[6:8], b[8:10], b[10:])), nil
}

func callRandomBytes(c *spec.Call) (starlark.Value, error) {
	b, err := Random(c.Random, c.IntOr("n", 0))
	return starlark.Bytes(b), err
}
