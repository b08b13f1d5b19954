package script

import (
	"fmt"

	"go.starlark.net/starlark"
	"go.starlark.net/starlarkstruct"

	"github.com/starling-operator/starling/runtime/object"
)

// maxKey is how many bytes the text of a key may have, about: an error about the key holds
// all of it several times, each byte as up to four.
const maxKey = 2 << 20

// keyGuard gives each key back that is not too large: ⟨[k]⟩[k] is k. Of a dict, which is
// given by f(**k), it looks at all keys.
type keyGuard struct{ guardValue }

// Get returns k, or why it is no key.
func (keyGuard) Get(k starlark.Value) (v starlark.Value, found bool, err error) {
	switch k := k.(type) {
	case starlark.Int, starlark.Bool:
		return k, true, nil
	case starlark.String:
		if len(k) > maxKey {
			return nil, false, keyTooLarge()
		}
	case *starlark.Dict:
		for name := range k.Entries() {
			if s, ok := name.(starlark.String); ok && len(s) > maxKey {
				return nil, false, keyTooLarge()
			}
		}
	case starlark.Bytes, starlark.Tuple, *starlarkstruct.Struct:
		if size, deep := object.TextSize(k, maxKey); deep || size > maxKey {
			return nil, false, keyTooLarge()
		}
		if err := keyFits(k); err != nil {
			return nil, false, err
		}
	}
	return k, true, nil
}

func keyTooLarge() error { return fmt.Errorf("a key has more than %d MiB as a text", maxKey>>20) }

// guardValue is what all guards that are indexed have in common.
type guardValue struct{}

// String, Type, Freeze, Truth and Hash make it a value.
func (guardValue) String() string        { return "guard" }
func (guardValue) Type() string          { return "guard" }
func (guardValue) Freeze()               {}
func (guardValue) Truth() starlark.Bool  { return starlark.True }
func (guardValue) Hash() (uint32, error) { return 0, nil }
