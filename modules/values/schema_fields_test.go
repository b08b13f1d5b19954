package values

import (
	"fmt"
	"testing"
)

func TestFields(t *testing.T) {
	s, err := ParseSchema("openapi/config-values.yaml", []byte(`type: object
required: [size]
properties:
  size: {type: integer, description: How large it is., default: 3}
  mode: {type: string, enum: [fast, safe]}
  hosts:
    type: array
    items: {type: object, properties: {name: {type: string}}}
  extra:
    type: object
    additionalProperties: {type: object, properties: {open: {type: boolean}}}
`), nil)
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		path []string
		want string
	}{
		{nil, "[{extra [object]  <nil> [] false} {hosts [array]  <nil> [] false} {mode [string]  <nil> [fast safe] false} {size [integer] How large it is. 3 [] true}]"},
		{[]string{"hosts", Items}, "[{name [string]  <nil> [] false}]"},
		{[]string{"extra", "any"}, "[{open [boolean]  <nil> [] false}]"},
		{[]string{"size", "no"}, "[]"},
	} {
		if got := fmt.Sprint(s.Fields(c.path)); got != c.want {
			t.Errorf("%v: got %s", c.path, got)
		}
	}
	if f, ok := s.Field([]string{"size"}); !ok || f.Name != "size" {
		t.Error(f, ok)
	}
	if _, ok := s.Field([]string{"nothing"}); ok {
		t.Error("there is no such field")
	}
}
