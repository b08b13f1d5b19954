package values

import (
	"errors"
	"fmt"
	"strings"

	kjson "sigs.k8s.io/json"

	"github.com/starling-operator/starling/runtime/bounded"
	"github.com/starling-operator/starling/runtime/message"
)

const (
	// maxYAMLBytes is the most text one key of a config or one schema file may
	// hold; a whole ConfigMap holds no more.
	maxYAMLBytes = 1 << 20
	// maxDepth is how deep maps and lists may be nested.
	maxDepth = 100
)

// parseYAML reads one YAML document that is a map; nothing at all is an empty
// one. Doubled keys are refused, integers stay int64. Errors are one line and
// quote no values.
func parseYAML(text []byte) (map[string]any, error) {
	if len(text) > maxYAMLBytes {
		return nil, fmt.Errorf("is larger than %d KiB", maxYAMLBytes>>10)
	}
	if line := bounded.SecondDocument(text); line > 0 {
		return nil, fmt.Errorf("holds a second document from line %d on: write one, without the ---", line)
	}
	if err := bounded.CheckYAML(text); err != nil {
		return nil, err
	}
	data, err := bounded.YAMLToJSON(text)
	if err != nil {
		return nil, yamlError(message.YAML(err.Error(), text))
	}
	var v any
	if err := kjson.UnmarshalCaseSensitivePreserveInts(data, &v); err != nil {
		return nil, errors.New("is not valid YAML")
	}
	if depth(v, maxDepth) < 0 {
		return nil, fmt.Errorf("is nested deeper than %d levels", maxDepth)
	}
	switch v := v.(type) {
	case nil:
		return map[string]any{}, nil
	case map[string]any:
		return v, nil
	case []any:
		return nil, errList
	default:
		return nil, fmt.Errorf("must be a map, not %s", kindOf(v))
	}
}

// errList is that of a text that is a list.
var errList = errors.New("must be a map, not a list")

// listHint is what to do about a list in the place of a section.
const listHint = `; put the list under a key, such as "items:"`

// yamlError rewrites what the YAML parser says into one line for people.
func yamlError(msg string) error {
	if strings.Contains(msg, "interface {}") || strings.Contains(strings.ToLower(msg), "map key") {
		return errors.New("is not valid YAML for values: every map key must be text")
	}
	for _, prefix := range []string{"error converting YAML to JSON: ", "yaml: ", "unmarshal errors:"} {
		msg = strings.TrimPrefix(msg, prefix)
	}
	var lines []string
	for line := range strings.Lines(msg) {
		if line = strings.TrimSpace(line); line != "" {
			lines = append(lines, line)
		}
	}
	return fmt.Errorf("is not valid YAML: %s", strings.Join(lines, "; "))
}

// depth returns what is left of limit below the deepest value, below zero when
// it is not enough.
func depth(v any, limit int) int {
	left := limit
	switch v := v.(type) {
	case map[string]any:
		for _, e := range v {
			if left = min(left, depth(e, limit-1)); left < 0 {
				return left
			}
		}
	case []any:
		for _, e := range v {
			if left = min(left, depth(e, limit-1)); left < 0 {
				return left
			}
		}
	}
	return left
}

// kindOf names the kind of plain data for people.
func kindOf(v any) string {
	return article(typeOf(v))
}
