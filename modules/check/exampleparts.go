package check

import (
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"
)

// otherForms are the values of want that the API server keeps in another form: `spec.a as "1", not
// "1000m"`. Those that it does not keep at all are left out, it warns of them itself.
func otherForms(path string, want, live any) (out []string) {
	switch w := want.(type) {
	case map[string]any:
		l, _ := live.(map[string]any)
		for _, key := range slices.Sorted(maps.Keys(w)) {
			if v, kept := l[key]; kept {
				out = append(out, otherForms(below(path, key), w[key], v)...)
			}
		}
	case []any:
		l, _ := live.([]any)
		for i := range min(len(w), len(l)) {
			out = append(out, otherForms(fmt.Sprintf("%s[%d]", path, i), w[i], l[i])...)
		}
	case nil:
	default:
		if fmt.Sprint(want) != fmt.Sprint(live) {
			out = append(out, fmt.Sprintf("%s as %s, not %s", path, quoted(live), quoted(want)))
		}
	}
	return out
}

func below(path, key string) string {
	if path == "" {
		return key
	}
	return path + "." + key
}

func quoted(v any) string {
	if s, is := v.(string); is {
		return fmt.Sprintf("%q", s)
	}
	return fmt.Sprint(v)
}

// secretName is how fields, keys and environment variables are called whose text nobody should read.
var secretName = regexp.MustCompile(`(?i)(^|[._-]|[a-z])(password|passwd|passphrase|token|(client|app|shared|webhook)[._-]?secret|(api|access|private|secret)[._-]?key)$`)

// plainSecrets are the fields of an object that hold a text as secrets are called: keys, and values
// of environment variables. Paths of files and references to other variables are none.
func plainSecrets(path string, v any) (out []string) {
	switch v := v.(type) {
	case map[string]any:
		name, _ := v["name"].(string)
		if value, is := v["value"].(string); is && secretName.MatchString(name) && isText(value) {
			out = append(out, path+" "+name)
		}
		for _, key := range slices.Sorted(maps.Keys(v)) {
			if value, is := v[key].(string); is && key != "name" && secretName.MatchString(key) && isText(value) && !refersTo(path) {
				out = append(out, below(path, key))
			}
			out = append(out, plainSecrets(below(path, key), v[key])...)
		}
	case []any:
		for i, e := range v {
			out = append(out, plainSecrets(fmt.Sprintf("%s[%d]", path, i), e)...)
		}
	}
	return out
}

// isText says whether a value may be a secret itself.
func isText(value string) bool {
	return value != "" && !strings.HasPrefix(value, "/") && !strings.HasPrefix(value, "$(")
}

// refersTo says whether fields at a path name objects, or are about the object itself.
func refersTo(path string) bool {
	return strings.HasSuffix(path, "Ref") || strings.HasPrefix(path, "metadata") || strings.HasSuffix(path, "matchLabels")
}
