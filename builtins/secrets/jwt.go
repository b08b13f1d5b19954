package secrets

import (
	"crypto/ecdsa"
	"crypto/ed25519"
	"crypto/rsa"
	_ "crypto/sha256" // of signatures
	_ "crypto/sha512"
	"encoding/asn1"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"math/big"
	"slices"
	"strings"
	"time"

	"github.com/golang-jwt/jwt/v5"
	"go.starlark.net/starlark"
	kjson "sigs.k8s.io/json"

	"github.com/starling-operator/starling/builtins/spec"
	"github.com/starling-operator/starling/runtime/object"
	"github.com/starling-operator/starling/runtime/pki"
)

// Signed tokens: jwt, of RFC 7519 with signatures of RFC 7518. The key says which algorithms there are, never the
// token: one of a public key cannot be forged with that key taken for a shared secret.

const (
	// maxToken is the largest token.
	maxToken = 64 << 10
	// minSharedKey is the shortest key of HMAC: RFC 7518 wants as much as the hash has.
	minSharedKey = 32
)

// tokenKey signs and verifies.
type tokenKey struct {
	algorithms []string // the first one is the default
	private    any      // nil: it is a public one
	public     any
}

func jwtSpecs() []spec.Spec {
	return []spec.Spec{
		spec.New("jwt.sign", spec.InRun|spec.InReview, spec.Reads, callSignToken, spec.Required("claims", spec.Dict),
			spec.Required("key", spec.SecretText), spec.Keyword("ttl", spec.Duration, `"1h"`),
			spec.Keyword("algorithm", spec.String, "None"), spec.Keyword("headers", spec.Dict, "{}")),
		spec.New("jwt.verify", spec.InRun|spec.InReview, spec.Reads, callVerifyToken, spec.Required("token", spec.SecretText),
			spec.Required("key", spec.SecretText), spec.Keyword("audience", spec.String, "None"),
			spec.Keyword("issuer", spec.String, "None"), spec.Keyword("leeway", spec.Duration, `"1m"`)),
	}
}

func callSignToken(c *spec.Call) (starlark.Value, error) {
	key, err := readTokenKey(c.Text("key"))
	if err != nil {
		return nil, fmt.Errorf("key: %w", err)
	}
	if key.private == nil {
		return nil, errors.New("key: it is a public one, which signs nothing")
	}
	algorithm := c.StrOr("algorithm", key.algorithms[0])
	if !slices.Contains(key.algorithms, algorithm) {
		return nil, fmt.Errorf("algorithm: %q does not go with this key; use %s", spec.Clip(algorithm), strings.Join(key.algorithms, ", "))
	}
	claims, err := sentDict(c, "claims")
	if err != nil {
		return nil, err
	}
	now := c.Now.Unix()
	if claims["iat"] == nil {
		claims["iat"] = now
	}
	if claims["exp"] == nil {
		claims["exp"] = now + int64(c.DurationOr("ttl", time.Hour)/time.Second)
	}
	headers, err := sentDict(c, "headers")
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
		text, err := spec.EncodeJSON(part)
		if err != nil {
			return nil, err
		}
		parts[i] = base64.RawURLEncoding.EncodeToString([]byte(text))
	}
	signed := parts[0] + "." + parts[1]
	if len(signed) > maxToken {
		return nil, fmt.Errorf("the token would be larger than %d KiB", maxToken>>10)
	}
	signature, err := signToken(jwt.GetSigningMethod(algorithm), key.private, signed)
	if err != nil {
		return nil, errors.New("key: it cannot sign with " + algorithm)
	}
	return object.NewSecret(signed + "." + base64.RawURLEncoding.EncodeToString(signature)), nil
}

