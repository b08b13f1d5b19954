package live

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"reflect"
	"sync"
	"testing"
	"testing/fstest"
	"testing/synctest"
	"time"

	"github.com/rs/zerolog"

	"github.com/starling-operator/starling/modules/tree"
	"github.com/starling-operator/starling/runtime/engine"
	"github.com/starling-operator/starling/runtime/generation"
	"github.com/starling-operator/starling/runtime/sim/store"
	"github.com/starling-operator/starling/stdlib"
)

// Of modules that come and go nothing stays in the process: the maps of the driver, its
// engine and its releases are as large as before.
func TestModulesThatAreGoneLeaveNothing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		stays := map[string]string{
			"stays/module.star":  "module(enabled = True)\n",
			"stays/hooks/a.star": "hook(lambda ctx: values.set(\"internal.n\", 1), name = \"a\", on = [startup()])\n",
		}
		f := newFixture(t, stays, renewsSeldom)
		f.driver.o.Log = zerolog.Nop()
		number := 1
		f.driver.o.Load = func(ctx context.Context, read *tree.Tree, before *generation.Generation) *generation.Generation {
			number++
			return generation.Load(ctx, generation.Options{
				Tree: read, Std: stdlib.FS, Number: number, Log: FileLog(zerolog.Nop()), Governor: before.Host.Governor(), Previous: before,
			})
		}
		convert := func(name string) {
			h := f.driver.generation.Load().Hook(name + "/c")
			f.driver.answered(engine.RunHook{Hook: h}, engine.RunDone{Err: errors.New("no such field")}, "conversion")
		}
		f.start()
		reload := func(files map[string]string) {
			fsys := fstest.MapFS{}
			for path, text := range files {
				fsys[path] = &fstest.MapFile{Data: []byte(text)}
			}
			read, err := tree.Read(fsys, tree.Options{})
			if err != nil {
				t.Fatal(err)
			}
			f.driver.Reload(t.Context(), read)
			time.Sleep(10 * time.Minute) // until what is gone is taken away
			synctest.Wait()
		}
		repaired := 0
		round := func(n, modules int) {
			files := maps.Clone(stays)
			for i := range modules {
				name := fmt.Sprintf("m%d-%d", n, i)
				files[name+"/hooks/c.star"] = "hook(lambda ctx: None, name = \"c\", on = [startup()])\n"
				files[name+"/module.star"] = "def enabled():\n    return True\n\nmodule(enabled = True, namespace = \"apps\", grants = [grant(\"v1\", \"ConfigMap\", [\"write\"])])\n"
				files[name+"/Chart.yaml"] = "apiVersion: v2\nname: " + name + "\nversion: 0.1.0\n"
				files[name+"/templates/a.yaml"] = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: " + name + "}\ndata: {n: \"{{ .Values.internal.n }}\"}\n"
				files[name+"/hooks/a.star"] = `
def a(ctx):
    values.set("internal.n", len(ctx.snapshots["c"]))
    ctx.state.set("seen", 1)
    metrics.set("n", 1)
    log.info("runs")
    k8s.apply_set("s", [{"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "` + name + `-s", "namespace": "apps"}}])

hook(a, name = "a", on = [startup(), schedule("0 * * * *", missed = "once"),
    k8s.watch("v1", "ConfigMap", name = "c", namespaces = ["apps"], filter = lambda o: o.metadata.name)])

def gone(ctx):
    log.info("goes")
    metrics.set("late", 1)

hook(gone, name = "gone", on = [before_delete()])
`
			}
			reload(files)
			status, err := f.driver.Status(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			for _, m := range status.Modules {
				if m.State != "ready" {
					t.Fatalf("%s is %s: %s %s", m.Name, m.State, m.Reason, m.LastError)
				}
			}
			for i := range modules {
				name := fmt.Sprintf("m%d-%d", n, i)
				convert(name)
				if _, err := f.store.Delete(store.Target{GVR: configMapOf(name).GVR, Namespace: "apps", Name: name}, store.DeleteOptions{}); err != nil {
					t.Fatal(err)
				}
				time.Sleep(time.Second) // it is put right, or an upgrade makes it anew: the hook counts it
				if _, is := f.driver.repairs.Load(name); is {
					repaired++
				}
			}
			reload(stays)
		}
		round(0, 5) // what is made once is there now
		if repaired == 0 {
			t.Error("nothing was put right")
		}
		before := map[string]int{}
		countEntries(reflect.ValueOf(f.driver), "driver", before, map[any]bool{})
		const rounds, each = 4, 5
		for n := range rounds {
			round(n+1, each)
		}
		after := map[string]int{}
		countEntries(reflect.ValueOf(f.driver), "driver", after, map[any]bool{})
		for path, n := range after {
			if n >= before[path]+rounds*each/2 {
				t.Errorf("%s holds %d entries after %d modules have come and gone, %d before", path, n, rounds*each, before[path])
			}
		}
		f.stop()
		<-f.ended
	})
}

// countEntries adds up the entries of all maps and lists that can be reached, by the
// fields that lead to them.
func countEntries(v reflect.Value, path string, out map[string]int, seen map[any]bool) {
	if v.Type() == reflect.TypeFor[*fixture]() || v.Type() == reflect.TypeFor[*testing.T]() { // no part of the process
		return
	}
	switch v.Kind() {
	case reflect.Pointer, reflect.Map:
		if v.IsNil() || seen[v.Pointer()] {
			return
		}
		seen[v.Pointer()] = true
	}
	switch v.Kind() {
	case reflect.Pointer, reflect.Interface:
		if !v.IsNil() {
			countEntries(v.Elem(), path, out, seen)
		}
	case reflect.Struct:
		if v.Type() == reflect.TypeFor[sync.Map]() && v.CanAddr() {
			reflect.NewAt(v.Type(), v.Addr().UnsafePointer()).Interface().(*sync.Map).Range(func(_, e any) bool {
				out[path]++
				return true
			})
			return
		}
		for i := range v.NumField() {
			countEntries(v.Field(i), path+"."+v.Type().Field(i).Name, out, seen)
		}
	case reflect.Map:
		out[path] += v.Len()
		for it := v.MapRange(); it.Next(); {
			countEntries(it.Value(), path+"[]", out, seen)
		}
	case reflect.Slice, reflect.Array:
		if kind := v.Type().Elem().Kind(); kind >= reflect.Array { // not of numbers
			if v.Kind() == reflect.Slice {
				out[path] += v.Len()
			}
			for i := range v.Len() {
				countEntries(v.Index(i), path+"[]", out, seen)
			}
		}
	}
}
