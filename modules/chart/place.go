package chart

import (
	"fmt"
	"regexp"
	"strconv"
	"strings"

	"sigs.k8s.io/yaml"

	"github.com/starling-operator/starling/modules/tree"
	"github.com/starling-operator/starling/runtime/message"
	plain "github.com/starling-operator/starling/runtime/object"
)

// Place is where a template has made a line of what it renders to.
type Place struct {
	// Line is that of the template, from 1; 0 when nobody knows.
	Line int
	// Rendered are the lines around the place, with their numbers.
	Rendered []string
	// Hint says how the line is written; may be empty.
	Hint string
}

// aroundPlace is how many rendered lines are shown before and after the one in question.
const aroundPlace = 2

var (
	// output is an action of a template: no comment, no block.
	output      = regexp.MustCompile(`\{\{-?\s*([^}]*?)\s*-?\}\}`)
	blockAction = regexp.MustCompile(`^(?:if|else|end|range|with|define|block|template|break|continue|/\*|\$\w+\s*:?=)`)
	indented    = regexp.MustCompile(`\s*\|\s*n?indent\s+\d+\s*$`)
	loop        = regexp.MustCompile(`\{\{-?\s*range\b`)
	several     = regexp.MustCompile(`\b(toYaml|toYamlPretty|include|tpl|indent|nindent)\b`)
	errorLine   = regexp.MustCompile(`\bline (\d+)`)
)

// PlaceOf finds the line of a template that made a line of one document that it rendered to. A template is no YAML, and
// loops repeat lines, so this is a good guess: the last rendered line up to there that stands in the template as it is,
// and the action that follows it as far behind.
func PlaceOf(template []byte, rendered string, line int, problem string) Place {
	lines := strings.Split(strings.TrimRight(rendered, "\n"), "\n")
	line = min(max(line, 1), len(lines))
	var p Place
	for i := max(1, line-aroundPlace); i <= min(len(lines), line+aroundPlace); i++ {
		p.Rendered = append(p.Rendered, fmt.Sprintf("%d: %s", i, lines[i-1]))
	}
	source := strings.Split(string(template), "\n")
	at := anchor(source, lines, line)
	if at == 0 {
		return p
	}
	p.Line = at
	expr := outputOf(source[at-1])
	switch {
	case expr == "":
	case severalLines(expr):
		p.Hint = written(source, at, expr)
	case strings.Count(lines[line-1], ": ") > 1 || strings.Contains(problem, "cannot start any token"):
		p.Hint = "put it in quotes: {{ " + expr + " | quote }}"
	}
	if p.Hint == "write "+strings.TrimSpace(source[at-1]) { // it stands so already: the line below is the one
		p.Line, p.Hint = min(at+1, len(source)), ""
	}
	if p.Hint == "" {
		p.Hint = tree.YAMLHint(problem, []byte(rendered), line)
	}
	return p
}

// anchor is the line of the template, from 1, that made a rendered line; 0 when none is found.
func anchor(source, lines []string, line int) int {
	for i := line; i > 0; i-- {
		text := strings.TrimRight(lines[i-1], " \r")
		if strings.TrimSpace(text) == "" {
			continue
		}
		for n, s := range source {
			if strings.TrimRight(s, " \r") != text {
				continue
			}
			if i == line {
				if above := before(source, n); above > 0 && wholeOutput(source[above-1]) {
					return above // the parser stumbles over the first line behind what is indented wrongly
				}
				return n + 1
			}
			return writtenBy(source[n+1:], n+1, texts(lines[i:line]))
		}
	}
	for n, s := range source { // the first one
		if outputOf(s) != "" {
			return n + 1
		}
	}
	return 0
}

// texts counts the lines that are not empty.
func texts(lines []string) (n int) {
	for _, l := range lines {
		if strings.TrimSpace(l) != "" {
			n++
		}
	}
	return n
}

// writtenBy is the line of the template whose action writes the nth line behind skipped ones: each action writes one,
// unless it may write several. In a loop it is the first one, as nobody knows how often that runs.
func writtenBy(source []string, skipped, n int) (line int) {
	for i, s := range source {
		if loop.MatchString(s) {
			n = 1
		}
		expr := outputOf(s)
		if expr == "" {
			continue
		}
		line = skipped + i + 1
		if n--; n <= 0 || severalLines(expr) {
			break
		}
	}
	return line
}

// before is the number of the line before source[n] that is not empty, from 1.
func before(source []string, n int) int {
	for n--; n >= 0; n-- {
		if strings.TrimSpace(source[n]) != "" {
			return n + 1
		}
	}
	return 0
}

// outputOf is the first expression of a line of a template that writes something, "" when none does.
func outputOf(line string) string {
	for _, m := range output.FindAllStringSubmatch(line, -1) {
		if !blockAction.MatchString(m[1]) {
			return m[1]
		}
	}
	return ""
}

