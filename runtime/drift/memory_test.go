package drift

import (
	"fmt"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/starling-operator/starling/modules/release"
	"github.com/starling-operator/starling/runtime/watch"
)

func TestObjectsTakeLittleMemory(t *testing.T) {
	const many = 10_000
	heap := func() uint64 {
		var m runtime.MemStats
		runtime.GC()
		runtime.GC()
		runtime.ReadMemStats(&m)
		return m.HeapAlloc
	}
	before := heap()
	w := newWorld(t)
	local := fill(w, many)
	per := (heap() - before) / many
	t.Logf("%d bytes an object", per)
	if per > mostBytes {
		t.Errorf("an object takes %d bytes, more than %d", per, mostBytes)
	}
	if w.want(false); len(local.Entries()) != many {
		t.Errorf("%d objects", len(local.Entries()))
	}
}

// fill has releases of ten objects each be made and watched.
func fill(w *world, many int) *watch.Local {
	var objects []map[string]any
	for i := 0; i < many; i += 10 {
		ref := release.Ref{Module: fmt.Sprint("module", i), Name: fmt.Sprint("release", i), Namespace: "shop"}
		var seen []release.Object
		for j := range 10 {
			name := fmt.Sprintf("an-object-of-some-length-%d-%d", i, j)
			obj := decode(w.T, strings.ReplaceAll(strings.ReplaceAll(metadata, `"name": "web"`, fmt.Sprintf("%q: %q", "name", name)),
				`"meta.helm.sh/release-name": "web"`, fmt.Sprintf("%q: %q", annotationName, ref.Name)))
			delete(obj["metadata"].(map[string]any), "deletionTimestamp")
			s := read(obj, false, "starling", nothing)
			o := left(name, int(s.version), 0)
			o.Owned = s.owned
			seen, objects = append(seen, o), append(objects, obj)
		}
		w.Begin(ref, nil)
		w.Expect(ref, all(seen...))
	}
	local := watch.NewLocal(w.watches[0])
	local.Replace(objects, time.Time{})
	w.Synced(w.id(), local.Entries(), nil)
	return local
}
