package values

import (
	"regexp"
	"strconv"
	"strings"

	"go.yaml.in/yaml/v3"
)

// pathPart is one step of a path as problems show it: a, ["a.b"], [3], or [*] in schemas.
var pathPart = regexp.MustCompile(`^\.?(?:\[("(?:[^"\\]|\\.)*")\]|\[(\d+|\*)\]|([^.\[]+))`)

// parts takes a path apart: keys, and the indexes of lists as they stand between brackets.
func parts(path string) (out []string) {
	for path != "" {
		m := pathPart.FindStringSubmatch(path)
		if m == nil {
			return out
		}
		switch path = path[len(m[0]):]; {
		case m[1] != "":
			key, _ := strconv.Unquote(m[1])
			out = append(out, key)
		case m[2] != "":
			out = append(out, "["+m[2]+"]")
		default:
			out = append(out, m[3])
		}
	}
	return out
}

// LineOf returns the line, from 1, of what the path of a [Problem] names in a YAML text, or
// of the closest thing above it; 0 when nothing of it is there. The values stand below the
// key above there, or at the root when that is "".
func LineOf(data []byte, above, path string) int {
	steps := parts(path)
	if above != "" {
		steps = append([]string{above}, steps...)
	}
	p, merges, last := newPositions(data), maxMerges, 0
	if p == nil {
		return 0
	}
	node := p.root
	for _, step := range steps {
		next, line := child(node, step, &merges)
		if n, err := strconv.Atoi(strings.Trim(step, "[]")); next == nil && err == nil {
			if list := target(node); list.Kind == yaml.SequenceNode && n < len(list.Content) {
				next, line = list.Content[n], list.Content[n].Line
			}
		}
		if next == nil {
			return last
		}
		node, last = next, line
	}
	return last
}

// lineInSchema returns the line of what a mistake is about, as [ParseSchema] words it:
// "web.port: type must be …", `"propertes" is no keyword …`. It is 0 when none is known.
func lineInSchema(data []byte, mistake string) int {
	p := newPositions(data)
	if p == nil {
		return 0
	}
	node, merges, last := p.root, maxMerges, 0
	rest := mistake
	if path, message, ok := strings.Cut(mistake, ": "); ok && !strings.Contains(path, " ") {
		for _, step := range parts(path) {
			next, line := schemaChild(node, step, &merges)
			if next == nil {
				message = step // a keyword of the place found so far
				break
			}
			node, last = next, line
		}
		rest = message
	}
	word, _, _ := strings.Cut(strings.TrimLeft(rest, `"`), " ")
	if _, line := child(node, strings.Trim(word, `":`), &merges); line > 0 {
		return line
	}
	return last
}

// schemaChild returns the schema of a step below the one of node.
func schemaChild(node *yaml.Node, step string, merges *int) (*yaml.Node, int) {
	if step != "[*]" {
		fields, _ := child(node, "properties", merges)
		if field, line := child(fields, step, merges); field != nil {
			return field, line
		}
		fields, _ = child(node, "patternProperties", merges)
		return child(fields, step, merges)
	}
	if items, line := child(node, "items", merges); items != nil {
		return items, line
	}
	return child(node, "additionalProperties", merges)
}

// SchemaError says all that is wrong with a schema.
type SchemaError struct {
	// File is the name of the schema's file.
	File string
	// Mistakes have the place in the values before them, where there is one.
	Mistakes []string
	// Lines of the mistakes in the file, from 1; 0 where it is not known.
	Lines []int
}

// Error returns one line.
func (e *SchemaError) Error() string { return e.File + ": " + strings.Join(e.Mistakes, "; ") }

func newSchemaError(file string, data []byte, mistakes ...string) *SchemaError {
	e := &SchemaError{File: file, Mistakes: mistakes}
	for _, m := range mistakes {
		e.Lines = append(e.Lines, lineInSchema(data, strings.TrimPrefix(m, notStructural)))
	}
	return e
}
