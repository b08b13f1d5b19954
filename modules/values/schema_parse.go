package values

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"path"
	"slices"
	"strings"

	"k8s.io/apiextensions-apiserver/pkg/apis/apiextensions"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	structural "k8s.io/apiextensions-apiserver/pkg/apiserver/schema"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema/cel"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema/defaulting"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/validation"
	celconfig "k8s.io/apiserver/pkg/apis/cel"
	kjson "sigs.k8s.io/json"

	"github.com/starling-operator/starling/runtime/message"
)

// wrapKey is the property under which the schema stands while it is checked. The
// rules for the root of a custom resource (no additionalProperties, "metadata"
// and "kind" are special) are not for values.
const wrapKey = "values"

// ParseSchema reads a schema: YAML or JSON in the dialect of CRDs. A root without
// a type is an object. Besides what CRDs know there are
//
//   - x-extend: {schema: config-values.yaml}, at the root: this schema is laid
//     over that one, properties deeply; load reads a file by the name given;
//   - x-required-for-helm: [a, b], on any object: required by
//     [Composer.CheckHelm] only;
//   - additionalProperties: false, which changes nothing: unknown fields are
//     refused anyway.
//
// Other keys that begin with "x-", but not with "x-kubernetes-", are left to
// other tools. file names the schema in errors, which give the path of the place
// that is wrong.
func ParseSchema(file string, data []byte, load func(name string) ([]byte, error)) (*Schema, error) {
	raw, err := readSchema(file, data, load, nil)
	if err != nil {
		return nil, err
	}
	if _, ok := raw["type"]; !ok {
		raw["type"] = "object"
	}
	if raw["type"] != "object" {
		return nil, newSchemaError(file, data, "type must be object at the root")
	}
	p := &schemaParser{}
	p.node("", raw)
	if why := p.size(); why != "" {
		return nil, newSchemaError(file, data, why)
	}
	if len(p.errs) > 0 {
		return nil, newSchemaError(file, data, p.errs...)
	}
	s, err := buildSchema(file, data, raw)
	if err != nil {
		return nil, err
	}
	s.helm = requiredForHelm(raw)
	return s, nil
}

// readSchema reads the file and lays it over the one that it extends.
func readSchema(file string, data []byte, load func(string) ([]byte, error), seen []string) (map[string]any, error) {
	raw, err := parseYAML(data)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", file, err)
	}
	ext, ok := raw["x-extend"]
	if !ok {
		return raw, nil
	}
	delete(raw, "x-extend")
	m, _ := ext.(map[string]any)
	name, _ := m["schema"].(string)
	if name == "" || len(m) != 1 {
		return nil, fmt.Errorf("%s: x-extend must look like {schema: config-values.yaml}", file)
	}
	other := path.Join(path.Dir(file), name)
	if other == file || slices.Contains(seen, other) {
		return nil, fmt.Errorf("%s: x-extend: %s extends itself", file, name)
	}
	if load == nil {
		return nil, fmt.Errorf("%s: x-extend: %s cannot be read from here", file, name)
	}
	below, err := load(name)
	if err != nil {
		return nil, fmt.Errorf("%s: x-extend: %s cannot be read: %w", file, name, err)
	}
	base, err := readSchema(other, below, load, append(seen, file))
	if err != nil {
		return nil, err
	}
	return extend(base, raw), nil
}

// extend lays the schema over on base: properties deeply, lists of required
// fields and rules added, all else as over says.
func extend(base, over map[string]any) map[string]any {
	out := maps.Clone(base)
	for k, v := range over {
		was, there := out[k]
		switch k {
		case "properties":
			out[k] = extendProperties(was, v)
		case "required", "x-required-for-helm", "x-kubernetes-validations":
			a, _ := was.([]any)
			b, ok := v.([]any)
			if !ok || !there {
				out[k] = v
				continue
			}
			out[k] = appendNew(a, b)
		default:
			out[k] = v
		}
	}
	return out
}

func extendProperties(base, over any) any {
	b, ok := base.(map[string]any)
	if !ok {
		return over
	}
	o, ok := over.(map[string]any)
	if !ok {
		return over
	}
	out := maps.Clone(b)
	for k, v := range o {
		was, ok1 := out[k].(map[string]any)
		now, ok2 := v.(map[string]any)
		if ok1 && ok2 {
			out[k] = extend(was, now)
		} else {
			out[k] = v
		}
	}
	return out
}

