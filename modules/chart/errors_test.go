package chart

import "testing"

func TestTidy(t *testing.T) {
	tests := []struct{ name, in, want string }{
		{"yaml", "YAML parse error on web/templates/a.yaml: error converting YAML to JSON: yaml: line 5: could not find expected ':'",
			"web/templates/a.yaml: not YAML once rendered: line 5: could not find expected ':'"},
		{"many", "2 errors occurred:\n\t* pods \"a\" is forbidden\n\t* pods \"b\" is forbidden\n\n", `pods "a" is forbidden; pods "b" is forbidden`},
		{"a long value", `Deployment.apps "a" is invalid: spec.selector: Invalid value: {"matchLabels":{"a":"b"}}: field is immutable`,
			`Deployment.apps "a" is invalid: spec.selector: Invalid value: field is immutable`},
		{"a Go struct", `Pod "a" is invalid: spec: Invalid value: core.PodSpec{Env: {"x"}}: no`, `Pod "a" is invalid: spec: Invalid value: no`},
		{"a short value", `a: Invalid value: "b c": no`, `a: Invalid value: "b c": no`},
		{"a type that an apply refuses", `cannot apply ConfigMap "web": failed to create typed patch object (apps/web; /v1, Kind=ConfigMap): .data.port: expected string, got &value.valueUnstructured{Value:1}`,
			`cannot apply ConfigMap "web": ConfigMap in version "v1" cannot be handled as a ConfigMap: data.port must be a string, not a number`},
		{"a type below", "failed to create typed patch object (a/b; apps/v1, Kind=Deployment): .spec.template: expected map, got &value.valueUnstructured{Value:\"se\\ncret\"}",
			`Deployment in version "v1" cannot be handled as a Deployment: spec.template must be an object, not a string`},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			if got := Tidy(tt.in); got != tt.want {
				t.Errorf("\n%s\nwant\n%s", got, tt.want)
			}
		})
	}
}
