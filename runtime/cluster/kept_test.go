package cluster

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/starling-operator/starling/runtime/effect"
	"github.com/starling-operator/starling/runtime/sim/apitest"
)

func newKept(t *testing.T, api *apitest.Server) *Kept {
	return NewKept(KeptOptions{Client: newClient(t, api), Namespace: "ops", Name: "starling", Instance: "ops.starling"})
}

// value is one of a size in parts of a Secret, which holds 128 of them.
func value(parts int, fill byte) []byte {
	return bytes.Repeat([]byte{fill}, parts*partLimit/128)
}

func save(t *testing.T, k *Kept, module string, data map[string][]byte) {
	t.Helper()
	if err := k.Save(context.Background(), module, data); err != nil {
		t.Fatal(err)
	}
}

// writes counts the writes of Secrets.
func writes(api *apitest.Server) int { return api.Count("post secrets") + api.Count("patch secrets") }

// stored is what a process that starts now would load.
func stored(t *testing.T, api *apitest.Server) map[string]map[string][]byte {
	t.Helper()
	got, err := newKept(t, api).Load(context.Background())
	if err != nil {
		t.Fatal(err)
	}
	return got
}

func TestKeptRoundTrip(t *testing.T) {
	api := apitest.New(t)
	k := newKept(t, api)
	web := map[string][]byte{"hooks/nodes.star:discover": []byte("{}"), "state_ü": {0, 1, 255}}
	save(t, k, "web", web)
	save(t, k, "web-2", map[string][]byte{"x": []byte("y")})
	if diff := cmp.Diff(map[string]map[string][]byte{"web": web, "web-2": {"x": []byte("y")}}, stored(t, api)); diff != "" {
		t.Errorf("loaded (-want +got):\n%s", diff)
	}
	obj := api.Object("v1", "Secret", "ops", "starling-kept-web")
	if obj["type"] != KeptType {
		t.Errorf("type is %v", obj["type"])
	}
	labels := obj["metadata"].(map[string]any)["labels"]
	if diff := cmp.Diff(map[string]any{effect.InstanceLabel: "ops.starling", KeptLabel: "web"}, labels); diff != "" {
		t.Errorf("labels (-want +got):\n%s", diff)
	}

	before := writes(api)
	save(t, k, "web", maps.Clone(web))
	again := newKept(t, api)
	save(t, again, "web", maps.Clone(web))
	if n := writes(api) - before; n != 0 {
		t.Errorf("%d writes of what is stored already", n)
	}
	save(t, k, "web", nil)
	if diff := cmp.Diff(map[string]map[string][]byte{"web-2": {"x": []byte("y")}}, stored(t, api)); diff != "" {
		t.Errorf("after the last key went (-want +got):\n%s", diff)
	}
}

func TestKeptSplits(t *testing.T) {
	api := apitest.New(t)
	k := newKept(t, api)
	data := map[string][]byte{}
	for i := range 6 {
		data[fmt.Sprint(i)] = value(50, byte('a'+i))
	}
	data["large"] = bytes.Repeat([]byte{'l'}, 800<<10)
	save(t, k, "web", data)
	got := stored(t, api)["web"]
	if diff := cmp.Diff(slices.Sorted(maps.Keys(data)), slices.Sorted(maps.Keys(got))); diff != "" {
		t.Fatalf("keys (-want +got):\n%s", diff)
	}
	for name, p := range k.modules["web"].parts {
		size := 0
		for key := range p.sums {
			size += len(data[key])
		}
		if size > partLimit && len(p.sums) > 1 {
			t.Errorf("part %d holds %d bytes", name, size)
		}
	}
	// One changed key writes one Secret.
	before := writes(api)
	data["3"] = value(50, 'z')
	save(t, k, "web", data)
	if n := writes(api) - before; n != 1 {
		t.Errorf("%d Secrets written for one changed key", n)
	}
	// Sections that shrink come together again.
	small := map[string][]byte{"0": []byte("a"), "3": []byte("b"), "5": []byte("c")}
	save(t, k, "web", small)
	if n := len(k.modules["web"].parts); n != 1 {
		t.Errorf("%d parts for three bytes", n)
	}
	if diff := cmp.Diff(small, stored(t, api)["web"]); diff != "" {
		t.Errorf("loaded (-want +got):\n%s", diff)
	}

	err := k.Save(context.Background(), "web", map[string][]byte{"huge": bytes.Repeat([]byte{'h'}, 901<<10)})
	if err == nil || !strings.Contains(err.Error(), `"huge" has 901 KiB`) {
		t.Errorf("a value that is too large: %v", err)
	}
	if diff := cmp.Diff(small, stored(t, api)["web"]); diff != "" {
		t.Errorf("after a refused save (-want +got):\n%s", diff)
	}
}

