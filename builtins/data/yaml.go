package data

import (
	"errors"
	"fmt"
	"maps"
	"math"
	"slices"
	"strconv"
	"strings"

	"go.starlark.net/starlark"
	goyaml "sigs.k8s.io/yaml/goyaml.v2"

	"github.com/starling-operator/starling/builtins/spec"
	"github.com/starling-operator/starling/runtime/bounded"
	"github.com/starling-operator/starling/runtime/message"
	"github.com/starling-operator/starling/runtime/object"
)

// YAML, read as kubectl reads it: YAML 1.1, duplicate keys refused, keys as text, whole numbers as ints.

// maxYAML is the most bytes of YAML that are read or written. Its values take
// some hundred times that in memory; the API server takes objects of 1.5 MiB.
const maxYAML = 3 << 20

func yamlSpecs() []spec.Spec {
	text := []spec.Param{spec.Required("text", spec.String)}
	return []spec.Spec{
		spec.Pure("yaml.encode", callYAMLEncode, spec.Required("x", spec.Any)),
		spec.Pure("yaml.decode", callYAMLDecode, append(text, spec.Optional("default", spec.Any, "None"))...),
		spec.Pure("yaml.decode_all", callYAMLDecodeAll, text...),
	}
}

func callYAMLEncode(c *spec.Call) (starlark.Value, error) {
	plain, err := object.ToPlain(c.Arg("x"))
	if err != nil {
		return nil, err
	}
	out, err := EncodeYAML(plain)
	return starlark.String(out), err
}

func EncodeYAML(plain any) (string, error) {
	if yamlSize(plain, 0) > maxYAML {
		return "", fmt.Errorf("larger than %d MiB as YAML", maxYAML>>20)
	}
	// Not by way of JSON, in which some characters stand as they are that YAML must escape.
	out, err := goyaml.Marshal(object.Change(object.CopyPlain(plain), inOrder))
	return string(out), err
}

// inOrder sorts the keys of a dict by their bytes. The library's own order puts numbers within keys in theirs, and
// depends on chance for keys such as "1C", "20" and "20A".
func inOrder(v any) any {
	dict, is := v.(map[string]any)
	if !is {
		return v
	}
	out := make(goyaml.MapSlice, 0, len(dict))
	for _, k := range slices.Sorted(maps.Keys(dict)) {
		out = append(out, goyaml.MapItem{Key: k, Value: dict[k]})
	}
	return out
}

// yamlSize guesses the size of plain data as YAML. Indentation can make it far larger than the data.
func yamlSize(v any, depth int) int {
	line := 2*depth + 2
	n := 0
	switch v := v.(type) {
	case map[string]any:
		for k, e := range v {
			n += line + len(k) + yamlSize(e, depth+1)
		}
	case []any:
		for _, e := range v {
			n += line + yamlSize(e, depth+1)
		}
	case string:
		n = len(v) + line*strings.Count(v, "\n")
	default:
		n = 4
	}
	return n
}

func callYAMLDecode(c *spec.Call) (starlark.Value, error) {
	text := c.Str("text")
	if err := c.Room(bounded.YAMLBytes([]byte(text))); err != nil {
		return nil, err
	}
	v, err := decodeOneYAML(text)
	if err != nil && c.Arg("default") != nil {
		return c.Arg("default"), nil
	}
	return v, err
}

func decodeOneYAML(text string) (starlark.Value, error) {
	docs, err := yamlDocuments(text)
	if err != nil {
		return nil, err
	}
	switch len(docs) {
	case 0:
		return starlark.None, nil
	case 1:
		return decodeYAML(docs[0])
	}
	return nil, fmt.Errorf("the text holds %d documents; use yaml.decode_all", len(docs))
}

func callYAMLDecodeAll(c *spec.Call) (starlark.Value, error) {
	text := c.Str("text")
	if err := c.Room(bounded.YAMLBytes([]byte(text))); err != nil {
		return nil, err
	}
	return DecodeYAML(text)
}

