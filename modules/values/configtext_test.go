package values

import (
	"errors"
	"reflect"
	"strings"
	"testing"

	"github.com/starling-operator/starling/runtime/effect"
)

func TestEditConfig(t *testing.T) {
	const text = "# of the team\nreplicas: 2 # two are enough\ntls:\n  # by hand\n  mode: manual\nhosts:\n- a\nempty:\n"
	set := func(path string, v, was any) *effect.ConfigChange {
		return &effect.ConfigChange{Key: "web", Path: strings.Split(path, "."), Value: v, Was: was}
	}
	drop := func(path string, was any) *effect.ConfigChange {
		c := set(path, nil, was)
		c.Remove = true
		return c
	}
	for name, tt := range map[string]struct {
		text   string
		change *effect.ConfigChange
		want   string
		fails  string
	}{
		"a value":             {text, set("replicas", int64(3), int64(2)), "replicas: 3 # two are enough\n", ""},
		"below":               {text, set("tls.mode", "auto", "manual"), "tls:\n  # by hand\n  mode: auto\n", ""},
		"a new one":           {text, set("password", "1e3", nil), "password: \"1e3\"\n", ""},
		"a new map":           {text, set("a.b", []any{"yes", 1.5}, nil), "a:\n  b:\n    - \"yes\"\n    - 1.5\n", ""},
		"where nothing is":    {text, set("empty.x", true, nil), "empty:\n  x: true\n", ""},
		"no section":          {"", set("a", "b", nil), "a: b\n", ""},
		"as one line":         {"{a: 1}", set("b", int64(2), nil), "{a: 1, b: 2}\n", ""},
		"it is so already":    {text, set("replicas", int64(2), nil), text, ""},
		"removed":             {text, drop("tls.mode", "manual"), "tls: {}\n", ""},
		"nothing to remove":   {text, drop("none", nil), text, ""},
		"gone meanwhile":      {text, drop("none", "x"), text, ""},
		"changed meanwhile":   {text, set("replicas", int64(3), int64(1)), "", "replicas in section web: it is another one"},
		"set meanwhile":       {text, set("replicas", int64(3), nil), "", "replicas in section web: it is another one"},
		"through a list":      {text, set("hosts.x", "a", nil), "", "no plain map"},
		"through a text":      {text, set("replicas.x", "a", nil), "", "no plain map"},
		"an anchor":           {"a: &x {b: 1}\nc: *x\n", set("a.b", int64(2), int64(1)), "", "no plain map"},
		"below an alias":      {"a: &x {b: 1}\nc: *x\n", set("c.b", int64(2), int64(1)), "", "no plain map"},
		"no YAML":             {"a: [", set("b", "x", nil), "", "section web is not valid YAML"},
		"no map":              {"[]", set("b", "x", nil), "", "section web must be a map"},
		"a key with a dot":    {"a.b: 1\n", &effect.ConfigChange{Key: "web", Path: []string{"a.b"}, Value: int64(2), Was: int64(1)}, "a.b: 2\n", ""},
		"a text of lines":     {"a: b\n", set("c", "x\ny\n", nil), "c: |\n  x\n  y\n", ""},
		"a key like a bool":   {"a: b\n", set("on", "x", nil), "\"on\": x\n", ""},
		"a date stays a text": {"a: b\n", set("c", "2026-01-01", nil), "c: \"2026-01-01\"\n", ""},
	} {
		got, err := EditConfig(tt.text, tt.change)
		if tt.fails != "" {
			if err == nil || !strings.Contains(err.Error(), tt.fails) {
				t.Errorf("%s: %v", name, err)
			}
			if strings.Contains(name, "meanwhile") && !errors.Is(err, ErrConfigMoved) {
				t.Errorf("%s: %v is no conflict", name, err)
			}
			continue
		}
		if err != nil || !strings.Contains(got, tt.want) {
			t.Errorf("%s: %v\n%s", name, err, got)
		}
		if again, err := EditConfig(got, tt.change); err != nil || again != got {
			t.Errorf("%s: made again it is %v\n%s", name, err, again)
		}
		if tt.text == text && got != text && !strings.Contains(got, "# of the team\n") {
			t.Errorf("%s: a comment is gone:\n%s", name, got)
		}
	}
}

func TestMergePatch(t *testing.T) {
	from := object{"a": int64(1), "b": object{"c": int64(1), "d": int64(2)}, "e": object{"f": int64(1)}, "g": "x"}
	to := object{"a": int64(1), "b": object{"c": int64(1)}, "e": "text", "n": object{"o": int64(1)}}
	if got, want := MergePatch(from, to), (object{"b": object{"d": nil}, "e": "text", "g": nil, "n": object{"o": int64(1)}}); !reflect.DeepEqual(got, want) {
		t.Errorf("got %v", got)
	}
}
