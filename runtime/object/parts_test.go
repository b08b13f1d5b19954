package object

import (
	"encoding/base64"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"
)

func TestPartsHide(t *testing.T) {
	encode := func(text string) string { return base64.StdEncoding.EncodeToString([]byte(text)) }
	secret := map[string]any{
		"apiVersion": "v1", "kind": "Secret", "type": "Opaque", "immutable": true,
		"metadata": map[string]any{"name": "db", "namespace": "web", "annotations": map[string]any{
			"last": `{"kind": "Secret", "data": {"old": "` + encode("yesterday's word") + `"}}`, "note": "denied"}},
		"data":       map[string]any{"password": encode("correct horse"), "pin": encode("4711"), "one": encode("x"), "blank": ""},
		"stringData": map[string]any{"key": "say \"hi\"\nto <them>", "on": "true", "number": int64(123456)},
		"strData":    map[string]any{"typo": "somewhere else"},
	}
	for text, want := range map[string]string{
		`namespaces "web" not found`:                          `namespaces "web" not found`,
		`admission webhook "a.b" denied the request: Opaque`:  `admission webhook "a.b" denied the request: Opaque`,
		`illegal base64 data at input byte 7`:                 `illegal base64 data at input byte 7`,
		`it is "correct horse", really`:                       `it is "***", really`,
		`it begins with correct h… and ends in orrect horse.`: `it begins with ***… and ends in ***.`,
		`it is ` + encode("correct horse"):                    `it is ***`,
		`all: ` + encode(`{"password": "correct horse"}`):     `all: ***`,
		`all: x` + encode(`{"password": "correct horse"}`):    `all: ***`,
		`old: yesterday's word`:                               `old: ***`,
		`the pin is 4711, not 47110`:                          `the pin is ***, not 47110`,
		`it must not be x or example`:                         `it must not be *** or example`,
		`key: "say \"hi\"\nto <them>"`:                        `key: "***"`,
		`key: "say \"hi\"\nto \u003cthem\u003e"`:              `key: "***"`,
		`key: say+%22hi%22%0Ato+%3Cthem%3E`:                   `key: ***`,
		`on: true, number: 123456`:                            `on: ***, number: ***`,
		`typo: somewhere else`:                                `typo: ***`,
		`bytes 99, 111, 114, 114, 101, 99, 116.`:              `bytes ***.`,
		`[]byte{0x63, 0x6f, 0x72, 0x72, 0x65, 0x63, 0x74}`:    `[]byte{***}`,
		`invalid character 'c' looking for beginning`:         `invalid character looking for beginning`,
		`invalid character '\'' in literal`:                   `invalid character in literal`,
	} {
		var p Parts
		p.Secret(secret)
		if got := p.Hide(text); got != want {
			t.Errorf("%s\n got %s\nwant %s", text, got, want)
		}
	}
	var p Parts
	p.Secret([]any{map[string]any{"op": "add", "path": "/data/a", "value": encode("by a patch")}})
	if got := p.Hide("add /data/a: by a patch"); got != "add /data/a: ***" {
		t.Error(got)
	}
}

// Whatever a text quotes, no piece of the length of a part is left of a value.
func TestPartsAreFound(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	letters := []rune("abcXYZ019 \"\\\n<é…=/+")
	random := func(n int) string {
		var b strings.Builder
		for range n {
			b.WriteRune(letters[r.IntN(len(letters))])
		}
		return b.String()
	}
	for range 2000 {
		value := random(1 + r.IntN(60))
		var p Parts
		p.Secret(map[string]any{"data": map[string]any{"a": base64.StdEncoding.EncodeToString([]byte(value))}})
		from := r.IntN(len(value))
		piece := value[from : from+r.IntN(len(value)-from+1)]
		form := []string{piece, fmt.Sprintf("%q", value), inJSON(value, true), base64.StdEncoding.EncodeToString([]byte("{" + value + "}")), base64.RawURLEncoding.EncodeToString([]byte(value))}[r.IntN(5)]
		got := p.Hide(random(r.IntN(9)) + " " + form + " " + random(r.IntN(9)))
		for _, known := range p.known {
			for i := 0; i+MinSecretInside <= len(known); i++ {
				if strings.Contains(got, known[i:i+MinSecretInside]) {
					t.Fatalf("%q of %q is left in %q", known[i:i+MinSecretInside], value, got)
				}
			}
		}
	}
}

func BenchmarkPartsOfMuch(b *testing.B) {
	for b.Loop() {
		var p Parts
		p.Secret(map[string]any{"data": map[string]any{"a": strings.Repeat("MIIabcdefghijkl+", 60_000)}})
		if got := p.Hide(strings.Repeat("admission webhook denied: ", 50)); strings.Contains(got, Hidden) {
			b.Fatal(got)
		}
	}
}
