package chart

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/starling-operator/starling/modules/tree"
	"github.com/starling-operator/starling/runtime/definition"
)

// maxUnknown bounds how many unknown fields are told of.
const maxUnknown = 20

// drops is how we tell of such a field.
const drops = ": the API server drops it"

// UnknownFields says of warnings of the API server where the fields are that it has dropped. A warning names
// no object, so the objects that were rendered are looked at.
func UnknownFields(t Input, files map[string]string, warnings []string) (out []string) {
	for _, text := range warnings {
		path := definition.UnknownField(text)
		if path == "" {
			continue
		}
		found := writersOf(t, files, path)
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
func writersOf(t Input, files map[string]string, path string) (out []string) {
	for _, o := range placesIn(files) {
		if !hasField(o.doc, path) {
			continue
		}
		line, hint := FieldAt(template(t.Chart, o.file), o.Kind, o.text, path, definition.NearField(o.APIVersion, o.Kind, path))
		if hint != "" {
			hint = " (" + hint + ")"
		}
		out = append(out, fmt.Sprintf("%s: %s has no field %s%s%s", atLine(o.file, line), o.Ref, path, drops, hint))
	}
	return out
}

// FieldAt is the line of a template that gives objects of a kind a field that the kind does not have, 0 when none is
// seen to do so, and what to do about the field. rendered is the object as text, near is the field that was probably
// meant, or "".
func FieldAt(template []byte, kind, rendered, path, near string) (line int, hint string) {
	if line = LineOf(template, kind, path); line == 0 { // an action has written it
		hint, line = indentHint(template, rendered, path)
	}
	// No field has a colon in its name: the first line of a value stands behind its key, so no other field was meant.
	if key, _, joined := strings.Cut(path[strings.LastIndexByte(path, '.')+1:], ":"); joined {
		hint = cmp.Or(hint, "begin a line after "+key+":")
	} else if near != "" {
		hint = "did you mean " + near + "?"
	}
	return line, hint
}

// template is the text of a template by the name that Helm gives it; nil: there is none in the files of the chart.
func template(c *tree.Chart, name string) []byte {
	_, name, _ = strings.Cut(name, "/")
	for _, f := range c.Files {
		if f.Path == name {
			return f.Data
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
