package owned

import (
	"encoding/json"
	"reflect"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

func object(t *testing.T, text string) (out map[string]any) {
	t.Helper()
	if err := json.Unmarshal([]byte(text), &out); err != nil {
		t.Fatal(err)
	}
	return out
}

// Each is a manifest of before, the one that is wanted and the object that is there; then both sides of the merge.
func TestLeave(t *testing.T) {
	for name, tt := range map[string]struct{ path, was, want, live, merged, from string }{
		"a field":                         {"a.b", `{"a":{"b":1,"c":1}}`, `{"a":{"b":2,"c":2}}`, `{"a":{"b":9}}`, `{"a":{"c":2}}`, `{"a":{"c":1}}`},
		"that leaves":                     {"a.b", `{"a":{"b":1,"c":1}}`, `{"a":{"c":2}}`, `{"a":{"b":9}}`, `{"a":{"c":2}}`, `{"a":{"c":1}}`},
		"with all of the map":             {"a.b", `{"a":{"b":1,"c":1}}`, `{}`, `{"a":{"b":9}}`, `{"a":{}}`, `{"a":{"c":1}}`},
		"with null":                       {"a.b.c", `{"a":{"b":{"c":1}}}`, `{"a":{"b":null}}`, `{"a":{"b":{"c":9}}}`, `{"a":{"b":{}}}`, `{"a":{"b":{}}}`},
		"that nobody has":                 {"a.b", `{"a":{"c":1}}`, `{}`, `{"a":{"c":1}}`, `{}`, `{"a":{"c":1}}`},
		"taken away":                      {"a.b", `{"a":{"b":1}}`, `{"a":{"b":2}}`, `{"a":{}}`, `{"a":{}}`, `{"a":{}}`},
		"taken away with more":            {"a.b", `{"a":{"b":1,"c":1}}`, `{"a":{"b":2,"c":1}}`, `{}`, `{"a":{"c":1}}`, `{"a":{"c":1}}`},
		"that is new":                     {"a.b", `{"a":{}}`, `{"a":{"b":2}}`, `{"a":{}}`, `{"a":{"b":2}}`, `{"a":{}}`},
		"new, and there":                  {"a.b", `{"a":{}}`, `{"a":{"b":2}}`, `{"a":{"b":9}}`, `{"a":{}}`, `{"a":{}}`},
		"a map":                           {"a", `{"a":{"b":1}}`, `{"a":{"b":2}}`, `{"a":{"c":9}}`, `{}`, `{}`},
		"all fields of a map":             {"a[*]", `{"a":{"b":1,"c":1}}`, `{"a":{"b":2,"d":2}}`, `{"a":{"b":9,"c":9}}`, `{"a":{"d":2}}`, `{"a":{}}`},
		"a field of elements":             {"l[*].i", `{"l":[{"name":"a","i":1}]}`, `{"l":[{"name":"a","i":2},{"name":"b","i":2}]}`, `{"l":[{"name":"c","i":8},{"name":"a","i":9}]}`, `{"l":[{"name":"a","i":9},{"name":"b","i":2}]}`, `{"l":[{"name":"a","i":1}]}`},
		"of one element":                  {"l[name=a].i", `{"l":[{"name":"a","i":1},{"name":"b","i":1}]}`, `{"l":[{"name":"a"},{"name":"b"}]}`, `{"l":[{"name":"a","i":9},{"name":"b","i":9}]}`, `{"l":[{"name":"a","i":9},{"name":"b"}]}`, `{"l":[{"name":"a","i":1},{"name":"b","i":1}]}`},
		"taken from an element":           {"l[name=a].i", `{"l":[{"name":"a","i":1}]}`, `{"l":[{"name":"a","i":1}]}`, `{"l":[{"name":"a"}]}`, `{"l":[{"name":"a"}]}`, `{"l":[{"name":"a"}]}`},
		"below an element":                {"l[name=a].m.x", `{"l":[{"name":"a","m":{"x":1}}]}`, `{"l":[{"name":"a","m":{"x":2,"y":2}}]}`, `{"l":[{"name":"a","m":{"x":9}}]}`, `{"l":[{"name":"a","m":{"x":9,"y":2}}]}`, `{"l":[{"name":"a","m":{"x":1}}]}`},
		"with a map of elements":          {"l[name=a].m.x", `{"l":[{"name":"a","m":{"x":1}}]}`, `{"l":[{"name":"a"}]}`, `{"l":[{"name":"a","m":{"x":9,"z":9}}]}`, `{"l":[{"name":"a","m":{"x":9}}]}`, `{"l":[{"name":"a","m":{"x":1}}]}`},
		"lists in lists":                  {"l[*].m[name=b].i", `{"l":[{"name":"a","m":[{"name":"b","i":1}]}]}`, `{"l":[{"name":"a","m":[{"name":"b","i":2}]}]}`, `{"l":[{"name":"a","m":[{"name":"b","i":9}]}]}`, `{"l":[{"name":"a","m":[{"name":"b","i":9}]}]}`, `{"l":[{"name":"a","m":[{"name":"b","i":1}]}]}`},
		"an element":                      {"l[name=a]", `{"l":[{"name":"a","i":1}]}`, `{"l":[{"name":"a","i":2},{"name":"b"}]}`, `{"l":[{"name":"a","i":9}]}`, `{"l":[{"name":"a","i":9},{"name":"b"}]}`, `{"l":[{"name":"a","i":1}]}`},
		"an element that leaves":          {"l[name=a]", `{"l":[{"name":"a","i":1}]}`, `{"l":[{"name":"b"}]}`, `{"l":[{"name":"a","i":9},{"name":"c"}]}`, `{"l":[{"name":"b"},{"name":"a","i":9}]}`, `{"l":[{"name":"a","i":1}]}`},
		"an element that went":            {"l[name=a]", `{"l":[{"name":"a","i":1}]}`, `{"l":[{"name":"a","i":2}]}`, `{"l":[]}`, `{"l":[]}`, `{"l":[{"name":"a","i":1}]}`},
		"a new element":                   {"l[name=a]", `{}`, `{"l":[{"name":"a","i":2}]}`, `{}`, `{"l":[{"name":"a","i":2}]}`, `{}`},
		"an element of one field":         {"l[name=a].i", `{"l":[{"name":"a","i":1}]}`, `{}`, `{"l":[{"name":"a","i":9,"j":1}]}`, `{"l":[{"name":"a","i":9,"j":1}]}`, `{"l":[{"name":"a","i":1}]}`},
		"the only one that leaves":        {"l[name=a]", `{"l":[{"name":"a","i":1}]}`, `{}`, `{"l":[{"name":"a","i":9},{"name":"c"}]}`, `{"l":[{"name":"a","i":9}]}`, `{"l":[{"name":"a","i":1}]}`},
		"a list that is empty":            {"l[name=a]", `{"l":[{"name":"a"}]}`, `{"l":[]}`, `{"l":[{"name":"a","i":9}]}`, `{"l":[{"name":"a","i":9}]}`, `{"l":[{"name":"a"}]}`},
		"one that says more":              {"l[name=a].i", `{"l":[{"name":"a","i":1,"j":1}]}`, `{"l":[]}`, `{"l":[{"name":"a","i":9,"j":1}]}`, `{"l":[]}`, `{"l":[{"name":"a","i":1,"j":1}]}`},
		"any that leaves":                 {"l[*].i", `{"l":[{"name":"a","i":1}]}`, `{"l":[]}`, `{"l":[{"name":"a","i":9}]}`, `{"l":[]}`, `{"l":[{"name":"a","i":1}]}`},
		"one of others":                   {"l[name=c]", `{"l":[{"name":"a"}]}`, `{"l":[{"name":"a"}]}`, `{"l":[{"name":"c","i":9},{"name":"a"},{"name":"d"}]}`, `{"l":[{"name":"c","i":9},{"name":"a"}]}`, `{"l":[{"name":"a"}]}`},
		"one of others, at last":          {"l[name=c].i", `{"l":[{"name":"a"}]}`, `{}`, `{"l":[{"name":"c","i":9},{"name":"d"}]}`, `{"l":[{"name":"c","i":9}]}`, `{"l":[{"name":"a"}]}`},
		"in a list that others have made": {"l[name=a].m[name=b]", `{"l":[{"name":"a"}]}`, `{"l":[{"name":"a"}]}`, `{"l":[{"name":"a","m":[{"name":"b"}]}]}`, `{"l":[{"name":"a","m":[{"name":"b"}]}]}`, `{"l":[{"name":"a"}]}`},
		"keys of others":                  {"l[name=a].m[*]", `{"l":[{"name":"a","m":{"x":1}}]}`, `{"l":[{"name":"a","m":{"x":1}}]}`, `{"l":[{"name":"a","m":{"x":9,"y":9}}]}`, `{"l":[{"name":"a","m":{"x":9,"y":9}}]}`, `{"l":[{"name":"a","m":{"x":1}}]}`},
		"without a name":                  {"l[*].m[*].w", `{"l":[{"p":"api","m":[{"name":"a","w":1}]}]}`, `{"l":[{"p":"new","m":[{"name":"a","w":1}]},{"p":"api","m":[{"name":"a","w":1}]}]}`, `{"l":[{"p":"api","z":0,"m":[{"name":"a","w":9}]}]}`, `{"l":[{"p":"new","m":[{"name":"a","w":1}]},{"p":"api","m":[{"name":"a","w":9}]}]}`, `{"l":[{"p":"api","m":[{"name":"a","w":1}]}]}`},
		"of a name twice":                 {"l[*].s", `{"l":[{"name":"a","at":"x"},{"name":"a","at":"y","s":1}]}`, `{"l":[{"name":"a","at":"x"},{"name":"a","at":"y","s":1}]}`, `{"l":[{"name":"a","at":"y","s":9},{"name":"a","at":"x"}]}`, `{"l":[{"name":"a","at":"x"},{"name":"a","at":"y","s":9}]}`, `{"l":[{"name":"a","at":"x"},{"name":"a","at":"y","s":1}]}`},
		"a user and a group":              {"l[*]", `{"l":[{"k":"U","name":"a"},{"k":"G","name":"a"}]}`, `{"l":[{"k":"U","name":"a"},{"k":"G","name":"a"}]}`, `{"l":[{"k":"U","name":"a"},{"k":"G","name":"a"}]}`, `{"l":[{"k":"U","name":"a"},{"k":"G","name":"a"}]}`, `{"l":[{"k":"U","name":"a"},{"k":"G","name":"a"}]}`},
		"nothing tells which":             {"l[*].w", `{"l":[{"p":1,"w":1}]}`, `{"l":[{"p":1,"w":1}]}`, `{"l":[{"p":1,"q":1,"w":8},{"p":1,"q":2,"w":9}]}`, `{"l":[{"p":1,"w":1}]}`, `{"l":[{"p":1,"w":1}]}`},
		"one is the same":                 {"l[*].w", `{"l":[{"p":1,"w":1}]}`, `{"l":[{"p":1,"w":1},{"p":1,"q":1,"w":1}]}`, `{"l":[{"p":1,"q":1,"w":8},{"p":1,"w":9}]}`, `{"l":[{"p":1,"w":9},{"p":1,"q":1,"w":8}]}`, `{"l":[{"p":1,"w":1}]}`},
		"texts":                           {"l[*]", `{"l":["a","a"]}`, `{"l":["a","a"]}`, `{"l":["a","a"]}`, `{"l":["a","a"]}`, `{"l":["a","a"]}`},
		"a path that is none":             {"a.b.c", `{"a":{"b":1}}`, `{"a":{"b":2}}`, `{"a":{"b":9}}`, `{"a":{"b":2}}`, `{"a":{"b":1}}`},
	} {
		t.Run(name, func(t *testing.T) {
			p, err := ParsePath(tt.path)
			if err != nil {
				t.Fatal(err)
			}
			was, want, live := object(t, tt.was), object(t, tt.want), object(t, tt.live)
			leave(was, want, live, []Path{p}, false)
			if !reflect.DeepEqual(want, object(t, tt.merged)) || !reflect.DeepEqual(was, object(t, tt.from)) || !reflect.DeepEqual(live, object(t, tt.live)) {
				t.Errorf("got %v from %v beside %v", want, was, live)
			}
		})
	}
}

// A field that a controller has taken over is the manifest's again once that gives it another value.
func TestUnchanged(t *testing.T) {
	scaled := []metav1.ManagedFieldsEntry{entryAt("kube-controller-manager", "scale", 1, `{"f:spec":{"f:replicas":{}}}`)}
	for name, tt := range map[string]struct {
		was, want string
		is        bool
	}{
		"the same": {`{"spec":{"replicas":1}}`, `{"spec":{"replicas":1}}`, true},
		"no more":  {`{"spec":{"replicas":1}}`, `{"spec":{}}`, true},
		"never":    {`{}`, `{}`, true},
		"another":  {`{"spec":{"replicas":1}}`, `{"spec":{"replicas":2}}`, false},
		"for once": {`{"spec":{}}`, `{"spec":{"replicas":2}}`, false},
	} {
		if got := Unchanged(scaled, object(t, tt.want), object(t, tt.was)); len(got) == 1 != tt.is {
			t.Errorf("%s: %v", name, got)
		}
	}
	if got := Unchanged(scaled, object(t, `{"spec":{"replicas":2}}`), object(t, `{}`), object(t, `{"spec":{"replicas":2}}`)); len(got) != 1 {
		t.Errorf("tried: %v", got)
	}
	if got := LastWrite(scaled, "kube-controller-manager"); !got.IsZero() {
		t.Errorf("of a subresource: %v", got)
	}
	if got := Unchanged(nil, object(t, `{"spec":{"replicas":1}}`), object(t, `{"spec":{"replicas":1}}`)); got != nil {
		t.Errorf("%v", got)
	}
}
