package watch

import (
	"strings"
	"testing"
	"time"
	"unsafe"

	"go.starlark.net/starlark"
	"go.starlark.net/syntax"

	"github.com/starling-operator/starling/runtime/effect"
)

type text = starlark.String

// sharing is a result that holds texts of its object.
type sharing struct{ text }

func (s sharing) Text(part string) string {
	if i := strings.Index(string(s.text), part); i >= 0 {
		return string(s.text)[i : i+len(part)]
	}
	return part
}

func (s sharing) CompareSameType(op syntax.Token, other starlark.Value, depth int) (bool, error) {
	return s.text.CompareSameType(op, other.(sharing).text, depth)
}

// has says whether a text lies in the memory of the result.
func (s sharing) has(part string) bool {
	at := uintptr(unsafe.Pointer(unsafe.StringData(part)))
	from := uintptr(unsafe.Pointer(unsafe.StringData(string(s.text))))
	return at >= from && at+uintptr(len(part)) <= from+uintptr(len(s.text))
}

// Names and keys of a row lie in its result. They go on to do so when others of an equal result come, and when
// one of several rows of a key goes.
func TestNamesLieInResults(t *testing.T) {
	results := map[string]sharing{}
	v := newView(Spec{
		Filter: func(obj map[string]any) (starlark.Value, bool, error) {
			key, _, _ := identity(obj)
			made := sharing{text(strings.Repeat("<"+key.namespace+" "+key.name+" parent>", 2))}
			if _, there := results[key.name]; !there {
				results[key.name] = made // of all equal ones the first stays
			}
			return made, true, nil
		},
		Wakes: func(map[string]any) (*effect.Wakes, error) { return effect.WakesKeys("parent", "nowhere"), nil },
	})
	put := func(name string, version uint64) {
		obj := map[string]any{"metadata": map[string]any{"namespace": strings.Clone("shop"), "name": strings.Clone(name)}}
		v.put(objectKey{strings.Clone("shop"), strings.Clone(name)}, version, v.run(obj), time.Now(), false)
	}
	look := func(names ...string) {
		t.Helper()
		found := v.about("parent")
		if len(found) != len(names) {
			t.Fatalf("%d rows, want %v", len(found), names)
		}
		for i, r := range found {
			result := results[names[i]]
			if r.name != names[i] || !result.has(r.name) || !result.has(r.namespace) || !result.has(r.wakes.Keys[1]) {
				t.Errorf("row %s has its names elsewhere", r.objectKey)
			}
		}
		lies := false
		for key := range v.index {
			for _, name := range names {
				lies = lies || key == "parent" && results[name].has(key)
			}
		}
		if !lies {
			t.Error("the key of the index lies elsewhere")
		}
	}
	put("web", 1)
	put("api", 1)
	look("api", "web")
	put("web", 2)
	put("api", 2)
	look("api", "web")
	v.remove(objectKey{"shop", "api"}, 3, time.Now(), false)
	look("web")
}
