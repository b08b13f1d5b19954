package live

import (
	"context"
	"testing"
	"testing/fstest"
	"testing/synctest"
	"time"

	"github.com/rs/zerolog"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/starling-operator/starling/modules/tree"
	"github.com/starling-operator/starling/runtime/effect"
	"github.com/starling-operator/starling/runtime/generation"
	"github.com/starling-operator/starling/runtime/sim/store"
	"github.com/starling-operator/starling/stdlib"
)

// A process begins while a module is gone and a new one is broken, which may be the other one under another name. As its
// release stays for that reason, its policies do: else they would be open by a typo. They go once the new one is mended.
func TestAPolicyStaysAsLongAsItsModuleMayHaveAnotherName(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		files := map[string]string{
			"other/module.star": "module(enabled = True)\n",
			"www/module.star":   "module(enabled = True\n",
		}
		f := newFixture(t, files, renewsSeldom)
		f.driver.o.Log = zerolog.Nop()
		f.driver.o.Load = func(ctx context.Context, read *tree.Tree, before *generation.Generation) *generation.Generation {
			return generation.Load(ctx, generation.Options{
				Tree: read, Std: stdlib.FS, Number: before.Number + 1, Log: FileLog(zerolog.Nop()), Governor: before.Host.Governor(), Previous: before,
			})
		}
		policy := store.Target{Name: "ops.starling.web.a.f.pods", GVR: schema.GroupVersionResource{
			Group: "admissionregistration.k8s.io", Version: "v1", Resource: "validatingwebhookconfigurations",
		}}
		obj := map[string]any{
			"apiVersion": "admissionregistration.k8s.io/v1", "kind": "ValidatingWebhookConfiguration",
			"metadata": map[string]any{"name": policy.Name, "labels": map[string]any{effect.InstanceLabel: "ops.starling", effect.ModuleLabel: "web"}},
		}
		if _, err := f.store.Create(policy, obj, store.WriteOptions{}); err != nil {
			t.Fatal(err)
		}
		there := func() bool { _, err := f.store.Get(policy); return err == nil }
		f.start()
		time.Sleep(10 * time.Minute)
		if !there() {
			t.Error("the policy of a module that may have another name is gone")
		}
		fsys := fstest.MapFS{}
		for path := range files {
			fsys[path] = &fstest.MapFile{Data: []byte("module(enabled = True)\n")}
		}
		read, err := tree.Read(fsys, tree.Options{})
		if err != nil {
			t.Fatal(err)
		}
		f.driver.Reload(t.Context(), read)
		time.Sleep(time.Minute)
		if there() {
			t.Error("it stays, though no module is broken any more")
		}
		f.stop()
		if err := <-f.ended; err != nil {
			t.Error(err)
		}
	})
}