// TestKeptSurvivesCrashes stops the writes of a save after each of its requests:
// every key then has its old or its new value, and the next save puts all right.
func TestKeptSurvivesCrashes(t *testing.T) {
	big := func(fill byte) map[string][]byte {
		return map[string][]byte{"a": value(50, fill), "b": value(50, fill), "c": value(50, fill), "d": value(50, fill)}
	}
	small := func(fill byte) map[string][]byte {
		return map[string][]byte{"a": {fill}, "b": {fill}, "c": {fill}, "d": {fill}}
	}
	// 1 and 2 are full; then a grows out of 1 while c, grown too, leaves 2.
	crossed := map[string][]byte{"a": value(62, '1'), "b": value(62, '1'), "c": value(62, '1'), "d": value(62, '1')}
	crossing := map[string][]byte{"a": value(25, '2'), "b": value(120, '2'), "c": value(25, '2'), "d": value(112, '2')}
	more := big('1')
	for _, key := range []string{"e", "f", "g"} { // two of them into one more Secret
		more[key] = value(50, '2')
	}
	more["a"] = value(50, '2')
	for _, step := range []struct {
		name     string
		from, to map[string][]byte
	}{{"more", big('1'), more}, {"split", small('1'), big('2')}, {"unsplit", big('1'), small('2')}, {"change", big('1'), big('2')}, {"cross", crossed, crossing}} {
		for after := range 8 {
			same := after%2 == 0 // whether this process goes on, or the next one does
			after /= 2
			t.Run(fmt.Sprintf("%s after %d, same process %t", step.name, after, same), func(t *testing.T) {
				api := apitest.New(t)
				k := newKept(t, api)
				save(t, k, "web", step.from)
				var writes atomic.Int32
				api.OnRequest(func(r *http.Request) {
					if r.Method != http.MethodGet && int(writes.Add(1)) > after {
						panic(http.ErrAbortHandler)
					}
				})
				crashed := k.Save(context.Background(), "web", step.to)
				api.OnRequest(nil)

				got := stored(t, api)["web"]
				for key := range step.from {
					if v := got[key]; !bytes.Equal(v, step.from[key]) && !bytes.Equal(v, step.to[key]) {
						t.Errorf("%s is neither old nor new (%d bytes)", key, len(v))
					}
				}
				if !same {
					k = newKept(t, api)
				}
				save(t, k, "web", step.to)
				if !maps.EqualFunc(step.to, stored(t, api)["web"], bytes.Equal) {
					t.Errorf("it is not put right (first error %v)", crashed)
				}
			})
		}
	}
}

