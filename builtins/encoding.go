package builtins

import (
	"crypto/md5"
	"crypto/sha1"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"errors"

	"go.starlark.net/starlark"

	"github.com/starling-operator/starling/runtime/object"
)

// Encodings of text and bytes: base64, hash.

func encodingSpecs() []Spec {
	text := []Param{{Name: "data", Type: TypeText, Doc: "Text, taken as UTF-8, or bytes."}}
	plain := []Param{{Name: "data", Type: TypeSecretText, Doc: "Text, taken as UTF-8, or bytes. The result of a secret is secret."}}
	encoded := []Param{{Name: "text", Type: TypeString, Doc: "The text; line ends in it are skipped."}}
	encode := func(e *base64.Encoding) func(*call) (starlark.Value, error) {
		return func(c *call) (starlark.Value, error) {
			data := c.text("data")
			if err := checkText(e.EncodedLen(len(data))); err != nil {
				return nil, err
			}
			encoded := e.EncodeToString([]byte(data))
			if _, hidden := c.arg("data").(*object.Secret); hidden {
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
		{Name: "base64.encode", Phases: PhaseAny, Params: plain, Returns: "the text", call: encode(base64.StdEncoding),
			Doc: "Encodes text or bytes as standard base64, as in Secrets."},
		{Name: "base64.decode", Phases: PhaseAny, Params: encoded, Returns: "the decoded text", call: decode(base64.StdEncoding),
			Doc: "Decodes standard base64. The result may hold any bytes."},
		{Name: "base64.url_encode", Phases: PhaseAny, Params: plain, Returns: "the text", call: encode(base64.RawURLEncoding),
			Doc: "Encodes text or bytes as base64 for URLs, without padding."},
		{Name: "base64.url_decode", Phases: PhaseAny, Params: encoded, Returns: "the decoded text", call: decode(base64.RawURLEncoding),
			Doc: "Decodes base64 for URLs, without padding."},
		{Name: "hash.sha256", Phases: PhaseAny, Params: text, Returns: "64 hex digits",
			Doc:  "The SHA-256 of text or bytes.",
			call: sum(func(s string) []byte { h := sha256.Sum256([]byte(s)); return h[:] })},
		{Name: "hash.sha1", Phases: PhaseAny, Params: text, Returns: "40 hex digits",
			Doc:  "The SHA-1 of text or bytes: for names and old protocols, not against forgery.",
			call: sum(func(s string) []byte { h := sha1.Sum([]byte(s)); return h[:] })},
		{Name: "hash.md5", Phases: PhaseAny, Params: text, Returns: "32 hex digits",
			Doc:  "The MD5 of text or bytes: for names and old protocols, not against forgery.",
			call: sum(func(s string) []byte { h := md5.Sum([]byte(s)); return h[:] })},
	}
}
