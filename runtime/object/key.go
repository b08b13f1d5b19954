package object

import (
	"crypto/sha256"
	"encoding/hex"
	"strings"
)

// DataKey is a key in the data of a Secret for what has this id: readable, and unique by its
// hash.
func DataKey(prefix, id string) string {
	sum := sha256.Sum256([]byte(id))
	readable := strings.Map(func(r rune) rune {
		switch {
		case r >= 'a' && r <= 'z', r >= 'A' && r <= 'Z', r >= '0' && r <= '9', r == '-', r == '_', r == '.':
			return r
		}
		return '-'
	}, id)
	if len(readable) > 100 {
		readable = readable[:100]
	}
	return prefix + readable + "." + hex.EncodeToString(sum[:6])
}