// The process dies after each write of a save that takes several: no change of a state is there before all messages
// are. A crash of an earlier save, which has left an old value beside a new one, changes nothing of that.
func TestKeptHasMessagesBeforeStates(t *testing.T) {
	state, one, two := "state.hook", effect.KeptMessage+"one", effect.KeptMessage+"two"
	was := map[string][]byte{state: value(50, '1'), "state.other": value(60, '1'), "state.gone": value(1, '1')}
	for name, next := range map[string]map[string][]byte{
		"stays":        {state: value(50, '2'), "state.other": value(60, '2'), one: value(30, '2')},
		"moves":        {state: value(100, '2'), "state.other": value(60, '2'), one: value(30, '2')},
		"two messages": {state: value(50, '2'), "state.other": value(60, '1'), one: value(10, '2'), two: value(90, '2')},
		"only gone":    {state: value(50, '1'), "state.other": value(60, '1'), one: value(90, '2')},
	} {
		for after := range 5 {
			for _, outdated := range []bool{false, true} {
				api := apitest.New(t)
				k := newKept(t, api)
				save(t, k, "web", was)
				dieAfter := func(n int, next map[string][]byte) error {
					var writes atomic.Int32
					api.OnRequest(func(r *http.Request) {
						if r.Method != http.MethodGet && int(writes.Add(1)) > n {
							panic(http.ErrAbortHandler)
						}
					})
					defer api.OnRequest(nil)
					return k.Save(t.Context(), "web", next)
				}
				if outdated { // the state has moved, and is in its old place still
					moves := maps.Clone(was)
					moves[state] = value(100, '1')
					if dieAfter(1, moves) == nil {
						t.Fatal("it was one write")
					}
					k = newKept(t, api)
				}
				before := stored(t, api)["web"]
				crashed := dieAfter(after, next)
				got := stored(t, api)["web"]
				changed := func(key string) bool { return !bytes.Equal(got[key], before[key]) }
				for _, message := range []string{one, two} {
					if got[message] == nil && next[message] != nil && (changed(state) || changed("state.other") || changed("state.gone")) {
						t.Errorf("%s, after %d writes, outdated %t: a state has changed, and %s is not there", name, after, outdated, message)
					}
				}
				if after == 1 && crashed == nil {
					t.Errorf("%s: it was one write", name)
				}
				save(t, newKept(t, api), "web", next)
				if got := stored(t, api)["web"]; !maps.EqualFunc(next, got, bytes.Equal) {
					t.Errorf("%s, after %d writes, outdated %t: it is not put right", name, after, outdated)
				}
			}
		}
	}
}

// Two processes that both take themselves for the only writer: the first save that
// meets what the other one has written says so, and leaves it as it is.
func TestKeptFindsASecondWriter(t *testing.T) {
	first := map[string][]byte{"a": value(75, 'a'), "b": value(75, 'b')}
	for what, others := range map[string]map[string][]byte{
		"changed": {"a": value(75, 'x'), "b": value(75, 'b')}, "grown": {"a": value(75, 'a'), "b": value(75, 'b'), "c": value(100, 'c')},
		"deleted": nil,
	} {
		t.Run(what, func(t *testing.T) {
			api := apitest.New(t)
			var told error
			k := newKept(t, api)
			k.o.Conflict = func(err error) { told = err }
			save(t, k, "web", first)
			other := newKept(t, api)
			save(t, other, "web", others)
			err := k.Save(t.Context(), "web", map[string][]byte{"a": value(75, '2'), "b": value(75, '2'), "d": value(100, 'd')})
			if !errors.Is(err, ErrOtherWriter) || !errors.Is(told, ErrOtherWriter) {
				t.Errorf("the save ends with %v, told was %v", err, told)
			}
			got := stored(t, api)["web"]
			for key, v := range others {
				if !bytes.Equal(v, first[key]) && !bytes.Equal(v, got[key]) {
					t.Errorf("%s is not as the other process has written it", key)
				}
			}
		})
	}
	t.Run("made", func(t *testing.T) {
		api := apitest.New(t)
		k, other := newKept(t, api), newKept(t, api)
		if _, err := k.Load(t.Context()); err != nil {
			t.Fatal(err)
		}
		save(t, other, "web", first)
		if err := k.Save(t.Context(), "web", map[string][]byte{"a": {1}}); !errors.Is(err, ErrOtherWriter) {
			t.Errorf("the save ends with %v", err)
		}
	})
}

// An answer that was lost, and what a person has set beside the data, are no second
// writer; a Secret that is not ours stays.
func TestKeptGoesOn(t *testing.T) {
	api := apitest.New(t)
	lose := false
	client := newClientFor(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if lose && r.Method != http.MethodGet {
			api.ServeHTTP(httptest.NewRecorder(), r)
			apitest.Status(w, http.StatusGatewayTimeout, "Timeout", "it may have been carried out", nil)
			return
		}
		api.ServeHTTP(w, r)
	}))
	k := NewKept(KeptOptions{Client: client, Namespace: "ops", Name: "starling", Instance: "ops.starling", Conflict: func(err error) { t.Error(err) }})
	save(t, k, "web", map[string][]byte{"a": {1}})
	lose = true
	if err := k.Save(t.Context(), "web", map[string][]byte{"a": {2}}); err == nil {
		t.Error("no answer, and no error")
	}
	lose = false
	save(t, k, "web", map[string][]byte{"a": {3}})

	obj := api.Object("v1", "Secret", "ops", "starling-kept-web")
	obj["metadata"].(map[string]any)["annotations"].(map[string]any)["note"] = "seen by me"
	api.Put(obj)
	save(t, k, "web", map[string][]byte{"a": {4}})
	if diff := cmp.Diff(map[string][]byte{"a": {4}}, stored(t, api)["web"]); diff != "" {
		t.Errorf("loaded (-want +got):\n%s", diff)
	}

	api.Put(map[string]any{"apiVersion": "v1", "kind": "Secret", "metadata": map[string]any{"namespace": "ops", "name": "starling-kept-db"}})
	if err := k.Save(t.Context(), "db", map[string][]byte{"a": {1}}); err == nil || !strings.Contains(err.Error(), "Secret ops/starling-kept-db is in the way") {
		t.Errorf("over a Secret of somebody else: %v", err)
	}
}

