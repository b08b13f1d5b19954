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
		{Name: "hash.hmac", Phases: PhaseAny, call: callHMAC, Returns: "hex digits, text in base64, or bytes",
			Doc: "The HMAC of text or bytes: what signs requests to many servers. With a secret key, or secret data, the result is secret; it may be the key of another one.",
			Params: []Param{
				{Name: "key", Type: TypeSecretText, Doc: "The key, text or bytes."},
				{Name: "data", Type: TypeSecretText, Doc: "Text, taken as UTF-8, or bytes."},
				{Name: "algorithm", Type: TypeString, Default: `"sha256"`, Keyword: true, Doc: "\"sha256\", \"sha384\", \"sha512\" or, for old protocols, \"sha1\"."},
				{Name: "encoding", Type: TypeString, Default: `"hex"`, Keyword: true, Doc: "\"hex\", \"base64\" or \"bytes\"."},
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
