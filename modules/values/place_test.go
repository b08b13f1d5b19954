package values

import (
	"errors"
	"slices"
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
		if !slices.Equal(wrong.Lines, c.want) {
			t.Errorf("%s: %v: got lines %v, want %v", c.schema, wrong, wrong.Lines, c.want)
		}
	}
}
