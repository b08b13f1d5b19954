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

// CamelKey is the name by which values and config call a module: its name in camel case,
// "ingressNginx" for "ingress-nginx".
func CamelKey(name string) string {
	var b strings.Builder
	for i, part := range strings.FieldsFunc(name, func(r rune) bool { return r == '-' }) {
		if i > 0 {
			part = strings.ToUpper(part[:1]) + part[1:]
		}
		b.WriteString(part)
	}
	return b.String()
}