// wholeOutput says of a line of a template that it is one action that may write several lines, and nothing else.
func wholeOutput(line string) bool {
	expr := outputOf(line)
	return expr != "" && severalLines(expr) && strings.HasPrefix(strings.TrimSpace(line), "{{") && strings.HasSuffix(strings.TrimSpace(line), "}}")
}

func severalLines(expr string) bool { return several.MatchString(expr) }

// written is how the line of a template is written that writes several lines in a wrong place.
func written(source []string, at int, expr string) string {
	line := source[at-1]
	depth := len(line) - len(strings.TrimLeft(line, " ")) // of what it writes, unless a key above says more
	key, _, _ := strings.Cut(line, "{{")
	if strings.HasSuffix(strings.TrimSpace(key), ":") {
		depth += 2 // labels: {{ toYaml … }}
	} else {
		key = ""
		for n := at - 1; n > 0; n-- {
			above := strings.TrimRight(source[n-1], " \r")
			if text := strings.TrimLeft(above, " "); strings.HasSuffix(above, ":") && !strings.Contains(above, "{{") {
				depth = len(above) - len(text) + 2
				if strings.HasPrefix(text, "- ") {
					depth += 2
				}
				break
			} else if text != "" && outputOf(text) != "" && severalLines(text) {
				continue
			} else if text != "" && !strings.HasPrefix(text, "{{") {
				break
			}
		}
	}
	return fmt.Sprintf("write %s{{- %s | nindent %d }}", strings.TrimLeft(key, " "), indented.ReplaceAllString(expr, ""), depth)
}

// notYAML is the error about a rendered template that is no YAML: with the line of the template, and the lines that it
// rendered to around the place.
func notYAML(c *tree.Chart, name, text string, err error) error {
	for _, doc := range plain.Documents(text) {
		if bad := yaml.Unmarshal([]byte(doc), &map[string]any{}); bad == nil || bad.Error() != err.Error() {
			continue
		}
		source := template(c, name)
		if source == nil {
			break
		}
		problem, line := Problem(err, doc)
		p := PlaceOf(source, doc, line, problem)
		msg := fmt.Sprintf("%s: not YAML once rendered: %s: %s", atLine(name, p.Line), problem, strings.Join(p.Rendered, " | "))
		if p.Hint != "" {
			msg += " (" + p.Hint + ")"
		}
		return fmt.Errorf("%s", msg)
	}
	return fmt.Errorf("YAML parse error on %s: %w", name, err)
}

// Problem takes what the YAML parser says of a document apart: the text, and the line, 1 when it names none.
func Problem(err error, doc string) (problem string, line int) {
	problem, line = message.YAML(err.Error(), []byte(doc)), 1
	if m := errorLine.FindStringSubmatch(problem); m != nil {
		line, _ = strconv.Atoi(m[1])
	}
	if i := strings.LastIndex(problem, "yaml: "); i >= 0 {
		problem = problem[i+len("yaml: "):]
	}
	return problem, line
}

// indentHint says how an action of a template is written that has put a field of an object of a kind elsewhere, as its
// lines are indented wrongly; "" when none has.
func indentHint(template []byte, rendered, field string) (hint string, line int) {
	key := field[strings.LastIndexByte(field, '.')+1:]
	for i, text := range strings.Split(rendered, "\n") {
		if m := keyLine.FindStringSubmatch(text); m == nil || m[2] != key {
			continue
		}
		p := PlaceOf(template, rendered, i+1, "")
		if p.Line > 0 && strings.Contains(p.Hint, "| nindent ") {
			return p.Hint, p.Line
		}
	}
	return "", 0
}

// nthLine is the line of a template at which a field has a value for the nth time below one of some keys; 0 when that
// is not seen.
func (f *faults) nthLine(file string, keys []int, nth int, field, value string) int {
	if field == "" {
		return 0
	}
	lines, is := strings.Split(string(template(f.t.Chart, file)), "\n"), hasValue(field, value)
	for _, key := range keys {
		left := nth
		for i, line := range lines[key-1:] {
			if i > 0 && !below(line, lines[key-1]) {
				break
			}
			if left -= len(is.FindAllStringIndex(line, -1)); left <= 0 {
				return key + i
			}
		}
	}
	return 0
}

// hasValue finds a field with a value in a line.
func hasValue(field, value string) *regexp.Regexp {
	return regexp.MustCompile(`(?m)(?:^|[\s{,-])["']?` + regexp.QuoteMeta(field) + `["']?:\s*["']?` + regexp.QuoteMeta(value) + `["']?\s*(?:[,}#]|$)`)
}

// below says whether a line of a template may stand in the value of a key that another line has.
func below(line, key string) bool {
	text := strings.TrimLeft(line, " ")
	deeper := len(line) - len(text) - (len(key) - len(strings.TrimLeft(key, " -")))
	return text == "" || text[0] == '#' || strings.HasPrefix(text, "{{") || deeper > 0 || deeper == 0 && text[0] == '-'
}
