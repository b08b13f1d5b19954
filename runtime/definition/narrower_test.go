package definition

import (
	"bytes"
	"encoding/json"
	"testing"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"sigs.k8s.io/yaml"
)

func TestNarrower(t *testing.T) {
	tests := []struct {
		name, before, after, want string
	}{
		{"the same", "type: string", "type: string", ""},
		{"another description", "type: string, description: a", "type: string, description: b, example: c, title: d", ""},
		{"a field more", "type: object, properties: {a: {type: string}}", "type: object, properties: {a: {type: string}, b: {type: string, maxLength: 1}}", ""},
		{"a field less", "type: object, properties: {a: {type: string}, b: {type: string}}", "type: object, properties: {a: {type: string}}", "x.b"},
		{"a field below less", "type: object, properties: {a: {type: object, properties: {b: {type: string}}}}", "type: object, properties: {a: {type: object}}", "x.a.b"},
		{"a field less, others stay", "type: object, properties: {a: {type: string}}", "type: object, x-kubernetes-preserve-unknown-fields: true", ""},
		{"a field that all the others are like", "type: object, properties: {a: {type: string}}", "type: object, additionalProperties: {type: string}", ""},
		{"a field that all the others are unlike", "type: object, properties: {a: {type: string}}", "type: object, additionalProperties: {type: integer}", "x.a"},
		{"others are dropped", "type: object, x-kubernetes-preserve-unknown-fields: true", "type: object", "x.*"},
		{"others have a type", "type: object, x-kubernetes-preserve-unknown-fields: true", "type: object, additionalProperties: {type: string}", "x.*"},
		{"one of the others has a type", "type: object, x-kubernetes-preserve-unknown-fields: true", "type: object, x-kubernetes-preserve-unknown-fields: true, properties: {a: {type: string}}", "x.a"},
		{"others may be more", "type: object, additionalProperties: {type: string, maxLength: 1}", "type: object, additionalProperties: {type: string, maxLength: 2}", ""},
		{"others may be less", "type: object, additionalProperties: {type: string, maxLength: 2}", "type: object, additionalProperties: {type: string, maxLength: 1}", "x.*"},
		{"a map becomes fields", "type: object, additionalProperties: {type: string}", "type: object, properties: {a: {type: string}}", "x.*"},
		{"another type", "type: string", "type: integer", "x"},
		{"a wider number", "type: integer", "type: number", ""},
		{"a smaller number", "type: number", "type: integer", "x"},
		{"a number or a text", "type: integer", "x-kubernetes-int-or-string: true", ""},
		{"a text or a number", "type: string", "x-kubernetes-int-or-string: true", ""},
		{"a boolean, then a number or a text", "type: boolean", "x-kubernetes-int-or-string: true", "x"},
		{"no number any more", "x-kubernetes-int-or-string: true", "type: string", "x"},
		{"anything", "type: string", "x-kubernetes-preserve-unknown-fields: true", ""},
		{"not anything any more", "x-kubernetes-preserve-unknown-fields: true", "type: string", "x"},
		{"no null any more", "type: string, nullable: true", "type: string", "x"},
		{"a null", "type: string", "type: string, nullable: true", ""},
		{"required", "type: object, properties: {a: {type: string}}", "type: object, properties: {a: {type: string}}, required: [a]", "x"},
		{"required with a default", "type: object, properties: {a: {type: string}}", "type: object, properties: {a: {type: string, default: b}}, required: [a]", ""},
		{"required no more", "type: object, properties: {a: {type: string}}, required: [a]", "type: object, properties: {a: {type: string}}", ""},
		{"an enum", "type: string", "type: string, enum: [a]", "x"},
		{"a wider enum", "type: string, enum: [a]", "type: string, enum: [b, a]", ""},
		{"a smaller enum", "type: string, enum: [a, b]", "type: string, enum: [b]", "x"},
		{"no enum", "type: string, enum: [a, b]", "type: string", ""},
		{"a maximum", "type: integer", "type: integer, maximum: 1", "x"},
		{"a higher maximum", "type: integer, maximum: 1", "type: integer, maximum: 2", ""},
		{"a lower maximum", "type: integer, maximum: 2", "type: integer, maximum: 1", "x"},
		{"an exclusive maximum", "type: integer, maximum: 2", "type: integer, maximum: 2, exclusiveMaximum: true", "x"},
		{"a higher minimum", "type: integer, minimum: 1", "type: integer, minimum: 2", "x"},
		{"a lower minimum", "type: integer, minimum: 2", "type: integer, minimum: 1", ""},
		{"an exclusive minimum", "type: integer, minimum: 2", "type: integer, minimum: 2, exclusiveMinimum: true", "x"},
		{"no minimum", "type: integer, minimum: 2", "type: integer", ""},
		{"shorter", "type: string, maxLength: 2", "type: string, maxLength: 1", "x"},
		{"longer", "type: string, maxLength: 2, minLength: 2", "type: string, maxLength: 3, minLength: 1", ""},
		{"fewer items", "type: array, items: {type: string}", "type: array, items: {type: string}, maxItems: 1", "x"},
		{"more items", "type: array, items: {type: string}, minItems: 1", "type: array, items: {type: string}, minItems: 2", "x"},
		{"fewer keys", "type: object, additionalProperties: {type: string}", "type: object, additionalProperties: {type: string}, maxProperties: 1", "x"},
		{"more keys", "type: object, additionalProperties: {type: string}", "type: object, additionalProperties: {type: string}, minProperties: 1", "x"},
		{"a pattern", "type: string", "type: string, pattern: a", "x"},
		{"another pattern", "type: string, pattern: b", "type: string, pattern: a", "x"},
		{"no pattern", "type: string, pattern: b", "type: string", ""},
		{"a format", "type: string", "type: string, format: date", "x"},
		{"a multiple", "type: integer", "type: integer, multipleOf: 2", "x"},
		{"unique", "type: array, items: {type: string}", "type: array, items: {type: string}, uniqueItems: true", "x"},
		{"items", "type: array, items: {type: string}", "type: array, items: {type: integer}", "x[]"},
		{"fields of items", "type: array, items: {type: object, properties: {a: {type: string}}}", "type: array, items: {type: object}", "x[].a"},
		{"a set", "type: array, items: {type: string}", "type: array, items: {type: string}, x-kubernetes-list-type: set", "x"},
		{"a set no more", "type: array, items: {type: string}, x-kubernetes-list-type: set", "type: array, items: {type: string}, x-kubernetes-list-type: atomic", ""},
		{"other keys", "type: array, items: {type: object, x-kubernetes-preserve-unknown-fields: true}, x-kubernetes-list-type: map, x-kubernetes-list-map-keys: [a, b]", "type: array, items: {type: object, x-kubernetes-preserve-unknown-fields: true}, x-kubernetes-list-type: map, x-kubernetes-list-map-keys: [a]", "x"},
		{"a rule", "type: string", "type: string, x-kubernetes-validations: [{rule: 'self != \"\"'}]", "x"},
		{"another message of a rule", "type: string, x-kubernetes-validations: [{rule: 'self != \"\"', message: a}]", "type: string, x-kubernetes-validations: [{rule: 'self != \"\"', message: b}]", ""},
		{"no rule", "type: string, x-kubernetes-validations: [{rule: 'self != \"\"'}]", "type: string", ""},
		{"one of", "type: object, properties: {a: {type: string}}", "type: object, properties: {a: {type: string}}, oneOf: [{required: [a]}]", "x"},
		{"all of", "type: string", "type: string, allOf: [{maxLength: 1}]", "x"},
		{"any of", "type: string", "type: string, anyOf: [{maxLength: 1}]", "x"},
		{"not", "type: string", "type: string, not: {enum: [a]}", "x"},
		{"none of them", "type: string, allOf: [{maxLength: 1}], anyOf: [{maxLength: 1}], not: {enum: [a]}", "type: string", ""},
		{"an embedded object", "type: object, x-kubernetes-preserve-unknown-fields: true", "type: object, x-kubernetes-preserve-unknown-fields: true, x-kubernetes-embedded-resource: true", "x"},
		{"a default", "type: string", "type: string, default: a", ""},
	}
	read := func(text string) *schema {
		t.Helper()
		out := &schema{}
		if err := yaml.UnmarshalStrict([]byte("{type: object, properties: {x: {"+text+"}}}"), out); err != nil {
			t.Fatal(text, err)
		}
		return out
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			if got := Narrower(read(tt.before), read(tt.after)); got != tt.want {
				t.Errorf("narrower at %q, want %q", got, tt.want)
			}
		})
	}
	for _, always := range []string{"apiVersion", "kind", "metadata"} {
		before := &schema{Type: "object", Properties: map[string]schema{always: {Type: "string"}}}
		if got := Narrower(before, &schema{Type: "object"}); got != "" {
			t.Errorf("without %s: %q", always, got)
		}
	}
	named := &schema{Type: "object", Properties: map[string]schema{"metadata": {Type: "object", Properties: map[string]schema{"name": {Type: "string", Pattern: "a"}}}}}
	if got := Narrower(&schema{Type: "object"}, named); got != "metadata" {
		t.Errorf("names have a pattern: %q", got)
	}
}

