package apply

import (
	"slices"
	"strconv"
	"strings"

	kjson "sigs.k8s.io/json"
)

// Key is a field that an item of a list is known by.
type Key struct {
	Name  string
	Value any
}

// KeysOf reads the fields in the name of an item. It runs several times for each child in each run of its
// parent, so names as the API server writes nearly all of them are read without the decoder of JSON.
func KeysOf(text string) ([]Key, error) {
	if keys := plainKeys(text); keys != nil {
		return keys, nil
	}
	var fields map[string]any
	err := kjson.UnmarshalCaseSensitivePreserveInts([]byte(text), &fields)
	keys := make([]Key, 0, len(fields))
	for name, value := range fields {
		keys = append(keys, Key{name, value})
	}
	return keys, err
}

// plainKeys reads names like {"port":80,"protocol":"TCP"}; nil for others.
func plainKeys(text string) []Key {
	rest, is := strings.CutPrefix(text, "{")
	var keys []Key
	for is {
		var k Key
		if k.Name, rest, is = plainText(rest); !is || has(keys, k.Name) || !strings.HasPrefix(rest, ":") {
			return nil
		}
		if k.Value, rest, is = plainValue(rest[1:]); !is {
			return nil
		}
		if keys = append(keys, k); rest == "}" {
			return keys
		}
		rest, is = strings.CutPrefix(rest, ",")
	}
	return nil
}

func has(keys []Key, name string) bool {
	return slices.ContainsFunc(keys, func(k Key) bool { return k.Name == name })
}

// plainText reads a text in quotes that stands for itself.
func plainText(s string) (text, rest string, is bool) {
	for i := 1; i < len(s) && s[0] == '"'; i++ {
		switch b := s[i]; {
		case b == '"':
			return s[1:i], s[i+1:], true
		case b < ' ', b > '~', b == '\\':
			return "", "", false
		}
	}
	return "", "", false
}

// plainValue reads such a text, or a number without a sign.
func plainValue(s string) (value any, rest string, is bool) {
	if text, rest, is := plainText(s); is {
		return text, rest, true
	}
	end := strings.IndexAny(s, ",}")
	if end <= 0 || s[0] < '1' || s[0] > '9' {
		return nil, "", false
	}
	n, err := strconv.ParseInt(s[:end], 10, 64)
	return n, s[end:], err == nil
}
