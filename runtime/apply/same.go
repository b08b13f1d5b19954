package apply

import (
	"iter"
	"maps"
	"slices"

	"github.com/starling-operator/starling/runtime/effect"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/structured-merge-diff/v6/fieldpath"
	"sigs.k8s.io/structured-merge-diff/v6/value"
)

// Same reports whether an apply of want by manager would leave live as it is: want has just the fields that the
// manager owns, and live has their values. A change of a field takes it away from its manager, so ownership tells
// drift, too. The answer is false as well where the API server keeps a value in another form, "1000m" as "1". An
// object that is written without apply is as it was left if it has all values.
func Same(want, live map[string]any, manager string) bool {
	return SameAs(want, live, FieldsOf(live, manager, ""), Equal) || AsNoted(want, live, manager)
}

// SameAs is Same for the fields of one entry of managedFields, nil for none. Values are compared by equal.
func SameAs(want, live map[string]any, owned *Fields, equal func(want, live any) bool) bool {
	return comparison{equal, false}.object(want, live, owned)
}

// comparison says how values are compared, and whether more may be owned than is wanted, in another order.
type comparison struct {
	equal func(want, live any) bool
	more  bool
}

func (c comparison) object(want, live map[string]any, owned *Fields) bool {
	if owned == nil || owned.APIVersion != want["apiVersion"] {
		return false
	}
	top, metadata := effect.WithMetadata(want)
	nobodys := func(key string, _ any) bool { return key == "name" || key == "namespace" }
	if maps.DeleteFunc(metadata, nobodys); len(metadata) == 0 {
		delete(top, "metadata")
	}
	delete(top, "apiVersion")
	delete(top, "kind")
	return c.same(top, live, owned.Set)
}

// Fields is an entry of managedFields.
type Fields struct {
	APIVersion any
	Set        map[string]any // as in fieldsV1
	At         string         // when they have changed last
}

// FieldsOf is what manager has applied to an object, or to a subresource of it, nil when that is not known for sure.
func FieldsOf(live map[string]any, manager, subresource string) *Fields {
	var out *Fields
	for entry := range Entries(live) {
		applied := entry["operation"] == string(metav1.ManagedFieldsOperationApply)
		if entry["manager"] != manager || !applied || effect.At[string](entry, "subresource") != subresource {
			continue
		}
		fields, _ := entry["fieldsV1"].(map[string]any)
		if out != nil || fields == nil {
			return nil
		}
		at, _ := entry["time"].(string)
		out = &Fields{entry["apiVersion"], fields, at}
	}
	return out
}

// Entries are those of managedFields.
func Entries(live map[string]any) iter.Seq[map[string]any] {
	return func(yield func(map[string]any) bool) {
		for _, e := range effect.At[[]any](live, "metadata", "managedFields") {
			if entry, _ := e.(map[string]any); !yield(entry) {
				return
			}
		}
	}
}

// same compares one value with what is there; owned are the fields inside it that the
// manager owns. Where those name none the value is owned as a whole.
func (c comparison) same(want, live any, owned map[string]any) bool {
	if Whole(owned) {
		return c.equal(want, live)
	}
	switch want := want.(type) {
	case map[string]any:
		live, _ := live.(map[string]any)
		for key, value := range want {
			fields, ok := owned["f:"+key].(map[string]any)
			if !ok || !c.same(value, live[key], fields) {
				return false
			}
		}
		return c.more || len(want) == members(owned)
	case []any:
		live, _ := live.([]any)
		return (c.more || len(want) == members(owned)) && c.sameItems(want, live, owned)
	}
	return false
}

// Whole says that the fields of a value name none inside it.
func Whole(owned map[string]any) bool { return members(owned) == 0 }

// members counts the fields or items inside a value, without "." for the value itself.
func members(owned map[string]any) int {
	n := len(owned)
	if _, ok := owned["."]; ok {
		n--
	}
	return n
}

// sameItems compares the items of a list that is merged by keys, or of a set, and their
// order: an apply puts them into the one that is asked for.
func (c comparison) sameItems(want, live []any, owned map[string]any) bool {
	items := ItemsOf(owned)
	last := -1
	for _, item := range want {
		at := slices.IndexFunc(items, func(o Item) bool { return o.Names(item) })
		if at < 0 {
			return false
		}
		found := items[at]
		if items = slices.Delete(items, at, at+1); slices.ContainsFunc(items, func(o Item) bool { return o.Names(item) }) {
			return false // two may be meant
		}
		i := slices.IndexFunc(live, found.Is)
		if i < 0 || i <= last && !c.more || found.Key != nil && !c.same(item, live[i], found.Fields) {
			return false
		}
		last = i
	}
	return true
}

// Item is an item of a list that is merged by keys, or of a set, as managedFields name it.
type Item struct {
	fieldpath.PathElement
	Fields map[string]any // that are owned of it
}

// ItemsOf are the items among the fields of a list, in the order of their names.
func ItemsOf(owned map[string]any) (out []Item) {
	for _, text := range slices.Sorted(maps.Keys(owned)) {
		fields, is := owned[text].(map[string]any)
		if name, err := fieldpath.DeserializePathElement(text); err == nil && is && (name.Key != nil || name.Value != nil) {
			out = append(out, Item{name, fields})
		}
	}
	return out
}

// Names says whether an item of a list may be this one. Keys that it does not have are given by default.
func (o Item) Names(item any) bool { return o.is(item, false) }

// Is says whether an item of a list in the cluster is this one.
func (o Item) Is(item any) bool { return o.is(item, true) }

func (o Item) is(item any, all bool) bool {
	if o.Key == nil {
		return item != nil && Equal(item, (*o.Value).Unstructured())
	}
	fields, is := item.(map[string]any)
	return is && !slices.ContainsFunc(*o.Key, func(k value.Field) bool {
		has, there := fields[k.Name]
		return there && !Equal(k.Value.Unstructured(), has) || all && !there
	})
}

// Equal compares plain data. An empty value may be missing: the API server leaves out many
// a field that is false, 0 or without members.
func Equal(want, live any) bool { return equal(want, live, false) }

// equal is Equal; with more, maps may have more than is wanted.
func equal(want, live any, more bool) bool {
	if live == nil {
		return empty(want)
	}
	switch want := want.(type) {
	case map[string]any:
		live, ok := live.(map[string]any)
		if !ok || !more && len(want) != len(live) {
			return false
		}
		for key, value := range want {
			there, ok := live[key]
			if !ok && !more || !equal(value, there, more) {
				return false
			}
		}
		return true
	case []any:
		live, ok := live.([]any)
		return ok && slices.EqualFunc(want, live, func(want, live any) bool { return equal(want, live, more) })
	case int64:
		if live, ok := live.(float64); ok {
			return float64(want) == live
		}
	case float64:
		if live, ok := live.(int64); ok {
			return want == float64(live)
		}
	}
	return want == live
}

func empty(value any) bool {
	switch value := value.(type) {
	case map[string]any:
		return len(value) == 0
	case []any:
		return len(value) == 0
	}
	return value == false || value == int64(0) || value == 0.0 || value == ""
}

// Owns says whether the fields have a label or an annotation among them; in is "labels" or "annotations".
func (f *Fields) Owns(in, key string) bool {
	return f != nil && effect.At[any](f.Set, "f:metadata", "f:"+in, "f:"+key) != nil
}