// A schema that takes all that another one takes lets its objects pass, whole.
func FuzzNarrower(f *testing.F) {
	f.Add("{type: string, maxLength: 3}", "{type: string}", "abc")
	f.Add("{type: object, properties: {a: {type: integer}}}", "{type: object, additionalProperties: {type: number}}", "{a: 1}")
	f.Add("{type: array, items: {type: string, nullable: true}}", "{x-kubernetes-preserve-unknown-fields: true}", "[a, null]")
	f.Add("{type: object, properties: {a: {type: string, enum: [x]}}}", "{type: object, properties: {a: {type: string}, b: {type: string, default: c}}, required: [b]}", "{a: x}")
	f.Fuzz(func(t *testing.T, before, after, value string) {
		versions := [2]*Version{}
		schemas := [2]*schema{}
		crd := &apiextensionsv1.CustomResourceDefinition{}
		for i, text := range []string{before, after} {
			field := schema{}
			if yaml.UnmarshalStrict([]byte(text), &field) != nil {
				return
			}
			schemas[i] = &schema{Type: "object", Properties: map[string]schema{"x": field}}
			v, err := New(crd, &apiextensionsv1.CustomResourceDefinitionVersion{Name: "v1", Schema: &apiextensionsv1.CustomResourceValidation{OpenAPIV3Schema: schemas[i]}})
			if err != nil {
				return
			}
			versions[i] = v
		}
		at := Narrower(schemas[0], schemas[1])
		if again := Narrower(schemas[1], schemas[1]); again != "" {
			t.Fatalf("a schema is narrower than itself at %s", again)
		}
		obj := map[string]any{}
		if at != "" || yaml.Unmarshal([]byte(`{apiVersion: a.example/v1, kind: A, metadata: {name: a}, x: `+value+`}`), &obj) != nil {
			return
		}
		normal := func() {
			data, err := json.Marshal(obj)
			if err != nil {
				t.Skip(err)
			}
			obj = map[string]any{}
			if json.NewDecoder(bytes.NewReader(data)).Decode(&obj) != nil {
				t.Skip()
			}
		}
		normal()
		if _, err := versions[0].Decode(obj, false); err != nil || len(versions[0].Validate(obj, nil, false)) > 0 {
			return
		}
		normal()
		if dropped, err := versions[1].Decode(obj, false); err != nil || len(dropped) > 0 {
			t.Fatalf("dropped: %v, %v", dropped, err)
		}
		if errs := versions[1].Validate(obj, nil, false); len(errs) > 0 {
			t.Fatal(errs)
		}
	})
}
