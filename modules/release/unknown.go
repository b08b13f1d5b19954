package release

import (
	"cmp"
	"fmt"
	"regexp"
	"slices"
	"strings"

	"github.com/starling-operator/starling/modules/tree"
	"github.com/starling-operator/starling/runtime/cluster"
)

// maxUnknown bounds how many unknown fields are told of.
const maxUnknown = 20

// drops is how we tell of such a field.
const drops = ": the API server drops it"

// unknownField is how the API server warns of a field that it has dropped.
var unknownField = regexp.MustCompile(`^unknown field "(.+)"$`)

// unknownFields says of warnings of the API server where the fields are that it has dropped. A warning names
// no object, so the objects that were rendered are looked at.
func unknownFields(t Target, r rendering, warnings []string) (out []string) {
	for _, text := range warnings {
		m := unknownField.FindStringSubmatch(text)
		if m == nil {
			continue
		}
		found := writersOf(t, r, m[1])
		if len(found) == 0 {
			found = []string{text + drops} // of an object that Helm has made of another
		}
		out = append(out, found...)
	}
	slices.Sort(out)
	if more := len(out) - maxUnknown; more > 0 {
		out = append(out[:maxUnknown], fmt.Sprintf("%d more unknown fields", more))
	}
	return out
}

// writersOf names the objects that have a field, each with its template and line.
func writersOf(t Target, r rendering, path string) (out []string) {
	for _, o := range placesIn(r) {
		if !hasField(o.doc, path) {
			continue
		}
		var source []byte
		if f := template(t.Chart, o.file); f != nil {
			source = f.Data
		}
		line, hint := FieldAt(source, o.Kind, o.text, path, cluster.NearField(o.APIVersion, o.Kind, path))
		if hint != "" {
			hint = " (" + hint + ")"
		}
		out = append(out, fmt.Sprintf("%s: %s has no field %s%s%s", atLine(o.file, line), o.Key, path, drops, hint))
	}
	return out
}

// lineOf is [LineOf] of an object in a template by the name that Helm gives it, "web/templates/a.yaml".
func (t Target) lineOf(name, kind, object, path string) int {
	if f := template(t.Chart, name); f != nil {
		return append(linesOf(f.Data, kind, object, path), 0)[0]
	}
	return 0
}

// FieldAt is the line of a template that gives objects of a kind a field that the kind does not have, 0 when none is
// seen to do so, and what to do about the field. rendered is the object as text, near is the field that was probably
// meant, or "".
func FieldAt(template []byte, kind, rendered, path, near string) (line int, hint string) {
	if line = LineOf(template, kind, path); line == 0 { // an action has written it
		hint, line = IndentHint(template, rendered, path)
	}
	// No field has a colon in its name: the first line of a value stands behind its key, so no other field was meant.
	if key, _, joined := strings.Cut(path[strings.LastIndexByte(path, '.')+1:], ":"); joined {
		hint = cmp.Or(hint, "begin a line after "+key+":")
	} else if near != "" {
		hint = "did you mean " + near + "?"
	}
	return line, hint
}

func template(c *tree.Chart, name string) *tree.File {
	_, name, _ = strings.Cut(name, "/")
	for i := range c.Files {
		if c.Files[i].Path == name {
			return &c.Files[i]
		}
	}
	return nil
}

// OfTheTree says of one of [Result.Unknown] whether it is a field that was dropped, of a template in the module tree:
// not in a chart that somebody else publishes, nor in a packed chart below charts/.
func OfTheTree(c *tree.Chart, unknown string) bool {
	at, _, _ := strings.Cut(unknown, ":")
	return strings.Contains(unknown, drops) && c.Archive == "" && template(c, at) != nil
}

var element = regexp.MustCompile(`\[\d*\]`)

// fieldPath are the names in "spec.containers[0].image".
func fieldPath(path string) []string { return strings.Split(element.ReplaceAllString(path, ""), ".") }

// hasField says whether there is something at a path, in any element of the lists on the way.
func hasField(at any, path string) bool {
	names := fieldPath(path)
	var has func(at any, names []string) bool
	has = func(at any, names []string) bool {
		switch at := at.(type) {
		case map[string]any:
			next, ok := at[names[0]]
			return ok && (len(names) == 1 || has(next, names[1:]))
		case []any:
			return slices.ContainsFunc(at, func(e any) bool { return has(e, names) })
		}
		return false
	}
	return has(at, names)
}

var (
	keyLine  = regexp.MustCompile(`^((?:\s|- )*)["']?([\w./:-]*[\w./-])["']?\s*:(?:\s|$)`)
	kindLine = regexp.MustCompile(`(?m)^kind:\s*["']?(\w+)`)
)

// LineOf returns the line of a template that gives objects of a kind a field, "spec.containers[0].image", counted from
// 1; 0 when none is seen to do so. keys are names below the path that may hold dots. A template is no YAML: lines
// count by their keys and how far they are indented.
func LineOf(template []byte, kind, path string, keys ...string) int {
	return append(linesOf(template, kind, "", path, keys...), 0)[0]
}

// linesOf are all such lines, first those of documents that hold the name of the object.
func linesOf(template []byte, kind, name, path string, keys ...string) (lines []int) {
	names := append(fieldPath(path), keys...)
	most, named, first := 1, 0, 1
	for _, doc := range strings.SplitAfter(string(template), "\n---") {
		kinds := kindLine.FindAllStringSubmatch(doc, -1)
		if len(kinds) == 0 || slices.ContainsFunc(kinds, func(m []string) bool { return m[1] == kind }) {
			found, n := linesIn(strings.Split(doc, "\n"), names)
			for i := range found {
				found[i] += first
			}
			if n > most {
				lines, most, named = nil, n, 0
			}
			if n == most && hasValue("name", name).MatchString(doc) {
				lines, named = slices.Insert(lines, named, found...), named+len(found)
			} else if n == most {
				lines = append(lines, found...)
			}
		}
		first += strings.Count(doc, "\n")
	}
	return lines
}

// linesIn finds the lines whose keys above them are most of those of a path, and how many those are.
func linesIn(lines, names []string) (found []int, most int) {
	for i, text := range lines {
		m := keyLine.FindStringSubmatch(text)
		if m == nil || m[2] != names[len(names)-1] {
			continue
		}
		n, indent := 1, len(m[1])
		for above := i - 1; above >= 0 && n < len(names) && n > 0; above-- {
			p := keyLine.FindStringSubmatch(lines[above])
			switch {
			case p == nil || len(p[1]) >= indent:
			case p[2] == names[len(names)-1-n]:
				n, indent = n+1, len(p[1])
			default:
				n = 0 // it is in something else
			}
		}
		if n > most {
			found, most = nil, n
		}
		if n == most && n > 0 {
			found = append(found, i)
		}
	}
	if most == 0 {
		if at, n := inFlow(lines, names[len(names)-1]); n > 0 {
			return []int{at}, n
		}
	}
	return found, most
}

// inFlow finds the only line that has a key between brackets: spec: {image: a}.
func inFlow(lines []string, name string) (best, n int) {
	key := regexp.MustCompile(`[{,]\s*["']?` + regexp.QuoteMeta(name) + `["']?\s*:`)
	for i, text := range lines {
		if key.MatchString(text) {
			best, n = i, n+1
		}
	}
	if n != 1 {
		return 0, 0
	}
	return best, n
}
