package values

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/starling-operator/starling/runtime/effect"
)

func TestParseSchemaErrors(t *testing.T) {
	tests := []struct{ name, schema, want string }{
		{"no YAML", `a: [`, "openapi/values.yaml: is not valid YAML: line 1: did not find expected node content"},
		{"too many fields", "properties: {a: {allOf: [" + strings.Repeat("{},", maxSchemaNodes) + "]}}",
			"openapi/values.yaml: the schema describes more than 20000 fields; describe fewer, and let others be with x-kubernetes-preserve-unknown-fields"},
		{"too many rules", "x-kubernetes-validations: [" + strings.Repeat("{rule: 'true'}, ", maxSchemaRules+1) + "]",
			"openapi/values.yaml: the schema has more than 2000 rules and patterns; use fewer"},
		{"too large patterns", "properties: {a: {type: string, pattern: '" + strings.Repeat("(x{1000}){1}|", 500) + "'}}",
			"openapi/values.yaml: the patterns of the schema are too large: with each repetition, as in x{100}, written out they have more than 400000 characters"},
		{"no map", `[a]`, "openapi/values.yaml: must be a map, not a list"},
		{"a default without what is required", `{properties: {a: {type: object, default: {}, required: [b], properties: {b: {type: string}}}}}`, "openapi/values.yaml: a: default.b is required"},
		{"unknown type", `{properties: {web: {type: objct}}}`, "openapi/values.yaml: web: type must be one of array, boolean, integer, number, object, string, or a list of them (nullable: true allows null)"},
		{"root is no object", `{type: string}`, "openapi/values.yaml: type must be object at the root"},
		{"a typo", `{propertes: {}}`, `openapi/values.yaml: "propertes" is no keyword of a schema, did you mean "properties"?`},
		{"many at once", `{properties: {a: {type: [string, text]}, b: {type: object, patternProperties: {"(": {}}}, c: 5}, required: a}`,
			"openapi/values.yaml: a: type must be one of array, boolean, integer, number, object, string, or a list of them (nullable: true allows null); " +
				"b: patternProperties must be valid regular expressions (RE2), but: error parsing regexp: missing closing ): `(`; " +
				"c: must be a schema, not an integer; required does not take a string"},
		{"bound of the wrong kind", `{properties: {a.b: {type: integer, minimum: "1"}}}`, `openapi/values.yaml: ["a.b"]: minimum does not take a string`},
		{"default of the wrong kind", `{properties: {a: {type: integer, default: "5"}}}`, "openapi/values.yaml: a: default must be of type integer: \"string\""},
		{"default with unknown field", `{properties: {a: {type: object, default: {b: 1}}}}`, "openapi/values.yaml: a: default must not have unknown fields"},
		{"a broken rule", `{properties: {a: {type: integer, x-kubernetes-validations: [{rule: "self > foo"}]}}}`,
			`openapi/values.yaml: a: x-kubernetes-validations: rule "self > foo": compilation failed: ERROR: <input>:1:8: undeclared reference to 'foo' (in container '') | self > foo | .......^`},
		{"a broken pattern", `{properties: {a: {type: string, pattern: "("}}}`, "openapi/values.yaml: not a structural schema: a: pattern must be a valid regular expression, but isn't: error parsing regexp: missing closing ): `(`"},
		{"a rule in an alternative", `{properties: {a: {type: string, anyOf: [{x-kubernetes-validations: [{rule: "true"}]}]}}}`,
			"openapi/values.yaml: a: x-kubernetes-validations does not work inside allOf, anyOf, oneOf and not: write it beside them"},
		{"a rule where Kubernetes has no form", `{properties: {a: {type: object, properties: {b: {type: string}}, additionalProperties: {type: string, x-kubernetes-validations: [{rule: "true"}]}}}}`,
			"openapi/values.yaml: a: x-kubernetes-validations and x-kubernetes-list-type do not work below additionalProperties beside properties, " +
				"nor below several patternProperties: write the rules beside them"},
		{"a rule of several types", `{properties: {a: {type: [string, object], x-kubernetes-validations: [{rule: "true"}]}}}`,
			"openapi/values.yaml: a: x-kubernetes-validations and x-kubernetes-list-type need one type, here and below, not object, string"},
		{"a rule of no type", `{properties: {a: {x-kubernetes-validations: [{rule: "true"}]}}}`,
			"openapi/values.yaml: a: x-kubernetes-validations and x-kubernetes-list-type need one type, here and below, not none"},
		{"a broken pattern in an alternative", `{properties: {a: {type: string, not: {pattern: "("}}}}`,
			"openapi/values.yaml: a[*]: pattern must be valid regular expressions (RE2), but: error parsing regexp: missing closing ): `(`"},
		{"a default of several types", `{properties: {a: {type: [string, object], default: 5}}}`, "openapi/values.yaml: a: default must be a map or a string"},
		{"refers to itself", `{definitions: {t: {type: object, properties: {t: {$ref: "#/definitions/t"}}}}, properties: {a: {$ref: "#/definitions/t"}}}`,
			"openapi/values.yaml: a.t: $ref: #/definitions/t refers to itself, so it has no end: write out as many levels as there are, or let the rest be with x-kubernetes-preserve-unknown-fields"},
		{"refers to nothing", `{properties: {a: {$ref: "#/definitions/t"}, b: {$ref: 5}, c: {$ref: "x.yaml#/t"}, d: {$ref: "#t"}, e: {$ref: "../x.yaml"}}}`,
			"openapi/values.yaml: a: $ref: #/definitions/t: openapi/values.yaml has nothing there; b: $ref does not take an integer; " +
				"c: $ref: x.yaml#/t: no such file; d: $ref: #t: after # a path must follow, such as #/definitions/port; " +
				"e: $ref: ../x.yaml: only files beside this one can be read"},
		{"extends nothing", `{x-extend: values.yaml}`, "openapi/values.yaml: x-extend must look like {schema: config-values.yaml}"},
		{"extends itself", `{x-extend: {schema: values.yaml}}`, "openapi/values.yaml: x-extend: values.yaml extends itself"},
		{"extends in a circle", `{x-extend: {schema: circle.yaml}}`, "openapi/circle.yaml: x-extend: values.yaml extends itself"},
		{"extends what is not there", `{x-extend: {schema: gone.yaml}}`, "openapi/values.yaml: x-extend: gone.yaml cannot be read: no such file"},
		{"extends further down", `{properties: {a: {type: object, x-extend: {schema: config-values.yaml}}}}`, "openapi/values.yaml: a: x-extend: it stands at the root only"},
	}
	load := func(name string) ([]byte, error) {
		if name == "circle.yaml" {
			return []byte("x-extend: {schema: values.yaml}"), nil
		}
		return nil, errors.New("no such file")
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			_, err := ParseSchema("openapi/values.yaml", []byte(tt.schema), load)
			if fmt.Sprint(err) != tt.want {
				t.Errorf("got  %v\nwant %s", err, tt.want)
			}
		})
	}
}

