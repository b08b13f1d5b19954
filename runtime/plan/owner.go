package plan

import (
	"encoding/json"
	"slices"
	"strings"

	"github.com/starling-operator/starling/modules/release"
	"github.com/starling-operator/starling/runtime/apply"
	"github.com/starling-operator/starling/runtime/object"
)

// owner is what Starling owns of a part of an object, as the API server records it in
// metadata.managedFields: it has written those fields last. Where one of them is not as
// the manifest has it, a webhook or a hook has made it so when Starling wrote it, and not
// somebody later.
type owner struct {
	// all: the part is owned as a whole.
	all bool
	// fields are the records of Starling's managers that own some of it, others those of
	// the other ones.
	fields, others []map[string]any
}

// ownership reads the records of an object.
func ownership(obj map[string]any) owner {
	var out owner
	for entry := range apply.Entries(obj) {
		manager, _ := entry["manager"].(string)
		fields, is := entry["fieldsV1"].(map[string]any)
		switch {
		case is && manager == release.FieldManager && entry["subresource"] == nil:
			out.fields = append(out.fields, fields)
		case is:
			out.others = append(out.others, fields)
		}
	}
	return out
}

// field is what is owned of a field of a map.
func (o owner) field(name string) owner {
	return o.below(func(key string) bool { return key == "f:"+name })
}

// element is what is owned of an element of a list.
func (o owner) element(of map[string]any) owner {
	return o.below(func(key string) bool {
		text, is := strings.CutPrefix(key, "k:")
		var names map[string]any
		if !is || json.Unmarshal([]byte(text), &names) != nil {
			return false
		}
		for name, v := range names {
			if !object.Same(v, of[name]) {
				return false
			}
		}
		return true
	})
}

func (o owner) below(is func(key string) bool) owner {
	parts := func(of []map[string]any) (out []map[string]any) {
		for _, fields := range of {
			for key, v := range fields {
				if part, ok := v.(map[string]any); ok && is(key) {
					out = append(out, part)
				}
			}
		}
		return out
	}
	out := owner{fields: parts(o.fields), others: parts(o.others)}
	some := func(part map[string]any) bool { return len(part) > 0 }
	// A record without parts is of a list or map that is owned as a whole, or only of its
	// being there, when somebody else owns parts of it.
	out.all = o.all && !slices.ContainsFunc(o.others, some) || slices.ContainsFunc(out.fields, func(part map[string]any) bool { return !some(part) })
	return out
}
