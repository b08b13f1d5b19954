package values

import (
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"

	"github.com/starling-operator/starling/runtime/message"
)

// keywords are the keys that a schema may hold, and the kind of their values.
var keywords = map[string]keyword{
	"additionalProperties": schemaOrBool,
	"allOf":                schemaList,
	"anyOf":                schemaList,
	"const":                anything,
	"default":              anything,
	"description":          text,
	"enum":                 list,
	"example":              anything,
	"examples":             anything,
	"exclusiveMaximum":     boolean,
	"exclusiveMinimum":     boolean,
	"externalDocs":         anything,
	"format":               text,
	"items":                schemaOne,
	"maxItems":             number,
	"maxLength":            number,
	"maxProperties":        number,
	"maximum":              number,
	"minItems":             number,
	"minLength":            number,
	"minProperties":        number,
	"minimum":              number,
	"multipleOf":           number,
	"not":                  schemaOne,
	"nullable":             boolean,
	"oneOf":                schemaList,
	"pattern":              text,
	"patternProperties":    schemaMap,
	"properties":           schemaMap,
	"required":             textList,
	"title":                text,
	"type":                 typeName,
	"uniqueItems":          boolean,
	forHelm:                textList,
	foreignRules:           list,
	ownRules:               list,

	"x-kubernetes-embedded-resource":       boolean,
	"x-kubernetes-int-or-string":           boolean,
	"x-kubernetes-list-map-keys":           textList,
	"x-kubernetes-list-type":               text,
	"x-kubernetes-map-type":                text,
	"x-kubernetes-preserve-unknown-fields": boolean,
}

const (
	ownRules = "x-kubernetes-validations"
	// foreignRules are rules in CEL as addon-operator has them: expression in the place of rule.
	foreignRules = "x-deckhouse-validations"
	forHelm      = "x-required-for-helm"
)

// annotations are keys that say nothing of values.
var annotations = []string{"$comment", "$defs", "$id", "$schema", "contentEncoding", "contentMediaType", "definitions",
	"deprecated", "discriminator", "id", "readOnly", "writeOnly", "xml"}

// elsewhere are keys of JSON schemas that Starling does not look at.
var elsewhere = []string{"additionalItems", "contains", "dependencies", "dependentRequired", "dependentSchemas", "else", "if",
	"maxContains", "minContains", "prefixItems", "propertyNames", "then", "unevaluatedItems", "unevaluatedProperties"}

type keyword uint8

const (
	anything keyword = iota
	text
	boolean
	number
	list
	textList
	typeName
	schemaOne
	schemaOrBool
	schemaList
	schemaMap
)

// meantType is the type that is meant by a word of another language; "" when nobody knows.
func meantType(names []string) string {
	if len(names) != 1 {
		return ""
	}
	switch strings.ToLower(names[0]) {
	case "int", "int32", "int64", "long", "uint":
		return "integer"
	case "str", "text", "char":
		return "string"
	case "bool":
		return "boolean"
	case "list", "slice", "tuple":
		return "array"
	case "dict", "map", "struct", "hash":
		return "object"
	case "float", "double", "decimal", "num":
		return "number"
	}
	return ""
}

var typeNames = []string{"array", "boolean", "integer", "number", "object", "string"}

// schemaParser looks for what the decoder would silently drop or report without
// a place.
type schemaParser struct {
	mistakes
	nodes int // schemas in the schema
	slow  int // rules and patterns
	steps int // instructions of patterns

	alternatives int // how many of allOf, anyOf, oneOf and not are above
	below        int // how many patternProperties are
	patterns     map[string]keyPattern
}

const (
	// maxSchemaNodes, maxSchemaRules and maxSchemaSteps bound what a schema takes to
	// compile, which is some seconds with as many.
	maxSchemaNodes = 20_000
	maxSchemaRules = 2_000
	maxSchemaSteps = 400_000
)

// size says why the schema is too large.
func (p *schemaParser) size() string {
	switch {
	case p.nodes > maxSchemaNodes:
		return fmt.Sprintf("the schema describes more than %d fields; describe fewer, and let others be with x-kubernetes-preserve-unknown-fields", maxSchemaNodes)
	case p.slow > maxSchemaRules:
		return fmt.Sprintf("the schema has more than %d rules and patterns; use fewer", maxSchemaRules)
	case p.steps > maxSchemaSteps:
		return fmt.Sprintf("the patterns of the schema are too large: with each repetition, as in x{100}, written out they have more than %d characters", maxSchemaSteps)
	}
	return ""
}

// mistakes are those of a schema, each with its place in the values.
type mistakes struct {
	errs    []string
	remarks []string // of what values are not checked for
}

func (m *mistakes) fail(path, format string, args ...any) {
	m.errs = noted(m.errs, path, format, args)
}

// remark is fail for what does no harm.
func (m *mistakes) remark(path, format string, args ...any) {
	m.remarks = noted(m.remarks, path, format, args)
}

func noted(all []string, path, format string, args []any) []string {
	if len(all) >= maxProblems { // each is looked for in the text
		return all
	}
	if path != "" {
		path += ": "
	}
	return append(all, path+fmt.Sprintf(format, args...))
}

