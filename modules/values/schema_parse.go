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
	"k8s.io/apiserver/pkg/cel/environment"
	"k8s.io/kube-openapi/pkg/validation/spec"
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
//   - $ref: "#/definitions/port", or with the name of a file beside this one before the #,
//     which load reads; a schema that refers to itself is refused;
//   - lists of types, const, patternProperties, additionalProperties beside properties,
//     types and fields of alternatives (allOf, anyOf, oneOf, not);
//   - x-extend: {schema: config-values.yaml}, at the root: this schema is laid
//     over that one, properties deeply; load reads a file by the name given;
//   - x-required-for-helm: [a, b], on any object: required by
//     [Composer.CheckHelm] only;
//   - additionalProperties: false, which changes nothing: unknown fields are
//     refused anyway.
//
// Other keys that begin with "x-", but not with "x-kubernetes-", are left to
// other tools; keys that nobody knows are [Schema.Remarks]. file names the schema in
// errors, which give the path of the place that is wrong.
func ParseSchema(file string, data []byte, load func(name string) ([]byte, error)) (*Schema, error) {
	text := &schemaText{file: file, data: data, load: load}
	raw, err := readSchema(text, nil)
	if err != nil {
		return nil, err
	}
	if _, ok := raw["type"]; !ok {
		raw["type"] = "object"
	}
	if raw["type"] != "object" {
		return nil, text.wrong("type must be object at the root")
	}
	p := &schemaParser{patterns: map[string]keyPattern{}}
	p.node("", raw)
	if why := p.size(); why != "" {
		return nil, text.wrong(why)
	}
	if len(p.errs) > 0 {
		return nil, text.wrong(p.errs...)
	}
	s, err := buildSchema(text, raw, p.patterns)
	if err != nil {
		return nil, err
	}
	if len(p.remarks) > 0 {
		s.remarks = text.wrong(p.remarks...)
	}
	return s, nil
}

// readSchema reads the file and lays it over the one that it extends.
func readSchema(text *schemaText, seen []string) (map[string]any, error) {
	raw, err := parseYAML(text.data)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", text.file, err)
	}
	if raw, err = withoutRefs(text, raw); err != nil {
		return nil, err
	}
	ext, ok := raw["x-extend"]
	if !ok {
		return raw, nil
	}
	delete(raw, "x-extend")
	m, _ := ext.(map[string]any)
	name, _ := m["schema"].(string)
	if name == "" || len(m) != 1 {
		return nil, fmt.Errorf("%s: x-extend must look like {schema: config-values.yaml}", text.file)
	}
	other := path.Join(path.Dir(text.file), name)
	if other == text.file || slices.Contains(seen, other) {
		return nil, fmt.Errorf("%s: x-extend: %s extends itself", text.file, name)
	}
	if text.load == nil {
		return nil, fmt.Errorf("%s: x-extend: %s cannot be read from here", text.file, name)
	}
	below, err := text.load(name)
	if err != nil {
		return nil, fmt.Errorf("%s: x-extend: %s cannot be read: %w", text.file, name, err)
	}
	base, err := readSchema(&schemaText{file: other, data: below, load: text.load}, append(seen, text.file))
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
		switch k {
		case "properties":
			extendAt(out, k, v, func(fields, more map[string]any) map[string]any {
				fields = maps.Clone(fields)
				for name, field := range more {
					extendAt(fields, name, field, extend)
				}
				return fields
			})
		case "required", forHelm, ownRules:
			all, _ := out[k].([]any)
			more, isList := v.([]any)
			if out[k] = v; !isList || all == nil {
				continue
			}
			all = slices.Clone(all)
			for _, e := range more {
				if _, isText := e.(string); !isText || !slices.Contains(all, e) {
					all = append(all, e)
				}
			}
			out[k] = all
		default:
			out[k] = v
		}
	}
	return out
}

