package values

import (
	"errors"
	"slices"
	"strconv"
	"strings"
	"testing"
)

func TestLineOf(t *testing.T) {
	const text = `web:
  hosts:
  - name: a
  - {name: b}
  "a.b": 1
  base: &base
    x: 1
  other: {<<: *base}
data:
  # a comment
  web: |-

    # a comment
    a:
      b: 1
  db: "a: 1"
`
	for _, c := range []struct {
		above, path string
		want        int
	}{
		{"web", "hosts[1].name", 4},
		{"web", "hosts[0].name", 3},
		{"web", `["a.b"]`, 5},
		{"web", "other.x", 7},
		{"web", "other.y.z", 8}, // the closest above
		{"web", "hosts[7].name", 2},
		{"", "web.base.x", 7},
		{"", "", 0},
		{"db", "x", 0},
		{"web", "[", 1},
		{"data", "web.a.b", 15},
		{"data", "web.a.c", 14},
		{"data", "web.c", 11},
		{"data", "db.a", 16},
		{"web", "hosts[99999999999999999999].x", 2},
	} {
		if got := LineOf([]byte(text), c.above, c.path); got != c.want {
			t.Errorf("%s, %s: got %d, want %d", c.above, c.path, got, c.want)
		}
	}
	if got := LineOf([]byte("a: [\n"), "", "a"); got != 0 {
		t.Errorf("a text that is broken: got %d", got)
	}
}

func TestSchemaErrorsHaveLines(t *testing.T) {
	for _, c := range []struct {
		schema string
		want   []int
	}{
		{"propertes:\n  a: {}\n", []int{1}},
		{"type: object\nproperties:\n  web:\n    type: objct\n", []int{4}},
		{"type: object\nproperties:\n  a:\n    type: x\n  l:\n    type: array\n    items:\n      type: integer\n      minimum: many\n", []int{4, 9}},
		{"type: object\nproperties:\n  a:\n    title: A\n    $ref: x\n", []int{5}},
		{"type: object\nproperties:\n  m:\n    type: object\n    patternProperties:\n      ^a:\n        type: text\n", []int{7}},
		{"type: object\nproperties:\n  l:\n    type: string\n    pattern: (\n", []int{5}},
		{"type: object\nproperties:\n  m:\n    type: object\n    additionalProperties:\n      type: text\n", []int{6}},
		{"type: object\nproperties:\n  a.b:\n    type: integer\n    default: x\n", []int{5}},
		{"title: x\ntype: string\n", []int{2}},
	} {
		_, err := ParseSchema("openapi/values.yaml", []byte(c.schema), nil)
		var wrong *SchemaError
		if !errors.As(err, &wrong) {
			t.Errorf("%s: %v", c.schema, err)
			continue
		}
		var lines []int
		for _, m := range wrong.Mistakes {
			lines = append(lines, m.Line)
		}
		if !slices.Equal(lines, c.want) {
			t.Errorf("%s: %v: got lines %v, want %v", c.schema, wrong, lines, c.want)
		}
	}
}

// A mistake in a file that a schema refers to, or extends, has the place there.
func TestMistakesInOtherFilesHaveTheirPlace(t *testing.T) {
	files := map[string]string{
		"config-values.yaml": "type: object\nproperties:\n  host:\n    type: txt\n  port:\n    $ref: ports.yaml#/port\n",
		"ports.yaml": "port:\n  type: integer\n  minimum: low\nrange:\n  type: object\n  properties:\n    from: {$ref: \"#/port\"}\n" +
			"    to:\n      $ref: gone.yaml#/x\nrule:\n  type: integer\n  x-kubernetes-validations:\n  - rule: self > foo\n" +
			"a/b:\n  type: string\n  default: 5\ncircle: {$ref: values.yaml#/circle}\n",
	}
	load := func(name string) ([]byte, error) {
		data, there := files[name]
		if !there {
			return nil, errors.New("no such file")
		}
		return []byte(data), nil
	}
	for _, c := range []struct {
		name, schema string
		want         []string
	}{
		{"a keyword", "properties:\n  p: {$ref: ports.yaml#/port}\n", []string{"openapi/ports.yaml:3"}},
		{"below a list", "properties:\n  l:\n    type: array\n    items:\n      $ref: ports.yaml#/port\n", []string{"openapi/ports.yaml:3"}},
		{"one that refers on, and a file that is not there", "properties:\n  r: {$ref: ports.yaml#/range}\n", []string{"openapi/ports.yaml:9"}},
		{"a rule", "properties:\n  r: {$ref: ports.yaml#/rule}\n", []string{"openapi/ports.yaml:12"}},
		{"a default, and a key with a slash", "properties:\n  s: {$ref: ports.yaml#/a~1b}\n", []string{"openapi/ports.yaml:16"}},
		{"beside the reference", "properties:\n  r:\n    $ref: ports.yaml#/rule\n    minimum: low\n    x-kubernetes-validations: []\n", []string{"openapi/values.yaml:4"}},
		{"a schema that is extended", "x-extend: {schema: config-values.yaml}\nproperties:\n  own:\n    type: txt\n",
			[]string{"openapi/config-values.yaml:4", "openapi/values.yaml:4", "openapi/ports.yaml:3"}},
		{"in a circle", "circle: {$ref: ports.yaml#/circle}\nproperties:\n  c: {$ref: \"#/circle\"}\n", []string{"openapi/ports.yaml:17"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			_, err := ParseSchema("openapi/values.yaml", []byte(c.schema), load)
			var wrong *SchemaError
			if !errors.As(err, &wrong) {
				t.Fatal(err)
			}
			var got []string
			for _, m := range wrong.Mistakes {
				got = append(got, m.File+":"+strconv.Itoa(m.Line))
				if in := "(" + m.File + ":"; m.File != wrong.File != strings.Contains(wrong.Error(), in) {
					t.Errorf("%v does not name %s", wrong, m.File)
				}
			}
			if !slices.Equal(got, c.want) {
				t.Errorf("%v: got %v, want %v", wrong, got, c.want)
			}
		})
	}
}
