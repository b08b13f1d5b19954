package data

import (
	"crypto/hmac"
	"crypto/md5"
	"crypto/sha1"
	"crypto/sha256"
	"crypto/sha512"
	"encoding/base64"
	"encoding/hex"
	"errors"
	"fmt"
	"hash"

	"go.starlark.net/starlark"

	"github.com/starling-operator/starling/builtins/spec"
	"github.com/starling-operator/starling/runtime/object"
)

// Encodings of text and bytes: base64, hash.

func encodingSpecs() []spec.Spec {
	text := []spec.Param{spec.Required("data", spec.Text)}
	plain := []spec.Param{spec.Required("data", spec.SecretText)}
	encoded := []spec.Param{spec.Required("text", spec.String)}
	encode := func(e *base64.Encoding) spec.Func {
		return func(c *spec.Call) (starlark.Value, error) {
			data := c.Text("data")
			if err := spec.CheckText(e.EncodedLen(len(data))); err != nil {
				return nil, err
			}
			encoded := e.EncodeToString([]byte(data))
			if c.Hidden("data") {
				return object.NewSecret(encoded), nil
			}
			return starlark.String(encoded), nil
		}
	}
	decode := func(e *base64.Encoding) spec.Func {
		return func(c *spec.Call) (starlark.Value, error) {
			data, err := e.DecodeString(c.Str("text"))
			if err != nil {
				return nil, errors.New("the text is no base64") // it may be a secret
			}
			return starlark.String(data), nil
		}
	}
	sum := func(newHash func() hash.Hash) spec.Func {
		return func(c *spec.Call) (starlark.Value, error) {
			h := newHash()
			h.Write([]byte(c.Str("data")))
			return starlark.String(hex.EncodeToString(h.Sum(nil))), nil
		}
	}
	return []spec.Spec{
		spec.Pure("base64.encode", encode(base64.StdEncoding), plain...),
		spec.Pure("base64.decode", decode(base64.StdEncoding), encoded...),
		spec.Pure("base64.url_encode", encode(base64.RawURLEncoding), plain...),
		spec.Pure("base64.url_decode", decode(base64.RawURLEncoding), encoded...),
		spec.Pure("hash.sha256", sum(sha256.New), text...),
		spec.Pure("hash.sha1", sum(sha1.New), text...),
		spec.Pure("hash.md5", sum(md5.New), text...),
		spec.Pure("hash.hmac", callHMAC, spec.Required("key", spec.SecretText), spec.Required("data", spec.SecretText),
			spec.Keyword("algorithm", spec.String, `"sha256"`), spec.Keyword("encoding", spec.String, `"hex"`)),
	}
}

func callHMAC(c *spec.Call) (starlark.Value, error) {
	hashes := map[string]func() hash.Hash{"sha1": sha1.New, "sha256": sha256.New, "sha384": sha512.New384, "sha512": sha512.New}
	algorithm := c.StrOr("algorithm", "sha256")
	if hashes[algorithm] == nil {
		return nil, fmt.Errorf(`algorithm: %q is none; use "sha256", "sha384", "sha512" or "sha1"`, spec.Clip(algorithm))
	}
	mac := hmac.New(hashes[algorithm], []byte(c.Text("key")))
	mac.Write([]byte(c.Text("data")))
	sum := mac.Sum(nil)
	var text string
	switch encoding := c.StrOr("encoding", "hex"); encoding {
	case "hex":
		text = hex.EncodeToString(sum)
	case "base64":
		text = base64.StdEncoding.EncodeToString(sum)
	case "bytes":
		if !c.Hidden("key") && !c.Hidden("data") {
			return starlark.Bytes(sum), nil
		}
		text = string(sum)
	default:
		return nil, fmt.Errorf(`encoding: %q is none; use "hex", "base64" or "bytes"`, spec.Clip(encoding))
	}
	if c.Hidden("key") || c.Hidden("data") {
		return object.NewSecret(text), nil
	}
	return starlark.String(text), nil
}
