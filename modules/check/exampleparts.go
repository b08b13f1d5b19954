package check

import (
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"

	"github.com/starling-operator/starling/runtime/object"
)

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
				out = append(out, object.Below(path, key))
			}
			out = append(out, plainSecrets(object.Below(path, key), v[key])...)
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
