package watch

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"go.starlark.net/starlark"
)

// seen waits until a watch has told of a result, and leaves what it told.
func (f *fixture) seen(result string) {
	f.t.Helper()
	deadline := time.After(2 * time.Minute)
	for {
		f.mu.Lock()
		more := f.more
		found := slices.ContainsFunc(f.lines, func(line string) bool { return strings.HasSuffix(line, strconv.Quote(result)) })
		f.mu.Unlock()
		if found {
			return
		}
		select {
		case <-more:
		case <-deadline:
			f.t.Fatalf("%s was not told of", result)
		}
	}
}

// TestNamespacesAndObjectsAtOnce changes labels of namespaces and objects in them at
// the same time. The events of the watch, from its sync on, must lead to its snapshot:
// nothing is added twice, or deleted without having been there.
func TestNamespacesAndObjectsAtOnce(t *testing.T) {
	f := newFixture(t)
	f.manager.Start(ofTeam("w", "blue"))
	f.await("w synced served=true")
	random := rand.New(rand.NewPCG(1, 2))
	f.api.Put(namespace("z", map[string]any{"team": "blue"}))
	names := []string{"a", "b", "c", "d"}
	for round := range 400 {
		ns, name := names[random.IntN(4)], names[random.IntN(4)]
		switch random.IntN(5) {
		case 0:
			f.api.Put(namespace(ns, map[string]any{"team": "blue"}))
		case 1:
			f.api.Put(namespace(ns, map[string]any{"team": "red"}))
		case 2:
			f.api.Remove("v1", "ConfigMap", ns, name)
		default:
			f.api.Put(configMap(ns, name, fmt.Sprint(round)))
		}
		if round%97 == 50 {
			f.api.Expire()
		}
		if round%5 == 0 { // the watch keeps up, more or less
			mark := fmt.Sprint("mark", round)
			f.api.Put(configMap("z", "mark", mark))
			f.seen(mark)
		}
	}
	for _, ns := range names {
		f.api.Put(namespace(ns, map[string]any{"team": "blue"}))
		f.api.Put(configMap(ns, "end", "end"))
	}
	want := fmt.Sprint(f.api.Snapshot("v1", "ConfigMap", func(obj map[string]any) any {
		return starlark.String(obj["data"].(map[string]any)["d"].(string))
	}))

	has := map[string]string{}
	deadline := time.After(2 * time.Minute)
	for {
		f.mu.Lock()
		more, lines := f.more, f.lines
		f.lines = nil
		f.mu.Unlock()
		for _, line := range lines {
			part := strings.Fields(line) // w added a/x "1"
			_, there := has[part[2]]
			if there == (part[1] == "added") {
				t.Fatalf("told %q while there is %v", line, has)
			}
			if has[part[2]] = part[3]; part[1] == "deleted" {
				delete(has, part[2])
			}
		}
		var told []string
		for _, key := range slices.Sorted(maps.Keys(has)) {
			told = append(told, has[key])
		}
		// Namespaces may be behind the objects in them: then some will leave and come once more.
		snapshot := fmt.Sprint(f.manager.Snapshot("w"))
		if fmt.Sprint(told) == want && snapshot == want {
			return
		}
		select {
		case <-more:
		case <-deadline:
			t.Fatalf("told of %v, and the snapshot has %s, want %s", told, snapshot, want)
		}
	}
}
