package definition

import (
	"cmp"
	"maps"
	"reflect"
	"slices"
	"strings"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
)

type schema = apiextensionsv1.JSONSchemaProps

// Narrower says where the second of two schemas may refuse, or drop, what an object of the first one has; "" where it
// takes all of that. It looks at schemas alone, so it may name a place in vain: the objects tell.
func Narrower(before, after *schema) string {
	before, after = before.DeepCopy(), after.DeepCopy()
	names := after.Properties["metadata"].Properties
	if len(names) > 0 && !reflect.DeepEqual(before.Properties["metadata"].Properties, names) {
		return "metadata"
	}
	for _, always := range []string{"apiVersion", "kind", "metadata"} { // each object has them, whatever the schema says
		delete(before.Properties, always)
		delete(after.Properties, always)
	}
	return narrower("", before, after)
}

// narrower is Narrower for the part at a path.
func narrower(at string, before, after *schema) string {
	if reflect.DeepEqual(before, after) {
		return ""
	}
	if refusesMore(before, after) {
		return cmp.Or(at, "the object")
	}
	below := func(name string) string { return strings.TrimPrefix(at+"."+name, ".") }
	look := func(name string, old, next *schema) string {
		switch {
		case old == nil: // no object has it
			return ""
		case next == nil:
			return below(name)
		}
		return narrower(below(name), old, next)
	}
	named := map[string]schema{}
	maps.Copy(named, before.Properties)
	maps.Copy(named, after.Properties)
	for _, name := range slices.Sorted(maps.Keys(named)) {
		if found := look(name, fieldOf(before, name), fieldOf(after, name)); found != "" {
			return found
		}
	}
	if found := look("*", beside(before), beside(after)); found != "" {
		return found
	}
	if after.Items == nil || after.Items.Schema == nil {
		return ""
	}
	old := anything()
	if before.Items != nil && before.Items.Schema != nil {
		old = before.Items.Schema
	}
	return narrower(at+"[]", old, after.Items.Schema)
}

// anything is the schema that takes all, and keeps it.
func anything() *schema {
	yes := true
	return &schema{XPreserveUnknownFields: &yes}
}

// fieldOf is the schema of a field; nil: it is dropped.
func fieldOf(s *schema, name string) *schema {
	if field, named := s.Properties[name]; named {
		return &field
	}
	return beside(s)
}

// beside is the schema of fields that properties do not name; nil: they are dropped.
func beside(s *schema) *schema {
	more := s.AdditionalProperties
	switch {
	case more != nil && more.Schema != nil:
		return more.Schema
	case s.XPreserveUnknownFields != nil && *s.XPreserveUnknownFields, more != nil && more.Allows:
		return anything()
	}
	return nil
}

// refusesMore compares one part of two schemas, without the parts below it.
func refusesMore(before, after *schema) bool {
	for _, name := range after.Required {
		if !slices.Contains(before.Required, name) && after.Properties[name].Default == nil {
			return true
		}
	}
	for _, rule := range after.XValidations {
		if !slices.ContainsFunc(before.XValidations, func(o apiextensionsv1.ValidationRule) bool { return o.Rule == rule.Rule }) {
			return true
		}
	}
	another := func(old, next any) bool { return !reflect.ValueOf(next).IsZero() && !reflect.DeepEqual(old, next) }
	unique := after.XListType != nil && *after.XListType != "atomic"
	return !covers(types(after), types(before)) || before.Nullable && !after.Nullable ||
		len(after.Enum) > 0 && (len(before.Enum) == 0 || !covers(texts(after.Enum), texts(before.Enum))) ||
		tighter(before.Maximum, after.Maximum, 1) || tighter(before.Minimum, after.Minimum, -1) ||
		after.ExclusiveMaximum && !before.ExclusiveMaximum || after.ExclusiveMinimum && !before.ExclusiveMinimum ||
		tighter(before.MaxLength, after.MaxLength, 1) || tighter(before.MinLength, after.MinLength, -1) ||
		tighter(before.MaxItems, after.MaxItems, 1) || tighter(before.MinItems, after.MinItems, -1) ||
		tighter(before.MaxProperties, after.MaxProperties, 1) || tighter(before.MinProperties, after.MinProperties, -1) ||
		another(before.Pattern, after.Pattern) || another(before.Format, after.Format) ||
		another(before.MultipleOf, after.MultipleOf) || after.UniqueItems && !before.UniqueItems ||
		another(before.AllOf, after.AllOf) || another(before.AnyOf, after.AnyOf) ||
		another(before.OneOf, after.OneOf) || another(before.Not, after.Not) ||
		after.XEmbeddedResource && !before.XEmbeddedResource ||
		unique && (another(before.XListType, after.XListType) || another(before.XListMapKeys, after.XListMapKeys))
}

// tighter says that a limit is new, or nearer; sign is -1 for a lower one.
func tighter[T int64 | float64](before, after *T, sign T) bool {
	return after != nil && (before == nil || sign**before > sign**after)
}

// types are those of JSON that a schema takes.
func types(s *schema) []string {
	switch {
	case s.XIntOrString:
		return []string{"integer", "string"}
	case s.Type == "number":
		return []string{"number", "integer"}
	case s.Type == "":
		return []string{"", "number", "integer", "string", "boolean", "object", "array"}
	}
	return []string{s.Type}
}

func texts(values []apiextensionsv1.JSON) (out []string) {
	for _, v := range values {
		out = append(out, string(v.Raw))
	}
	return out
}

func covers(all, some []string) bool {
	return !slices.ContainsFunc(some, func(s string) bool { return !slices.Contains(all, s) })
}
