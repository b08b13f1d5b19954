package owned

import (
	"fmt"
	"slices"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// entryAt is an entry of managedFields that was written at that second.
func entryAt(manager, subresource string, second int64, fields string) metav1.ManagedFieldsEntry {
	at := metav1.NewTime(time.Unix(second, 0))
	return metav1.ManagedFieldsEntry{Manager: manager, Subresource: subresource, Operation: metav1.ManagedFieldsOperationUpdate, Time: &at, FieldsV1: metav1.NewFieldsV1(fields)}
}

// web is a Deployment with a container; nil: it has none.
func web(replicas int64, annotation string, container map[string]any, fields ...metav1.ManagedFieldsEntry) *unstructured.Unstructured {
	list := []any{}
	if container != nil {
		list = append(list, container)
	}
	u := &unstructured.Unstructured{Object: map[string]any{
		"metadata": map[string]any{"annotations": map[string]any{"a.io/x": annotation}},
		"spec":     map[string]any{"replicas": replicas, "containers": list},
	}}
	u.SetManagedFields(fields)
	return u
}

// The fields that a repair takes back are named, with who has written each of them last.
func TestEdits(t *testing.T) {
	const (
		replicas   = `"f:replicas":{}`
		annotation = `"f:metadata":{"f:annotations":{".":{},"f:a.io/x":{}}}`
		container  = `"f:containers":{"k:{\"name\":\"a\"}":{".":{},"f:name":{},"f:image":{},"f:env":{}}}`
		all        = `{` + annotation + `,"f:spec":{` + replicas + `,` + container + `}}`
	)
	a := func(image string) map[string]any {
		return map[string]any{"name": "a", "image": image, "env": []any{"x"}}
	}
	now := web(1, "ours", a("a:1"), entryAt("starling", "", 9, all))
	for _, test := range []struct {
		name string
		live *unstructured.Unstructured
		want []string
	}{
		{"nothing", web(1, "ours", a("a:1"), entryAt("starling", "", 1, all)), nil},
		{"a field of a subresource, and one of another writer", web(3, "theirs", a("a:1"),
			entryAt("autoscaler", "scale", 2, `{"f:spec":{`+replicas+`}}`), entryAt("kubectl", "", 3, `{`+annotation+`}`), entryAt("starling", "", 1, `{}`)),
			[]string{`metadata.annotations["a.io/x"] kubectl`, "spec.replicas autoscaler"}},
		{"two who have written it", web(3, "ours", a("a:1"),
			entryAt("zed", "", 5, `{"f:spec":{`+replicas+`}}`), entryAt("early", "", 4, `{"f:spec":{`+replicas+`}}`)),
			[]string{"spec.replicas zed"}},
		{"a field of an element", web(1, "ours", a("a:2"), entryAt("kubectl", "", 2, `{"f:spec":{"f:containers":{"k:{\"name\":\"a\"}":{"f:image":{}}}}}`)),
			[]string{"spec.containers[name=a].image kubectl"}},
		{"an element that is gone", web(1, "ours", nil, entryAt("kubectl", "", 2, `{}`)), []string{"spec.containers[name=a] "}},
	} {
		t.Run(test.name, func(t *testing.T) {
			var got []string
			for _, e := range Edits(test.live, now, "starling") {
				got = append(got, fmt.Sprint(e.Path, " ", e.By))
			}
			if !slices.Equal(got, test.want) {
				t.Errorf("got %q, want %q", got, test.want)
			}
		})
	}
}

// Past a number of fields the object counts as a whole.
func TestEditsOfManyFields(t *testing.T) {
	data, fields := map[string]any{}, ""
	for i := range mostEdits + 1 {
		data[fmt.Sprint("k", i)] = "ours"
		fields += fmt.Sprintf(`,"f:k%d":{}`, i)
	}
	now, live := &unstructured.Unstructured{Object: map[string]any{"data": data}}, &unstructured.Unstructured{Object: map[string]any{"data": map[string]any{}}}
	now.SetManagedFields([]metav1.ManagedFieldsEntry{entryAt("starling", "", 1, `{"f:data":{`+fields[1:]+`}}`)})
	if got := Edits(live, now, "starling"); got != nil {
		t.Errorf("got %v", got)
	}
	delete(data, "k0")
	if got := Edits(live, now, "starling"); len(got) != mostEdits {
		t.Errorf("got %v", got)
	}
}

func TestWhatIsIgnoredOfAField(t *testing.T) {
	field, err := ParsePath("spec.containers[name=a].image")
	if err != nil {
		t.Fatal(err)
	}
	for text, want := range map[string][2]bool{ // of the field, of the object
		"Deployment":                               {true, true},
		"Deployment/web":                           {true, true},
		"Deployment/other":                         {},
		"Secret":                                   {},
		"Deployment.apps/web":                      {true, true},
		"Deployment.":                              {},
		"spec.containers":                          {true, false},
		"spec.containers[*].image":                 {true, false},
		"Deployment/web spec.containers[name=b]":   {},
		"Deployment/web spec.containers[name=a]":   {true, false},
		"Deployment/other spec.containers[name=a]": {},
	} {
		i, err := ParseIgnore(text)
		if err != nil {
			t.Fatal(err)
		}
		if got := [2]bool{i.Names("apps/v1", "Deployment", "web", field), i.Names("apps/v1", "Deployment", "web", nil)}; got != want {
			t.Errorf("%s: got %v, want %v", text, got, want)
		}
	}
}
