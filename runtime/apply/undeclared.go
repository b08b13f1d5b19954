package apply

import (
	"cmp"
	"fmt"
	"regexp"
	"slices"
	"strconv"
)

var undeclaredField = regexp.MustCompile(`(?m)(\.\S*): field not declared in schema`)

// undeclared are the fields that a kind does not have, as the API server names them, the last ones first.
func undeclared(err error) (paths []string) {
	if err == nil {
		return nil
	}
	for _, m := range undeclaredField.FindAllStringSubmatch(err.Error(), -1) {
		paths = append(paths, m[1])
	}
	slices.SortFunc(paths, func(a, b string) int { return cmp.Compare(b, a) })
	return slices.Compact(paths)
}

var (
	// step is one step of a path: a field, a place in a list, or an element with keys.
	step = regexp.MustCompile(`^(?:\.([^.\[]+)|\[(\d+)\]|\[([^\]]*)\])`)
	// keyed is a key of an element.
	keyed = regexp.MustCompile(`([^=,]+)=(?:"((?:[^"\\]|\\.)*)"|([^,]*))`)
)

// drop takes a field away. It returns its path with places instead of keys, and whether it was there.
func drop(v any, path string) (at string, gone bool) {
	m := step.FindStringSubmatch(path)
	if m == nil {
		return "", false
	}
	rest := path[len(m[0]):]
	switch v := v.(type) {
	case map[string]any:
		inner, there := v[m[1]]
		if rest == "" {
			delete(v, m[1])
			return m[0], there
		}
		at, gone = drop(inner, rest)
		return m[0] + at, gone
	case []any:
		for i, e := range v {
			if m[2] == strconv.Itoa(i) || m[2] == "" && hasKeys(e, m[3]) {
				at, gone = drop(e, rest)
				return fmt.Sprintf("[%d]%s", i, at), gone
			}
		}
	}
	return "", false
}

// hasKeys says whether an element has keys as in name="a",port=80. One that it does not give has a default.
func hasKeys(e any, keys string) bool {
	fields, is := e.(map[string]any)
	for _, k := range keyed.FindAllStringSubmatch(keys, -1) {
		if v, given := fields[k[1]]; given && fmt.Sprint(v) != k[2]+k[3] {
			return false
		}
	}
	return is
}
