package cluster

import (
	"bytes"
	"context"
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/starling-operator/starling/runtime/cluster/apitest"
)

func newKept(t *testing.T, api *apitest.Server) *Kept {
	return NewKept(KeptOptions{Client: newClient(t, api), Namespace: "ops", Name: "starling", Instance: "ops.starling"})
}

func value(kib int, fill byte) []byte { return bytes.Repeat([]byte{fill}, kib<<10) }

func save(t *testing.T, k *Kept, module string, data map[string][]byte) {
	t.Helper()
	if err := k.Save(context.Background(), module, data); err != nil {
		t.Fatal(err)
	}
}

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
	if diff := cmp.Diff(map[string]any{InstanceLabel: "ops.starling", KeptLabel: "web"}, labels); diff != "" {
		t.Errorf("labels (-want +got):\n%s", diff)
	}

	before := api.Count("patch secrets")
	save(t, k, "web", maps.Clone(web))
	again := newKept(t, api)
	save(t, again, "web", maps.Clone(web))
	if n := api.Count("patch secrets") - before; n != 0 {
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
		data[fmt.Sprint(i)] = value(200, byte('a'+i))
	}
	data["large"] = value(800, 'l')
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
	before := api.Count("patch secrets")
	data["3"] = value(200, 'z')
	save(t, k, "web", data)
	if n := api.Count("patch secrets") - before; n != 1 {
		t.Errorf("%d Secrets written for one changed key", n)
	}
	// What shrinks comes together again.
	small := map[string][]byte{"0": []byte("a"), "3": []byte("b"), "5": []byte("c")}
	save(t, k, "web", small)
	if n := len(k.modules["web"].parts); n != 1 {
		t.Errorf("%d parts for three bytes", n)
	}
	if diff := cmp.Diff(small, stored(t, api)["web"]); diff != "" {
		t.Errorf("loaded (-want +got):\n%s", diff)
	}

	err := k.Save(context.Background(), "web", map[string][]byte{"huge": value(901, 'h')})
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
		return map[string][]byte{"a": value(200, fill), "b": value(200, fill), "c": value(200, fill), "d": value(200, fill)}
	}
	small := func(fill byte) map[string][]byte {
		return map[string][]byte{"a": {fill}, "b": {fill}, "c": {fill}, "d": {fill}}
	}
	// 1 and 2 are full; then a grows out of 1 while c, grown too, leaves 2.
	crossed := map[string][]byte{"a": value(250, '1'), "b": value(250, '1'), "c": value(250, '1'), "d": value(250, '1')}
	crossing := map[string][]byte{"a": value(100, '2'), "b": value(480, '2'), "c": value(100, '2'), "d": value(450, '2')}
	for _, step := range []struct {
		name     string
		from, to map[string][]byte
	}{{"split", small('1'), big('2')}, {"unsplit", big('1'), small('2')}, {"change", big('1'), big('2')}, {"cross", crossed, crossing}} {
		for after := range 4 {
			t.Run(fmt.Sprintf("%s after %d", step.name, after), func(t *testing.T) {
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
				for name, next := range map[string]*Kept{"the same process": k, "the next process": newKept(t, api)} {
					save(t, next, "web", step.to)
					if !maps.EqualFunc(step.to, stored(t, api)["web"], bytes.Equal) {
						t.Errorf("%s (first error %v) does not put it right", name, crashed)
					}
				}
			})
		}
	}
}

func TestKeptRefusesWhatItCannotRead(t *testing.T) {
	api := apitest.New(t)
	api.Put(map[string]any{
		"apiVersion": "v1", "kind": "Secret", "type": KeptType,
		"metadata": map[string]any{"namespace": "ops", "name": "starling-kept-web", "labels": map[string]any{InstanceLabel: "ops.starling", KeptLabel: "web"}},
		"data":     map[string]any{"x": "!"},
	})
	_, err := newKept(t, api).Load(context.Background())
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
