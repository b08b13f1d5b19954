package values

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// Schemas in forms that a CustomResourceDefinition does not take, as modules from
// elsewhere have them.
func TestSchemasBesidesThoseOfKubernetes(t *testing.T) {
	schema := `
$schema: http://json-schema.org/draft-04/schema#
definitions:
  port: {type: integer, minimum: 1, maximum: 65535}
  probe:
    type: object
    required: [port]
    properties:
      port: {$ref: "#/definitions/port"}
      path: {type: string, default: /}
properties:
  http: {$ref: "#/definitions/port", default: 80}
  live: {$ref: "#/definitions/probe"}
  ready: {$ref: config-values.yaml#/properties/probe}
  size: {type: [integer, string]}
  note: {type: [string, "null"]}
  either: {type: [object, string], properties: {a: {type: integer, default: 1}}}
  fixed: {const: v1}
  both: {type: string, enum: [a, b], const: b}
  labels:
    type: object
    properties: {app: {type: string}}
    additionalProperties: {type: integer}
  open: {type: object, properties: {app: {type: string}}, additionalProperties: true}
  zones:
    type: object
    patternProperties:
      "^[a-z]+$": {type: object, properties: {nodes: {type: integer, default: 3}}}
  sorted:
    type: object
    patternProperties:
      "^i": {type: integer}
      "^s": {type: string}
      "^is": {maximum: 5, type: integer}
    additionalProperties: {type: boolean}
  sites:
    type: object
    properties: {north: {type: object, properties: {a: {type: integer}}}}
    patternProperties:
      "^n": {type: object, properties: {b: {type: array, items: {type: object, properties: {x: {type: integer}}}}}}
      "h$": {type: object, properties: {b: {type: array, items: {type: object, properties: {w: {type: integer}}}}}}
      "r": {minProperties: 1}
  auth:
    oneOf:
    - type: string
      enum: [none]
    - type: object
      required: [user]
      additionalProperties: false
      properties: {user: {type: string}, password: {type: string}}
    - type: object
      required: [token]
      additionalProperties: false
      properties: {token: {type: string}}
  any: {}
  list: {type: array}
  mixed: {type: array, items: {}}
  web: {properties: {a: {type: string}, b: {minLength: 2}}}
  maybe:
    anyOf: [{type: "null"}, {type: array, items: {type: integer}}]
  rules:
    type: object
    x-deckhouse-validations: [{expression: "self.min <= self.max", message: min is above max}]
    properties: {min: {type: integer}, max: {type: integer}}
`
	load := func(name string) ([]byte, error) {
		if name != "config-values.yaml" {
			return nil, errors.New("no such file")
		}
		return []byte("properties: {probe: {type: object, properties: {port: {$ref: '#/definitions/p'}}}}\ndefinitions: {p: {type: integer}}"), nil
	}
	s, err := ParseSchema("openapi/values.yaml", []byte(schema), load)
	if err != nil {
		t.Fatal(err)
	}
	if s.Remarks() != nil {
		t.Errorf("remarks: %v", s.Remarks())
	}
	for _, tt := range []struct {
		name string
		v    object
		want []string
	}{
		{"nothing", object{}, nil},
		{"references", object{"http": int64(0), "live": object{"port": int64(80)}, "ready": object{"port": "x"}}, []string{
			"http: must be greater than or equal to 1", "ready.port: must be an integer"}},
		{"a reference that is wrong below", object{"live": object{"path": int64(1), "host": "x"}}, []string{
			"live.host: unknown field; the schema has path, port", "live.path: must be a string", "live.port: is required"}},
		{"types", object{"size": "5", "note": nil, "either": "x"}, nil},
		{"other types", object{"size": true, "note": int64(5), "either": int64(1)}, []string{
			"either: must be a map or a string", "note: must be a string", "size: must be an integer or a string"}},
		{"a map of two types", object{"either": object{"b": int64(1)}}, []string{"either.b: unknown field; the schema has a"}},
		{"constants", object{"fixed": "v2", "both": "a"}, []string{
			"both: must be one of \"b\"", "both: must match all parts of allOf", `fixed: must be one of "v1"`}},
		{"further fields", object{"labels": object{"app": "x", "n": int64(1)}, "open": object{"app": "x", "n": true}}, nil},
		{"further fields that are wrong", object{"labels": object{"app": int64(1), "n": "x"}, "open": object{"app": int64(1)}}, []string{
			"labels.app: must be a string", "labels.n: must be an integer", "open.app: must be a string"}},
		{"patterns", object{"zones": object{"a": object{}, "b": object{"nodes": int64(1)}}, "sorted": object{"i": int64(9), "s": "x", "is": int64(4), "b": true}}, nil},
		{"patterns that do not match", object{"zones": object{"a": object{"node": int64(1)}, "B": object{}}, "sorted": object{"i": "x", "is": int64(9), "b": "x"}}, []string{
			"sorted.b: must be a boolean", "sorted.i: must be an integer", "sorted.is: must be less than or equal to 5",
			`zones.B: unknown field; the schema has fields that match "^[a-z]+$"`, `zones.a.node: unknown field, did you mean "nodes"?`}},
		{"several patterns", object{"sites": object{"north": object{"a": int64(1), "b": []any{object{"x": int64(1), "w": int64(2)}}}}}, nil},
		{"several patterns that are wrong", object{"sites": object{"north": object{"c": int64(1), "b": []any{object{"x": int64(1), "z": "z"}}}, "south": object{"a": int64(1)}}}, []string{
			"sites.north.b[0].z: unknown field", "sites.north.c: unknown field", "sites.south.a: unknown field"}},
		{"one of several", object{"auth": "none"}, nil},
		{"another one", object{"auth": object{"token": "x"}}, nil},
		{"two at once", object{"auth": object{"token": "x", "user": "y"}}, []string{"auth: must match exactly one of the alternatives in oneOf", `auth: must not have the field `}},
		{"of none", object{"auth": object{"pass": "x", "user": "y"}}, []string{
			"auth.pass: unknown field, did you mean \"password\"?", "auth: must match exactly one of the alternatives in oneOf", `auth: must not have the field "pass"`}},
		{"no type", object{"any": object{"x": true}, "list": []any{object{"x": int64(1)}, "x"}, "mixed": []any{object{"x": int64(1)}, "x"}, "web": object{"a": "x", "b": int64(1)}}, nil},
		{"no type, and wrong", object{"list": "x", "mixed": object{}, "web": object{"a": int64(1), "b": "x", "c": true}}, []string{
			"list: must be a list", "mixed: must be a list", "web.a: must be a string", "web.b: must be at least 2", "web.c: unknown field; the schema has a, b"}},
		{"null or a list", object{"maybe": nil}, nil},
		{"a list", object{"maybe": []any{int64(1)}}, nil},
		{"neither", object{"maybe": "x"}, []string{"maybe: must match one of the alternatives in anyOf"}},
		{"rules of others", object{"rules": object{"min": int64(2), "max": int64(1)}}, []string{"rules: min is above max"}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			ps := append(s.Unknown(tt.v), s.Validate(s.Default(tt.v), nil)...)
			sortProblems(ps)
			got := texts2(ps)
			if len(tt.want) == 0 && len(got) > 0 {
				t.Errorf("got %q", got)
			}
			all := strings.Join(got, "\n")
			for _, want := range tt.want {
				if !strings.Contains(all, want) {
					t.Errorf("got %q, want %q", got, want)
				}
			}
		})
	}
	in := object{"either": object{}, "zones": object{"a": object{}, "B": object{}}, "live": object{"port": int64(1)}, "maybe": nil}
	want := object{"http": int64(80), "either": object{"a": int64(1)}, "zones": object{"a": object{"nodes": int64(3)}, "B": object{}},
		"live": object{"port": int64(1), "path": "/"}, "maybe": nil}
	if diff := cmp.Diff(want, s.Default(in)); diff != "" {
		t.Errorf("defaults (-want +got):\n%s", diff)
	}
}

