package effect

import (
	"crypto/sha256"
	"encoding/hex"
)

// Lookup is one question of the functions of a controller: which rows of a watch are at a place.
type Lookup struct {
	// Watch is the binding of the watch; "" stands for the values of the module, which are [Everywhere].
	Watch string
	At    string
}

// Everywhere is the place of all rows.
const Everywhere = "*"

// AtObject is the place of the row of one object; key is its "namespace/name", or the name of a cluster-scoped one.
func AtObject(key string) string { return "/" + key }

// maxIndexed is the longest value of an index, in bytes, that a place holds as it is.
const maxIndexed = 253

// AtIndex is the place of the rows for which an index has this value. The name of an index is a Starlark
// identifier, so it is no other place.
func AtIndex(index, value string) string {
	if len(value) > maxIndexed { // it comes from an object, which may be hostile
		sum := sha256.Sum256([]byte(value))
		value = "\x00" + hex.EncodeToString(sum[:])
	}
	return index + "=" + value
}
