package apply

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	kjson "sigs.k8s.io/json"
)

func TestPlainKeys(t *testing.T) {
	for text, plain := range map[string]bool{
		`{"uid":"0f2a"}`: true, `{"port":80,"protocol":"TCP"}`: true, `{"port":9223372036854775807}`: true, `{"":""}`: true,
		`{"a":"\\n"}`: false, `{"a":"ä"}`: false, `{"a":01}`: false, `{"a":-1}`: false, `{"a":0}`: false, `{"a":1.5}`: false, `{"a":1e3}`: false,
		`{"a":true}`: false, `{"a":null}`: false, `{"a":{}}`: false, `{"a":"1","a":"2"}`: false, `{"a": 1}`: false, `{}`: false, ``: false,
		`{"a":1`: false, `{"a":1,}`: false, `{"a":1}}`: false, `{"a":1}x`: false, `{"a"}`: false, `{"a":}`: false, `{"a":"1}`: false, `{"port":9223372036854775808}`: false,
	} {
		if got := plainKeys(text) != nil; got != plain {
			t.Errorf("%s: plain %t", text, got)
		}
	}
}

func FuzzDecodeKeys(f *testing.F) {
	f.Add(`{"port":80,"protocol":"TCP"}`)
	f.Add(`{"a":"\\n","b":-1}`)
	f.Fuzz(func(t *testing.T, text string) {
		var want map[string]any
		wantErr := kjson.UnmarshalCaseSensitivePreserveInts([]byte(text), &want)
		keys, err := KeysOf(text)
		if (err == nil) != (wantErr == nil) {
			t.Fatalf("got %v, want %v", err, wantErr)
		}
		got := map[string]any{}
		for _, k := range keys {
			got[k.Name] = k.Value
		}
		if err == nil && len(got)+len(want) > 0 && !cmp.Equal(got, want) {
			t.Errorf("got %v, want %v", got, want)
		}
	})
}