// A default need not hold what a default inside it gives.
func TestDefaultsAreCheckedWithThoseInside(t *testing.T) {
	const inner = "default: {}, required: [a], properties: {a: {type: integer, default: 1}}"
	for _, c := range []struct {
		name, schema string
		in, want     object
	}{
		{"a map", "properties: {x: {type: object, " + inner + "}}", nil, object{"x": object{"a": int64(1)}}},
		{"maps in maps", "properties: {w: {type: object, default: {}, required: [x], properties: {x: {type: object, " + inner + "}}}}", nil,
			object{"w": object{"x": object{"a": int64(1)}}}},
		{"a list", "properties: {x: {type: array, default: [{}], items: {type: object, " + inner + "}}}", nil, object{"x": []any{object{"a": int64(1)}}}},
		{"a rule", "properties: {x: {type: object, " + inner + ", x-kubernetes-validations: [{rule: self.a > 0}]}}", nil, object{"x": object{"a": int64(1)}}},
		{"several types", "properties: {x: {type: [object, string], " + inner + "}}", nil, object{"x": object{"a": int64(1)}}},
		{"patterns", "properties: {x: {type: object, default: {k1: {}}, patternProperties: {^k: {type: object, " + inner + "}, ^l: {type: string}}}}", nil,
			object{"x": object{"k1": object{"a": int64(1)}}}},
		{"further fields", "properties: {x: {type: object, properties: {b: {type: string}}, additionalProperties: {type: object, " + inner + "}}}",
			object{"x": object{"k": nil}}, object{"x": object{"k": object{"a": int64(1)}}}},
		{"an alternative that requires", "properties: {x: {type: object, default: {}, properties: {a: {type: integer, default: 1}, b: {type: string}}, " +
			"oneOf: [{required: [a]}, {required: [b]}]}}", nil, object{"x": object{"a": int64(1)}}},
	} {
		t.Run(c.name, func(t *testing.T) {
			s := mustSchema(t, c.schema)
			got := s.Default(c.in)
			if diff := cmp.Diff(c.want, got); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
			if ps := s.Validate(got, nil); len(ps) > 0 {
				t.Errorf("the values do not pass: %v", ps)
			}
		})
	}
	for schema, want := range map[string]string{
		"properties: {x: {type: object, default: {}, required: [a, b], properties: {a: {type: integer, default: 1}, b: {type: string}}}}": "x: default.b is required",
		"properties: {x: {type: [object, string], default: {}, properties: {a: {type: integer, default: 1}}, maxProperties: 0}}":          "x: default must have at most 0 ",
	} {
		if _, err := ParseSchema("values.yaml", []byte(schema), nil); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: got %v, want %s", schema, err, want)
		}
	}
}

