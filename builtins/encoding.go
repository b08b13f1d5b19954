package builtins

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

	"github.com/starling-operator/starling/runtime/object"
)

// Encodings of text and bytes: base64, hash.

func encodingSpecs() []Spec {
	text := []Param{required("data", TypeText)}
	plain := []Param{required("data", TypeSecretText)}
	encoded := []Param{required("text", TypeString)}
	encode := func(e *base64.Encoding) func(*call) (starlark.Value, error) {
		return func(c *call) (starlark.Value, error) {
			data := c.text("data")
			if err := checkText(e.EncodedLen(len(data))); err != nil {
				return nil, err
			}
			encoded := e.EncodeToString([]byte(data))
			if c.hidden("data") {
				return object.NewSecret(encoded), nil
			}
			return starlark.String(encoded), nil
		}
	}
	decode := func(e *base64.Encoding) func(*call) (starlark.Value, error) {
		return func(c *call) (starlark.Value, error) {
			data, err := e.DecodeString(c.str("text"))
			if err != nil {
				return nil, errors.New("the text is no base64") // it may be a secret
			}
			return starlark.String(data), nil
		}
	}
	sum := func(hash func(string) []byte) func(*call) (starlark.Value, error) {
		return func(c *call) (starlark.Value, error) {
			return starlark.String(hex.EncodeToString(hash(c.str("data")))), nil
		}
	}
	return []Spec{
		{Name: "base64.encode", Phases: PhaseAny, call: encode(base64.StdEncoding), Params: plain},
		{Name: "base64.decode", Phases: PhaseAny, call: decode(base64.StdEncoding), Params: encoded},
		{Name: "base64.url_encode", Phases: PhaseAny, call: encode(base64.RawURLEncoding), Params: plain},
		{Name: "base64.url_decode", Phases: PhaseAny, call: decode(base64.RawURLEncoding), Params: encoded},
		{Name: "hash.sha256", Phases: PhaseAny, call: sum(func(s string) []byte { h := sha256.Sum256([]byte(s)); return h[:] }),
			Params: text},
		{Name: "hash.sha1", Phases: PhaseAny, call: sum(func(s string) []byte { h := sha1.Sum([]byte(s)); return h[:] }),
			Params: text},
		{Name: "hash.md5", Phases: PhaseAny, call: sum(func(s string) []byte { h := md5.Sum([]byte(s)); return h[:] }),
			Params: text},
		{Name: "hash.hmac", Phases: PhaseAny, call: callHMAC, Params: []Param{
			required("key", TypeSecretText), required("data", TypeSecretText),
			keyword("algorithm", TypeString, `"sha256"`), keyword("encoding", TypeString, `"hex"`),
		}},
	}
}

func callHMAC(c *call) (starlark.Value, error) {
	hashes := map[string]func() hash.Hash{"sha1": sha1.New, "sha256": sha256.New, "sha384": sha512.New384, "sha512": sha512.New}
	algorithm := c.strOr("algorithm", "sha256")
	if hashes[algorithm] == nil {
		return nil, fmt.Errorf(`algorithm: %q is none; use "sha256", "sha384", "sha512" or "sha1"`, clip(algorithm))
	}
	mac := hmac.New(hashes[algorithm], []byte(c.text("key")))
	mac.Write([]byte(c.text("data")))
	sum := mac.Sum(nil)
	var text string
	switch encoding := c.strOr("encoding", "hex"); encoding {
	case "hex":
		text = hex.EncodeToString(sum)
	case "base64":
		text = base64.StdEncoding.EncodeToString(sum)
	case "bytes":
		if !c.hidden("key") && !c.hidden("data") {
			return starlark.Bytes(sum), nil
		}
		text = string(sum)
	default:
		return nil, fmt.Errorf(`encoding: %q is none; use "hex", "base64" or "bytes"`, clip(encoding))
	}
	if c.hidden("key") || c.hidden("data") {
		return object.NewSecret(text), nil
	}
	return starlark.String(text), nil
}
