package chart

import (
	"cmp"
	"errors"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strconv"
	"strings"

	plain "github.com/starling-operator/starling/runtime/object"
)

// The API server names the object and the field that it refuses. Here the template is found that has written it.

var (
	// mistyped is what tidyType makes of it, of an object of a kind, when a decoder tells of a field that has a value of another type.
	mistyped = regexp.MustCompile(`^(?:.*: )?(\w+) in version "[^"]*" cannot be handled as an? \w+: ([\w.\[\]/-]+) must be (an? \w+), not an? \w+$`)
	// ofObject is how an error about the write of one object begins.
	ofObject = regexp.MustCompile(`\bcannot apply (\w+) "([^"]+)": `)
	// isInvalid is how the API server tells of a field of one object.
	isInvalid = regexp.MustCompile(`\b([A-Z]\w+)(?:\.[\w.-]+)? "([^"]+)" is invalid: \[?([a-z]\w*(?:[.\[][\w.\[\]/-]*)?): `)
	immutable = regexp.MustCompile(`is immutable|may not (?:be changed|change)\b|cannot change |[Cc]annot be changed|updates to \w+ (?:spec for fields other than|are forbidden)|can not be less than`)
)

// typeWords are the words of schemas for what JSON calls otherwise.
var typeWords = map[string]string{
	"bool": "a boolean", "number": "a number", "string": "a string", "object": "an object", "array": "an array",
}

// inList are the keys of elements of lists in a path.
var inList = regexp.MustCompile(`\[[^\]]*\]`)

// tidyTyped is about a field that server-side apply does not take.
func tidyTyped(m []string) string {
	is, want := "string", cmp.Or(map[string]string{"map": "object", "list": "array", "boolean": "bool", "numeric": "number"}[m[4]], m[4])
	switch value := m[5]; {
	case m[6] != "":
		is = m[6]
	case strings.HasPrefix(value, "map["):
		is = "object"
	case strings.HasPrefix(value, "["):
		is = "array"
	case value == "true" || value == "false":
		is = "bool"
	default:
		if _, err := strconv.ParseFloat(value, 64); err == nil {
			is = "number"
		}
	}
	return fmt.Sprintf("%s in version %q cannot be handled as a %[1]s: %[3]s must be %[4]s, not %[5]s", m[2], m[1], inList.ReplaceAllString(m[3], ""), typeWords[want], cmp.Or(typeWords[is], "a "+is))
}

func tidyType(m []string) string {
	of := "an object"
	switch goType := strings.TrimLeft(m[3], "*"); {
	case goType == "string":
		of = "a string"
	case goType == "bool":
		of = "a boolean"
	case strings.HasPrefix(goType, "int"), strings.HasPrefix(goType, "uint"):
		of = "an integer"
	case strings.HasPrefix(goType, "float"):
		of = "a number"
	case strings.HasPrefix(goType, "[]"):
		of = "an array"
	}
	if m[2] == "" {
		m[2] = "it"
	}
	return fmt.Sprintf("%s must be %s, not %s", m[2], of, typeWords[m[1]])
}

// InTemplate puts the template that has written what the API server refuses before its error, with the line where it
// is seen.
func InTemplate(t Input, files map[string]string, err error) error {
	text := err.Error()
	if m := mistyped.FindStringSubmatch(text); m != nil {
		of := ofObject.FindStringSubmatch(text)
		for _, o := range placesIn(files) {
			if o.Kind != m[1] || of != nil && of[1] == o.Kind && of[2] != o.Name {
				continue
			}
			path, nth := wrongKey(o.doc, m[2], m[3])
			if path == "" {
				continue
			}
			hint := ""
			switch m[3] {
			case "a string":
				hint = " (put it in quotes: {{ … | quote }})"
			case "an integer", "a number", "a boolean":
				hint = " (leave the quotes out, or write {{ int … }})"
			}
			return fmt.Errorf("%s: %s %s: %s must be %s: the API server refuses it%s", t.lineIn(o, path, nth), o.Kind, o.Name, path, m[3], hint)
		}
		return err
	}
	m := isInvalid.FindStringSubmatch(text)
	if m == nil {
		return err
	}
	for _, o := range placesIn(files) {
		if o.Kind != m[1] || o.Name != m[2] {
			continue
		}
		if immutable.MatchString(text) {
			what := o.Kind
			if what == "PersistentVolumeClaim" {
				what += " with its data"
			}
			text += fmt.Sprintf(" (nobody can change it: write it as it was, or delete the %s, and the release makes it anew)", what)
		}
		return errors.New(t.lineIn(o, m[3], 0) + ": " + text)
	}
	return err
}

// lineIn is the template of an object, with the line that gives it a field where that is seen: of several such lines
// the one after nth others.
func (t Input) lineIn(o place, path string, nth int) string {
	lines := append(linesOf(template(t.Chart, o.file), o.Kind, o.Name, path), 0)
	if nth >= len(lines)-1 { // a template may write many of them in one line
		nth = 0
	}
	return atLine(o.file, lines[nth])
}

// atLine is "web/templates/a.yaml:3", without the line where it is 0.
func atLine(file string, line int) string {
	if line == 0 {
		return file
	}
	return file + ":" + strconv.Itoa(line)
}

// placesIn are the objects that were rendered, by their templates.
func placesIn(files map[string]string) (out []place) {
	for _, name := range slices.Sorted(maps.Keys(files)) {
		for _, text := range plain.Documents(files[name]) {
			objects, _ := documentsOf(text) // what is no object has no fields
			for _, o := range objects {
				out = append(out, place{name, o, text})
			}
		}
	}
	return out
}

// wrongKey finds a value of another type than want at a path, in any element of the lists on the way; "": there is
// none. nth is how many values come before it. Of a map of texts the error does not name the key.
func wrongKey(obj map[string]any, path, want string) (at string, nth int) {
	var look func(v any, names []string, above string) string
	look = func(v any, names []string, above string) string {
		if list, is := v.([]any); is && (len(names) > 0 || want != "an array") {
			for i, e := range list {
				if found := look(e, names, fmt.Sprintf("%s[%d]", above, i)); found != "" {
					return found
				}
			}
			return ""
		}
		of, isMap := v.(map[string]any)
		if len(names) > 0 {
			if v, there := of[names[0]]; there {
				return look(v, names[1:], strings.TrimPrefix(above+"."+names[0], "."))
			}
			return ""
		}
		if isMap && want == "a string" {
			for _, key := range slices.Sorted(maps.Keys(of)) {
				if _, isText := of[key].(string); !isText && of[key] != nil {
					return above + "." + key
				}
			}
			return ""
		}
		if v == nil || isOfType(v, want) {
			nth++
			return ""
		}
		return above
	}
	return look(obj, fieldPath(path), ""), nth
}

// isOfType says whether a value has the type that an error names.
func isOfType(v any, want string) bool {
	switch v := v.(type) {
	case string:
		return want == "a string"
	case bool:
		return want == "a boolean"
	case float64:
		return want == "a number" || want == "an integer" && v == float64(int64(v))
	case map[string]any:
		return want == "an object"
	case []any:
		return want == "an array"
	}
	return true
}
