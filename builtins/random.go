package builtins

import (
	"crypto/rand"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"math"
	"math/bits"

	"go.starlark.net/starlark"

	"github.com/starling-operator/starling/builtins/spec"
)

// Random values. They are inputs of a run, as the time is: a run that is played
// again gets the same ones from Run.Random.

const (
	maxRandom    = 64 << 10
	lettersDigit = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789"
)

func randomSpecs() []spec.Spec {
	n := spec.Required("n", spec.Int)
	return []spec.Spec{
		declare("random.string", spec.InRun|spec.InReview, spec.Reads, callRandomString, n,
			spec.Optional("alphabet", spec.String, "None")),
		declare("random.int", spec.InRun|spec.InReview, spec.Reads, callRandomInt, spec.Required("min", spec.Int),
			spec.Required("max", spec.Int)),
		declare("random.uuid", spec.InRun|spec.InReview, spec.Reads, callRandomUUID),
		declare("random.bytes", spec.InRun|spec.InReview, spec.Reads, callRandomBytes, n),
	}
}

// source returns where the run has its random bytes from.
func (r *Run) source() io.Reader {
	if r.Random == nil {
		return rand.Reader
	}
	return r.Random
}

// random reads n bytes.
func (r *Run) random(n int) ([]byte, error) {
	out := make([]byte, n)
	if _, err := io.ReadFull(r.source(), out); err != nil {
		return nil, fmt.Errorf("no random bytes: %w", err)
	}
	return out, nil
}

// below returns a number from 0 to n-1, each as likely as any other. n is not 0.
func (r *Run) below(n uint64) (uint64, error) {
	if n == 1 {
		return 0, nil
	}
	mask := uint64(math.MaxUint64) >> bits.LeadingZeros64(n-1)
	for {
		b, err := r.random(8)
		if err != nil {
			return 0, err
		}
		if v := binary.LittleEndian.Uint64(b) & mask; v < n {
			return v, nil
		}
	}
}

func (c *call) amount() (int, error) {
	n := c.IntOr("n", 0)
	if n < 1 || n > maxRandom {
		return 0, fmt.Errorf("n: %d is not between 1 and %d", n, maxRandom)
	}
	return n, nil
}

func callRandomString(c *call) (starlark.Value, error) {
	n, err := c.amount()
	if err != nil {
		return nil, err
	}
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
	out := make([]rune, n)
	for i := range out {
		at, err := c.run.below(uint64(len(alphabet)))
		if err != nil {
			return nil, err
		}
		out[i] = alphabet[at]
	}
	return starlark.String(out), nil
}

func callRandomInt(c *call) (starlark.Value, error) {
	low, high := c.IntOr("min", 0), c.IntOr("max", 0)
	if low > high {
		return nil, errors.New("max: must not be less than min")
	}
	at, err := c.run.below(uint64(int64(high) - int64(low) + 1)) // of 32 bits each
	if err != nil {
		return nil, err
	}
	return starlark.MakeInt64(int64(low) + int64(at)), nil
}

func callRandomUUID(c *call) (starlark.Value, error) {
	b, err := c.run.random(16)
	if err != nil {
		return nil, err
	}
	b[6], b[8] = b[6]&0x0f|0x40, b[8]&0x3f|0x80 // version 4, variant of RFC 9562
	return starlark.String(fmt.Sprintf("%x-%x-%x-%x-%x", b[:4], b[4:6], b[6:8], b[8:10], b[10:])), nil
}

func callRandomBytes(c *call) (starlark.Value, error) {
	n, err := c.amount()
	if err != nil {
		return nil, err
	}
	b, err := c.run.random(n)
	return starlark.Bytes(b), err
}
