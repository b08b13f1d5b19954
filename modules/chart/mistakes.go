package chart

import (
	"cmp"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/kubernetes/scheme"

	"github.com/starling-operator/starling/modules/tree"
	"github.com/starling-operator/starling/runtime/message"
)

var (
	blockWord   = regexp.MustCompile(`\{\{-?\s*(if|range|with|define|block|end)\b`)
	defined     = regexp.MustCompile(`\{\{-?\s*(?:define|block)\s+"([^"]+)"`)
	beginsAt    = regexp.MustCompile(`^([^\s:]+):(\d+)(?::\d+)?: `)
	notDefined  = regexp.MustCompile(regexp.QuoteMeta(NoTemplate) + ` "([^"]+)" \(write [^)]*\)`)
	nothingFrom = regexp.MustCompile(`there is nothing to take \.\w+ from in \{\{ \.Values\.([\w.]+) \}\}`)
)

// openBlock is the line, from 1, of the innermost block of a template that has no end; 0 when each has one.
func openBlock(template []byte) int {
	var open []int
	for i, line := range strings.Split(string(template), "\n") {
		for _, m := range blockWord.FindAllStringSubmatch(line, -1) {
			if m[1] != "end" {
				open = append(open, i+1)
			} else if len(open) > 0 {
				open = open[:len(open)-1]
			}
		}
	}
	if len(open) == 0 {
		return 0
	}
	return open[len(open)-1]
}

// openAction is the line, from 1, of the first action of a template that has no }}; 0 when each has one.
func openAction(template string) int {
	line := func(at int) int { return 1 + strings.Count(template[:at], "\n") }
	for at := 0; ; {
		next := strings.Index(template[at:], "{{")
		if next < 0 {
			return 0
		}
		began := at + next
		if at = endOfAction(template, began+2); at < 0 {
			return line(began)
		}
	}
}

// endOfAction is where the action ends whose inside begins at a place; -1 when another one or the file's end is first.
func endOfAction(template string, at int) int {
	inside := strings.TrimLeft(strings.TrimPrefix(template[at:], "-"), " \t\r\n")
	if strings.HasPrefix(inside, "/*") {
		comment := strings.Index(template[at:], "*/")
		if comment < 0 {
			return -1
		}
		at += comment + 2
	}
	for at < len(template) {
		switch rest := template[at:]; {
		case strings.HasPrefix(rest, "}}"):
			return at + 2
		case strings.HasPrefix(rest, "{{"):
			return -1
		case rest[0] == '"' || rest[0] == '`' || rest[0] == '\'':
			at += quotedEnd(rest)
		default:
			at++
		}
	}
	return -1
}

// quotedEnd is the length of the text in quotes that s begins with; 1 when its line ends first.
func quotedEnd(s string) int {
	for i := 1; i < len(s); i++ {
		switch {
		case s[i] == s[0]:
			return i + 1
		case s[i] == '\n' && s[0] != '`':
			return 1
		case s[i] == '\\' && s[0] != '`':
			i++
		}
	}
	return 1
}

// InSource is [Tidy] for an error of the template engine. It looks at the templates for the cause, for that knows only
// where it stumbled.
func InSource(c *tree.Chart, text string) string {
	text = notDefined.ReplaceAllStringFunc(Tidy(text), func(all string) string {
		name := notDefined.FindStringSubmatch(all)[1]
		if near := message.Nearest(name, definedIn(c)); near != "" {
			return fmt.Sprintf("%s %q (did you mean %q?)", NoTemplate, name, near)
		}
		return all
	})
	at := beginsAt.FindStringSubmatch(text)
	if at == nil {
		return text
	}
	source := template(c, at[1])
	if line := openAction(string(source)); line > 0 {
		return fmt.Sprintf("%s:%d: the action that begins here has no }}", at[1], line)
	}
	if line := openBlock(source); line > 0 && strings.Contains(text, NoEnd) {
		return at[1] + ":" + strconv.Itoa(line) + ": " + text[len(at[0]):]
	}
	return text
}

// definedIn are the names of the templates that the files of a chart define.
func definedIn(c *tree.Chart) (names []string) {
	for _, f := range c.Files {
		for _, m := range defined.FindAllSubmatch(f.Data, -1) {
			names = append(names, string(m[1]))
		}
	}
	slices.Sort(names)
	return slices.Compact(names)
}

// nearKind is the kind that was probably meant by one that an API of Kubernetes itself does not have; "" for any other.
func nearKind(apiVersion, kind string) string {
	version, err := schema.ParseGroupVersion(apiVersion)
	if err != nil || kind == "" {
		return ""
	}
	known := scheme.Scheme.KnownTypes(version)
	if _, there := known[kind]; there {
		return ""
	}
	return message.Nearest(kind, slices.Sorted(maps.Keys(known)))
}

// MissingValue is the path of the value that a template needs and nobody has set; nil of all other errors.
func MissingValue(text string) (path []string) {
	if at := nothingFrom.FindStringSubmatch(text); at != nil {
		path = strings.Split(at[1], ".")
	}
	return path
}

// WithValueHint says of a value that a template needs and nobody has set where it is set.
func WithValueHint(t Input, text string) string {
	path := MissingValue(text)
	if path == nil {
		return text
	}
	known := slices.Sorted(maps.Keys(t.Values))
	if near := message.Nearest(path[0], known); near != "" && !slices.Contains(known, path[0]) {
		return text + " (did you mean .Values." + near + "?)"
	}
	file := cmp.Or(t.Chart.ValuesFile, "values.yaml of module "+t.Module)
	return text + " (add " + InMaps(path) + " to " + file + ")"
}

// InMaps is how the value at a path is written in one line of YAML.
func InMaps(path []string) string {
	return strings.Join(path, ": {") + ": …" + strings.Repeat("}", len(path)-1)
}
