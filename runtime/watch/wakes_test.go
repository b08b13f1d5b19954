package watch

import (
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"go.starlark.net/starlark"

	"github.com/starling-operator/starling/runtime/effect"
)

// dataWakes wakes what data.for names, split at commas; all when there is no such field. "bad" is an
// error, "panic" crashes.
func dataWakes(obj map[string]any) (*effect.Wakes, error) {
	data, _ := obj["data"].(map[string]any)
	switch keys, there := data["for"].(string); {
	case !there:
		return nil, nil
	case keys == "": // nobody
		return effect.WakesKeys(), nil
	case keys == "bad":
		return nil, errors.New("bad keys")
	case keys == "panic":
		panic("worse keys")
	default:
		return effect.WakesKeys(strings.Split(keys, ",")...), nil
	}
}

// forWhom is a ConfigMap of which an event is for some; "*" is for all.
func forWhom(name, data, keys string) map[string]any {
	obj := configMap("a", name, data)
	if keys != "*" {
		obj["data"].(map[string]any)["for"] = keys
	}
	return obj
}

// toldOf is an event, with whom it is for.
func toldOf(ev Event) string {
	whom := "all"
	if ev.Wakes != nil {
		whom = strings.Join(ev.Wakes.Keys, ",")
	}
	return fmt.Sprintf("%s %s for %s", ev.Type, ev.Name, whom)
}

// An event is for those that the object names, before and now; a list after a gap tells as much.
func TestWhomEventsAreFor(t *testing.T) {
	a := objectKey{"a", "x"}
	for _, listed := range []bool{false, true} {
		v := newView(Spec{Filter: dataFilter, Wakes: dataWakes})
		for i, step := range []struct{ data, keys, want string }{
			{"1", "b", "added x for b"},
			{"1", "b", ""},
			{"2", "b", "modified x for b"},
			{"2", "c,d", "modified x for b,c,d"}, // what is kept is the same
			{"3", "bad", ""},                     // what was known stays
			{"3", "panic", ""},
			{"3", "d", "modified x for c,d"},
			{"skip", "e", "deleted x for d"},
			{"3", "e", "added x for e"},
			{"3", "*", "modified x for all"},
			{"3", "f", "modified x for all"},
			{"gone", "", "deleted x for f"},
		} {
			version := uint64(i + 1)
			out := v.run(forWhom("x", step.data, step.keys))
			var events []Event
			switch {
			case listed && step.data == "gone":
				events = v.replace(nil, version, time.Time{}, false)
			case listed:
				events = v.replace([]entry{{a, version, out}}, version, time.Time{}, false)
			default:
				put := func() (Event, bool) { return v.put(a, version, out, time.Time{}, false) }
				if step.data == "gone" {
					put = func() (Event, bool) { return v.remove(a, version, time.Time{}, false) }
				}
				if ev, changed := put(); changed {
					events = append(events, ev)
				}
			}
			var told []string
			for _, ev := range events {
				told = append(told, toldOf(ev))
			}
			if got := strings.Join(told, "; "); got != step.want {
				t.Errorf("listed %t, step %d: %q, want %q", listed, i, got, step.want)
			}
			if err, _ := v.trouble(); (err != nil) != (step.keys == "bad" || step.keys == "panic") {
				t.Errorf("listed %t, step %d: the trouble is %v", listed, i, err)
			}
		}
	}
}

// Watches share results only when they tell the same of them.
func TestWatchesThatWakeOthersShareNothing(t *testing.T) {
	keys := map[string]bool{}
	wakes := func(id string, edit func(*Spec)) {
		spec := configMaps(id)
		edit(&spec)
		keys[viewKey(spec)] = true
	}
	wakes("plain", func(*Spec) {})
	wakes("one", func(s *Spec) { s.Wakes, s.WakesID = dataWakes, "data" })
	wakes("one again", func(s *Spec) { s.Wakes, s.WakesID = dataWakes, "data" })
	wakes("other", func(s *Spec) { s.Wakes, s.WakesID = dataWakes, "owners" })
	wakes("unknown", func(s *Spec) { s.Wakes = dataWakes })
	wakes("unknown, too", func(s *Spec) { s.Wakes = dataWakes })
	if len(keys) != 5 {
		t.Errorf("there are %d views: %q", len(keys), slices.Sorted(maps.Keys(keys)))
	}
}

// whom is a sink that writes down whom events are for.
type whom struct{ *recorder }

func (w whom) Changed(_ string, events []Event) {
	for _, ev := range events {
		w.add("%s", toldOf(ev))
	}
}