func TestSchemaFindings(t *testing.T) {
	web := `
properties:
  web:
    type: object
    required: [port]
    x-kubernetes-validations:
    - {rule: "!has(self.min) || self.min <= self.max", message: "min must not be above max"}
    - {rule: "self.size >= oldSelf.size", message: "size may only grow"}
    properties:
      port: {x-kubernetes-int-or-string: true}
      min: {type: integer}
      max: {type: integer, maximum: 4, multipleOf: 2, default: 2}
      size: {type: integer, default: 1}
      mode: {type: string, enum: [auto, manual]}
      name: {type: string, pattern: "^[a-z]+$"}
      ip: {type: string, format: ipv4}
      hosts: {type: array, maxItems: 1, items: {type: object, properties: {name: {type: string}}}}
      labels: {type: object, additionalProperties: {type: string}}
      free: {type: object, x-kubernetes-preserve-unknown-fields: true, properties: {known: {type: object, properties: {a: {type: string}}}}}
      one: {type: object, properties: {a: {type: string}, b: {type: string}}, oneOf: [{required: [a]}, {required: [b]}]}
      set: {type: array, x-kubernetes-list-type: set, items: {type: string}}
      metadata: {type: object, additionalProperties: false}
additionalProperties: false
`
	s := mustSchema(t, web)
	tests := []struct {
		name   string
		v, old object
		want   []string
	}{
		{"fine", object{}, nil, nil},
		{"nil", nil, nil, nil},
		{"required", object{"web": object{}}, nil, []string{"web.port: is required"}},
		{"kinds", object{"web": object{"port": 1.5, "min": "secret", "hosts": "x", "labels": object{"a": int64(1)}}}, nil, []string{
			"web.hosts: must be a list", "web.labels.a: must be a string", "web.min: must be an integer", "web.port: must be an integer or a string"}},
		{"no map", object{"web": "secret"}, nil, []string{"web: must be a map"}},
		{"bounds", object{"web": object{"port": "x", "max": int64(5), "mode": "secret", "name": "SECRET", "ip": "secret", "hosts": []any{object{}, object{}}}}, nil, []string{
			"web.hosts: must have at most 1 items", "web.ip: must be a valid ipv4", "web.max: must be a multiple of 2", "web.max: must be less than or equal to 4",
			`web.mode: must be one of "auto", "manual"`, "web.name: must match '^[a-z]+$'"}},
		{"a rule", object{"web": object{"port": int64(1), "min": int64(3)}}, nil, []string{"web: min must not be above max"}},
		{"a rule that compares", object{"web": object{"port": int64(1), "size": int64(1)}}, object{"web": object{"port": int64(1), "size": int64(2)}}, []string{"web: size may only grow"}},
		{"alternatives", object{"web": object{"port": int64(1), "one": object{"a": "", "b": ""}}}, nil, []string{"web.one: must match exactly one of the alternatives in oneOf"}},
		{"doubled", object{"web": object{"port": int64(1), "set": []any{"secret", "secret"}}}, nil, []string{"web.set[1]: is in the list twice"}},
		{"unknown", object{"web": object{"port": int64(1), "mod": "", "hosts": []any{object{"nam": "x"}}, "labels": object{"any": "x"},
			"free": object{"any": object{"x": 1}, "known": object{"b": 1}}, "metadata": object{"x": 1}}, "wbe": object{}}, nil, []string{
			`wbe: unknown field, did you mean "web"?`,
			`web.free.known.b: unknown field; the schema has a`,
			`web.hosts[0].nam: unknown field, did you mean "name"?`,
			"web.metadata.x: unknown field; the schema has no fields here (add properties, additionalProperties or x-kubernetes-preserve-unknown-fields: true to it)",
			`web.mod: unknown field, did you mean "mode"?`,
		}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			got := texts2(append(s.Unknown(tt.v), s.Validate(s.Default(tt.v), tt.old)...))
			if diff := cmp.Diff(tt.want, got); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
			for _, line := range got {
				if strings.Contains(strings.ToLower(line), "secret") {
					t.Errorf("a value is quoted: %s", line)
				}
			}
		})
	}
}

