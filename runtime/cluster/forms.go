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
	"github.com/starling-operator/starling/runtime/effect"
	"github.com/starling-operator/starling/runtime/message"
	"github.com/starling-operator/starling/runtime/object"
)

// OtherForms are the values of want that the API server keeps in another form, though manager has their fields:
// `spec.hard.pods as "20", not 20`. Values of Secrets are not in them.
func OtherForms(want, live map[string]any, manager string) []string {
	f := forms{secret: want["kind"] == "Secret" && want["apiVersion"] == "v1"}
	entries := effect.At[[]any](live, "metadata", "managedFields")
	for _, e := range entries {
		entry, _ := e.(map[string]any)
		if fields, is := entry["fieldsV1"].(map[string]any); is && entry["manager"] == manager && entry["subresource"] == nil {
			f.look("", want, live, fields)
		}
	}
	return f.found
}

// Form stands for want, and for what live has of the fields that manager owns; "" where that is not known.
func Form(want, live map[string]any, manager string) string {
	a := apply.FieldsOf(live, manager, "")
	if a == nil {
		return ""
	}
	text, err := json.Marshal([]any{asSigned(want, live, a), a.APIVersion, a.Set, ownedOf(live, a.Set)})
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

// look compares a value with what is there; owned are the fields inside it that the manager has, none for the value
// as a whole.
func (f *forms) look(path string, want, live any, owned map[string]any) {
	if apply.Equal(want, live) && apply.Whole(owned) {
		return
	}
	switch want := want.(type) {
	case map[string]any:
		if live, is := live.(map[string]any); is {
			f.fields(path, want, live, owned)
			return
		}
	case []any:
		if live, is := live.([]any); is && (!apply.Whole(owned) || len(want) == len(live)) {
			f.items(path, want, live, owned)
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

func (f *forms) fields(path string, want, live, owned map[string]any) {
	for _, key := range slices.Sorted(maps.Keys(want)) {
		if fields, is := owned["f:"+key].(map[string]any); is || apply.Whole(owned) {
			f.look(object.Below(path, key), want[key], live[key], fields)
		}
	}
	for _, key := range slices.Sorted(maps.Keys(live)) {
		if _, given := want[key]; !given && apply.Whole(owned) {
			f.look(object.Below(path, key), nil, live[key], nil)
		}
	}
}

func (f *forms) items(path string, want, live []any, owned map[string]any) {
	for i, item := range want {
		at := fmt.Sprintf("%s[%d]", path, i)
		if apply.Whole(owned) {
			f.look(at, item, live[i], nil)
			continue
		}
		for name, fields := range owned {
			kind, text, _ := strings.Cut(name, ":")
			there := slices.IndexFunc(live, func(other any) bool { return other != nil && apply.IsNamed(kind, text, other) })
			if fields, is := fields.(map[string]any); is && kind == "k" && there >= 0 && apply.Names(kind, text, item) {
				f.look(at, item, live[there], fields)
			}
		}
	}
}
