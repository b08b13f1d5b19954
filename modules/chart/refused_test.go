package chart

import (
	"errors"
	"testing"

	"github.com/starling-operator/starling/modules/tree"
)

// An object that the API server refuses is told of with its template.
func TestRefusedObjectsHaveTheirTemplates(t *testing.T) {
	const template = `apiVersion: apps/v1
kind: Deployment
metadata:
  name: web
spec:
  replicas: "two"
  selector:
    matchLabels:
      app: true
  template:
    metadata:
      labels:
        app: web
`
	target := Input{Module: "web", Chart: &tree.Chart{Files: []tree.File{{Path: "templates/a.yaml", Data: []byte(template)}}}}
	files := map[string]string{"web/templates/a.yaml": template, "web/templates/b.yaml": "kind: Deployment\nmetadata: {name: b}\n"}
	for _, tt := range []struct{ text, want string }{
		{
			`Deployment in version "v1" cannot be handled as a Deployment: json: cannot unmarshal bool into Go struct field LabelSelector.spec.selector.matchLabels of type string`,
			"web/templates/a.yaml:9: Deployment web: spec.selector.matchLabels.app must be a string: the API server refuses it (put it in quotes: {{ … | quote }})",
		},
		{
			`Deployment in version "v1" cannot be handled as a Deployment: json: cannot unmarshal string into Go struct field DeploymentSpec.spec.replicas of type int32`,
			"web/templates/a.yaml:6: Deployment web: spec.replicas must be an integer: the API server refuses it (leave the quotes out, or write {{ int … }})",
		},
		{
			`Deployment in version "v1" cannot be handled as a Deployment: json: cannot unmarshal number into Go struct field PodSpec.spec.template.spec.containers.name of type string`,
			`Deployment in version "v1" cannot be handled as a Deployment: spec.template.spec.containers.name must be a string, not a number`,
		},
		{
			`cannot apply Deployment "b": Deployment in version "v1" cannot be handled as a Deployment: json: cannot unmarshal string into Go struct field DeploymentSpec.spec.replicas of type int32`,
			`cannot apply Deployment "b": Deployment in version "v1" cannot be handled as a Deployment: spec.replicas must be an integer, not a string`,
		},
		{
			`cannot apply Deployment "web": failed to create typed patch object (apps/web; apps/v1, Kind=Deployment): .spec.replicas: expected numeric (int or float), got string`,
			"web/templates/a.yaml:6: Deployment web: spec.replicas must be a number: the API server refuses it (leave the quotes out, or write {{ int … }})",
		},
		{
			`cannot patch "web" with kind Deployment: Deployment.apps "web" is invalid: spec.selector: Invalid value: {"matchLabels":{"app":"b"}}: field is immutable`,
			`web/templates/a.yaml:7: cannot patch "web" with kind Deployment: Deployment.apps "web" is invalid: spec.selector: Invalid value: field is immutable (nobody can change it: write it as it was, or delete the Deployment, and the release makes it anew)`,
		},
		{
			"Deployment.apps \"web\" is invalid: [spec.template.metadata.labels: Invalid value: `selector` does not match template `labels`, spec.x: Required value]",
			"web/templates/a.yaml:12: Deployment.apps \"web\" is invalid: [spec.template.metadata.labels: Invalid value: `selector` does not match template `labels`, spec.x: Required value]",
		},
		{`Deployment.apps "none" is invalid: spec.selector: Required value`, `Deployment.apps "none" is invalid: spec.selector: Required value`},
		{`ConfigMap "web" is invalid: data: Too long`, `ConfigMap "web" is invalid: data: Too long`},
	} {
		if got := InTemplate(target, files, errors.New(Tidy(tt.text))).Error(); got != tt.want {
			t.Errorf("got\n%s, want\n%s", got, tt.want)
		}
	}
}