func TestSchemaDefaults(t *testing.T) {
	s := mustSchema(t, `
properties:
  a: {type: string, default: x}
  o: {type: object, properties: {b: {type: integer, default: 2}}}
  d: {type: object, default: {}, properties: {b: {type: integer, default: 2}}}
  nul: {type: string, nullable: true, default: x}
  u: {type: string}
  l: {type: array, items: {type: object, default: {c: 1}, properties: {b: {type: integer, default: 2}, c: {type: integer}}}}
  m: {type: object, additionalProperties: {type: object, properties: {b: {type: integer, default: 2}}}}`)
	in := object{"nul": nil, "u": nil, "o": object{}, "l": []any{object{}, nil}, "m": object{"k": object{}, "gone": nil, "full": object{"b": int64(1)}}, "extra": nil}
	before := fmt.Sprint(in)
	want := object{
		"a": "x", "o": object{"b": int64(2)}, "d": object{"b": int64(2)}, "nul": nil, "extra": nil,
		"l": []any{object{"b": int64(2)}, object{"b": int64(2), "c": int64(1)}},
		"m": object{"k": object{"b": int64(2)}, "full": object{"b": int64(1)}},
	}
	got := s.Default(in)
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	if fmt.Sprint(in) != before {
		t.Errorf("the values were changed: %v", in)
	}
	if again := s.Default(got); !same(again, got) {
		t.Error("what needs no default was copied")
	}
	var none *Schema
	if diff := cmp.Diff(object{}, none.Default(nil)); diff != "" || none.Unknown(in) != nil || none.Validate(in, nil) != nil ||
		none.missing(in) != nil || none.UnknownOps(ops(set("a", 1))) != nil || none.File() != "" {
		t.Error("a schema that is nil does not allow everything")
	}
}

