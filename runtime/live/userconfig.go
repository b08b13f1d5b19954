package live

import (
	"maps"
	"sync"

	"github.com/starling-operator/starling/runtime/effect"
	"github.com/starling-operator/starling/runtime/engine"
	"github.com/starling-operator/starling/runtime/modules"
	"github.com/starling-operator/starling/runtime/watch"
)

// objectsWatch is the id of the watch on Module objects.
const objectsWatch = "modules"

// userConfig is all that users ask for, as it was read last: the ConfigMap and the Module objects.
// The engine gets both at once.
type userConfig struct {
	put func(engine.Input)
	own effect.Instance

	mu sync.Mutex
	// heard: an engine is there that it is told. One that leads later must not hear of it before, see [Driver.takeOver].
	heard     bool
	configMap *engine.Config // nil: it was not read yet
	// state is that of the objects: empty, they are switched off; unread, not read yet.
	state   engine.ConfigState
	objects map[string]modules.Object      // of any instance, by name
	asked   map[string]engine.ConfigObject // those of this instance
	gone    map[string]bool                // those that were deleted, whose spec the engine has still
	failing bool                           // they cannot be read
}

// unread is the state of objects that were not read yet.
const unread engine.ConfigState = "unread"

// read takes in the ConfigMap, as look finds it; nil: it is not known now. Nothing is forgotten between both.
func (u *userConfig) read(look func() *engine.Config) {
	u.mu.Lock()
	defer u.mu.Unlock()
	if in := look(); in != nil {
		u.configMap = in
		u.tell()
	}
}

// tell has the engine know, once all was read: with one of the two it might switch off a module
// that the other one switches on.
func (u *userConfig) tell() {
	if !u.heard || u.configMap == nil || u.state == unread {
		return
	}
	in := *u.configMap
	if in.ObjectsState = u.state; u.state == engine.ConfigPresent {
		in.Objects = maps.Clone(u.asked)
	}
	u.put(in)
}

// again has another engine know, now and from now on.
func (u *userConfig) again() {
	u.mu.Lock()
	defer u.mu.Unlock()
	u.heard = true
	u.tell()
}

// forget has all be read again, and nothing told before that.
func (u *userConfig) forget() {
	u.mu.Lock()
	defer u.mu.Unlock()
	u.configMap = nil
	if u.state != "" {
		u.state = unread
	}
}

// list takes in all objects, as look finds them; served is false when the API server does not know them, known
// while they are not known.
func (u *userConfig) list(look func() (entries []watch.Entry, served, known bool)) {
	u.mu.Lock()
	defer u.mu.Unlock()
	entries, served, known := look()
	if !known {
		return
	}
	u.state, u.objects, u.asked = engine.ConfigUnreadable, map[string]modules.Object{}, map[string]engine.ConfigObject{}
	clear(u.gone)
	if served {
		u.state = engine.ConfigPresent
		for _, e := range entries {
			u.set(modules.Read(e.Result))
		}
	}
	u.tell()
}

// failed says whether the objects can be read. Those that were read go on to count. It returns
// true when that is news: an outage has many errors.
func (u *userConfig) failed(err error) (news bool) {
	u.mu.Lock()
	defer u.mu.Unlock()
	news, u.failing = (err != nil) != u.failing, err != nil
	if u.failing && u.state == unread {
		u.state = engine.ConfigUnreadable
		u.tell()
	}
	return news
}

// change takes in changes of objects. The engine does not hear of new ones that ask for nothing:
// Starling makes a thousand of them at its first start.
func (u *userConfig) change(events []watch.Event) {
	u.mu.Lock()
	defer u.mu.Unlock()
	news := false
	for _, ev := range events {
		o := modules.Read(ev.Result)
		before := u.objects[ev.Name]
		_, was := u.asked[ev.Name]
		if ev.Type == watch.Deleted {
			delete(u.objects, ev.Name)
			delete(u.asked, ev.Name)
			if was {
				news, u.gone[ev.Name] = true, true
			}
			continue
		}
		u.set(o)
		_, is := u.asked[ev.Name]
		changed := was != is || before.UID != o.UID || before.Generation != o.Generation
		news = news || changed && (was || is && (o.Says || u.gone[ev.Name]))
		delete(u.gone, ev.Name)
	}
	if news {
		u.tell()
	}
}

// set is called with mu held.
func (u *userConfig) set(o modules.Object) {
	u.objects[o.Name] = o
	if _, ours := o.Owner(u.own); !ours {
		delete(u.asked, o.Name)
		return
	}
	u.asked[o.Name] = o.Config()
}

// others says whether another instance takes its config from an object.
func (u *userConfig) others(ref effect.Ref) bool {
	u.mu.Lock()
	defer u.mu.Unlock()
	return modules.Others(u.objects, u.own, ref)
}

// known are all objects; false: they are not known.
func (u *userConfig) known() (map[string]modules.Object, bool) {
	u.mu.Lock()
	defer u.mu.Unlock()
	return maps.Clone(u.objects), u.state == engine.ConfigPresent
}
