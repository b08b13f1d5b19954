package sim

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/starling-operator/starling/runtime/message"
	"github.com/starling-operator/starling/runtime/object"
)

// lacks finds the first field of want that an object does not have so, with both values, "" for none. Of
// lists each element of want must be there, in whatever place. The content of Secrets is not in the answer.
func lacks(want, live map[string]any) (path, should, is string, differ bool) {
	l := &lack{}
	if l.fields("", want, live) {
		return "", "", "", false
	}
	if want["kind"] == "Secret" && (strings.HasPrefix(l.path, "data") || strings.HasPrefix(l.path, "stringData")) {
		l.should, l.is = object.Hidden, object.Hidden
	}
	return l.path, l.should, l.is, true
}

// lack is the first field that is not as it should be.
type lack struct{ path, should, is string }

// maxLack bounds a value in one line.
const maxLack = 100

func (l *lack) at(path string, want, live any) bool {
	l.path, l.should, l.is = path, message.Cut(message.JSON(want), maxLack), ""
	if live != nil {
		l.should, l.is = message.Apart(message.JSON(want), message.JSON(live), maxLack)
	}
	return false
}

// has says whether live has all that want has.
func (l *lack) has(path string, want, live any) bool {
	switch want := want.(type) {
	case map[string]any:
		if live, is := live.(map[string]any); is {
			return l.fields(path, want, live)
		}
	case []any:
		if live, is := live.([]any); is {
			return l.elements(path, want, live)
		}
	}
	return object.Same(want, live) || l.at(path, want, live)
}

func (l *lack) fields(path string, want, live map[string]any) bool {
	for _, key := range slices.Sorted(maps.Keys(want)) {
		if want[key] == nil || key == "stringData" && want["kind"] == "Secret" { // written into data
			continue
		}
		if !l.has(object.Below(path, key), want[key], live[key]) {
			return false
		}
	}
	return true
}

func (l *lack) elements(path string, want, live []any) bool {
	for i, e := range want {
		if !slices.ContainsFunc(live, func(other any) bool { return (&lack{}).has("", e, other) }) {
			at, other := fmt.Sprintf("%s[%d]", path, i), any(nil)
			if i < len(live) {
				other = live[i]
			}
			name, _ := e.(map[string]any)
			for _, one := range live {
				if m, _ := one.(map[string]any); name["name"] != nil && m["name"] == name["name"] {
					at, other = fmt.Sprintf("%s[%v]", path, name["name"]), one
				}
			}
			return l.has(at, e, other)
		}
	}
	return true
}
