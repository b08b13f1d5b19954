package watch

import (
	"fmt"
	"testing"
)

// Many names in some namespaces are one stream a namespace, and selected here.
func TestManyNamesAreSelectedHere(t *testing.T) {
	for _, apart := range []bool{false, true} {
		t.Run(fmt.Sprintf("apart=%v", apart), func(t *testing.T) {
			f := newFixture(t)
			f.api.NoStreaming()
			spec := configMaps("w")
			spec.Apart, spec.Module = apart, "web"
			for i := range 3000 {
				spec.Names = append(spec.Names, fmt.Sprint("n", i))
			}
			spec.Namespaces = []string{"a", "b", "c", "d", "e"}
			f.api.Put(configMap("a", "n7", "1"))
			f.api.Put(configMap("a", "other", "1"))
			f.api.Put(configMap("e", "n2999", "2"))
			f.manager.Start(spec)
			f.await("w synced served=true")
			f.snapshot("w", `["1" "2"]`)
			if n := f.api.Count("list configmaps"); n != 5 {
				t.Errorf("%d lists, want one a namespace", n)
			}
			all := configMaps("all") // with the same filter, and other objects
			all.Namespaces = []string{"a"}
			f.manager.Start(all)
			f.await("all synced served=true")
			f.snapshot("all", `["1" "1"]`)
			f.manager.Stop("all")
			f.api.Put(configMap("a", "other", "3"))
			f.api.Put(configMap("b", "n0", "4"))
			f.await(`w added b/n0 "4"`)
			f.nothing()
		})
	}
}

// A module that asks for too many streams gets none more, and is told; others are served.
func TestStreamsAreBounded(t *testing.T) {
	f := newFixture(t)
	spec := configMaps("many")
	spec.Module = "web"
	for i := range MaxModuleStreams + 1 {
		spec.Namespaces = append(spec.Namespaces, fmt.Sprint("ns", i))
	}
	f.manager.Start(spec)
	f.await("many lacks: the module would have 251 watches on the API server, and may have 250; watch fewer namespaces, or all of them and leave objects out with labels= or filter=")
	f.manager.Start(configMaps("other"))
	f.await("other synced served=true")
	spec.Namespaces = spec.Namespaces[:3]
	f.manager.Start(spec)
	f.await("many synced served=true")
	f.nothing()
	if n := f.api.Count("watch configmaps"); n > 10 {
		t.Errorf("%d watches", n)
	}
}

// Modules that together hold all streams leave room for modules with few of them, and for Starling itself.
func TestAModuleHasRoomForAFewStreamsBesideOthers(t *testing.T) {
	f := newFixture(t)
	f.manager.mu.Lock()
	for i := range MaxStreams {
		f.manager.streams[streamKey{namespace: fmt.Sprint(i)}] = &stream{}
	}
	f.manager.mu.Unlock()
	t.Cleanup(func() {
		f.manager.mu.Lock()
		defer f.manager.mu.Unlock()
		for i := range MaxStreams {
			delete(f.manager.streams, streamKey{namespace: fmt.Sprint(i)})
		}
	})
	of := func(id, module string, n int) Spec {
		spec := configMaps(id)
		spec.Module = module
		for i := range n {
			spec.Namespaces = append(spec.Namespaces, fmt.Sprint(id, i))
		}
		return spec
	}
	f.manager.Start(of("few", "web", fewStreams))
	f.told("few synced served=true")
	f.manager.Start(of("own", "", fewStreams+1))
	f.told("own synced served=true")
	f.manager.Start(of("more", "web", 1))
	f.told("more lacks: 1 more watches on the API server would make more than 2500 in this process; watch fewer namespaces, or all of them and leave objects out with labels= or filter=")
}

// A watch that was refused has its streams as soon as another one gives enough up; and one
// that shares the streams of another one, as after an edit of its filter, needs none.
func TestARefusedWatchIsServedLater(t *testing.T) {
	f := newFixture(t)
	some := func(id, prefix string, n int) Spec {
		spec := configMaps(id)
		spec.Module = "web"
		for i := range n {
			spec.Namespaces = append(spec.Namespaces, fmt.Sprint(prefix, i))
		}
		return spec
	}
	const many = MaxModuleStreams/2 + 1
	f.manager.Start(some("old", "a", many))
	f.await("old synced served=true")
	edited := some("edited", "a", many)
	edited.FilterID += " edited"
	f.manager.Start(edited)
	f.await("edited synced served=true")
	f.manager.Stop("old")

	f.manager.Start(some("other", "b", many))
	f.await("other lacks: the module would have 252 watches on the API server, and may have 250; watch fewer namespaces, or all of them and leave objects out with labels= or filter=")
	f.manager.Stop("edited")
	f.await("other failed <nil>", "other synced served=true")
	f.nothing()
}
