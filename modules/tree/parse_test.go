package tree

import (
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestParseValues(t *testing.T) {
	tests := []struct {
		name, data string
		want       map[string]any
		err        string
	}{
		{"empty", "", map[string]any{}, ""},
		{"comment", "# nothing\n---\n# here\n", map[string]any{}, ""},
		{"null", "null", map[string]any{}, ""},
		{"one document with markers", "---\na: 1\n", map[string]any{"a": int64(1)}, ""},
		{"marker in text", "a: |\n  x\n  ---\n  y\n", map[string]any{"a": "x\n---\ny\n"}, ""},
		{"a marker at the end", "a: 1\n---\n# done\n", map[string]any{"a": int64(1)}, ""},
		{"an empty document before", "---\n---\nb: 2\n", nil, "f.yaml:2: a second document begins here: values are one"},
		{"two documents", "a: 1\n---\nb: 2\n", nil, "f.yaml:2: a second document begins here: values are one"},
		{"list", "- a\n", nil, "f.yaml: values must be a map, not a list"},
		{"text", "hello\n", nil, "f.yaml: values must be a map, not text"},
		{"number", "5\n", nil, "f.yaml: values must be a map, not a number"},
		{"key twice", "a: 1\nb: 2\na: 3\n", nil, `f.yaml:3: key "a" already set in map`},
		{"a merge that is overridden", "b: &b {x: 1, z: 2}\nw:\n  <<: *b\n  z: 3\n",
			map[string]any{"b": map[string]any{"x": int64(1), "z": int64(2)}, "w": map[string]any{"x": int64(1), "z": int64(3)}}, ""},
		{"key twice beside a merge", "b: &b {x: 1}\nw:\n  <<: *b\n  z: 3\n  z: 4\n", nil, `f.yaml:5: key "z" already set in map`},
		{"tab", "a:\n\tb: 1\n", nil, "f.yaml:2: found character that cannot start any token"},
		{"large", "a: 9223372036854775807\nb: -9223372036854775808\n", map[string]any{"a": int64(9223372036854775807), "b": int64(-9223372036854775808)}, ""},
		{"too large", "a: {b: [1, 18446744073709551615]}\n", nil, "f.yaml: a.b[1]: the integer has more than 64 bits: put it in quotes"},
		{"alias bomb", "a: &a " + strings.Repeat("x", 1<<20) + "\nb: [" + strings.Repeat("*a,", 40) + "]\n", nil, "f.yaml is too large: with its aliases it makes more than"},
		{"many values", "a: [" + strings.Repeat("{},", 100_000) + "]", nil, "f.yaml is too large: it holds more than some 100000 values"},
		{"not a number", "a: .nan\n", nil, "f.yaml: "},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			got, err := ParseValues("f.yaml", []byte(tt.data))
			if tt.err != "" {
				if err == nil || !strings.HasPrefix(err.Error(), tt.err) || strings.Contains(err.Error(), "\n") {
					t.Fatalf("got %v, want %s", err, tt.err)
				}
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			if d := cmp.Diff(tt.want, got); d != "" {
				t.Error(d)
			}
		})
	}
}

func FuzzParseValues(f *testing.F) {
	for _, s := range []string{"a: 1", "- a", "a: &x [*x]", "{a: {b: c}}", "a: .inf", "? [a]\n: b", "a: 1e999", "---\n--- a", "<<: {a: 1}", "a: 0x1F", "\xff"} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		m, err := ParseValues("f.yaml", data)
		if err == nil && m == nil || err != nil && (m != nil || !strings.HasPrefix(err.Error(), "f.yaml") || strings.Contains(err.Error(), "\n")) {
			t.Errorf("%v, %v", m, err)
		}
		if !plainData(m) {
			t.Errorf("not plain: %#v", m)
		}
	})
}

func plainData(v any) bool {
	switch v := v.(type) {
	case nil, bool, int64, float64, string:
		return true
	case []any:
		for _, x := range v {
			if !plainData(x) {
				return false
			}
		}
		return true
	case map[string]any:
		for _, x := range v {
			if !plainData(x) {
				return false
			}
		}
		return true
	}
	return false
}

// Of several mistakes the same one is told each time: a reload is not to say something
// new about a tree that stays as it is.
func TestParseValuesTellsTheSameEachTime(t *testing.T) {
	var data strings.Builder
	for i := range 9 {
		fmt.Fprintf(&data, "k%d: 18446744073709551615\n", i)
	}
	for range 20 {
		if _, err := ParseValues("f.yaml", []byte(data.String())); err == nil || !strings.HasPrefix(err.Error(), "f.yaml: k0: ") {
			t.Fatalf("got %v", err)
		}
	}
}

func TestParseFolder(t *testing.T) {
	tests := []struct {
		folder, name string
		weight       int // -1: none
		ok           bool
	}{
		{"web", "web", -1, true},
		{"020-ingress-nginx", "ingress-nginx", 20, true},
		{"0-a", "a", 0, true},
		{"3scale", "3scale", -1, true},
		{strings.Repeat("a", 53), strings.Repeat("a", 53), -1, true},
		{strings.Repeat("a", 54), strings.Repeat("a", 54), -1, false},
		{"99999999999999999999-a", "99999999999999999999-a", -1, false},
		{"020-", "020-", -1, false},
		{"a_b", "a_b", -1, false},
		{"-a", "-a", -1, false},
		{"a-", "a-", -1, false},
		{"010-global", "010-global", -1, false},
		{"ä", "ä", -1, false},
	}
	for _, tt := range tests {
		weight, name, err := ParseFolder(tt.folder)
		got := -1
		if weight != nil {
			got = *weight
		}
		if name != tt.name || got != tt.weight || (err == nil) != tt.ok {
			t.Errorf("%s: %s %d %v", tt.folder, name, got, err)
		}
	}
}

func FuzzParseFolder(f *testing.F) {
	for _, s := range []string{"020-web", "web", "0-", "-", "", "1-2-3"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, folder string) {
		weight, name, err := ParseFolder(folder)
		if err != nil && (name != folder || weight != nil) {
			t.Errorf("%q: %v %q with %v", folder, weight, name, err)
		}
		if err == nil && (len(name) > maxName || !strings.HasSuffix(folder, name) || Key(name) == "") {
			t.Errorf("%q: %q", folder, name)
		}
	})
}

func TestKey(t *testing.T) {
	for name, want := range map[string]string{"web": "web", "ingress-nginx": "ingressNginx", "a-b-c": "aBC", "3-d": "3D"} {
		if got := Key(name); got != want {
			t.Errorf("%s: got %s, want %s", name, got, want)
		}
	}
}
