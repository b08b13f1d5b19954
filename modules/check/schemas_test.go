package check

import (
	"encoding/json"
	"strings"
	"testing"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"sigs.k8s.io/yaml"
)

func TestSchemaProblems(t *testing.T) {
	for name, tt := range map[string]struct{ schema, want string }{
		"nothing":     {"{a: {type: string}}", ""},
		"a good rule": {"{a: {type: integer, x-kubernetes-validations: [{rule: self > 1, message: x}]}}", ""},
		"no CEL":      {"{a: {type: integer, x-kubernetes-validations: [{rule: self >, message: x}]}}", `spec.a: rule "self >": 1:`},
		"no field":    {"{a: {type: object, properties: {b: {type: string}}, x-kubernetes-validations: [{rule: self.c == '', message: x}]}}", `undefined field 'c'`},
		"no truth":    {"{a: {type: integer, x-kubernetes-validations: [{rule: self + 1, message: x}]}}", `spec.a: rule "self + 1": `},
		"a message":   {"{a: {type: integer, x-kubernetes-validations: [{rule: self > 1, messageExpression: self}]}}", `messageExpression "self": `},
		"a long list": {"{a: {type: array, items: {type: object, properties: {b: {type: string}}, x-kubernetes-validations: [{rule: 'self.b.matches(\"a+b\")', message: x}]}}}",
			`spec.a[]: rule "self.b.matches(\"a+b\")" costs more than the API server allows, more than 100 times as much: bound the lists`},
		"a bounded list": {"{a: {type: array, maxItems: 10, items: {type: object, properties: {b: {type: string, maxLength: 10}}, x-kubernetes-validations: [{rule: 'self.b.matches(\"a+b\")', message: x}]}}}", ""},
		"before, in a list": {"{a: {type: array, maxItems: 10, items: {type: string, maxLength: 10, x-kubernetes-validations: [{rule: self == oldSelf, message: x}]}}}",
			`spec.a[]: rule "self == oldSelf": the value of before is not known inside of spec.a, which is owned as a whole; give it keys`},
		"before, with keys":    {"{a: {type: array, maxItems: 10, x-kubernetes-list-type: map, x-kubernetes-list-map-keys: [b], items: {type: object, required: [b], properties: {b: {type: string, maxLength: 10}, c: {type: string, maxLength: 10, x-kubernetes-validations: [{rule: self == oldSelf, message: x}]}}}}}", ""},
		"a default":            {"{a: {type: integer, default: 1, maximum: 0}}", "spec.a.default: Invalid value: 1"},
		"a default and a rule": {"{a: {type: integer, default: 1, x-kubernetes-validations: [{rule: self > 1, message: too small}]}}", "too small"},
	} {
		data, err := yaml.YAMLToJSON([]byte("{type: object, properties: {spec: {type: object, properties: " + tt.schema + "}}}"))
		v := &apiextensionsv1.CustomResourceValidation{OpenAPIV3Schema: &apiextensionsv1.JSONSchemaProps{}}
		if err != nil || json.Unmarshal(data, v.OpenAPIV3Schema) != nil {
			t.Fatal(name, err)
		}
		got := strings.Join(schemaProblems(t.Context(), v), "; ")
		if tt.want == "" && got != "" || !strings.Contains(got, tt.want) {
			t.Errorf("%s: got %q, want %q", name, got, tt.want)
		}
	}
}
