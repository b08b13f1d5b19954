package chart

import (
	_ "embed" // of the table
	"maps"
	"regexp"
	"slices"
	"strings"
	"sync"
	"unicode/utf8"

	"github.com/Masterminds/sprig/v3"

	"github.com/starling-operator/starling/runtime/message"
	"github.com/starling-operator/starling/runtime/wording"
)

// MaxError is where an error's text is cut: no manifest fits.
const MaxError = 1000

//go:embed wording/charts.txt
var wordingText string

// rewordings are better words for what Helm, the template engine and the API server say.
var rewordings = sync.OnceValue(func() wording.Table {
	return wording.Read(wordingText, map[string]func([]string) string{
		"schema": func(m []string) string {
			return "values do not fit the chart's values.schema.json: " + sortItems(m[1])
		},
		"template": func(m []string) string { return tidyTemplate(m[0]) },
		"function": tidyFunction, "value": tidyInvalid, "type": tidyType, "typed": tidyTyped,
	})
})

// maxShown is how long a value that the API server refused may be to be shown.
const maxShown = 40

// Tidy rewrites the text of an error of Helm's, of the template engine's or of
// the API server's for people, and cuts what may hold values.
func Tidy(text string) string {
	return message.Cut(listLine(rewordings().Rewrite(text)), MaxError)
}

// tidyFunction says of a function that there is none how it is written.
func tidyFunction(m []string) string {
	switch name := m[1]; name {
	case "Values", "Release", "Chart", "Files", "Capabilities", "Template":
		return m[0] + " (write ." + name + ")"
	default:
		if near := message.Nearest(name, functionNames()); near != "" {
			return m[0] + " (did you mean " + near + "?)"
		}
		return m[0]
	}
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

var templateAt = regexp.MustCompile(`template: ([^\s:]+:\d+(?::\d+)?): (?:executing "[^"]*" (?:at <((?:[^>]|>[^:])*)>: )?)?`)

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
func tidyInvalid(m []string) string {
	if m[3] != "" || utf8.RuneCountInString(m[2]) > maxShown {
		return m[1]
	}
	return m[0]
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
