package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"runtime"
	"sync/atomic"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	kruntime "k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/watch"
)

// heals are two sides that keep the same Deployments as they are.
type heals struct {
	b       *bench
	modules int
	watches []*witness
	next    atomic.Pointer[healed]
	steps   int
}

// healed is the Deployment that is waited for.
type healed struct {
	namespace, name, key string
	is                   func(*appsv1.Deployment) bool
}

// measureHeal times the way from somebody who deletes or edits a Deployment of a release until it
// is as it was, beside a bare loop; and looks at the requests and the memory of the watches.
func measureHeal(ctx context.Context, b *bench) (err error) {
	n := b.size(100, 100, 10)
	if err := b.makeNamespaces(ctx, moduleNamespace, helmNamespace); err != nil {
		return err
	}
	s, err := b.startStarling(ctx, "heal", moduleTree(n))
	if err != nil {
		return err
	}
	if err := s.ready(ctx); err != nil {
		return err
	}
	p, err := b.startHealer(ctx, n)
	if err != nil {
		return err
	}
	x := &heals{b: b, modules: n}
	defer x.end()
	for _, namespace := range healSides() {
		if err := x.observe(ctx, namespace); err != nil {
			return err
		}
	}
	if err := b.settle(ctx); err != nil {
		return err
	}
	deleted, edited := map[string][]time.Duration{}, map[string][]time.Duration{}
	for i := range n { // once each: who heals an object again and again waits longer each time
		for _, namespace := range healSides() {
			took, err := x.delete(ctx, namespace, i)
			if err != nil {
				return err
			}
			deleted[namespace] = append(deleted[namespace], took)
		}
		for _, namespace := range healSides() {
			took, err := x.edit(ctx, namespace, i)
			if err != nil {
				return err
			}
			edited[namespace] = append(edited[namespace], took)
		}
	}
	x.add(fmt.Sprintf("a deleted Deployment of one of %d modules, until it is back", n), deleted, 1.15)
	x.add("… an edited field of it, until it is as it was", edited, 1.2)
	if err := errors.Join(s.stop(), p.stop()); err != nil {
		return err
	}
	if err := b.addWatching(ctx, "heal", n); err != nil {
		return err
	}
	if err := b.removeNamespaces(ctx, moduleNamespace, helmNamespace); err != nil {
		return err
	}
	return b.addHealMemory(ctx)
}

// healSides are the namespaces of the sides, that of Starling first.
func healSides() []string { return []string{moduleNamespace, helmNamespace} }

func (b *bench) startHealer(ctx context.Context, n int) (*process, error) {
	self, err := os.Executable()
	if err != nil {
		return nil, err
	}
	p, err := b.start(self, healerCommand, "-kubeconfig", b.kubeconfig, "-n", fmt.Sprint(n))
	if err != nil {
		return nil, err
	}
	return p, wait(ctx, func() bool { return p.output.String() != "" })
}

// observe watches the Deployments of a namespace.
func (x *heals) observe(ctx context.Context, namespace string) error {
	api := x.b.client.AppsV1().Deployments(namespace)
	list, err := api.List(ctx, metav1.ListOptions{Limit: 1})
	if err != nil {
		return err
	}
	w, err := x.b.follow(ctx, "Deployments in "+namespace, func(ctx context.Context) (watch.Interface, error) {
		return api.Watch(ctx, metav1.ListOptions{ResourceVersion: list.ResourceVersion})
	}, func(obj kruntime.Object) []string {
		d, ok := obj.(*appsv1.Deployment)
		if next := x.next.Load(); ok && next != nil && next.namespace == d.Namespace && next.name == d.Name && next.is(d) {
			return []string{next.key}
		}
		return nil
	})
	if err == nil {
		x.watches = append(x.watches, w)
	}
	return err
}

func (x *heals) end() {
	for _, w := range x.watches {
		w.stop()
	}
}

// step has somebody do something to a Deployment, and returns how long it took until it was as is
// says.
func (x *heals) step(ctx context.Context, namespace, name string, is func(*appsv1.Deployment) bool, do func() error) (time.Duration, error) {
	x.steps++
	next := &healed{namespace: namespace, name: name, key: fmt.Sprint(x.steps), is: is}
	x.next.Store(next)
	began := time.Now()
	if err := do(); err != nil {
		return 0, err
	}
	w := x.watches[0]
	if namespace != moduleNamespace {
		w = x.watches[1]
	}
	seen, err := w.all(ctx, []string{next.key})
	if err != nil {
		return 0, err
	}
	return seen.Sub(began), pause(ctx, time.Second/20) // the note of the repair, and what controllers write
}

// nameOf is the module of a step: each takes the next one.
func (x *heals) nameOf(i int) string { return moduleName(i % x.modules) }

func (x *heals) delete(ctx context.Context, namespace string, i int) (time.Duration, error) {
	api, name := x.b.client.AppsV1().Deployments(namespace), x.nameOf(i)
	old, err := api.Get(ctx, name, metav1.GetOptions{})
	if err != nil {
		return 0, err
	}
	return x.step(ctx, namespace, name, func(d *appsv1.Deployment) bool { return d.UID != old.UID },
		func() error { return api.Delete(ctx, name, metav1.DeleteOptions{}) })
}

