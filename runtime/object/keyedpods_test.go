package object

import (
	"slices"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/applyconfigurations"
	"k8s.io/client-go/kubernetes/scheme"
	smd "sigs.k8s.io/structured-merge-diff/v6/schema"
)

func TestKeyedListsAreThoseOfTheSchema(t *testing.T) {
	converter := applyconfigurations.NewTypeConverter(scheme.Scheme)
	for gvk := range scheme.Scheme.AllKnownTypes() {
		u := &unstructured.Unstructured{}
		u.SetGroupVersionKind(gvk)
		typed, err := converter.ObjectToTyped(u)
		if err != nil {
			continue // no kind of objects, or one that no server serves
		}
		want := map[string]bool{}
		if gvk.Group != "internal.apiserver.k8s.io" && gvk.Group != "lifecycle.k8s.io" && gvk.Group != "extensions" { // nobody applies those, or they are gone
			bySchemaOf(typed.Schema(), typed.TypeRef(), "", nil, want)
		}
		got := map[string]bool{}
		namesOf(slices.Concat(everyKind, byKind[gvk.Group+"/"+gvk.Kind]), "", got)
		for list := range want {
			// The metadata of templates aside, and groups of groups: no chart has those twice.
			if !got[list] && !strings.Contains(list, ".metadata.") && !strings.Contains(list, "compositePodGroupTemplates.") {
				t.Errorf("%s: %s is not in the table", gvk, list)
			}
		}
		for list := range got {
			if !want[list] && len(want) > 0 && gvk.Version != "v1beta1" {
				t.Errorf("%s: %s is in the table, and not in the schema", gvk, list)
			}
		}
	}
}

func namesOf(lists []keyed, path string, out map[string]bool) {
	for _, l := range lists {
		at := strings.TrimPrefix(path+"."+l.at, ".")
		if l.same != nil {
			out[at+" "+presets.ReplaceAllString(strings.Join(l.keys, "/"), "")] = true
		}
		namesOf(l.in, at, out)
	}
}

// bySchemaOf gathers the lists with keys of a type, those of its status aside.
func bySchemaOf(s *smd.Schema, ref smd.TypeRef, path string, above []string, out map[string]bool) {
	if ref.NamedType != nil {
		if slices.Contains(above, *ref.NamedType) || strings.HasSuffix(*ref.NamedType, "Status") {
			return
		}
		above = append(slices.Clone(above), *ref.NamedType)
	}
	atom, _ := s.Resolve(ref)
	if atom.List != nil {
		if atom.List.ElementRelationship == smd.Associative {
			out[path+" "+strings.Join(atom.List.Keys, "/")] = true
		}
		bySchemaOf(s, atom.List.ElementType, path, above, out)
	}
	if atom.Map != nil {
		for _, f := range atom.Map.Fields {
			bySchemaOf(s, f.Type, strings.TrimPrefix(path+"."+f.Name, "."), above, out)
		}
	}
}
