package watch

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"
)

// A watch that takes the place of another one with the same filter, under another id, has
// its objects without a list and without another stream.
func TestAWatchTakesTheStreamOfTheOneBefore(t *testing.T) {
	for name, change := range map[string]func(*Spec){
		"all":        func(*Spec) {},
		"namespaces": func(s *Spec) { s.Namespaces = []string{"a"} },
		"names":      func(s *Spec) { s.Names = []string{"x"} },
	} {
		t.Run(name, func(t *testing.T) {
			f := newFixture(t)
			f.api.NoStreaming()
			f.api.Put(configMap("a", "x", "1"))
			spec := configMaps("before")
			change(&spec)
			f.manager.Start(spec)
			f.await("before synced served=true")
			f.api.Put(configMap("a", "x", "1.5"))
			f.await(`before modified a/x "1.5"`) // all its watches are open
			lists, watches := f.api.Count("list configmaps"), f.api.Count("watch configmaps")
			spec.ID = "after"
			f.manager.Start(spec)
			f.manager.Stop("before")
			f.await("after synced served=true")
			f.snapshot("after", `["1.5"]`)
			f.api.Put(configMap("a", "x", "2"))
			f.await(`after modified a/x "2"`)
			if l, w := f.api.Count("list configmaps"), f.api.Count("watch configmaps"); l != lists || w != watches {
				t.Errorf("%d lists and %d watches more", l-lists, w-watches)
			}
			f.nothing()
		})
	}
}

// told waits until a line that begins so has come, and forgets it and those before it.
func (r *recorder) told(begins string) {
	r.t.Helper()
	deadline := time.After(2 * time.Minute)
	for {
		r.mu.Lock()
		more := r.more
		at := slices.IndexFunc(r.lines, func(line string) bool { return strings.HasPrefix(line, begins) })
		if at >= 0 {
			r.lines = slices.Delete(r.lines, 0, at+1)
		}
		rest := fmt.Sprint(r.lines)
		r.mu.Unlock()
		if at >= 0 {
			return
		}
		select {
		case <-more:
		case <-deadline:
			r.t.Fatalf("waiting for %q, the sink was told %s", begins, rest)
		}
	}
}

// A list that fails for one watch is given up with that watch: those that share its stream
// are well again.
func TestAListThatFailsGoesWithItsWatch(t *testing.T) {
	f := newFixture(t)
	f.api.NoStreaming()
	f.api.Put(configMap("a", "x", "1"))
	f.manager.Start(configMaps("stays"))
	f.await("stays synced served=true")
	f.api.Deny("list configmaps", 403) // which cuts watches, too
	f.api.Put(configMap("a", "x", "2"))
	f.told(`stays modified a/x "2"`)
	late := configMaps("late")
	late.FilterID = "another"
	f.manager.Start(late)
	f.told("stays failed not allowed to list configmaps")
	f.manager.Stop("late")
	f.told("stays failed <nil>")
}