func TestExtendAndRequiredForHelm(t *testing.T) {
	load := func(name string) ([]byte, error) {
		if name != "config-values.yaml" {
			t.Errorf("load(%q)", name)
		}
		return []byte(`
required: [host]
x-required-for-helm: [cert]
x-doc-hint: of another tool
properties:
  host: {type: string, x-examples: [a]}
  cert: {type: string}
  web: {type: object, properties: {port: {type: integer}, mode: {type: string, default: a}}}`), nil
	}
	s, err := ParseSchema("web/openapi/values.yaml", []byte(`
x-extend: {schema: config-values.yaml}
required: [host, zone]
properties:
  zone: {type: string}
  list: {type: array, items: {type: object, x-required-for-helm: [id], properties: {id: {type: string}}}}
  web: {type: object, x-required-for-helm: [nodes], properties: {nodes: {type: integer}, mode: {type: string, default: b}}}
`), load)
	if err != nil {
		t.Fatal(err)
	}
	v := s.Default(object{"host": "x", "zone": "z", "web": object{"port": "no"}, "list": []any{object{}}, "cert": nil})
	want := []string{
		"cert: is required before the chart can be rendered, and nobody has set it yet",
		"list[0].id: is required before the chart can be rendered, and nobody has set it yet",
		"web.nodes: is required before the chart can be rendered, and nobody has set it yet",
		"web.port: must be an integer",
	}
	got := append(s.Validate(v, nil), s.missing(v)...)
	sortProblems(got)
	if diff := cmp.Diff(want, texts2(got)); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	if diff := cmp.Diff([]string{"host: is required", "zone: is required"}, texts2(s.Validate(nil, nil))); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	if mode := v["web"].(object)["mode"]; mode != "b" {
		t.Errorf("the default of the upper schema must win, got %v", mode)
	}
}

// A field that the schema names needs what it says itself, not what additionalProperties beside it say.
func TestRequiredForHelmOfNamedFields(t *testing.T) {
	s := mustSchema(t, `
properties:
  sites:
    type: object
    properties: {local: {type: object, properties: {id: {type: string}}}}
    additionalProperties: {type: object, x-required-for-helm: [id], properties: {id: {type: string}}}`)
	want := []string{"sites.far.id: is required before the chart can be rendered, and nobody has set it yet"}
	got := s.missing(object{"sites": object{"local": object{}, "far": object{}}})
	if diff := cmp.Diff(want, texts2(got)); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

func TestChecks(t *testing.T) {
	c := NewComposer(sample(t))
	pos := func(o effect.ValueOp) effect.ValueOp { o.Pos = "hooks/a.star:3"; return o }
	tests := []struct {
		name string
		got  []Problem
		want []string
	}{
		{"config: fine", c.CheckConfig(object{"replicas": int64(2), "host": nil}, nil), nil},
		{"config: none", c.CheckConfig(nil, object{"replicas": int64(2)}), nil},
		{"config: unknown", c.CheckConfig(object{"replica": int64(2), "chartOnly": true}, nil), []string{
			"config web: chartOnly: unknown field; the schema has host, image, replicas",
			`config web: replica: unknown field, did you mean "replicas"?`}},
		{"config: invalid", c.CheckConfig(object{"replicas": int64(0)}, nil), []string{"config web: replicas: must be greater than or equal to 1"}},
		{"hook: fine", c.CheckHook("a", ops(set("replicas", int64(3)))), nil},
		{"hook: unknown", c.CheckHook("a", ops(pos(set("internal.node", "x")), pos(remove("internals")))), []string{
			`hook a (hooks/a.star:3): internal.node: unknown field, did you mean "nodes"?`,
			`hook a (hooks/a.star:3): internals: unknown field, did you mean "internal"?`}},
		{"hook: invalid", c.CheckHook("a", ops(pos(merge("", object{"token": "secret"})), pos(set("replicas", int64(11))))), []string{
			"hook a (hooks/a.star:3): replicas: must be less than or equal to 10", "hook a (hooks/a.star:3): token: must be at most 3 characters long"}},
		{"hook: no schema but that of the config", NewComposer(Section{Name: "web", ConfigSchema: mustSchema(t, "properties: {a: {type: string}}")}).
			CheckHook("a", ops(pos(set("a", int64(1))), set("own", true))), []string{"hook a (hooks/a.star:3): a: must be a string"}},
		{"helm: fine", c.CheckHelm(), nil},
		{"helm: a broken file", NewComposer(Section{Name: "web", Schema: mustSchema(t, "properties: {a: {type: string}}"),
			Static: []Layer{{Name: "chart values.yaml", File: "web/values.yaml", Data: object{"a": int64(1), "extra": true}}}}).CheckHelm(),
			[]string{"chart values.yaml (web/values.yaml): a: must be a string"}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			if diff := cmp.Diff(tt.want, texts2(tt.got)); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
			for _, p := range tt.got {
				if p.Module != "web" {
					t.Errorf("module %q", p.Module)
				}
			}
		})
	}
}

