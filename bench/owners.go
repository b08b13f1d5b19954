package main

import (
	"context"
	"fmt"
	"net/http"
	"os"
	"slices"
	"strconv"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	kruntime "k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/dynamic"
)

// ownerWorkers is how many parents either side works on at a time: the default of controller().
const ownerWorkers = 8

// owners runs a controller of Starling and one with client-go beside each other, each on Apps that it
// alone sees.
type owners struct {
	b         *bench
	apps      dynamic.ResourceInterface
	namespace string
	parents   int
	configs   *witness // the ConfigMaps of all Apps
	done      *witness // Apps of which all is written, their status last
	name      string
	s         *starling
	bare      *process
	stamps    int
}

func (x *owners) parent(side string, i int) string { return fmt.Sprintf("%s-%d", side, i) }

// beginOwners makes the parents of both sides, in a namespace that is new.
func (b *bench) beginOwners(ctx context.Context, name string, parents int) (*owners, error) {
	config, err := adminConfig(b.kubeconfig)
	if err != nil {
		return nil, err
	}
	client, err := dynamic.NewForConfig(config)
	if err != nil {
		return nil, err
	}
	x := &owners{b: b, name: name, namespace: "bench-" + name, parents: parents}
	x.apps = client.Resource(appResource()).Namespace(x.namespace)
	if err := b.makeNamespaces(ctx, x.namespace); err != nil {
		return nil, err
	}
	for _, side := range eachSides() {
		err := parallel(ctx, burstWriters, parents, func(i int) error {
			_, err := x.apps.Create(ctx, &unstructured.Unstructured{Object: map[string]any{
				"apiVersion": "bench.starling.dev/v1", "kind": "App",
				"metadata": map[string]any{"name": x.parent(side, i), "labels": map[string]any{sideLabel: side}},
				"spec":     map[string]any{stampKey: "0"},
			}}, metav1.CreateOptions{})
			return err
		})
		if err != nil {
			return nil, err
		}
	}
	return x, x.observe(ctx)
}

func (x *owners) observe(ctx context.Context) (err error) {
	if x.configs, err = x.b.observe(ctx, x.namespace); err != nil {
		return err
	}
	list, err := x.apps.List(ctx, metav1.ListOptions{Limit: 1})
	if err != nil {
		return err
	}
	x.done, err = x.b.follow(ctx, "Apps", func(ctx context.Context) (watch.Interface, error) {
		return x.apps.Watch(ctx, metav1.ListOptions{ResourceVersion: list.GetResourceVersion()})
	}, func(obj kruntime.Object) []string {
		app, is := obj.(*unstructured.Unstructured)
		if !is {
			return nil
		}
		if seen, _, _ := unstructured.NestedInt64(app.Object, "status", "observedGeneration"); seen != app.GetGeneration() {
			return nil
		}
		return []string{app.GetName()}
	})
	return err
}

// pass starts a side and returns the time from there until all is written of its last parent.
func (x *owners) pass(ctx context.Context, side string) (time.Duration, error) {
	p, err := x.start(ctx, side)
	if err != nil {
		return 0, err
	}
	names := make([]string, x.parents)
	for i := range names {
		names[i] = x.parent(side, i)
	}
	last, err := x.done.all(ctx, names)
	if err != nil {
		return 0, err
	}
	took := last.Sub(p.began)
	used, _ := p.cpu() // on Linux
	x.b.say("first pass of %s: %s, %s of processor time", side, seconds(took), seconds(used))
	return took, pause(ctx, time.Second) // the API server has its own work to end
}

func (x *owners) start(ctx context.Context, side string) (*process, error) {
	if side == sideController {
		self, err := os.Executable()
		if err != nil {
			return nil, err
		}
		x.bare, err = x.b.start(self, ownerCommand, "-kubeconfig", x.b.kubeconfig, "-namespace", x.namespace, "-workers", strconv.Itoa(ownerWorkers))
		return x.bare, err
	}
	var err error
	if x.s, err = x.b.startStarling(ctx, x.name, ownersTree(x.namespace)); err != nil {
		return nil, err
	}
	return x.s.process, nil
}

func (x *owners) stop() error {
	x.configs.stop()
	x.done.stop()
	if err := x.bare.stop(); err != nil {
		return err
	}
	return x.s.stop()
}

// measureOwners times controllers with children. It leaves its objects, which have finalizers, so that
// it is the last section.
func measureOwners(ctx context.Context, b *bench) error {
	if err := b.makeAppKind(ctx); err != nil {
		return err
	}
	parents, rounds := b.size(5000, 0, 50), b.size(2, 0, 1) // never far
	if b.parents > 0 {
		parents = b.parents
	}
	sum := map[string]time.Duration{}
	var x *owners
	for round := range rounds {
		if x != nil {
			if err := x.stop(); err != nil {
				return err
			}
		}
		var err error
		if x, err = b.beginOwners(ctx, fmt.Sprintf("owners-%d", round), parents); err != nil {
			return err
		}
		sides := eachSides()
		if round > 0 {
			slices.Reverse(sides)
		}
		for _, side := range sides {
			took, err := x.pass(ctx, side)
			if err != nil {
				return err
			}
			sum[side] += took
		}
	}
	ours, bare := sum[sideHook]/time.Duration(rounds), sum[sideController]/time.Duration(rounds)
	ratio := float64(ours) / float64(bare)
	b.table.add(row{
		what:     fmt.Sprintf("a controller of %d parents with 3 children each, first pass from the start of the process", parents),
		starling: seconds(ours), bare: seconds(bare), ratio: times(ratio), aim: verdict("≤ 1.15×", ratio <= 1.15),
	})
	for _, step := range []func(context.Context) error{x.addEvents, x.addChanges, x.addRepairs} {
		if err := step(ctx); err != nil {
			return err
		}
	}
	if err := x.stop(); err != nil {
		return err
	}
	for _, step := range []func(context.Context) error{x.addMemory, x.addRest, b.addDesired} {
		if err := step(ctx); err != nil {
			return err
		}
	}
	return nil
}

// makeAppKind has the API server serve Apps.
func (b *bench) makeAppKind(ctx context.Context) error {
	api := b.client.Discovery().RESTClient()
	if err := api.Post().AbsPath("/apis/apiextensions.k8s.io/v1/customresourcedefinitions").
		SetHeader("Content-Type", "application/json").Body([]byte(appCRD)).Do(ctx).Error(); err != nil {
		return err
	}
	return wait(ctx, func() bool {
		code := 0
		api.Get().AbsPath("/apis/bench.starling.dev/v1/apps").Do(ctx).StatusCode(&code)
		return code == http.StatusOK
	})
}
