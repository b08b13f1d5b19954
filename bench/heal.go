package main

import (
	"fmt"
	"sync/atomic"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

// heals are two sides that keep the same Deployments as they are. Each has its namespace.
type heals struct {
	b       *bench
	modules int
	watches map[string]*witness
	next    atomic.Pointer[healed]
	steps   int
}

// healed is the Deployment that is waited for.
type healed struct {
	namespace, name, key string
	is                   func(*appsv1.Deployment) bool
}

// heal times the way from somebody who deletes or edits a Deployment of a release until it
// is as it was, beside a bare loop; and looks at the requests and the memory of the watches.
func (b *bench) heal() {
	b.scope(func() {
		n := b.size(100, 10)
		b.namespaces(moduleNamespace, helmNamespace)
		b.scope(func() { b.healEach(n) })
		r := b.startRelay()
		r.start("heal", nil)
		b.settle()
		r.addRest(fmt.Sprintf("%d modules", n))
	})
	b.healMemory()
}

func (b *bench) healEach(n int) {
	b.startReady("heal", moduleTree(n))
	b.startBareReady(sideHealer, "-n", fmt.Sprint(n))
	x := &heals{b: b, modules: n, watches: map[string]*witness{}}
	sides := []string{moduleNamespace, helmNamespace}
	for _, namespace := range sides {
		x.watches[namespace] = observe(b, b.client.AppsV1().Deployments(namespace), "", x.healed)
	}
	b.settle()
	deleted, edited := map[string][]time.Duration{}, map[string][]time.Duration{}
	for i := range n { // once each: who heals an object again and again waits longer each time
		for _, namespace := range sides {
			deleted[namespace] = append(deleted[namespace], x.delete(namespace, i))
		}
		for _, namespace := range sides {
			edited[namespace] = append(edited[namespace], x.edit(namespace, i))
		}
	}
	b.addParts(fmt.Sprintf("a deleted Deployment of one of %d modules, until it is back, %%s", n),
		deleted[moduleNamespace], deleted[helmNamespace], 1.15, 0)
	b.addParts("… an edited field of it, until it is as it was, %s",
		edited[moduleNamespace], edited[helmNamespace], 1.2, 0)
}

// healed names the step that a Deployment is waited for by, if it is.
func (x *heals) healed(d *appsv1.Deployment) []string {
	if next := x.next.Load(); next != nil && next.namespace == d.Namespace && next.name == d.Name && next.is(d) {
		return []string{next.key}
	}
	return nil
}

// step has somebody do something to a Deployment, and returns how long it took until it was as is
// says.
func (x *heals) step(namespace, name string, is func(*appsv1.Deployment) bool, do func() error) time.Duration {
	x.steps++
	next := &healed{namespace: namespace, name: name, key: fmt.Sprint(x.steps), is: is}
	x.next.Store(next)
	defer x.b.pause(time.Second / 20) // the note of the repair, and what controllers write
	return x.watches[namespace].after(do, next.key)
}

// nameOf is the module of a step: each takes the next one.
func (x *heals) nameOf(i int) string { return moduleName(i % x.modules) }

func (x *heals) delete(namespace string, i int) time.Duration {
	api, name := x.b.client.AppsV1().Deployments(namespace), x.nameOf(i)
	old, err := api.Get(x.b.ctx, name, metav1.GetOptions{})
	x.b.check(err)
	return x.step(namespace, name, func(d *appsv1.Deployment) bool { return d.UID != old.UID },
		func() error { return api.Delete(x.b.ctx, name, metav1.DeleteOptions{}) })
}

// edit changes the image, and waits for an object that was written after that and has the old one.
func (x *heals) edit(namespace string, i int) time.Duration {
	api, name := x.b.client.AppsV1().Deployments(namespace), x.nameOf(i+x.modules/2)
	var changed atomic.Bool
	return x.step(namespace, name, func(d *appsv1.Deployment) bool {
		if image(d) != chartImage {
			changed.Store(true)
			return false
		}
		return changed.Load()
	}, func() error {
		_, err := api.Patch(x.b.ctx, name, types.JSONPatchType,
			[]byte(`[{"op": "replace", "path": "/spec/template/spec/containers/0/image", "value": "example.com/theirs:1"}]`),
			metav1.PatchOptions{FieldManager: "somebody"})
		return err
	})
}

// healMemory reads the memory of an instance that watches the objects of large releases, and of
// one that does not look for changes of others.
func (b *bench) healMemory() {
	if b.needsLinux("memory of watched objects") {
		return
	}
	modules, each := 10, b.size(1000, 50)
	b.namespaces(moduleNamespace)
	r, resident := b.startRelay(), map[string]int64{}
	for _, policy := range []string{"ignore", "repair"} {
		r.start("large", largeTree(modules, each, policy)).stop()
		// The objects have their labels now. The memory is that of a later start.
		s := r.start("large", nil)
		resident[policy] = b.laterMemory(s)
		s.stop()
	}
	takes := (resident["repair"] - resident["ignore"]) * 10_000 / int64(modules*each)
	b.add(fmt.Sprintf("memory per 10000 watched objects, of %d releases with %d each", modules, each),
		mebibytes(takes), verdict("≤ 8 MiB", takes <= 8<<20))
}

// largeTree is modules whose charts have many ConfigMaps each.
func largeTree(modules, each int, policy string) map[string]string {
	tree := map[string]string{}
	for i := range modules {
		name := moduleName(i)
		tree[name+"/module.star"] = moduleWith(inNamespace(moduleNamespace), `drift = "`+policy+`"`)
		addChart(tree, name, smallChart(name, "", text("large.yaml", "EACH", fmt.Sprint(each))))
	}
	return tree
}
