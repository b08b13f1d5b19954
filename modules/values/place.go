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
// key above there, or at the root when that is "". Below a block text, as a ConfigMap has
// them, the path goes on in the YAML of that text.
func LineOf(data []byte, above, path string) int {
	steps := parts(path)
	if above != "" {
		steps = append([]string{above}, steps...)
	}
	return lineOf(data, steps)
}

func lineOf(data []byte, steps []string) int {
	p, merges, last := newPositions(data), maxMerges, 0
	if p == nil {
		return 0
	}
	node := p.root
	for i, step := range steps {
		if text := target(node); text != nil && text.Kind == yaml.ScalarNode && text.Style&yaml.LiteralStyle != 0 {
			if inside := lineOf([]byte(text.Value), steps[i:]); inside > 0 {
				return text.Line + inside
			}
			return last
		}
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
