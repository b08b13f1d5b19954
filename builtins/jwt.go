package builtins

import (
	"crypto"
	"crypto/ecdsa"
	"crypto/ed25519"
	"crypto/hmac"
	"crypto/rsa"
	_ "crypto/sha256" // of signatures
	_ "crypto/sha512"
	"crypto/subtle"
	"crypto/x509"
	"encoding/asn1"
	"encoding/base64"
	"encoding/json"
	"encoding/pem"
	"errors"
	"fmt"
	"math"
	"math/big"
	"slices"
	"strings"
	"time"

	"go.starlark.net/starlark"

	"github.com/starling-operator/starling/runtime/object"
)

// Signed tokens: jwt, of RFC 7519 with signatures of RFC 7518. The key says which
// algorithms there are, never the token: one of a public key cannot be forged with that
// key taken for a shared secret.

const (
	// maxToken is the largest token.
	maxToken = 64 << 10
	// minSharedKey is the shortest key of HMAC: RFC 7518 wants as much as the hash has.
	minSharedKey = 32
)

// tokenKey signs and verifies; sign is nil for a public key.
type tokenKey struct {
	algorithms []string // the first one is the default
	sign       func(hash crypto.Hash, data []byte) ([]byte, error)
	verify     func(hash crypto.Hash, data, signature []byte) bool
}

// tokenHashes are the hashes of all algorithms; EdDSA has its own.
var tokenHashes = map[string]crypto.Hash{
	"HS256": crypto.SHA256, "HS384": crypto.SHA384, "HS512": crypto.SHA512,
	"RS256": crypto.SHA256, "RS384": crypto.SHA384, "RS512": crypto.SHA512,
	"ES256": crypto.SHA256, "ES384": crypto.SHA384, "ES512": crypto.SHA512,
	"EdDSA": 0,
}

func jwtSpecs() []Spec {
	return []Spec{
		{Name: "jwt.sign", Phases: PhaseRun | PhaseReview, Effect: EffectRead, call: callSignToken, Params: []Param{
			required("claims", TypeDict), required("key", TypeSecretText), keyword("ttl", TypeDuration, `"1h"`),
			keyword("algorithm", TypeString, "None"), keyword("headers", TypeDict, "{}"),
		}},
		{Name: "jwt.verify", Phases: PhaseRun | PhaseReview, Effect: EffectRead, call: callVerifyToken,
			Params: []Param{
				required("token", TypeSecretText), required("key", TypeSecretText),
				keyword("audience", TypeString, "None"), keyword("issuer", TypeString, "None"),
				keyword("leeway", TypeDuration, `"1m"`),
			}},
	}
}

func callSignToken(c *call) (starlark.Value, error) {
	key, err := readTokenKey(c.text("key"))
	if err != nil {
		return nil, fmt.Errorf("key: %w", err)
	}
	if key.sign == nil {
		return nil, errors.New("key: it is a public one, which signs nothing")
	}
	algorithm := c.strOr("algorithm", key.algorithms[0])
	if !slices.Contains(key.algorithms, algorithm) {
		return nil, fmt.Errorf("algorithm: %q does not go with this key; use %s", clip(algorithm), strings.Join(key.algorithms, ", "))
	}
	claims, err := c.sentDict("claims")
	if err != nil {
		return nil, err
	}
	now := c.run.Now.Unix()
	if claims["iat"] == nil {
		claims["iat"] = now
	}
	if claims["exp"] == nil {
		claims["exp"] = now + int64(c.durationOr("ttl", time.Hour)/time.Second)
	}
	headers, err := c.sentDict("headers")
	if err != nil {
		return nil, err
	}
	if headers["alg"] != nil {
		return nil, errors.New("headers: alg is said with algorithm=")
	}
	headers["alg"] = algorithm
	if headers["typ"] == nil {
		headers["typ"] = "JWT"
	}
	var parts [2]string
	for i, part := range []map[string]any{headers, claims} {
		text, err := encodeJSON(part)
		if err != nil {
			return nil, err
		}
		parts[i] = base64.RawURLEncoding.EncodeToString([]byte(text))
	}
	signed := parts[0] + "." + parts[1]
	if len(signed) > maxToken {
		return nil, fmt.Errorf("the token would be larger than %d KiB", maxToken>>10)
	}
	signature, err := key.sign(tokenHashes[algorithm], []byte(signed))
	if err != nil {
		return nil, errors.New("key: it cannot sign with " + algorithm)
	}
	return object.NewSecret(signed + "." + base64.RawURLEncoding.EncodeToString(signature)), nil
}