func TestKeptRefusesWhatItCannotRead(t *testing.T) {
	err := newKept(t, apitest.New(t)).read(map[string]any{
		"apiVersion": "v1", "kind": "Secret", "type": KeptType,
		"metadata": map[string]any{"namespace": "ops", "name": "starling-kept-web", "labels": map[string]any{effect.InstanceLabel: "ops.starling", KeptLabel: "web"}},
		"data":     map[string]any{"x": "!"},
	}, map[string]*keptModule{}, map[string]map[string][]byte{})
	if err == nil || !strings.Contains(err.Error(), "Secret ops/starling-kept-web") {
		t.Errorf("error is %v", err)
	}
}

func FuzzKeptKeys(f *testing.F) {
	f.Add("hooks/a.star:b")
	f.Add("..")
	f.Add("_")
	f.Fuzz(func(t *testing.T, key string) {
		if key == "" {
			return
		}
		got, ok := decodeKey(encodeKey(key))
		if !ok || got != key {
			t.Errorf("%q becomes %q", key, got)
		}
	})
}

// The save of one changed key sends that key alone, however many there are beside it.
func TestKeptSendsWhatHasChanged(t *testing.T) {
	api := apitest.New(t)
	k := newKept(t, api)
	data := map[string][]byte{}
	for i := range 3000 {
		data[fmt.Sprintf("layer.object-%d", i)] = []byte(strings.Repeat("x", 150))
	}
	save(t, k, "web", data)
	var sent atomic.Int64
	api.OnRequest(func(r *http.Request) { sent.Add(r.ContentLength) })
	for what, change := range map[string]func(){
		"changed": func() { data["layer.object-7"] = []byte("changed") },
		"added":   func() { data["layer.object-new"] = []byte("new") },
		"deleted": func() { delete(data, "layer.object-8") },
	} {
		sent.Store(0)
		change()
		save(t, k, "web", data)
		if n := sent.Load(); n == 0 || n > 1024 {
			t.Errorf("one key %s: %d bytes are sent", what, n)
		}
	}
	api.OnRequest(nil)
	if diff := cmp.Diff(data, stored(t, api)["web"]); diff != "" {
		t.Errorf("stored (-want +got):\n%s", diff)
	}
	for n, p := range k.modules["web"].parts {
		size := 0
		for key := range p.sums {
			size += len(key) + len(data[key])
		}
		if size > partLimit || size != k.modules["web"].last.size[n] {
			t.Errorf("part %d holds %d bytes, noted are %d", n, size, k.modules["web"].last.size[n])
		}
	}
}

// A change of one object among many writes one small Secret: the API server works on all of
// it.
func TestKeptOfOneObjectIsInOneSmallSecret(t *testing.T) {
	api := apitest.New(t)
	k := newKept(t, api)
	data := map[string][]byte{}
	object := func(i int, fill string) {
		for _, kind := range []string{"layer", "state"} {
			data[fmt.Sprintf("%s.each-hooks-mirror.star-mirror-of-object-%d", kind, i)] = []byte(strings.Repeat(fill, 150))
		}
	}
	for i := range 400 { // in many saves, as the first runs end
		if object(i, "x"); i%10 == 9 {
			save(t, k, "web", data)
		}
	}
	several := 0
	for i := range 400 {
		before := writes(api)
		object(i, "y")
		save(t, k, "web", data)
		if writes(api)-before > 1 {
			several++
		}
	}
	if several > 20 {
		t.Errorf("%d of 400 objects have what is kept in two Secrets", several)
	}
	for n, size := range k.modules["web"].last.size {
		if size > 16<<10 {
			t.Errorf("Secret %d holds %d bytes", n, size)
		}
	}
}

