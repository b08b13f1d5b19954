package httpserver

import (
	"encoding/base64"
	"encoding/hex"
	"net/http/httptest"
	"net/url"
	"slices"
	"strings"
	"testing"

	"go.starlark.net/starlark"
	"go.starlark.net/syntax"

	"github.com/starling-operator/starling/builtins"
)

// Whatever is in a request: it reaches a hook only when it is signed with the
// secret, the answer is one of few, and what the hook sees of it can be looked at.
func FuzzReceive(f *testing.F) {
	const body = `{"a": [1, 2.5, "x", null, {"b": 1e400}]}`
	for _, seed := range [][4]string{
		{"/github", "X-Hub-Signature-256", "sha256=" + hex.EncodeToString(sum(body, token)), body},
		{"/github", "X-Hub-Signature-256", "sha256=00", body},
		{"/gitlab", "X-Gitlab-Token", token, "not json"},
		{"/hmac", "X-Signature", base64.StdEncoding.EncodeToString(sum("", token)), ""},
		{"/bearer?a=%zz&b=1;c", "Authorization", "Bearer " + token, strings.Repeat("[", 2000)},
		{"/public", "X", "\xff", "\xff\x00"}, {"/public/../github", "", "", ""}, {"//public", "X-Hub-Signature-256", "sha256=", "{"},
	} {
		f.Add(seed[0], seed[1], seed[2], []byte(seed[3]))
	}
	f.Fuzz(func(t *testing.T, target, name, value string, body []byte) {
		w := newWorld(t,
			&builtins.ReceiveBinding{Path: "/github", Signature: builtins.SignatureGitHub, Secret: ref("token"), MaxBytes: 4096},
			&builtins.ReceiveBinding{Path: "/gitlab", Signature: builtins.SignatureGitLab, Secret: ref("token"), MaxBytes: 4096},
			&builtins.ReceiveBinding{Path: "/hmac", Signature: builtins.SignatureHMAC, Header: "X-Signature", Secret: ref("token"), MaxBytes: 4096},
			&builtins.ReceiveBinding{Path: "/bearer", Signature: builtins.SignatureBearer, Secret: ref("token"), MaxBytes: 4096},
			&builtins.ReceiveBinding{Path: "/public", MaxBytes: 4096},
		)
		u, err := url.ParseRequestURI(target)
		if err != nil {
			t.Skip()
		}
		r := httptest.NewRequest("POST", "/", strings.NewReader(string(body)))
		r.URL = u
		r.Header.Set(name, value)
		rec := httptest.NewRecorder()
		w.s.ServeHTTP(rec, r)
		if !slices.Contains([]int{200, 401, 404, 413}, rec.Code) {
			t.Errorf("answered %d", rec.Code)
		}
		if len(w.asked) == 0 {
			return
		}
		knows := value == token || value == "Bearer "+token || strings.EqualFold(value, "bearer "+token)
		for _, text := range []string{strings.TrimPrefix(value, "sha256="), value} {
			if one, err := hex.DecodeString(text); err == nil {
				knows = knows || string(one) == string(sum(string(body), token))
			}
			if one, err := base64.StdEncoding.DecodeString(text); err == nil {
				knows = knows || string(one) == string(sum(string(body), token))
			}
		}
		if u.Path != "/public" && !knows {
			t.Errorf("%q reached a hook with %s: %q", u.Path, name, value)
		}
		ctx := builtins.NewCtx(builtins.CtxOptions{Request: w.asked[0]})
		expr := "[getattr(ctx.request, a) for a in dir(ctx.request)]"
		if _, err := starlark.EvalOptions(&syntax.FileOptions{}, &starlark.Thread{}, "x", expr, starlark.StringDict{"ctx": ctx}); err != nil {
			t.Error(err)
		}
	})
}