// sentDict returns a dict as it goes out of the program, with the texts of secrets; never nil.
func (c *call) sentDict(name string) (map[string]any, error) {
	v := c.arg(name)
	if v == nil {
		return map[string]any{}, nil
	}
	plain, err := object.ToPlainAt(v, []string{name})
	if err != nil {
		return nil, err
	}
	m, ok := plain.(map[string]any)
	if !ok {
		return nil, fmt.Errorf("%s: got %s, want dict", name, v.Type())
	}
	return m, nil
}

func callVerifyToken(c *call) (starlark.Value, error) {
	key, err := readTokenKey(c.text("key"))
	if err != nil {
		return nil, fmt.Errorf("key: %w", err)
	}
	claims := verifiedClaims(c.text("token"), key)
	if claims == nil || !c.goodClaims(claims) {
		return starlark.None, nil
	}
	return object.Copy(object.FromPlain(claims)) // the caller may change it
}

// verifiedClaims returns the claims of a token that the key has signed, else nil.
func verifiedClaims(token string, key tokenKey) map[string]any {
	parts := strings.Split(token, ".")
	if len(token) > maxToken || len(parts) != 3 || strings.ContainsAny(token, "\r\n") { // line ends are skipped in base64
		return nil
	}
	var decoded [3][]byte
	for i, part := range parts {
		var err error
		if decoded[i], err = base64.RawURLEncoding.Strict().DecodeString(part); err != nil {
			return nil
		}
	}
	var headers struct {
		Algorithm string          `json:"alg"`
		Critical  json.RawMessage `json:"crit"`
	}
	if json.Unmarshal(decoded[0], &headers) != nil || !slices.Contains(key.algorithms, headers.Algorithm) || headers.Critical != nil {
		return nil // with crit it asks for what is not known here
	}
	if !key.verify(tokenHashes[headers.Algorithm], []byte(parts[0]+"."+parts[1]), decoded[2]) {
		return nil
	}
	decoder := json.NewDecoder(strings.NewReader(string(decoded[1])))
	decoder.UseNumber()
	var claims map[string]any
	if decoder.Decode(&claims) != nil || decoder.More() {
		return nil
	}
	plain, _ := numbers(claims).(map[string]any)
	return plain
}

// numbers has numbers of JSON as whole ones, where they are.
func numbers(v any) any {
	switch v := v.(type) {
	case json.Number:
		if i, err := v.Int64(); err == nil {
			return i
		}
		f, err := v.Float64()
		if err != nil {
			return nil // out of range
		}
		return f
	case map[string]any:
		for k, e := range v {
			v[k] = numbers(e)
		}
	case []any:
		for i, e := range v {
			v[i] = numbers(e)
		}
	}
	return v
}

// goodClaims reports whether the claims are good now, and for whom the call says.
func (c *call) goodClaims(claims map[string]any) bool {
	now, leeway := float64(c.run.Now.Unix()), c.durationOr("leeway", time.Minute).Seconds()
	for _, name := range []string{"exp", "nbf"} {
		v, there := claims[name]
		if !there {
			continue
		}
		at := math.NaN()
		switch v := v.(type) {
		case int64:
			at = float64(v)
		case float64:
			at = v
		}
		good := now < at+leeway
		if name == "nbf" {
			good = now >= at-leeway
		}
		if !good { // NaN is never good
			return false
		}
	}
	if issuer := c.arg("issuer"); issuer != nil && claims["iss"] != c.str("issuer") {
		return false
	}
	if c.arg("audience") == nil {
		return true
	}
	list, _ := claims["aud"].([]any)
	return slices.Contains(append(list, claims["aud"]), any(c.str("audience")))
}

// readTokenKey reads a key; its text is in no error.
func readTokenKey(text string) (tokenKey, error) {
	if !strings.Contains(text, "-----BEGIN ") {
		if form := formOfKey(text); form != "" { // with a public key as shared secret everybody could sign
			return tokenKey{}, fmt.Errorf("it is %s and no shared key: write a public or private key in PEM, -----BEGIN …", form)
		}
		return sharedKey(text)
	}
	public, err := parsePublic(text)
	if err != nil {
		return tokenKey{}, err
	}
	if public != nil {
		return publicKey(public)
	}
	signer, err := parseKey(text)
	if err != nil {
		return tokenKey{}, err
	}
	key, err := publicKey(signer.Public())
	if err != nil {
		return tokenKey{}, err
	}
	key.sign = func(hash crypto.Hash, data []byte) ([]byte, error) { return signToken(signer, hash, data) }
	return key, nil
}

