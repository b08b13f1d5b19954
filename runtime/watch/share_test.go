package watch

import "testing"

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
