package chart

import (
	"maps"
	"regexp"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/Masterminds/sprig/v3"

	"github.com/starling-operator/starling/runtime/message"
)

// MaxError is where an error's text is cut: no manifest fits.
const MaxError = 1000

// noise is what Helm and kubectl put in front of the reason.
var noise = regexp.MustCompile(`failed to create resource: |unable to recognize "": |unable to decode "": |` +
	`error validating "": |warning: |error calling \w+: (?:error calling \w+: )+|\d+ errors? occurred:\s*\* `)

var (
	templateAt = regexp.MustCompile(`template: ([^\s:]+:\d+(?::\d+)?): (?:executing "[^"]*" (?:at <((?:[^>]|>[^:])*)>: )?)?`)
	inText     = regexp.MustCompile(`template: gotpl:(\d+)[:\d]*: (?:executing "gotpl" at <(?:[^>]|>[^:])*>: )?`)
	located    = regexp.MustCompile(`(?:parse|execution) error (?:at|in) \(([^)]+)\): `)
	quotedText = regexp.MustCompile(`(cannot parse template|function execution for) "(?:[^"\\]|\\.)*"`)
	nothing    = regexp.MustCompile(`nil pointer evaluating interface \{\}\.(\w+)`)
	yamlError  = regexp.MustCompile(`YAML parse error on (\S+): (?:error converting YAML to JSON: )?(?:yaml: )?`)
	invalid    = regexp.MustCompile(`(Invalid value|Duplicate value|Unsupported value): (?:"((?:[^"\\]|\\.)*)"|(\{.*\}|\[.*\]|[\w.]+\{.*\})|([^\s:]+))`)
	notLike    = regexp.MustCompile(`'[^']*' (does not match|is not valid|must be)`)
	schemaHead = regexp.MustCompile(`values don't meet the specifications of the schema\(s\) in the following chart\(s\):\s*`)
	goTypes    = strings.NewReplacer("map[string]interface {}", "map", "[]interface {}", "list", "interface {}", "value", "*errors.errorString", "error")
)

// maxShown is how long a value that the API server refused may be to be shown.
const maxShown = 40

// Tidy rewrites the text of an error of Helm's, of the template engine's or of
// the API server's for people, and cuts what may hold values.
func Tidy(text string) string {
	text = quotedText.ReplaceAllString(text, "$1 a text")
	text = inText.ReplaceAllString(text, "line $1 of it: ")
	if head := schemaHead.FindString(text); head != "" {
		text = "values do not fit the chart's values.schema.json: " + sortItems(strings.TrimPrefix(text, head))
	}
	text = notLike.ReplaceAllString(text, "value $1")
	text = noise.ReplaceAllString(text, "")
	text = tidyTemplate(text)
	text = located.ReplaceAllString(text, "$1: ")
	text = yamlError.ReplaceAllString(text, "$1: not YAML once rendered: ")
	text = nothing.ReplaceAllString(text, "there is nothing to take .$1 from")
	text = templateHints(text)
	text = invalid.ReplaceAllStringFunc(text, tidyInvalid)
	text = wrongType.ReplaceAllStringFunc(text, tidyType)
	text = typed.ReplaceAllStringFunc(text, tidyTyped)
	text = goTypes.Replace(text)
	return message.Cut(listLine(text), MaxError)
}

var (
	noSuchFunction = regexp.MustCompile(`function "([^"]*)" not defined`)
	noTemplate     = regexp.MustCompile(`(?:error calling \w+: )?template: no template ("[^"]*") associated with template "gotpl"(?: in \{\{[^{}]*\}\})?|template ("[^"]*") not defined`)
	functionValues = regexp.MustCompile(`wrong number of args for (values|Values): want 1 got 0 in \{\{ \w+ \}\}`)
	noEnd          = regexp.MustCompile(`unexpected EOF$`)
)

// templateHints adds how the line is written to what the template engine says.
func templateHints(text string) string {
	text = noSuchFunction.ReplaceAllStringFunc(text, func(all string) string {
		name := noSuchFunction.FindStringSubmatch(all)[1]
		switch name {
		case "Values", "Release", "Chart", "Files", "Capabilities", "Template":
			return all + " (write ." + name + ")"
		}
		if near := message.Nearest(name, functionNames()); near != "" {
			return all + " (did you mean " + near + "?)"
		}
		return all
	})
	text = noTemplate.ReplaceAllString(text, NoTemplate+` $1$2 (write {{- define $1$2 }}…{{- end }} in templates/_helpers.tpl)`)
	text = functionValues.ReplaceAllString(text, "values is a function of templates (write .Values)")
	text = strings.Replace(text, "validation: chart.metadata.version is required", "its Chart.yaml has no version (write version: 0.1.0)", 1)
	return noEnd.ReplaceAllString(text, NoEnd)
}

// NoTemplate begins what is said of a template that includes one that no file of the chart defines.
const NoTemplate = "there is no template"

// NoEnd is what is said of a template with a block that has no end.
const NoEnd = "the file ends, and an if, range, with or define has no {{- end }}"

// functionNames are the functions that templates of Helm can call.
func functionNames() []string {
	own := []string{"toYaml", "toYamlPretty", "fromYaml", "fromYamlArray", "toJson", "fromJson", "fromJsonArray", "toToml", "include", "tpl", "required", "lookup"}
	return append(own, slices.Sorted(maps.Keys(sprig.TxtFuncMap()))...)
}

// tidyTemplate puts the innermost place of a template error first, and the file that began it last.
func tidyTemplate(text string) string {
	at := templateAt.FindAllStringSubmatchIndex(text, -1)
	if at == nil {
		return text
	}
	first, last := at[0], at[len(at)-1]
	out := text[:first[0]] + text[last[2]:last[3]] + ": " + strings.TrimSpace(text[last[1]:])
	if last[4] >= 0 {
		out += " in {{ " + text[last[4]:last[5]] + " }}"
	}
	if from := text[first[2]:first[3]]; len(at) > 1 && from != text[last[2]:last[3]] {
		out += " (from " + from + ")"
	}
	return out
}

// tidyInvalid shows short plain values only.
func tidyInvalid(text string) string {
	part := invalid.FindStringSubmatch(text)
	if part[3] != "" || utf8.RuneCountInString(part[2]) > maxShown {
		return part[1]
	}
	return text
}

// sortItems sorts neighbouring lines that begin with "- ": the schema validator finds them in the order of a Go map,
// and an error has to stay the same while its cause does.
func sortItems(text string) string {
	lines := strings.Split(text, "\n")
	for i := 0; i < len(lines); i++ {
		n := i
		for n < len(lines) && strings.HasPrefix(lines[n], "- ") {
			n++
		}
		if n > i {
			slices.Sort(lines[i:n])
			i = n
		}
	}
	return strings.Join(lines, "\n")
}

// listLine joins lines: list items by "; ".
func listLine(text string) string {
	var parts []string
	for l := range strings.SplitSeq(text, "\n") {
		l = strings.TrimSpace(l)
		parts = append(parts, strings.TrimPrefix(strings.TrimPrefix(l, "* "), "- "))
	}
	return strings.ReplaceAll(message.List(strings.Join(parts, "\n")), ":; ", ": ")
}