// appendNew appends what is not there yet.
func appendNew(a, b []any) []any {
	out := slices.Clone(a)
	for _, v := range b {
		if _, isText := v.(string); isText && slices.Contains(texts(a), v.(string)) {
			continue
		}
		out = append(out, v)
	}
	return out
}

// texts returns the strings of a list.
func texts(list []any) []string {
	var out []string
	for _, v := range list {
		if s, ok := v.(string); ok {
			out = append(out, s)
		}
	}
	return out
}

const notStructural = "not a structural schema: "

// buildSchema makes the schema from its cleaned tree.
func buildSchema(file string, text []byte, raw map[string]any) (*Schema, error) {
	data, err := json.Marshal(clean(raw, false))
	if err != nil {
		return nil, fmt.Errorf("%s: a number is infinite or not a number", file)
	}
	var v1 apiextensionsv1.JSONSchemaProps
	if err := kjson.UnmarshalCaseSensitivePreserveInts(data, &v1); err != nil {
		return nil, fmt.Errorf("%s: not a valid schema: %s", file, jsonError(err))
	}
	var props apiextensions.JSONSchemaProps
	if err := apiextensionsv1.Convert_v1_JSONSchemaProps_To_apiextensions_JSONSchemaProps(&v1, &props, nil); err != nil {
		return nil, fmt.Errorf("%s: not a valid schema: %s", file, message.Line(err.Error()))
	}
	wrapped, err := structural.NewStructural(&apiextensions.JSONSchemaProps{
		Type:       "object",
		Properties: map[string]apiextensions.JSONSchemaProps{wrapKey: props},
	})
	if err != nil {
		return nil, fmt.Errorf("%s: not a structural schema: %s", file, message.Line(err.Error()))
	}
	if errs := structural.ValidateStructural(nil, wrapped); len(errs) > 0 {
		mistakes := fieldErrors(errs)
		mistakes[0] = notStructural + mistakes[0]
		return nil, newSchemaError(file, text, mistakes...)
	}
	root := wrapped.Properties[wrapKey]
	errs, err := defaulting.ValidateDefaults(context.Background(), nil, wrapped, false, true)
	if err != nil {
		return nil, fmt.Errorf("%s: a default cannot be checked: %s", file, message.Line(err.Error()))
	}
	if len(errs) > 0 {
		return nil, newSchemaError(file, text, fieldErrors(errs)...)
	}
	if err := checkRules(&root); err != nil {
		return nil, fmt.Errorf("%s: %w", file, err)
	}
	_, openAPI, err := validation.NewSchemaValidator(&props)
	if err != nil {
		return nil, fmt.Errorf("%s: not a valid schema: %s", file, message.Line(err.Error()))
	}
	patterns := map[string]int{}
	patternSizes(openAPI, patterns)
	return &Schema{
		file:     file,
		root:     &root,
		defaults: newFiller(&root),
		spec:     openAPI,
		patterns: patterns,
		rules:    cel.NewValidator(&root, false, celconfig.PerCallLimit),
	}, nil
}

// clean copies a schema without what is ours or nobody's: additionalProperties:
// false and foreign extensions. named says that the keys of m are names of
// fields.
func clean(m map[string]any, named bool) map[string]any {
	out := make(map[string]any, len(m))
	for k, v := range m {
		switch {
		case named:
		case k == "additionalProperties" && v == false, k == "examples", foreign(k):
			continue
		case k == "default", k == "enum", k == "example":
			out[k] = v
			continue
		}
		switch v := v.(type) {
		case map[string]any:
			out[k] = clean(v, !named && (k == "properties"))
		case []any:
			out[k] = cleanList(v)
		default:
			out[k] = v
		}
	}
	return out
}

func cleanList(list []any) []any {
	out := make([]any, len(list))
	for i, v := range list {
		if m, ok := v.(map[string]any); ok {
			v = clean(m, false)
		}
		out[i] = v
	}
	return out
}

// foreign says that a key of a schema is an extension that Kubernetes does not
// know.
func foreign(key string) bool {
	return strings.HasPrefix(key, "x-") && !strings.HasPrefix(key, "x-kubernetes-")
}

// jsonError says where a schema has a value of the wrong kind.
func jsonError(err error) string {
	var te *json.UnmarshalTypeError
	if errors.As(err, &te) && te.Field != "" {
		return te.Field + ": " + te.Value + " is not allowed here"
	}
	return "a keyword has a value of the wrong kind"
}
