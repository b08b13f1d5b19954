package secrets_test

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"fmt"
	"testing"

	"go.starlark.net/starlark"
)

// Claims that are signed, but odd, are read to the letter, or the token is refused.
func TestOddTokens(t *testing.T) {
	const key = "0123456789abcdef0123456789abcdef"
	sign := func(header, payload string) starlark.String {
		signed := base64.RawURLEncoding.EncodeToString([]byte(header)) + "." + base64.RawURLEncoding.EncodeToString([]byte(payload))
		mac := hmac.New(sha256.New, []byte(key))
		mac.Write([]byte(signed))
		return starlark.String(signed + "." + base64.RawURLEncoding.EncodeToString(mac.Sum(nil)))
	}
	const header = `{"alg":"HS256"}`
	now := testNow.Unix()
	for _, tt := range []struct{ header, payload, want string }{
		{header, `{}`, `{}`},
		{header, `{"n":9007199254740993,"f":1.0,"l":[1,{"m":2}]}`, `{"f": 1.0, "l": [1, {"m": 2}], "n": 9007199254740993}`},
		{header, fmt.Sprintf(`{"exp":%d.5}`, now+1), fmt.Sprintf(`{"exp": %s}`, starlark.Float(float64(now+1)+0.5))},
		{header, `{"exp":9223372036854775807}`, `{"exp": 9223372036854775807}`},
		{header, `{"exp":1e300}`, `{"exp": 1e+300}`},
		{header, `{"exp":0}`, `None`},
		{header, `{"exp":null}`, `None`},
		{header, `{"exp":1e999}`, `None`},
		{header, `{"nbf":1e300}`, `None`},
		{header, `{"nbf":1e999}`, `None`},
		{header, `{"nbf":true}`, `None`},
		{header, `null`, `None`},
		{header, `[]`, `None`},
		{header, `{} {}`, `None`},
		{header, `{}}`, `None`},
		{header, `{"x":1e999}`, `None`},
		{header, `{`, `None`},
		{`{"alg":"HS256","crit":["exp"]}`, `{}`, `None`},
		{`{"alg":"HS256","crit":null}`, `{}`, `None`},
		{`{"alg":"HS256","Crit":["exp"]}`, `{}`, `{}`},
		{`{"alg":"HS256","x":1e999}`, `{}`, `{}`},
		{`{"ALG":"HS256"}`, `{}`, `None`},
		{`{"alg":"HS384"}`, `{}`, `None`},
		{`{"alg":"none"}`, `{}`, `None`},
		{`{"alg":1}`, `{}`, `None`},
		{`{}`, `{}`, `None`},
		{`null`, `{}`, `None`},
	} {
		got, err := call1(tlsRun(1, testNow), "jwt.verify", sign(tt.header, tt.payload), starlark.String(key))
		if err != nil || got.String() != tt.want {
			t.Errorf("%s %s: %v, %v, want %s", tt.header, tt.payload, got, err, tt.want)
		}
	}
}