// A keyword that nobody knows is a remark with its line; a slip in one that says which
// fields there are is a mistake.
func TestUnknownKeywords(t *testing.T) {
	s, err := ParseSchema("openapi/values.yaml", []byte(`
type: object
properties:
  a:
    type: string
    minLenght: 5
    readOnly: true
    x-doc: of others
  b: {type: object, propertyNames: {pattern: a}, properties: {c: {type: string, foo: 1}}, anyOf: [{required: [c], default: {}}]}
`), nil)
	if err != nil {
		t.Fatal(err)
	}
	r := s.Remarks()
	if r == nil {
		t.Fatal("no remarks")
	}
	want := []string{
		`6 a: "minLenght" is no keyword that Starling knows: values are not checked for it, did you mean "minLength"?`,
		`9 b: default does nothing inside allOf, anyOf, oneOf and not: write it beside them`,
		`9 b.c: "foo" is no keyword that Starling knows: values are not checked for it`,
		`9 b: "propertyNames" is no keyword that Starling knows: values are not checked for it`,
	}
	var got []string
	for _, m := range r.Mistakes {
		got = append(got, fmt.Sprint(m.Line, " ", m.Message))
	}
	for _, w := range want {
		if !strings.Contains(strings.Join(got, "\n"), w) {
			t.Errorf("got %q, want %q", got, w)
		}
	}
	for _, wrong := range []string{"propertes: {}", "properties: {a: {item: {}, type: array}}", "properties: {a: {types: string}}", "x-kubernetes-validation: []"} {
		if _, err := ParseSchema("values.yaml", []byte(wrong), nil); err == nil {
			t.Errorf("%s is taken", wrong)
		}
	}
}