// node checks the schema of the values at path.
func (p *schemaParser) node(path string, m map[string]any) {
	p.nodes++
	for _, key := range []string{"x-kubernetes-validations", foreignRules} {
		rules, _ := m[key].([]any)
		p.slow += len(rules)
	}
	keys, _ := m["patternProperties"].(map[string]any)
	patterns := slices.Collect(maps.Keys(keys))
	if pattern, ok := m["pattern"].(string); ok {
		patterns = append(patterns, pattern)
	}
	for _, pattern := range patterns {
		size := patternSize(pattern)
		p.slow, p.steps = p.slow+1, p.steps+size
		p.patterns[pattern] = keyPattern{p.patterns[pattern].Regexp, size}
	}
	if p.size() != "" {
		return
	}
	for _, key := range slices.Sorted(maps.Keys(m)) {
		kind, ok := keywords[key]
		if !ok {
			if of, _ := m[key].(map[string]any); of["type"] != nil && !foreign(key) {
				p.remark(path, "%q is no keyword: fields stand below properties; write type: object, properties: and below that %s:", key, key)
				continue
			}
			p.unknown(path, key)
			continue
		}
		p.value(path, key, kind, m[key])
	}
}

// unknown refuses a key that Kubernetes may come to know, or that may be a slip in one that
// says which fields there are; others that are not known are common in schemas from
// elsewhere, which checks of their authors never look at.
func (p *schemaParser) unknown(path, key string) {
	near := message.Nearest(key, slices.Sorted(maps.Keys(keywords)))
	switch kind := keywords[near]; {
	case key == "x-extend":
		p.fail(path, "x-extend: it stands at the root only")
	case foreign(key), slices.Contains(annotations, key):
	case slices.Contains(elsewhere, key):
		p.remark(path, "%q is no keyword that Starling knows: values are not checked for it", key)
	case strings.HasPrefix(key, "x-kubernetes-"), kind >= typeName:
		p.fail(path, "%q is no keyword of a schema%s", key, didYouMean(near))
	default:
		p.remark(path, "%q is no keyword that Starling knows: values are not checked for it%s", key, didYouMean(near))
	}
}

func (p *schemaParser) value(path, key string, kind keyword, v any) {
	ok := true
	p.place(path, key, v)
	if kind == schemaList || key == "not" {
		p.alternatives++
		defer func() { p.alternatives-- }()
	}
	if key == "patternProperties" {
		p.below++
		defer func() { p.below-- }()
	}
	switch kind {
	case text:
		_, ok = v.(string)
	case boolean:
		_, ok = v.(bool)
	case number:
		_, isInt := v.(int64)
		_, isFloat := v.(float64)
		ok = isInt || isFloat
	case list:
		_, ok = v.([]any)
	case textList:
		var l []any
		l, ok = v.([]any)
		ok = ok && len(texts(l)) == len(l)
	case typeName:
		p.types(path, v)
	case schemaOrBool:
		if _, isBool := v.(bool); !isBool {
			ok = p.child(path+"[*]", v)
		}
	case schemaOne:
		ok = p.child(path+"[*]", v)
	case schemaList:
		var l []any
		l, ok = v.([]any)
		for _, e := range l {
			ok = ok && p.child(path, e)
		}
	case schemaMap:
		var m map[string]any
		m, ok = v.(map[string]any)
		for _, k := range slices.Sorted(maps.Keys(m)) {
			if !p.child(joinKey(path, k), m[k]) {
				p.fail(joinKey(path, k), "must be a schema, not %s", kindOf(m[k]))
			}
		}
	}
	if !ok {
		if _, isBool := v.(bool); isBool && key == "required" && path != "" {
			name := path[strings.LastIndexByte(path, '.')+1:]
			p.fail(path, "required does not take a boolean; write required: [%s] beside properties, one level up", name)
			return
		}
		p.fail(path, "%s does not take %s", key, kindOf(v))
	}
}

// types checks what type says: a name, or a list of some with "null" at most once.
func (p *schemaParser) types(path string, v any) {
	names, null := typeList(v)
	l, isList := v.([]any)
	_, isText := v.(string)
	ok := len(names) > 0 && (isText || isList && len(texts(l)) == len(l))
	for _, name := range names {
		ok = ok && (slices.Contains(typeNames, name) || name == "null" && !null && p.alternatives > 0)
	}
	if !ok {
		if meant := meantType(names); meant != "" {
			p.fail(path, "type %s is none; write type: %s", names[0], meant)
			return
		}
		p.fail(path, "type must be one of %s, or a list of them (nullable: true allows null)", strings.Join(typeNames, ", "))
	}
}

// place checks what Starling does not look at everywhere.
func (p *schemaParser) place(path, key string, v any) {
	compile := func(pattern string) {
		re, err := regexp.Compile(pattern)
		if p.patterns[pattern] = (keyPattern{re, p.patterns[pattern].size}); err != nil {
			p.fail(path, "%s must be valid regular expressions (RE2), but: %s", key, message.Line(err.Error()))
		}
	}
	text, _ := v.(string)
	switch {
	case key == "patternProperties":
		m, _ := v.(map[string]any)
		for _, pattern := range slices.Sorted(maps.Keys(m)) {
			compile(pattern)
		}
	case key == "pattern" && p.alternatives > 0: // others are checked as those of CRDs
		compile(text)
	case p.alternatives > 0 && (key == "x-kubernetes-validations" || key == foreignRules):
		p.fail(path, "%s does not work inside allOf, anyOf, oneOf and not: write it beside them", key)
	case p.alternatives > 0 && key == "default":
		p.remark(path, "default does nothing inside allOf, anyOf, oneOf and not: write it beside them")
	case p.alternatives+p.below > 0 && key == "x-required-for-helm":
		p.remark(path, "x-required-for-helm does nothing inside alternatives and patternProperties")
	case key == foreignRules:
		l, _ := v.([]any)
		for _, e := range l {
			m, _ := e.(map[string]any)
			if rule, _ := m["expression"].(string); rule == "" {
				p.fail(path, "%s: each one must have an expression", key)
			}
		}
	}
}

// child checks a schema below; false when it is no map.
func (p *schemaParser) child(path string, v any) bool {
	m, ok := v.(map[string]any)
	if ok {
		p.node(path, m)
	}
	return ok
}