// sentDict returns a dict as it goes out of the program, with the texts of secrets; never nil.
func sentDict(c *spec.Call, name string) (map[string]any, error) {
	v := c.Arg(name)
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

func callVerifyToken(c *spec.Call) (starlark.Value, error) {
	key, err := readTokenKey(c.Text("key"))
	if err != nil {
		return nil, fmt.Errorf("key: %w", err)
	}
	claims := verifiedClaims(c.Text("token"), key)
	if claims == nil || !goodClaims(c, claims) {
		return starlark.None, nil
	}
	return object.Copy(object.FromPlain(claims)) // the caller may change it
}

// verifiedClaims returns the claims of a token that the key has signed, else nil. Before the signature is checked,
// nothing of a token becomes a value but its alg and crit: anybody may send one.
func verifiedClaims(token string, key tokenKey) (claims map[string]any) {
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
	var header struct {
		Algorithm string          `json:"alg"`
		Critical  json.RawMessage `json:"crit"`
	}
	err := kjson.UnmarshalCaseSensitivePreserveInts(decoded[0], &header)
	if err != nil || !slices.Contains(key.algorithms, header.Algorithm) || header.Critical != nil {
		return nil // with crit it asks for what is not known here
	}
	if jwt.GetSigningMethod(header.Algorithm).Verify(parts[0]+"."+parts[1], decoded[2], key.public) != nil {
		return nil
	}
	if kjson.UnmarshalCaseSensitivePreserveInts(decoded[1], &claims) != nil {
		return nil
	}
	return claims
}

// goodClaims reports whether the claims are good now, and for whom the call says.
func goodClaims(c *spec.Call, claims map[string]any) bool {
	now, leeway := float64(c.Now.Unix()), c.DurationOr("leeway", time.Minute).Seconds()
	end, begin := timeClaim(claims, "exp", math.Inf(1)), timeClaim(claims, "nbf", math.Inf(-1))
	if good := now < end+leeway && now >= begin-leeway; !good { // with NaN neither is so
		return false
	}
	if issuer := c.Arg("issuer"); issuer != nil && claims["iss"] != c.Str("issuer") {
		return false
	}
	if c.Arg("audience") == nil {
		return true
	}
	list, _ := claims["aud"].([]any)
	return slices.Contains(append(list, claims["aud"]), any(c.Str("audience")))
}

// timeClaim returns a claim that is a time, in seconds, or what it is when it is missing; NaN: it is no time.
func timeClaim(claims map[string]any, name string, missing float64) float64 {
	at, there := claims[name]
	switch at := at.(type) {
	case int64:
		return float64(at)
	case float64:
		return at
	}
	if there {
		return math.NaN()
	}
	return missing
}

// readTokenKey reads a key; its text is in no error.
func readTokenKey(text string) (key tokenKey, err error) {
	if !strings.Contains(text, "-----BEGIN ") {
		if form := formOfKey(text); form != "" { // with a public key as shared secret everybody could sign
			return key, fmt.Errorf("it is %s and no shared key: write a public or private key in PEM, -----BEGIN …", form)
		}
		if len(text) < minSharedKey {
			return key, fmt.Errorf("a shared key has at least %d bytes, this one has %d", minSharedKey, len(text))
		}
		return tokenKey{algorithms: []string{"HS256", "HS384", "HS512"}, private: []byte(text), public: []byte(text)}, nil
	}
	public, signer, err := pki.ParsePublicKey(text)
	if err != nil {
		return key, err
	}
	if key.public = public; signer != nil {
		key.private = signer
	}
	switch public := public.(type) {
	case *rsa.PublicKey:
		key.algorithms = []string{"RS256", "RS384", "RS512"}
	case *ecdsa.PublicKey:
		curve := public.Curve.Params().Name
		algorithm := map[string]string{"P-256": "ES256", "P-384": "ES384", "P-521": "ES512"}[curve]
		if algorithm == "" {
			return key, fmt.Errorf("tokens have no signatures of the curve %s", curve)
		}
		key.algorithms = []string{algorithm}
	case ed25519.PublicKey:
		key.algorithms = []string{"EdDSA"}
	default:
		return key, errors.New("it is of a kind that signs no tokens; use RSA, ECDSA or Ed25519")
	}
	return key, nil
}

// signToken signs without a random source: the same token has the same signature. Those that the library makes with
// keys of ECDSA are random.
func signToken(method jwt.SigningMethod, key any, signed string) ([]byte, error) {
	private, isECDSA := key.(*ecdsa.PrivateKey)
	if !isECDSA {
		return method.Sign(signed, key)
	}
	of := method.(*jwt.SigningMethodECDSA)
	sum := of.Hash.New()
	sum.Write([]byte(signed))
	signature, err := private.Sign(nil, sum.Sum(nil), of.Hash)
	if err != nil {
		return nil, err
	}
	var pair struct{ R, S *big.Int }
	if _, err := asn1.Unmarshal(signature, &pair); err != nil {
		return nil, err
	}
	out := make([]byte, 2*of.KeySize)
	pair.R.FillBytes(out[:of.KeySize])
	pair.S.FillBytes(out[of.KeySize:])
	return out, nil
}