// edit changes the image, and waits for an object that was written after that and has the old one.
func (x *heals) edit(ctx context.Context, namespace string, i int) (time.Duration, error) {
	api, name := x.b.client.AppsV1().Deployments(namespace), x.nameOf(i+x.modules/2)
	var changed atomic.Bool
	return x.step(ctx, namespace, name, func(d *appsv1.Deployment) bool {
		if image(d) != chartImage {
			changed.Store(true)
			return false
		}
		return changed.Load()
	}, func() error {
		_, err := api.Patch(ctx, name, types.JSONPatchType,
			[]byte(`[{"op": "replace", "path": "/spec/template/spec/containers/0/image", "value": "example.com/theirs:1"}]`),
			metav1.PatchOptions{FieldManager: "somebody"})
		return err
	})
}

func (x *heals) add(what string, took map[string][]time.Duration, aim float64) {
	for _, at := range parts() {
		ours, bare := percentile(took[moduleNamespace], at.part), percentile(took[helmNamespace], at.part)
		ratio := float64(ours) / float64(bare)
		r := row{
			what:     fmt.Sprintf("%s, %s of %d", what, at.name, len(took[moduleNamespace])),
			starling: millis(ours), bare: millis(bare), ratio: times(ratio),
		}
		if at.part == 0.5 {
			r.aim = verdict(fmt.Sprintf("≤ %g×", aim), ratio <= aim)
		}
		x.b.table.add(r)
	}
}

// addWatching counts the requests of an instance that has nothing to do but watch.
func (b *bench) addWatching(ctx context.Context, name string, n int) (err error) {
	r, err := b.startRelay()
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, r.close()) }()
	back := b.through(r.kubeconfig)
	s, err := b.startStarling(ctx, name, nil)
	back()
	if err != nil {
		return err
	}
	if err := s.ready(ctx); err != nil {
		return err
	}
	if err := s.quiet(ctx, r); err != nil {
		return err
	}
	if err := b.settle(ctx); err != nil {
		return err
	}
	r.take()
	lasts := time.Duration(b.size(60, 60, 3)) * time.Second
	if err := pause(ctx, lasts); err != nil {
		return err
	}
	asked := len(r.take())
	b.table.add(row{
		what:     fmt.Sprintf("%d modules at rest for %.0f s, requests but those for the Lease", n, lasts.Seconds()),
		starling: fmt.Sprint(asked), aim: verdict("0", asked == 0),
	})
	return s.stop()
}

// addHealMemory reads the memory of an instance that watches the objects of large releases, and of
// one that does not look for changes of others.
func (b *bench) addHealMemory(ctx context.Context) (err error) {
	if runtime.GOOS != "linux" {
		b.table.add(row{what: "memory of watched objects", starling: "read on Linux only"})
		return nil
	}
	modules, each := 10, b.size(1000, 1000, 50)
	if err := b.makeNamespaces(ctx, moduleNamespace); err != nil {
		return err
	}
	r, err := b.startRelay()
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, r.close()) }()
	start := func(tree map[string]string) (*starling, error) { // until nothing is left to do
		back := b.through(r.kubeconfig)
		s, err := b.startStarling(ctx, "large", tree)
		back()
		if err != nil {
			return nil, err
		}
		return s, errors.Join(s.ready(ctx), s.quiet(ctx, r))
	}
	resident := map[string]int64{}
	for _, policy := range []string{"ignore", "repair"} {
		s, err := start(largeTree(modules, each, policy))
		if err != nil {
			return err
		}
		// The objects have their labels now. The memory is that of a later start.
		if err := s.stop(); err != nil {
			return err
		}
		if s, err = start(nil); err != nil {
			return err
		}
		if err := errors.Join(b.settle(ctx), b.settle(ctx)); err != nil {
			return err
		}
		m, err := s.memory()
		if err != nil {
			return err
		}
		b.say("drift = %q: %s", policy, mebibytes(m.now-m.file))
		resident[policy] = m.now - m.file
		if err := s.stop(); err != nil {
			return err
		}
	}
	takes := (resident["repair"] - resident["ignore"]) * 10_000 / int64(modules*each)
	b.table.add(row{
		what:     fmt.Sprintf("memory per 10000 watched objects, of %d releases with %d each", modules, each),
		starling: mebibytes(takes), aim: verdict("≤ 8 MiB", takes <= 8<<20),
	})
	return b.removeNamespaces(ctx, moduleNamespace)
}

// largeTree is modules whose charts have many ConfigMaps each.
func largeTree(modules, each int, policy string) map[string]string {
	tree := map[string]string{}
	for i := range modules {
		name := moduleName(i)
		tree[name+"/module.star"] = fmt.Sprintf("module(enabled = True, namespace = %q, drift = %q)\n", moduleNamespace, policy)
		tree[name+"/chart/Chart.yaml"] = "apiVersion: v2\nname: " + name + "\nversion: 1.0.0\n"
		tree[name+"/chart/templates/all.yaml"] = fmt.Sprintf(
			"{{ range $i := until %d }}\n---\napiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: {{ $.Release.Name }}-{{ $i }}\ndata:\n  text: ours\n{{ end }}\n", each)
	}
	return tree
}