// extendAt lays v over what is under a key: with f where both are maps, else v counts.
func extendAt(in map[string]any, key string, v any, f func(base, over map[string]any) map[string]any) {
	base, was := in[key].(map[string]any)
	over, is := v.(map[string]any)
	if in[key] = v; was && is {
		in[key] = f(base, over)
	}
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

// buildSchema makes the schema from its tree, in which the parser has found no mistake.
func buildSchema(text *schemaText, raw map[string]any, patterns map[string]keyPattern) (*Schema, error) {
	full := normalSchema(raw, false)
	shaped := shape(full)
	known := newKnownFields(shaped, patterns, newRoom())
	var m mistakes
	tree := structure("", shaped, m.fail)
	if len(m.errs) > 0 {
		return nil, text.wrong(m.errs...)
	}
	root, err := structuralSchema(text, tree)
	if err != nil {
		return nil, err
	}
	if wrong := brokenRules(root, ""); len(wrong) > 0 {
		return nil, text.wrong(wrong...)
	}
	s := &Schema{
		file:     text.file,
		root:     root,
		known:    known,
		patterns: patterns,
		rules:    cel.NewValidator(root, false, celconfig.PerCallLimit),
	}
	if s.spec, err = validationSchema(text.file, full); err != nil {
		return nil, err
	}
	if wrong := wrongDefaults(&check{patterns: patterns}, s.spec, known, ""); len(wrong) > 0 {
		return nil, text.wrong(wrong...)
	}
	return s, nil
}

// propsOf decodes a schema as that of a CustomResourceDefinition.
func propsOf(file string, raw map[string]any) (*apiextensions.JSONSchemaProps, error) {
	data, err := json.Marshal(raw)
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
	return &props, nil
}

// structuralSchema checks a structure as Kubernetes does, with its defaults.
func structuralSchema(text *schemaText, tree map[string]any) (*structural.Structural, error) {
	props, err := propsOf(text.file, tree)
	if err != nil {
		return nil, err
	}
	wrapped, err := structural.NewStructural(&apiextensions.JSONSchemaProps{
		Type:       "object",
		Properties: map[string]apiextensions.JSONSchemaProps{wrapKey: *props},
	})
	if err != nil {
		return nil, fmt.Errorf("%s: %s%s", text.file, notStructural, message.Line(err.Error()))
	}
	if errs := structural.ValidateStructural(nil, wrapped); len(errs) > 0 {
		mistakes := fieldErrors(errs)
		mistakes[0] = notStructural + mistakes[0]
		return nil, text.wrong(mistakes...)
	}
	root := wrapped.Properties[wrapKey]
	errs, err := defaulting.ValidateDefaults(context.Background(), nil, wrapped, false, true)
	if err != nil {
		return nil, fmt.Errorf("%s: a default cannot be checked: %s", text.file, message.Line(err.Error()))
	}
	if len(errs) > 0 {
		return nil, text.wrong(fieldErrors(errs)...)
	}
	return &root, nil
}

// validationSchema makes what the validator looks at of a normal schema.
func validationSchema(file string, full map[string]any) (*spec.Schema, error) {
	props, err := propsOf(file, full)
	if err != nil {
		return nil, err
	}
	strip := validation.StripUnsupportedFormatsPostProcessorForVersion(environment.DefaultCompatibilityVersion())
	out := &spec.Schema{}
	err = validation.ConvertJSONSchemaPropsWithPostProcess(props, out, func(s *spec.Schema) error {
		if len(s.Type) == 1 {
			s.Type = strings.Split(s.Type[0], ",")
		}
		return strip(s)
	})
	if err != nil {
		return nil, fmt.Errorf("%s: not a valid schema: %s", file, message.Line(err.Error()))
	}
	return out, nil
}

// wrongDefaults finds defaults that do not pass where Kubernetes has not looked: below
// patterns, and of several types. f has them with those inside them.
func wrongDefaults(c *check, n *spec.Schema, f *knownFields, path string) []string {
	if f == nil {
		f = &knownFields{}
	}
	var out []string
	if f.value != nil {
		c.mistakes = 0
		for _, p := range c.validate(n, f.value) {
			p.Path = strings.TrimPrefix(path+"."+p.Path, ".")
			p.Path = strings.TrimSuffix(p.Path, ".")
			p.Message = "default " + p.Message
			out = append(out, p.String())
		}
	}
	below := func(field *spec.Schema, f *knownFields, path string) {
		if field != nil && len(out) < maxProblems {
			out = append(out, wrongDefaults(c, field, f, path)...)
		}
	}
	for _, name := range slices.Sorted(maps.Keys(n.Properties)) {
		field := n.Properties[name]
		below(&field, f.fields[name], joinKey(path, name))
	}
	for _, p := range f.patterns {
		if field, own := n.PatternProperties[p.String()]; own {
			below(&field, p.knownFields, joinKey(path, p.String()))
		}
	}
	if n.AdditionalProperties != nil {
		below(n.AdditionalProperties.Schema, f.rest, path+"[*]")
	}
	if n.Items != nil {
		below(n.Items.Schema, f.items, path+"[*]")
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
	if te, ok := errors.AsType[*json.UnmarshalTypeError](err); ok && te.Field != "" {
		return te.Field + ": " + te.Value + " is not allowed here"
	}
	return "a keyword has a value of the wrong kind"
}