func sharedKey(text string) (tokenKey, error) {
	if len(text) < minSharedKey {
		return tokenKey{}, fmt.Errorf("a shared key has at least %d bytes, this one has %d", minSharedKey, len(text))
	}
	sign := func(hash crypto.Hash, data []byte) ([]byte, error) {
		mac := hmac.New(hash.New, []byte(text))
		mac.Write(data)
		return mac.Sum(nil), nil
	}
	return tokenKey{
		algorithms: []string{"HS256", "HS384", "HS512"},
		sign:       sign,
		verify: func(hash crypto.Hash, data, signature []byte) bool {
			want, _ := sign(hash, data)
			return subtle.ConstantTimeCompare(want, signature) == 1
		},
	}, nil
}

// publicKey is a key that verifies.
func publicKey(public any) (tokenKey, error) {
	switch public := public.(type) {
	case *rsa.PublicKey:
		return tokenKey{algorithms: []string{"RS256", "RS384", "RS512"}, verify: func(hash crypto.Hash, data, signature []byte) bool {
			return rsa.VerifyPKCS1v15(public, hash, sum(hash, data), signature) == nil
		}}, nil
	case *ecdsa.PublicKey:
		algorithm := map[string]string{"P-256": "ES256", "P-384": "ES384", "P-521": "ES512"}[public.Curve.Params().Name]
		if algorithm == "" {
			return tokenKey{}, fmt.Errorf("tokens have no signatures of the curve %s", public.Curve.Params().Name)
		}
		return tokenKey{algorithms: []string{algorithm}, verify: func(hash crypto.Hash, data, signature []byte) bool {
			n := curveBytes(public)
			if len(signature) != 2*n {
				return false
			}
			r, s := new(big.Int).SetBytes(signature[:n]), new(big.Int).SetBytes(signature[n:])
			return ecdsa.Verify(public, sum(hash, data), r, s)
		}}, nil
	case ed25519.PublicKey:
		return tokenKey{algorithms: []string{"EdDSA"}, verify: func(_ crypto.Hash, data, signature []byte) bool {
			return ed25519.Verify(public, data, signature)
		}}, nil
	}
	return tokenKey{}, errors.New("it is of a kind that signs no tokens; use RSA, ECDSA or Ed25519")
}

// signToken signs without a random source: the same token has the same signature.
func signToken(signer crypto.Signer, hash crypto.Hash, data []byte) ([]byte, error) {
	if hash == 0 {
		return signer.Sign(nil, data, crypto.Hash(0))
	}
	signature, err := signer.Sign(nil, sum(hash, data), hash)
	public, isECDSA := signer.Public().(*ecdsa.PublicKey)
	if err != nil || !isECDSA {
		return signature, err
	}
	var pair struct{ R, S *big.Int }
	if _, err := asn1.Unmarshal(signature, &pair); err != nil {
		return nil, err
	}
	n := curveBytes(public)
	out := make([]byte, 2*n)
	pair.R.FillBytes(out[:n])
	pair.S.FillBytes(out[n:])
	return out, nil
}

func sum(hash crypto.Hash, data []byte) []byte {
	h := hash.New()
	h.Write(data)
	return h.Sum(nil)
}

func curveBytes(public *ecdsa.PublicKey) int { return (public.Curve.Params().BitSize + 7) / 8 }

// parsePublic reads a public key or a certificate in PEM; nil: the text holds none first.
func parsePublic(text string) (any, error) {
	if len(text) > maxPEM {
		return nil, fmt.Errorf("the text is larger than %d MiB", maxPEM>>20)
	}
	block, _ := pem.Decode([]byte(text))
	switch {
	case block == nil:
		return nil, errors.New("the text holds no key in PEM that can be read")
	case block.Type == "CERTIFICATE":
		certs, err := parseCerts(text)
		if err != nil {
			return nil, err
		}
		return certs[0].PublicKey, nil
	case block.Type == "PUBLIC KEY":
		public, err := x509.ParsePKIXPublicKey(block.Bytes)
		if err != nil {
			return nil, errors.New("the public key is broken")
		}
		if key, ok := public.(*rsa.PublicKey); ok && key.N.BitLen() > maxRSA {
			return nil, fmt.Errorf("the RSA key has %d bits, more than %d", key.N.BitLen(), maxRSA)
		}
		return public, nil
	}
	return nil, nil
}
