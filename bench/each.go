package main

import (
	"context"
	"fmt"
	"os"
	"slices"
	"strconv"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"
)

const (
	eachSources    = "bench-each"
	eachMirrors    = "bench-each-mirrors"
	sideController = "bare-controller"
	// eachWorkers is how many objects either side works on at a time: the default of
	// for_each.
	eachWorkers = 4
)

// eachTree is a small controller: a mirror for each ConfigMap with the label.
func eachTree() map[string]string {
	return map[string]string{
		"each/module.star": `module(
    enabled = True,
    grants = [grant("v1", "ConfigMap", verbs = ["apply"], namespaces = ["` + eachMirrors + `"])],
)
`,
		"each/hooks/mirror.star": `def mirror(ctx):
    k8s.apply({
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": {"name": ctx.object["name"], "namespace": "` + eachMirrors + `", "labels": {"bench": "each"}},
        "data": ctx.object["data"],
    })

hook(
    mirror,
    for_each = "sources",
    parallel = ` + strconv.Itoa(eachWorkers) + `,
    on = [k8s.watch(
        "v1", "ConfigMap",
        name = "sources",
        namespaces = ["` + eachSources + `"],
        labels = {"` + sideLabel + `": "` + sideHook + `"},
        filter = lambda o: {"name": o.metadata.name, "data": o.data},
    )],
)
`,
	}
}

// eaches runs a hook with for_each and a controller beside each other, each on its own
// objects.
type eaches struct {
	*witness
	b       *bench
	objects int
	running map[string]*process
}

func eachSides() []string { return []string{sideHook, sideController} }

func (x *eaches) name(side string, i int) string { return fmt.Sprintf("%s-%d", side, i) }

func (x *eaches) names(side string) []string {
	names := make([]string, x.objects)
	for i := range names {
		names[i] = x.name(side, i)
	}
	return names
}

// begin makes the sources of both sides.
func (x *eaches) begin(ctx context.Context) error {
	if err := x.b.makeNamespaces(ctx, eachSources, eachMirrors); err != nil {
		return err
	}
	for _, side := range eachSides() {
		err := parallel(ctx, burstWriters, x.objects, func(i int) error {
			return makeSource(ctx, x.b.client, side, x.name(side, i), strings.Repeat("x", 200))
		})
		if err != nil {
			return err
		}
	}
	return nil
}

// pass starts a side and returns the time from there to the mirror of its last object.
func (x *eaches) pass(ctx context.Context, side string) (time.Duration, error) {
	var p *process
	switch side {
	case sideHook:
		s, err := x.b.startStarling(ctx, "each", eachTree())
		if err != nil {
			return 0, err
		}
		p = s.process
	case sideController:
		self, err := os.Executable()
		if err != nil {
			return 0, err
		}
		if p, err = x.b.start(self, controllerCommand, "-kubeconfig", x.b.kubeconfig, "-workers", strconv.Itoa(eachWorkers)); err != nil {
			return 0, err
		}
	}
	x.running[side] = p
	last, err := x.all(ctx, x.names(side))
	return last.Sub(p.began), err
}

// round times the first pass of both sides, which go on running after it.
func (x *eaches) round(ctx context.Context, sides []string) (map[string]time.Duration, error) {
	var err error
	if x.witness, err = x.b.observe(ctx, eachMirrors); err != nil {
		return nil, err
	}
	took := map[string]time.Duration{}
	for _, side := range sides {
		if took[side], err = x.pass(ctx, side); err != nil {
			return nil, err
		}
		x.b.say("first pass of %s: %s", side, seconds(took[side]))
		// The API server has its own work to end.
		if err := pause(ctx, time.Second); err != nil {
			return nil, err
		}
	}
	return took, nil
}

// clear stops both sides and takes the mirrors away.
func (x *eaches) clear(ctx context.Context) error {
	x.stop()
	for _, p := range x.running {
		if err := p.stop(); err != nil {
			return err
		}
	}
	return x.b.client.CoreV1().ConfigMaps(eachMirrors).DeleteCollection(ctx, metav1.DeleteOptions{},
		metav1.ListOptions{LabelSelector: "bench=each"})
}

// change changes one source and returns how long its mirror took to follow.
func (x *eaches) change(ctx context.Context, side string, n int) (time.Duration, error) {
	name, stamp := x.name(side, n*7919%x.objects), strconv.Itoa(n+1)
	began := time.Now()
	_, err := x.b.client.CoreV1().ConfigMaps(eachSources).Patch(ctx, name, types.MergePatchType,
		fmt.Appendf(nil, `{"data":{%q:%q}}`, stampKey, stamp), metav1.PatchOptions{})
	if err != nil {
		return 0, err
	}
	seen, err := x.all(ctx, []string{stamped(name, stamp)})
	return seen.Sub(began), err
}

// makeSource creates a ConfigMap that a side of the each section mirrors.
func makeSource(ctx context.Context, client kubernetes.Interface, side, name, text string) error {
	_, err := client.CoreV1().ConfigMaps(eachSources).Create(ctx, &corev1.ConfigMap{
		ObjectMeta: metav1.ObjectMeta{Name: name, Labels: map[string]string{sideLabel: side}},
		Data:       map[string]string{"text": text, stampKey: "0"},
	}, metav1.CreateOptions{})
	if err != nil {
		return fmt.Errorf("source %s: %w", name, err)
	}
	return nil
}

// measureEach times for_each over many objects: the first pass, from the start of the
// process to the last mirror, in rounds in which either side is first as often as the
// other, and the way of one change.
func measureEach(ctx context.Context, b *bench) error {
	x := &eaches{b: b, objects: 5000, running: map[string]*process{}}
	changes := 200
	if b.quick {
		x.objects, changes = 200, 20
	}
	if err := x.begin(ctx); err != nil {
		return err
	}
	sum := map[string]time.Duration{}
	const rounds = 2
	for round := range rounds {
		sides := eachSides()
		if round > 0 {
			if err := x.clear(ctx); err != nil {
				return err
			}
			slices.Reverse(sides)
		}
		took, err := x.round(ctx, sides)
		if err != nil {
			return err
		}
		for side, d := range took {
			sum[side] += d
		}
	}
	ratio := float64(sum[sideHook]) / float64(sum[sideController])
	b.table.add(row{
		what:     fmt.Sprintf("for_each over %d objects, first pass from the start of the process", x.objects),
		starling: seconds(sum[sideHook] / rounds), bare: seconds(sum[sideController] / rounds), ratio: times(ratio),
	})
	took := map[string][]time.Duration{}
	for n := range changes {
		for _, side := range eachSides() {
			d, err := x.change(ctx, side, n)
			if err != nil {
				return err
			}
			took[side] = append(took[side], d)
		}
	}
	for _, at := range parts() {
		hook, bare := percentile(took[sideHook], at.part), percentile(took[sideController], at.part)
		b.table.add(row{
			what:     fmt.Sprintf("… one change, %s of %d", at.name, changes),
			starling: millis(hook), bare: millis(bare), ratio: times(float64(hook) / float64(bare)),
		})
	}
	if err := x.clear(ctx); err != nil {
		return err
	}
	for _, ns := range []string{eachSources, eachMirrors} {
		if err := b.removeNamespace(ctx, ns); err != nil {
			return err
		}
	}
	return nil
}