// While nobody watches, one object is deleted and one moves: those that they have concerned hear of it.
func TestAGapIsToldToThoseOfBefore(t *testing.T) {
	for _, apart := range []bool{false, true} {
		f := newFixture(t)
		f.manager.o.Sink = whom{f.recorder}
		for _, name := range []string{"gone", "moved", "same"} {
			f.api.Put(forWhom(name, name, "b"))
		}
		spec := configMaps("w")
		spec.Wakes, spec.WakesID, spec.Apart = dataWakes, "data", apart
		f.manager.Start(spec)
		f.await("w synced served=true")
		f.unseen(func() {
			f.api.Put(forWhom("moved", "moved", "c"))
			f.api.Remove("v1", "ConfigMap", "a", "gone")
			f.api.Expire()
		})
		f.await("deleted gone for b", "modified moved for b,c")
		f.nothing()
	}
}

// Objects are written, deleted, left out, moved and listed, in order and late: whoever sees
// something else in the snapshot than before is told, and nobody else but those that the object names.
func TestRandomChangesWakeAllThatTheyConcern(t *testing.T) {
	for seed := range uint64(200) {
		r := rand.New(rand.NewPCG(seed, 12))
		v := newView(Spec{Filter: dataFilter, Wakes: dataWakes})
		live, version := map[objectKey]map[string]any{}, uint64(1)
		entries := func() (out []entry) {
			for _, key := range slices.SortedFunc(maps.Keys(live), compareKeys) {
				out = append(out, entry{key, version, v.run(live[key])})
			}
			return out
		}
		for step := range 200 {
			key := objectKey{"a", fmt.Sprint("o", r.IntN(4))}
			before := seenBy(v)
			version++
			var events []Event
			tell := func(ev Event, changed bool) {
				if changed {
					events = append(events, ev)
				}
			}
			switch change := r.IntN(10); {
			case change < 6: // with errors, and objects that are left out
				data := []string{"1", "2", "skip", "bad"}[r.IntN(4)]
				keys := []string{"*", "b", "c", "b,c", "d", "", "bad"}[r.IntN(7)]
				live[key] = forWhom(key.name, data, keys)
				if r.IntN(4) > 0 { // else somebody has to list
					tell(v.put(key, version, v.run(live[key]), time.Time{}, r.IntN(2) == 0))
				}
			case change < 8:
				delete(live, key)
				if r.IntN(4) > 0 {
					tell(v.remove(key, version, time.Time{}, r.IntN(2) == 0))
				}
			default:
				events = v.replace(entries(), version, time.Time{}, r.IntN(3) == 0)
			}
			check(t, before, seenBy(v), events)
			checkIndex(t, v)
			if t.Failed() {
				t.Fatalf("seed %d, step %d", seed, step)
			}
		}
	}
}

// seenBy is what each key sees in the snapshot of that which concerns it: "" sees what is for all.
func seenBy(v *view) map[string]map[string]starlark.Value {
	out := map[string]map[string]starlark.Value{}
	see := func(key string, r *row) {
		if out[key] == nil {
			out[key] = map[string]starlark.Value{}
		}
		out[key][r.name] = r.value
	}
	for _, r := range v.rows {
		if r.wakes == nil {
			see("", r)
			continue
		}
		for _, key := range r.wakes.Keys {
			see(key, r)
		}
	}
	return out
}

func check(t *testing.T, before, after map[string]map[string]starlark.Value, events []Event) {
	told, all := map[string]bool{}, false
	for _, ev := range events {
		if ev.Wakes == nil {
			all = true
			continue
		}
		for _, key := range ev.Wakes.Keys {
			told[key] = true
			if _, was := before[key][ev.Name]; !was {
				if _, is := after[key][ev.Name]; !is {
					t.Errorf("%s is told of %s, which does not concern it", key, ev.Name)
				}
			}
		}
	}
	for _, key := range []string{"", "b", "c", "d"} {
		if maps.Equal(before[key], after[key]) || all || told[key] && key != "" {
			continue
		}
		t.Errorf("%q is not told: it saw %v and sees %v", key, before[key], after[key])
	}
}

// checkIndex holds what is found by keys against all rows.
func checkIndex(t *testing.T, v *view) {
	for _, key := range []string{"b", "c", "d", "nobody"} {
		var want []*row
		for _, r := range v.rows {
			if r.wakes != nil && slices.Contains(r.wakes.Keys, key) {
				want = append(want, r)
			}
		}
		if got := v.about(key); !slices.Equal(got, want) {
			t.Errorf("%q finds %v, want %v", key, got, want)
		}
	}
}
