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

// eachKind is what is done for each object.
type eachKind struct {
	name, what string
	// stateful hooks set a value and a state of each object; the controller notes as much
	// at the object.
	stateful bool
	// children: the hook watches what it makes, each for its object.
	children bool
	aim      float64 // of the ratio; 0: none
}

func eachKinds() []eachKind {
	return []eachKind{
		{name: "each", what: "for_each over %d objects, first pass from the start of the process"},
		{name: "each-state", what: "for_each with values and state over %d objects, first pass from the start of the process", stateful: true, aim: 1.3},
	}
}

// verdict says of a ratio whether it meets the aim, if there is one.
func (k eachKind) verdict(ratio float64) string {
	if k.aim == 0 {
		return ""
	}
	return verdict(fmt.Sprintf("≤ %.1f×", k.aim), ratio <= k.aim)
}

// tree is a small controller: a mirror for each ConfigMap with the label.
func (k eachKind) tree() map[string]string {
	keeps, children := "", ""
	if k.children {
		children = `, k8s.watch(
        "v1", "ConfigMap",
        name = "mirrors",
        namespaces = ["` + eachMirrors + `"],
        filter = lambda o: o.get("metadata.annotations"),
        wakes = lambda o: "` + eachSources + `/" + o.metadata.name,
    )`
	}
	if k.stateful {
		keeps = `    values.set(["mirrors", ctx.key], {"stamp": ctx.object["data"]["` + stampKey + `"]})
    ctx.state.set("stamp", ctx.object["data"]["` + stampKey + `"])
`
	}
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
` + keeps + `
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
    )` + children + `],
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
	stamps  int // so far, of all changes
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

// pass starts a side under a name and returns the time from there to the mirror of its last
// object.
func (x *eaches) pass(ctx context.Context, kind eachKind, side, name string) (time.Duration, error) {
	var p *process
	switch side {
	case sideHook:
		s, err := x.b.startStarling(ctx, name, kind.tree())
		if err != nil {
			return 0, err
		}
		p = s.process
	case sideController:
		self, err := os.Executable()
		if err != nil {
			return 0, err
		}
		args := []string{controllerCommand, "-kubeconfig", x.b.kubeconfig, "-workers", strconv.Itoa(eachWorkers)}
		if kind.stateful {
			args = append(args, "-state", name)
		}
		if p, err = x.b.start(self, args...); err != nil {
			return 0, err
		}
	}
	x.running[side] = p
	last, err := x.all(ctx, x.names(side))
	return last.Sub(p.began), err
}

// round times the first pass of both sides, which go on running after it. Each round has a
// name, so that none finds what an earlier one has kept.
func (x *eaches) round(ctx context.Context, kind eachKind, sides []string, name string) (map[string]time.Duration, error) {
	var err error
	if x.witness, err = x.b.observe(ctx, eachMirrors); err != nil {
		return nil, err
	}
	took := map[string]time.Duration{}
	for _, side := range sides {
		if took[side], err = x.pass(ctx, kind, side, name); err != nil {
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
	x.stamps++
	name, stamp := x.name(side, n*7919%x.objects), strconv.Itoa(x.stamps)
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

// measureEach times for_each over many objects, without and with values and state.
func measureEach(ctx context.Context, b *bench) error {
	x := &eaches{b: b, objects: b.size(5000, 5000, 200), running: map[string]*process{}}
	if err := x.begin(ctx); err != nil {
		return err
	}
	for _, kind := range eachKinds() {
		if err := x.measure(ctx, kind); err != nil {
			return err
		}
	}
	if !b.far {
		if err := x.measureChildren(ctx); err != nil {
			return err
		}
	}
	return b.removeNamespaces(ctx, eachSources, eachMirrors)
}

// measure times the first pass, from the start of the process to the last mirror, in
// rounds in which either side is first as often as the other, and the way of one change.
// Far away, where the distance is most of it, and with state one round must do: each takes
// long.
func (x *eaches) measure(ctx context.Context, kind eachKind) error {
	sum := map[string]time.Duration{}
	rounds := x.b.size(2, 1, 2)
	if kind.stateful {
		rounds = 1
	}
	for round := range rounds {
		sides := eachSides()
		if round > 0 {
			if err := x.clear(ctx); err != nil {
				return err
			}
			slices.Reverse(sides)
		}
		name := fmt.Sprintf("%s-%d", kind.name, round)
		if x.b.far {
			name += "-far"
		}
		took, err := x.round(ctx, kind, sides, name)
		if err != nil {
			return err
		}
		for side, d := range took {
			sum[side] += d
		}
	}
	hook, bare := sum[sideHook]/time.Duration(rounds), sum[sideController]/time.Duration(rounds)
	ratio := float64(hook) / float64(bare)
	x.b.table.add(row{
		what:     fmt.Sprintf(kind.what, x.objects),
		starling: seconds(hook), bare: seconds(bare), ratio: times(ratio), aim: kind.verdict(ratio),
	})
	if err := x.addChanges(ctx, kind); err != nil {
		return err
	}
	return x.clear(ctx)
}

// addChanges changes one object after the other, the sides in turn.
func (x *eaches) addChanges(ctx context.Context, kind eachKind) error {
	changes := x.b.size(200, 200, 20)
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
		r := row{
			what:     fmt.Sprintf("… one change, %s of %d", at.name, changes),
			starling: millis(hook), bare: millis(bare), ratio: times(float64(hook) / float64(bare)),
		}
		if at.part == 0.5 {
			r.aim = kind.verdict(float64(hook) / float64(bare))
		}
		x.b.table.add(r)
	}
	return nil
}
