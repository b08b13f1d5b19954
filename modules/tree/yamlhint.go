package tree

import (
	_ "embed" // of the table
	"fmt"
	"regexp"
	"strings"
	"sync"

	"github.com/starling-operator/starling/runtime/wording"
)

//go:embed wording/yaml.txt
var wordingText string

var yamlHints = sync.OnceValue(func() wording.Table { return wording.Read(wordingText, nil) })

// YAMLHint says what to do about what the YAML parser says of a line of a document; "" where that is plain.
func YAMLHint(msg string, doc []byte, line int) string {
	if !strings.Contains(msg, "did not find expected key") && !strings.Contains(msg, "did not find expected '-' indicator") {
		return yamlHints().Hint(msg)
	}
	lines := strings.Split(string(doc), "\n")
	at := min(max(line, 1), len(lines)) - 1
	if quote, open := openQuote(lines, at); open > 0 {
		return fmt.Sprintf("the quote %s in line %d has no end", quote, open)
	}
	if aloneInMap(lines, at) {
		return "a list item where a key is expected: the key before it is missing"
	}
	for near := max(at-1, 0); near <= min(at+1, len(lines)-1); near++ {
		if besideNone(lines, near) {
			return "indent the line as those beside it"
		}
	}
	return ""
}

func withYAMLHint(msg string, doc []byte, line int) string {
	if hint := YAMLHint(msg, doc, line); hint != "" {
		return msg + " (" + hint + ")"
	}
	return msg
}

// quotedValue is a line with a value that begins with a quote.
var quotedValue = regexp.MustCompile(`^\s*(?:- +)*(?:[^\s"'#][^"'#]*:\s+)?(["'])(.*)$`)

// quotedLines is how far above the line over which the parser stumbles a quote without an end is looked for.
const quotedLines = 10

// openQuote finds, up to lines[at], the last line with a quote that does not end in it, counted from 1.
func openQuote(lines []string, at int) (quote string, line int) {
	for n := at; n >= max(0, at-quotedLines); n-- {
		m := quotedValue.FindStringSubmatch(lines[n])
		if m == nil {
			continue
		}
		rest := m[2]
		if m[1] == `"` {
			rest = strings.NewReplacer(`\\`, "", `\"`, "").Replace(rest)
		}
		if !strings.Contains(rest, m[1]) {
			return m[1], n + 1
		}
	}
	return "", 0
}

// depthOf is how far a line is indented; false for one that is empty or a comment.
func depthOf(line string) (int, bool) {
	text := strings.TrimLeft(line, " ")
	blank := strings.TrimSpace(text) == "" || strings.HasPrefix(text, "#")
	return len(line) - len(text), !blank
}

func isItem(line string) bool {
	text := strings.TrimSpace(line)
	return text == "-" || strings.HasPrefix(text, "- ")
}

// aloneInMap says of a line that it is an item of a list beside the keys of a map.
func aloneInMap(lines []string, at int) bool {
	depth, _ := depthOf(lines[at])
	if !isItem(lines[at]) {
		return false
	}
	for n := at - 1; n >= 0; n-- {
		above, ok := depthOf(lines[n])
		switch {
		case !ok || above > depth:
		case above == depth:
			return !isItem(lines[n]) && !strings.HasSuffix(strings.TrimSpace(lines[n]), ":")
		default: // the first line of an item: - name: web
			return isItem(lines[n]) && keyDepth(lines[n]) == depth
		}
	}
	return false
}

// keyDepth is where the first key of a line stands, behind the - of list items.
func keyDepth(line string) int { return len(line) - len(strings.TrimLeft(line, " -")) }

// besideNone says of a line that it is indented as none of those that are open above it.
func besideNone(lines []string, at int) bool {
	depth, ok := depthOf(lines[at])
	if !ok {
		return false
	}
	first := true
	for n := at - 1; n >= 0; n-- {
		above, ok := depthOf(lines[n])
		if !ok {
			continue
		}
		if above == depth || isItem(lines[n]) && keyDepth(lines[n]) == depth {
			return false
		}
		if above < depth { // deeper than the line above it, which opens nothing
			return !first || !strings.HasSuffix(strings.TrimSpace(lines[n]), ":")
		}
		first = false
	}
	return true
}