func DecodeYAML(text string) (starlark.Value, error) {
	docs, err := yamlDocuments(text)
	if err != nil {
		return nil, err
	}
	var out []starlark.Value
	for i, doc := range docs {
		v, err := decodeYAML(doc)
		if err != nil {
			return nil, fmt.Errorf("document %d: %w", i+1, err)
		}
		if v != starlark.None {
			out = append(out, v)
		}
	}
	return starlark.NewList(out), nil
}

// yamlDocuments splits text at its --- lines and leaves out what is blank.
func yamlDocuments(text string) ([][]byte, error) {
	if len(text) > maxYAML {
		return nil, fmt.Errorf("the text is larger than %d MiB", maxYAML>>20)
	}
	return bounded.SplitYAML([]byte(text))
}

func decodeYAML(doc []byte) (starlark.Value, error) {
	if err := bounded.CheckYAML(doc); err != nil {
		return nil, fmt.Errorf("the text %w", err)
	}
	var raw any
	err := goyaml.UnmarshalStrict(doc, &raw)
	if bounded.Overrides(doc, err) {
		raw = nil
		err = goyaml.Unmarshal(doc, &raw)
	}
	if err != nil {
		return nil, errors.New(message.Line(strings.TrimPrefix(message.YAML(err.Error(), doc), "yaml: ")))
	}
	left := object.MaxBytes
	return fromYAML(raw, 0, &left)
}

// fromYAML turns what the parser made into mutable Starlark values.
func fromYAML(raw any, depth int, left *int) (starlark.Value, error) {
	if depth > maxNesting {
		return nil, fmt.Errorf("nested deeper than %d", maxNesting)
	}
	if *left -= 8; *left < 0 {
		return nil, fmt.Errorf("larger than %d MiB", object.MaxBytes>>20)
	}
	switch v := raw.(type) {
	case nil:
		return starlark.None, nil
	case bool:
		return starlark.Bool(v), nil
	case string:
		*left -= len(v)
		return starlark.String(v), nil
	case int:
		return starlark.MakeInt(v), nil
	case int64:
		return starlark.MakeInt64(v), nil
	case uint64:
		return starlark.MakeUint64(v), nil
	case float64:
		// As by way of JSON, which kubectl goes: 1.0 is 1 there.
		switch {
		case math.IsNaN(v) || math.IsInf(v, 0):
			return nil, errors.New("infinity and NaN are no JSON numbers")
		case v == math.Trunc(v) && math.Abs(v) < 1<<63:
			return starlark.MakeInt64(int64(v)), nil
		}
		return starlark.Float(v), nil
	case []any:
		elems := make([]starlark.Value, len(v))
		for i, e := range v {
			var err error
			if elems[i], err = fromYAML(e, depth+1, left); err != nil {
				return nil, err
			}
		}
		return starlark.NewList(elems), nil
	case map[any]any:
		return fromYAMLMap(v, depth, left)
	}
	return nil, fmt.Errorf("a %T has no place in JSON", raw)
}

func fromYAMLMap(m map[any]any, depth int, left *int) (starlark.Value, error) {
	named := make(map[string]any, len(m))
	for k, v := range m {
		key, err := yamlKey(k)
		if err != nil {
			return nil, err
		}
		if _, twice := named[key]; twice {
			return nil, fmt.Errorf("key %q is there twice", spec.Clip(key))
		}
		*left -= len(key)
		named[key] = v
	}
	d := starlark.NewDict(len(named))
	for _, k := range slices.Sorted(maps.Keys(named)) {
		v, err := fromYAML(named[k], depth+1, left)
		if err != nil {
			return nil, err
		}
		if err := d.SetKey(starlark.String(k), v); err != nil {
			return nil, err
		}
	}
	return d, nil
}

// yamlKey writes a key as sigs.k8s.io/yaml does.
func yamlKey(k any) (string, error) {
	switch k := k.(type) {
	case string:
		return k, nil
	case int:
		return strconv.Itoa(k), nil
	case int64:
		return strconv.FormatInt(k, 10), nil
	case bool:
		return strconv.FormatBool(k), nil
	case float64:
		if !math.IsNaN(k) && !math.IsInf(k, 0) {
			return strconv.FormatFloat(k, 'g', -1, 32), nil
		}
	}
	return "", errors.New("a key is no text, number or boolean")
}
