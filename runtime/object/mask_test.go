package object

import (
	"encoding/base64"
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestMask(t *testing.T) {
	long := ""
	for i := range 100 {
		long += fmt.Sprintf("%08d", i*i*7919)
	}
	lines := "first line of a key\nsecond \"line\" of it\n"
	m := &Mask{}
	m.Object(map[string]any{"kind": "Secret", "data": map[string]any{"a": "aHVudGVyMg==", "n": "c2l4c2l4Cg==", "t": "dHJ1ZQ=="}, "stringData": map[string]any{"pin": "1234", "long": long,
		"odd": "a b&c=d/e", "quoted": `quo"ted`, "json": `{"auths": {"r": {"password": "inner-one", "username": "inner-two"}}}`}})
	m.Object(map[string]any{"kind": "ConfigMap", "data": map[string]any{"a": "open sesame"}})
	m.Leaves(map[string]any{"name": "web-login", "in": []any{lines, "overlap-one", "one-more"}})
	for _, tt := range []struct{ in, want string }{
		{"", ""}, {"hunter2", "***"}, {"is hunter2, aHVudGVyMg==!", "is ***, ***!"}, {"sixsix and c2l4c2l4Cg==", "*** and ***"},
		{"1234", "***"}, {"12345", "12345"}, {"true", "true"}, {"open sesame of web-login", "open sesame of web-login"},
		{"<" + long + ">", "<***>"}, {"<" + long[64:200] + ">", "<***" + long[192:200] + ">"},
		{base64.StdEncoding.EncodeToString([]byte(long)), "***"},
		{"second \"line\" of it", "***"}, {fmt.Sprintf("%q", lines), `"***\n"`},
		{"Basic " + base64.StdEncoding.EncodeToString([]byte("user:hunter2")), "Basic ***"}, {"x/" + base64.URLEncoding.EncodeToString([]byte("?>?>hunter2")), "***"},
		{"a b&c=d/e", "***"}, {"p=a+b%26c%3Dd%2Fe&", "p=***&"}, {`{"p": "a b\u0026c=d/e"}`, `{"p": "***"}`}, {`\\"quo\\\"ted\\"`, `\\"***\\"`}, {"inner-one", "***"}, {"inner-two", "inner-two"},
		{"key: -----BEGIN PRIVATE KEY-----\n  abc\n  -----END PRIVATE KEY-----\nb: c", "key: ***\nb: c"},
		{`"` + long[:60] + `…" is no name`, `"***…" is no name`}, {long[:150] + "…", "***…"}, {"hunte…", "hunte…"}, {"hunter…", "***…"}, {"hunger…", "hunger…"},
		{"overlap-one-more", "***"}, {"hunter2hunter2", "***"}, {"x hunter", "x hunter"}, {"-----BEGIN EC PRIVATE KEY-----", "***"},
	} {
		if got := m.Text(tt.in); got != tt.want {
			t.Errorf("%q: %q, want %q", tt.in, got, tt.want)
		}
	}
	if got := m.Key("x.hunter2.1234") + m.Key("1234"); got != "x.***.12341234" {
		t.Error(got)
	}
	data := map[string]any{"a": []any{"x", "by hunter2", int64(1234), int64(5)}, "b": map[string]any{"kind": "Secret", "data": map[string]any{"k": "unknown"}}}
	want := map[string]any{"a": []any{"x", "by ***", "***", int64(5)}, "b": map[string]any{"kind": "Secret", "data": map[string]any{"k": "***"}}}
	if diff := cmp.Diff(want, m.Plain(data)); diff != "" {
		t.Error(diff)
	}
	if diff := cmp.Diff([][]string{{"a", "1"}}, m.Marks(data)); diff != "" {
		t.Error(diff)
	}
	if diff := cmp.Diff([][]string{{}}, m.Marks("hunter2")); diff != "" {
		t.Error(diff)
	}
}

// Too many secrets hide all.
func TestMaskOfTooMuch(t *testing.T) {
	m := &Mask{}
	for i := range 9 << 14 {
		m.Add(fmt.Sprintf("%064d", i))
	}
	if got := m.Text("any text"); got != tooMuch || m.known != nil {
		t.Error(got)
	}
}

// BenchmarkMask hides 10,000 secrets that all begin the same in a text as large as a run may log.
func BenchmarkMask(b *testing.B) {
	m := &Mask{}
	for i := range 10_000 {
		m.Add(fmt.Sprintf("aaaaaaaaaaaa%0*d", 1+i%57, i))
	}
	text := strings.Repeat("a", 1<<20)
	b.SetBytes(1 << 20)
	for b.Loop() {
		m.Text(text)
	}
}
