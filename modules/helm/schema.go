package helm

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"strings"

	"github.com/santhosh-tekuri/jsonschema/v6"
	"helm.sh/helm/v3/pkg/chartutil"

	"github.com/starling-operator/starling/runtime/message"
)

// renderValues is what a chart sees: values that fit its schema, capabilities, the release.
// Helm's check of values fetches what a schema refers to, from the network or from files of
// this machine: a schema that refers to anything outside of it is refused before.
func renderValues(ch *Chart, values map[string]any, o Options, caps *Capabilities) (chartutil.Values, error) {
	if err := checkReferences(ch); err != nil {
		return nil, err
	}
	top, err := chartutil.ToRenderValuesWithSchemaValidation(ch, values, o, caps, true)
	if err != nil {
		return nil, err
	}
	given, _ := top["Values"].(chartutil.Values)
	if forbidsGlobal(ch.Schema) {
		// All charts get the global values of the tree: for this one nobody has chosen them.
		given = maps.Clone(given)
		delete(given, chartutil.GlobalKey)
	}
	if err := chartutil.ValidateAgainstSchema(ch, given); err != nil {
		return nil, fmt.Errorf("values don't meet the specifications of the schema(s) in the following chart(s):\n%w", err)
	}
	return top, nil
}

// forbidsGlobal says that a schema names the keys of the values, and "global" is none of them.
func forbidsGlobal(text []byte) bool {
	var schema struct {
		Properties           map[string]json.RawMessage `json:"properties"`
		AdditionalProperties any                        `json:"additionalProperties"`
	}
	if json.Unmarshal(text, &schema) != nil {
		return false
	}
	_, named := schema.Properties[chartutil.GlobalKey]
	return schema.AdditionalProperties == false && !named
}

// checkReferences compiles the schemas of a chart and of its subcharts as Helm does, with nothing to be fetched.
func checkReferences(ch *Chart) error {
	for _, c := range All(ch) {
		if len(c.Schema) == 0 {
			continue
		}
		if err := compileClosed(c.Schema); err != nil {
			return fmt.Errorf("values.schema.json of chart %s: %w", c.ChartFullPath(), err)
		}
	}
	return nil
}

func compileClosed(text []byte) error {
	const own = "file:///values.schema.json" // as in Helm
	schema, err := jsonschema.UnmarshalJSON(bytes.NewReader(text))
	if err != nil {
		return err
	}
	c := jsonschema.NewCompiler()
	c.UseLoader(closed{})
	if err := c.AddResource(own, schema); err != nil {
		return err
	}
	_, err = c.Compile(own)
	if left := (*leavesChart)(nil); errors.As(err, &left) {
		return left
	}
	return err
}

// closed fetches nothing. A urn names a schema and no place; Helm takes it for one that allows all.
type closed struct{}

// Load refuses.
func (closed) Load(url string) (any, error) {
	if strings.HasPrefix(url, "urn:") {
		return true, nil
	}
	return nil, &leavesChart{url}
}

// leavesChart is a reference to another file, or to another machine.
type leavesChart struct{ url string }

// Error says what to do.
func (e *leavesChart) Error() string {
	return fmt.Sprintf("it refers to %s, and nothing outside of a schema is read: put what it needs under $defs, and refer to \"#/$defs/…\"", message.Cut(e.url, 200))
}