// Saves that follow each other store what each of them gives, whatever comes and goes.
func TestKeptSavesInARow(t *testing.T) {
	for seed := range uint64(8) {
		r := rand.New(rand.NewPCG(seed, 25))
		api := apitest.New(t)
		k := newKept(t, api)
		data := map[string][]byte{}
		for step := range 40 {
			for range 1 + r.IntN(3) {
				key := fmt.Sprint("key-", r.IntN(12))
				if r.IntN(3) == 0 {
					delete(data, key)
				} else {
					data[key] = value(1+r.IntN(60), byte('a'+r.IntN(26)))
				}
			}
			save(t, k, "web", data)
			got := stored(t, api)["web"]
			if !maps.EqualFunc(data, got, bytes.Equal) {
				t.Fatalf("seed %d, step %d: stored are %v, want %v", seed, step, slices.Sorted(maps.Keys(got)), slices.Sorted(maps.Keys(data)))
			}
		}
	}
}

// A key that goes after a crash has left an older value of it in another Secret does not come
// back with that value at the next one.
func TestKeptSurvivesCrashesInARow(t *testing.T) {
	api := apitest.New(t)
	save(t, newKept(t, api), "web", map[string][]byte{"j": value(50, '1'), "k": value(50, '1')})
	crash := func(data map[string][]byte) {
		var writes atomic.Int32
		api.OnRequest(func(r *http.Request) {
			if r.Method != http.MethodGet && writes.Add(1) > 1 {
				panic(http.ErrAbortHandler)
			}
		})
		if err := newKept(t, api).Save(t.Context(), "web", data); err == nil {
			t.Fatal("it was one write")
		}
		api.OnRequest(nil)
	}
	crash(map[string][]byte{"j": value(50, '1'), "k": value(100, '2')}) // k moves
	last := map[string][]byte{"j": value(50, '1'), "m": value(100, '3')}
	crash(last)
	if v := stored(t, api)["web"]["k"]; v != nil && !bytes.Equal(v, value(100, '2')) {
		t.Errorf("k has the value from before the first crash: %d bytes of %q", len(v), v[0])
	}
	k := newKept(t, api)
	save(t, k, "web", last)
	if !maps.EqualFunc(last, stored(t, api)["web"], bytes.Equal) {
		t.Error("it is not put right")
	}
}

// Wherever processes die in saves that follow each other, each key has the value from before or the new one, and the next
// save puts all right.
func TestKeptSurvivesCrashesAtRandom(t *testing.T) {
	for seed := range uint64(40) {
		r := rand.New(rand.NewPCG(seed, 31))
		api := apitest.New(t)
		k := newKept(t, api)
		data := map[string][]byte{}
		for step := range 25 {
			before := stored(t, api)["web"]
			for range 1 + r.IntN(8) {
				key := fmt.Sprint("key-", r.IntN(10))
				if r.IntN(8) == 0 {
					delete(data, key)
				} else {
					data[key] = value(20+r.IntN(90), byte('a'+r.IntN(26)))
				}
			}
			var writes atomic.Int32
			last := int32(r.IntN(6))
			api.OnRequest(func(r *http.Request) {
				if r.Method != http.MethodGet && writes.Add(1) > last {
					panic(http.ErrAbortHandler)
				}
			})
			crashed := k.Save(t.Context(), "web", data)
			api.OnRequest(nil)
			got := stored(t, api)["web"]
			for i := range 10 {
				key := fmt.Sprint("key-", i)
				if v := got[key]; !bytes.Equal(v, before[key]) && !bytes.Equal(v, data[key]) {
					t.Fatalf("seed %d, step %d: %s is neither old nor new (%d bytes)", seed, step, key, len(v))
				}
			}
			if crashed == nil && !maps.EqualFunc(data, got, bytes.Equal) {
				t.Fatalf("seed %d, step %d: a save without an error is not stored", seed, step)
			}
			if crashed != nil && r.IntN(2) == 0 { // else this process goes on
				k = newKept(t, api)
			}
		}
	}
}
