package object

import (
	"crypto/subtle"
	"errors"
	"fmt"

	"go.starlark.net/starlark"
	"go.starlark.net/syntax"
)

// Secret is a text that shows itself to nobody: it prints as ***, what is added to it
// is secret too, and it has no length, characters or methods. [ToPlainAt], by which
// data goes into effects, gives its text; all other ways out of Starlark refuse it.
type Secret struct{ text string }

var (
	_ starlark.HasBinary  = (*Secret)(nil)
	_ starlark.Comparable = (*Secret)(nil)
)

const (
	// MinSecret is the length from which a text is known again as a secret where it
	// stands alone, MinSecretInside from which inside a longer text: shorter ones cannot
	// be told from words.
	MinSecret, MinSecretInside = 4, 6
)

// NewSecret returns a secret of a text.
func NewSecret(text string) *Secret { return &Secret{text} }

// Reveal returns the text.
func (s *Secret) Reveal() string { return s.text }

// String returns "***", whatever the text is.
func (s *Secret) String() string { return "***" }

// GoString is String, for %#v.
func (s *Secret) GoString() string { return s.String() }

func (s *Secret) Type() string { return "secret" }

// Freeze does nothing: a secret never changes.
func (s *Secret) Freeze() {}

// Truth is false for an empty text.
func (s *Secret) Truth() starlark.Bool { return s.text != "" }

// Hash fails: a secret is no key.
func (s *Secret) Hash() (uint32, error) { return 0, errors.New("unhashable type: secret") }

// Binary adds texts and secrets, on either side.
func (s *Secret) Binary(op syntax.Token, y starlark.Value, side starlark.Side) (starlark.Value, error) {
	var other string
	switch y := y.(type) {
	case starlark.String:
		other = string(y)
	case *Secret:
		other = y.text
	default:
		return nil, nil
	}
	if op != syntax.PLUS {
		return nil, nil
	}
	if len(s.text)+len(other) > MaxBytes {
		return nil, fmt.Errorf("the secret would be larger than %d MiB", MaxBytes>>20)
	}
	if side == starlark.Left {
		return NewSecret(s.text + other), nil
	}
	return NewSecret(other + s.text), nil
}

// CompareSameType knows == and != alone: an order would give the text away.
func (s *Secret) CompareSameType(op syntax.Token, y starlark.Value, _ int) (bool, error) {
	same := subtle.ConstantTimeCompare([]byte(s.text), []byte(y.(*Secret).text)) == 1
	switch op {
	case syntax.EQL:
		return same, nil
	case syntax.NEQ:
		return !same, nil
	}
	return false, fmt.Errorf("secret %s secret not implemented", op)
}
