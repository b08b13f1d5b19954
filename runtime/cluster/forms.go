package cluster

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/starling-operator/starling/runtime/apply"
	"github.com/starling-operator/starling/runtime/message"
	"github.com/starling-operator/starling/runtime/object"
)

// OtherForms are the values of want that the API server keeps in another form, though manager has their fields:
// `spec.hard.pods as "20", not 20`. Values of Secrets are not in them.
func OtherForms(want, live map[string]any, manager string) []string {
	f := forms{secret: want["kind"] == "Secret" && want["apiVersion"] == "v1"}
	for entry := range apply.Entries(live) {
		if fields, is := entry["fieldsV1"].(map[string]any); is && entry["manager"] == manager && entry["subresource"] == nil {
			clashes("", want, live, fields, f.differ)
		}
	}
	return f.found
}

// Form stands for want, and for what live has of the fields that manager owns; "" where that is not known.
func Form(want, live map[string]any, manager string) string {
	a := apply.FieldsOf(live, manager, "")
	if apply.Plain(live, manager) {
		a, live = &apply.Fields{}, contentOf(live) // whole
	}
	if a == nil {
		return ""
	}
	text, err := json.Marshal([]any{asSigned(want, live, a), a.APIVersion, a.Set, ownedOf(live, a.Set, true)})
	if err != nil {
		return ""
	}
	sum := sha256.Sum256(text)
	return hex.EncodeToString(sum[:16])
}

type forms struct {
	secret bool
	found  []string
}

// maxForm bounds a value in one line.
const maxForm = 60

// differ notes how a value differs that is owned as a whole.
func (f *forms) differ(path string, want, live any) {
	if apply.Equal(want, live) {
		return
	}
	switch want := want.(type) {
	case map[string]any:
		if live, is := live.(map[string]any); is {
			for _, key := range slices.Sorted(maps.Keys(apply.Union(want, live))) {
				f.differ(object.Below(path, key), want[key], live[key])
			}
			return
		}
	case []any:
		if live, is := live.([]any); is && len(want) == len(live) {
			for i, item := range want {
				f.differ(fmt.Sprintf("%s[%d]", path, i), item, live[i])
			}
			return
		}
	}
	is, should := message.Apart(message.JSON(live), message.JSON(want), maxForm)
	switch {
	case f.secret && (strings.HasPrefix(path, "data") || strings.HasPrefix(path, "stringData")):
		f.found = append(f.found, path+" as another value")
	case want == nil:
		f.found = append(f.found, fmt.Sprintf("%s as %s, which is not given", path, is))
	default:
		f.found = append(f.found, fmt.Sprintf("%s as %s, not %s", path, is, should))
	}
}
