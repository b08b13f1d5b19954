package data

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"strings"

	libjson "go.starlark.net/lib/json"
	"go.starlark.net/starlark"

	"github.com/starling-operator/starling/builtins/spec"
	"github.com/starling-operator/starling/runtime/object"
)

// JSON. Decoding is done by go.starlark.net's library, which recurses as deep as its
// input is: what is too deep is refused before.

func jsonSpecs() []spec.Spec {
	indent := spec.Keyword("indent", spec.String, `"\t"`)
	prefix := spec.Keyword("prefix", spec.String, `""`)
	value := spec.Required("x", spec.Any)
	return []spec.Spec{
		spec.Pure("json.encode", callJSONEncode, value),
		spec.Pure("json.encode_indent", callJSONEncodeIndent, value, prefix, indent),
		spec.Pure("json.decode", callJSONDecode, spec.Required("x", spec.String),
			spec.Optional("default", spec.Any, "None")),
		spec.Pure("json.indent", callJSONIndent, spec.Required("x", spec.String), prefix, indent),
	}
}

// library calls a function of go.starlark.net's own libraries and takes its name
// off the error, since ours is put there.
func library(t *starlark.Thread, v starlark.Value, args ...starlark.Value) (starlark.Value, error) {
	fn := v.(*starlark.Builtin)
	out, err := fn.CallInternal(t, args, nil)
	if err != nil {
		return nil, errors.New(strings.TrimPrefix(err.Error(), fn.Name()+": "))
	}
	return out, nil
}

func callJSONEncode(c *spec.Call) (starlark.Value, error) {
	tree, err := object.ToTree(c.Arg("x"))
	if err != nil {
		return nil, err
	}
	text, err := spec.EncodeJSON(tree)
	return starlark.String(text), err
}

func callJSONEncodeIndent(c *spec.Call) (starlark.Value, error) {
	text, err := callJSONEncode(c)
	if err != nil {
		return nil, err
	}
	return indented(c, string(text.(starlark.String)))
}

func callJSONIndent(c *spec.Call) (starlark.Value, error) { return indented(c, c.Str("x")) }

// indented lays out JSON text. How large the result gets is counted first: depth
// times lines may be far more than the text.
func indented(c *spec.Call, text string) (starlark.Value, error) {
	indent, prefix := c.StrOr("indent", "\t"), c.Str("prefix")
	if len(indent) > 16 || len(prefix) > 16 {
		return nil, errors.New("indent and prefix must not be longer than 16 characters")
	}
	size, depth := len(text), 0
	for _, b := range structure(text) {
		switch b {
		case '{', '[':
			depth++
		case '}', ']':
			depth--
		}
		if b != ':' {
			size += 1 + len(prefix) + max(depth, 0)*len(indent)
		}
		if err := spec.CheckText(size); err != nil {
			return nil, err
		}
	}
	var out bytes.Buffer
	if err := json.Indent(&out, []byte(text), prefix, indent); err != nil {
		return nil, err
	}
	return starlark.String(out.String()), nil
}

// maxNesting is how deep JSON text may be nested.
const maxNesting = 1000

func callJSONDecode(c *spec.Call) (starlark.Value, error) {
	var v starlark.Value
	bytes, err := jsonBytes(c.Str("x"))
	if err == nil {
		if err := c.Room(bytes); err != nil {
			return nil, err
		}
		v, err = library(c.Thread, libjson.Module.Members["decode"], c.Arg("x"))
	}
	if err != nil && c.Arg("default") != nil {
		return c.Arg("default"), nil
	}
	return v, err
}

// DecodeFrozenJSON is json.decode, with its limits, of text from outside.
func DecodeFrozenJSON(t *starlark.Thread, text string) (starlark.Value, error) {
	if _, err := jsonBytes(text); err != nil {
		return nil, err
	}
	v, err := library(t, libjson.Module.Members["decode"], starlark.String(text))
	if err == nil {
		v.Freeze()
	}
	return v, err
}

// jsonBytes is how many bytes of memory JSON text takes once it is read, if that is not too much.
func jsonBytes(text string) (int, error) {
	if err := spec.CheckText(len(text)); err != nil {
		return 0, err
	}
	n := jsonCounts{keys: make([]int, 1, 64)}
	last := 0
	for i, b := range structure(text) {
		if err := n.take(b); err != nil {
			return 0, err
		}
		if longNumber(text[last:i]) {
			return 0, fmt.Errorf("a number with more than %d digits", maxDigits)
		}
		last = i + 1
	}
	if longNumber(text[last:]) {
		return 0, fmt.Errorf("a number with more than %d digits", maxDigits)
	}
	return n.bytes, nil
}

const (
	// maxHolders is how many lists and dicts JSON text may hold: each takes some hundred bytes, whatever is in it.
	maxHolders = 1_000_000
	// maxElements is how many elements they may have together.
	maxElements = 4_000_000
	// listBytes and dictBytes are what a list and a dict take, the latter with dictKeys keys; keyCost is for each further
	// key. elementCost is for a value, and for its place in a list, which is made anew as it grows.
	listBytes, dictBytes, dictKeys, elementCost = 48, 528, 8, 72
	// maxDigits is how many digits a number may have: reading it takes time that grows with the square.
	maxDigits = 10_000
)

// jsonCounts is what JSON text makes, as its structural characters say.
type jsonCounts struct {
	keys              []int // of the holders that are open; the first one is none
	holders, elements int
	bytes             int // of memory
}

// take counts one structural character.
func (n *jsonCounts) take(b byte) error {
	switch b {
	case '{', '[':
		n.keys = append(n.keys, 0)
		n.holders++
		if n.bytes += listBytes + elementCost; b == '{' {
			n.bytes += dictBytes - listBytes
		}
	case '}', ']':
		if len(n.keys) > 1 { // else the library says what is wrong
			n.keys = n.keys[:len(n.keys)-1]
		}
	case ',':
		n.elements++
		n.bytes += elementCost
	case ':':
		if n.keys[len(n.keys)-1]++; n.keys[len(n.keys)-1] > dictKeys {
			n.bytes += keyCost
		}
	}
	switch {
	case len(n.keys) > maxNesting+1:
		return fmt.Errorf("nested deeper than %d", maxNesting)
	case n.holders > maxHolders:
		return fmt.Errorf("more than %d lists and dicts", maxHolders)
	case n.elements > maxElements:
		return fmt.Errorf("more than %d elements", maxElements)
	}
	return nil
}

// longNumber tells a number that has too many digits from any other text between two structural characters.
func longNumber(s string) bool {
	if len(s) <= maxDigits {
		return false
	}
	s = strings.TrimLeft(s, " \t\r\n")
	return len(s) > maxDigits && s[0] != '"' && strings.TrimLeft(s[:maxDigits], "-0123456789.eE+") == ""
}

// structure yields the structural characters of JSON text, those outside strings.
func structure(text string) func(yield func(int, byte) bool) {
	return func(yield func(int, byte) bool) {
		inString := false
		for i := 0; i < len(text); i++ {
			switch b := text[i]; {
			case inString && b == '\\':
				i++
			case b == '"':
				inString = !inString
			case inString:
			case b == '{', b == '}', b == '[', b == ']', b == ',', b == ':':
				if !yield(i, b) {
					return
				}
			}
		}
	}
}