func FuzzParseSchema(f *testing.F) {
	f.Add("properties: {a: {type: integer, default: 1, x-kubernetes-validations: [{rule: self > 0}]}}")
	f.Add("type: array")
	f.Fuzz(func(t *testing.T, text string) {
		s, err := ParseSchema("f.yaml", []byte(text), nil)
		if err != nil {
			if strings.Contains(err.Error(), "\n") {
				t.Fatalf("%q", err)
			}
			return
		}
		v := s.Default(object{"a": "x", "b": nil})
		s.Unknown(v)
		s.missing(v)
	})
}

// A list of many small objects gets the defaults of its items once for each of them.
func TestDefaultsAreBounded(t *testing.T) {
	const module = `
properties:
  list: {type: array, items: {type: object, properties: {a: {type: object, x-kubernetes-preserve-unknown-fields: true, default: {%s}}}}}
  text: {type: array, items: {type: object, properties: {b: {type: string, default: %s}}}}
  count: {type: integer}
`
	var keys strings.Builder
	for i := range 999 {
		fmt.Fprintf(&keys, "k%d: 1, ", i)
	}
	c := NewComposer(Section{Name: "web", Key: "web", Schema: mustSchema(t, fmt.Sprintf(module, keys.String(), strings.Repeat("x", 500_000)))})
	for _, tt := range []struct {
		field string
		items int
		over  bool
	}{{"list", 99, false}, {"list", 101, true}, {"list", 100_000, true}, {"text", 60, false}, {"text", 70, true}} {
		items := make([]any, tt.items)
		for i := range items {
			items[i] = object{}
		}
		config := object{tt.field: items}
		want := "[]"
		if tt.over {
			want = "[%s: the schema's defaults would add more than 100000 values or 32 MiB of text to these values; make lists shorter, or the defaults of their items smaller]"
		}
		blames := func(layer string, got []Problem) {
			t.Helper()
			if want := strings.Replace(want, "%s", layer, 1); fmt.Sprint(got) != want {
				t.Errorf("%d items of %s: got %v, want %s", tt.items, tt.field, got, want)
			}
		}
		blames("config web", c.CheckConfig(config, nil))
		ops := []effect.ValueOp{{Op: effect.OpSet, Path: []string{tt.field}, Value: items}}
		blames("hook a", c.CheckHook("a", ops))
		both := c.WithConfig(config)
		if got := both.CheckHelm(); len(got) > 0 != tt.over {
			t.Errorf("%d items of %s: Helm: %v", tt.items, tt.field, got)
		}
		if first := both.Compose()[tt.field].([]any)[0].(object); (len(first) == 0) != tt.over {
			t.Errorf("%d items of %s: the first has %d defaults", tt.items, tt.field, len(first))
		}
	}

	// Step by step it is what it is at once, however often one hook sets its own.
	items := func(n int) []effect.ValueOp {
		all := make([]any, n)
		for i := range all {
			all[i] = object{}
		}
		return []effect.ValueOp{{Op: effect.OpSet, Path: []string{"list"}, Value: all}, {Op: effect.OpSet, Path: []string{"count"}, Value: int64(n)}}
	}
	for n := range 10 {
		if got := c.CheckHook("a", items(90+n)); len(got) > 0 {
			t.Fatalf("after %d times: %v", n, got)
		}
		c = c.WithHook("a", items(90+n))
		if got, want := c.Compose(), NewComposer(c.Section()).Compose(); !cmp.Equal(got, want) {
			t.Fatalf("after %d times: %d values, want %d", n, len(got), len(want))
		}
	}
	if got := c.CheckHook("a", items(101)); len(got) != 1 {
		t.Errorf("got %v", got)
	}
	c = c.WithHook("a", items(101)).WithHook("a", items(5))
	if got, want := c.Compose(), NewComposer(c.Section()).Compose(); !cmp.Equal(got, want) || len(got["list"].([]any)[0].(object)) == 0 {
		t.Errorf("after too many: %d values, want %d", len(got), len(want))
	}
}
