package main

import (
	"fmt"
	"net/http"
	"strconv"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/dynamic"

	"github.com/starling-operator/starling/e2e/cluster"
)

// ownerWorkers is how many parents either side works on at a time: the default of controller().
const ownerWorkers = 8

// owners are a controller of Starling and one with client-go, each on Apps that it alone sees.
type owners struct {
	pair
	apps            dynamic.ResourceInterface
	name, namespace string
	s               *starling
}

func appResource() schema.GroupVersionResource {
	return schema.GroupVersionResource{Group: "bench.starling.dev", Version: "v1", Resource: "apps"}
}

// controllers times controllers with children. It leaves its objects, which have finalizers, so that
// it is the last section.
func (b *bench) controllers() {
	b.makeAppKind()
	x := &owners{pair: pair{b: b, objects: b.size(5000, 50)}}
	if b.parents > 0 {
		x.objects = b.parents
	}
	b.scope(func() {
		what := "a controller of %d parents with 3 children each, first pass from the start of the process"
		x.rounds(b.size(2, 1), fmt.Sprintf(what, x.objects), 1.15, x.begin)
		x.addSteps()
	})
	x.addRestart()
	x.addRest()
	b.addDesired()
}

// begin makes the parents of both sides, in a namespace that is new.
func (x *owners) begin(round int) startSide {
	b := x.b
	config, err := adminConfig(b.kubeconfig)
	b.check(err)
	client, err := dynamic.NewForConfig(config)
	b.check(err)
	x.name = fmt.Sprintf("owners-%d", round)
	x.namespace = "bench-" + x.name
	x.apps = client.Resource(appResource()).Namespace(x.namespace)
	b.check(b.createNamespace(x.namespace))
	x.makeAll(func(side, name string) error {
		_, err := x.apps.Create(b.ctx, &unstructured.Unstructured{Object: map[string]any{
			"apiVersion": "bench.starling.dev/v1", "kind": "App",
			"metadata": map[string]any{"name": name, "labels": map[string]any{sideLabel: side}},
			"spec":     map[string]any{stampKey: "0"},
		}}, metav1.CreateOptions{})
		return err
	})
	// An App is seen when all of it is written, its status last.
	x.seen = observe(b, x.apps, "", func(app *unstructured.Unstructured) []string {
		if seen, _, _ := unstructured.NestedInt64(app.Object, "status", "observedGeneration"); seen != app.GetGeneration() {
			return nil
		}
		return []string{app.GetName()}
	})
	return func(side string) *cluster.Process {
		if side == sideHook {
			x.s = b.start(instance{name: x.name, tree: map[string]string{
				"owners/module.star":      plainModule,
				"owners/hooks/owner.star": text("owner.star", "SPACE", x.namespace, "WORKERS", fmt.Sprint(ownerWorkers)),
			}})
			return x.s.Process()
		}
		return b.startBare(sideOwner, "-namespace", x.namespace, "-workers", strconv.Itoa(ownerWorkers))
	}
}

// addSteps has somebody change parents and children, and looks at what follows.
func (x *owners) addSteps() {
	b := x.b
	x.addEvents(x.s, b.size(40, 3), "… one event of a child", 0, func(n int) error {
		return b.patchConfigMap(x.namespace, x.spread(sideHook, n, 0, 2), `{"metadata":{"annotations":{"note":"%d"}}}`, n)
	})
	x.changes("… one parent changed, to its child, %s", b.size(200, 20), b.observe(x.namespace),
		func(side string, n int) (func() error, string) {
			name, stamp := x.spread(side, n, 0, 2), x.nextStamp()
			return func() error {
				_, err := x.apps.Patch(b.ctx, name, types.MergePatchType,
					fmt.Appendf(nil, `{"spec":{%q:%q}}`, stampKey, stamp), metav1.PatchOptions{})
				return err
			}, stamped(name, stamp)
		}, 1.2, 1.5)
	// These are children of parents that Starling has not written for some seconds, and a witness that has not seen
	// how they were.
	x.changes("… one child edited by hand, to its repair, %s", b.size(100, 10), b.observe(x.namespace),
		func(side string, n int) (func() error, string) {
			name := x.spread(side, n, 1, 2)
			return func() error {
				return b.patchConfigMap(x.namespace, name, `{"data":{%q:"edited"}}`, stampKey)
			}, stamped(name, "0")
		}, 1.2, 0)
}

// looks waits until a starling has looked at each parent.
func (x *owners) looks(s *starling) { s.ran(x.objects, 100*time.Millisecond) }

// addRestart starts Starling again, and reads how long it takes until it has looked at each parent, and the
// memory of the children: that of another instance which watches the parents alone is taken off.
func (x *owners) addRestart() {
	b := x.b
	s := b.start(instance{name: x.name})
	x.looks(s)
	took := time.Since(s.Process().Began)
	b.say("restart: %s, %s of processor time", seconds(took), seconds(b.cpu(s.Process())))
	b.add("… restart with nothing changed, until each parent was looked at", seconds(took),
		verdict("≤ 3 s", took <= 3*time.Second))
	const what = "… memory per 10000 children"
	if b.needsLinux(what) {
		s.stop()
		return
	}
	takes := b.laterMemory(s)
	s.stop()
	s = b.start(instance{name: "parents", tree: map[string]string{
		"parents/module.star":       plainModule,
		"parents/hooks/parent.star": text("parent.star", "SPACE", x.namespace),
	}})
	x.looks(s)
	takes = (takes - b.laterMemory(s)) * 10_000 / int64(3*x.objects)
	s.stop()
	b.add(what, mebibytes(takes), verdict("≤ 10 MiB", takes <= 10<<20))
}

// addRest starts Starling behind a relay, and counts the requests about parents and children that are no
// lists; then all that it makes at rest.
func (x *owners) addRest() {
	b, r := x.b, x.b.startRelay()
	s := r.begin(x.name, nil)
	x.looks(s)
	r.quiet(s)
	about := 0
	for _, request := range r.take() {
		if method, url, _ := strings.Cut(request, " "); method != http.MethodGet || strings.Contains(url, "/"+sideHook+"-") {
			about++
			b.say("restart: %s", request)
		}
	}
	b.addExact("… restart, requests that are no lists", about, 0)
	r.addRest("…")
}

// makeAppKind has the API server serve Apps.
func (b *bench) makeAppKind() {
	api := b.client.Discovery().RESTClient()
	b.check(api.Post().AbsPath("/apis/apiextensions.k8s.io/v1/customresourcedefinitions").
		SetHeader("Content-Type", "application/yaml").Body([]byte(text("apps.yaml"))).Do(b.ctx).Error())
	b.wait("Apps are served", func() bool {
		code := 0
		api.Get().AbsPath("/apis/bench.starling.dev/v1/apps").Do(b.ctx).StatusCode(&code)
		return code == http.StatusOK
	})
}
