package values

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/starling-operator/starling/runtime/message"
)

// keywords are the keys that an object of a structural schema may hold, and the
// kind of their values.
var keywords = map[string]keyword{
	"additionalProperties": schemaOrBool,
	"allOf":                schemaList,
	"anyOf":                schemaList,
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
	"properties":           schemaMap,
	"required":             textList,
	"title":                text,
	"type":                 typeName,
	"uniqueItems":          boolean,
	"x-required-for-helm":  textList,

	"x-kubernetes-embedded-resource":       boolean,
	"x-kubernetes-int-or-string":           boolean,
	"x-kubernetes-list-map-keys":           textList,
	"x-kubernetes-list-type":               text,
	"x-kubernetes-map-type":                text,
	"x-kubernetes-preserve-unknown-fields": boolean,
	"x-kubernetes-validations":             list,
}

// refusedKeywords are keys that people try, and what to do instead.
var refusedKeywords = map[string]string{
	"$ref":                    "references are not possible in a structural schema: write the schema out, or use x-extend at the root",
	"patternProperties":       "use additionalProperties",
	"x-deckhouse-validations": "write x-kubernetes-validations with rule instead of expression",
	"x-extend":                "it stands at the root only",
	"const":                   "use enum with one value",
}

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

var typeNames = []string{"array", "boolean", "integer", "number", "object", "string"}

// schemaParser looks for what the decoder would silently drop or report without
// a place.
type schemaParser struct {
	errs  []string
	nodes int // schemas in the schema
	slow  int // rules and patterns
	steps int // instructions of patterns
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

func (p *schemaParser) fail(path, format string, args ...any) {
	msg := fmt.Sprintf(format, args...)
	if path != "" {
		msg = path + ": " + msg
	}
	p.errs = append(p.errs, msg)
}

// node checks the schema of the values at path.
func (p *schemaParser) node(path string, m map[string]any) {
	p.nodes++
	if rules, _ := m["x-kubernetes-validations"].([]any); len(rules) > 0 {
		p.slow += len(rules)
	}
	if pattern, ok := m["pattern"].(string); ok {
		p.slow++
		p.steps += patternSize(pattern)
	}
	if p.size() != "" {
		return
	}
	for _, key := range slices.Sorted(maps.Keys(m)) {
		kind, ok := keywords[key]
		if !ok {
			p.unknown(path, key)
			continue
		}
		p.value(path, key, kind, m[key])
	}
}

func (p *schemaParser) unknown(path, key string) {
	if why, ok := refusedKeywords[key]; ok {
		p.fail(path, "%s: %s", key, why)
		return
	}
	if foreign(key) {
		return
	}
	p.fail(path, "%q is no keyword of a structural schema%s", key,
		didYouMean(message.Nearest(key, slices.Sorted(maps.Keys(keywords)))))
}

func (p *schemaParser) value(path, key string, kind keyword, v any) {
	ok := true
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
		s, isText := v.(string)
		if !isText || !slices.Contains(typeNames, s) {
			p.fail(path, "type must be one of %s (nullable: true allows null)", strings.Join(typeNames, ", "))
		}
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
		p.fail(path, "%s does not take %s", key, kindOf(v))
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
