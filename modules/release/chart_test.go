package release

import (
	"fmt"
	"net/http"

	"github.com/starling-operator/starling/modules/chart"
)

type roundTripper func(*http.Request) (*http.Response, error)

func (f roundTripper) RoundTrip(r *http.Request) (*http.Response, error) { return f(r) }

// chartOf is a chart of templates/0.yaml, templates/1.yaml, …
func chartOf(name string, templates ...string) *chart.Chart {
	files := []chart.File{{Path: "Chart.yaml", Data: []byte("apiVersion: v2\nname: " + name + "\nversion: 1.0.0\n")}}
	for i, text := range templates {
		files = append(files, chart.File{Path: fmt.Sprintf("templates/%d.yaml", i), Data: []byte(text)})
	}
	return &chart.Chart{Name: name, Files: files, Digest: chart.DigestOf(files)}
}

// with adds a file to a chart.
func with(c *chart.Chart, path, text string) *chart.Chart {
	files := append(append([]chart.File{}, c.Files...), chart.File{Path: path, Data: []byte(text)})
	return &chart.Chart{Name: c.Name, Files: files, Digest: chart.DigestOf(files)}
}

const thingCRD = `apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: things.GROUP, creationTimestamp: null}
spec:
  group: GROUP
  names: {kind: Thing, plural: things, singular: thing, listKind: ThingList}
  scope: Namespaced
  versions:
    - {name: v1, served: true, storage: true, schema: {openAPIV3Schema: {type: object, x-kubernetes-preserve-unknown-fields: true}}}
    - {name: v0, served: false, storage: false, schema: {openAPIV3Schema: {type: object}}}
status: {conditions: [], storedVersions: []}
`
