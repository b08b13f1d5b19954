package main

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
)

const (
	sourceNamespace = "bench-sources"
	mirrorNamespace = "bench-mirrors"
	sideLabel       = "bench.starling.dev/side"
)

// The sides that mirror ConfigMaps, each those with its own label.
const (
	sideHook   = "hook"
	sideApply  = "bare-apply"
	sideCreate = "bare-create"
)

func sides() []string { return []string{sideHook, sideApply, sideCreate} }

// mirrorTree is the module whose hook mirrors.
func mirrorTree() map[string]string {
	return map[string]string{
		"mirror/module.star":       "module(enabled = True, " + mirrorGrants + ")\n",
		"mirror/hooks/mirror.star": mirrorHook(sideHook),
	}
}

// mirrorGrants are those of a module with a hook that mirrors.
const mirrorGrants = `grants = [grant("v1", "ConfigMap", verbs = ["apply"], namespaces = ["` + mirrorNamespace + `"])]`

// mirrorHook is a hook that mirrors the sources of one side.
func mirrorHook(side string) string {
	return `def mirror(ctx):
    new = []
    for e in ctx.events:
        if e.type == "sync":
            new = ctx.snapshots["sources"]
            break
        if e.type == "added":
            new.append(e.result)
    for source in new:
        k8s.apply({
            "apiVersion": "v1",
            "kind": "ConfigMap",
            "metadata": {"name": source["name"], "namespace": "` + mirrorNamespace + `"},
            "data": source["data"],
        })

hook(
    mirror,
    on = [k8s.watch(
        "v1", "ConfigMap",
        name = "sources",
        namespaces = ["` + sourceNamespace + `"],
        labels = {"` + sideLabel + `": "` + side + `"},
        filter = lambda o: {"name": o.metadata.name, "data": o.data},
    )],
)
`
}

// mirrors runs all sides, and a client that makes sources and sees mirrors.
type mirrors struct {
	*witness
	b       *bench
	client  kubernetes.Interface
	running []*process
}

// startMirrors starts every side and waits until each of them works.
func (b *bench) startMirrors(ctx context.Context) (*mirrors, error) {
	m := &mirrors{b: b, client: b.client}
	if err := m.begin(ctx); err != nil {
		return nil, err
	}
	return m, nil
}

func (m *mirrors) begin(ctx context.Context) (err error) {
	if err := m.b.makeNamespaces(ctx, sourceNamespace, mirrorNamespace); err != nil {
		return err
	}
	if m.witness, err = m.b.observe(ctx, mirrorNamespace); err != nil {
		return err
	}
	s, err := m.b.startStarling(ctx, "mirror", mirrorTree())
	if err != nil {
		return err
	}
	m.running = append(m.running, s.process)
	if err := s.ready(ctx); err != nil {
		return err
	}
	for _, side := range []string{sideApply, sideCreate} {
		p, err := m.b.startLoop(ctx, side)
		if err != nil {
			return err
		}
		m.running = append(m.running, p)
	}
	// Connections, caches and the server's own warming up are not measured.
	for i := range 20 {
		for _, side := range sides() {
			if _, err := m.one(ctx, side, fmt.Sprintf("warm-%d", i)); err != nil {
				return err
			}
		}
	}
	return nil
}

func (m *mirrors) end(ctx context.Context) error {
	m.stop()
	for _, p := range m.running {
		if err := p.stop(); err != nil {
			return err
		}
	}
	return m.b.removeNamespaces(ctx, sourceNamespace, mirrorNamespace)
}

// make creates a source of a side; its mirror has the same name.
func (m *mirrors) make(ctx context.Context, side, name string) error {
	_, err := m.client.CoreV1().ConfigMaps(sourceNamespace).Create(ctx, &corev1.ConfigMap{
		ObjectMeta: metav1.ObjectMeta{Name: name, Labels: map[string]string{sideLabel: side}},
		Data:       map[string]string{"text": strings.Repeat("x", 200)},
	}, metav1.CreateOptions{})
	return err
}

// one makes one source and returns how long its mirror took: from the request that
// makes the source to the news of the mirror, both at the same client.
func (m *mirrors) one(ctx context.Context, side, name string) (time.Duration, error) {
	name = side + "-" + name
	began := time.Now()
	if err := m.make(ctx, side, name); err != nil {
		return 0, err
	}
	seen, err := m.all(ctx, []string{name})
	return seen.Sub(began), err
}

// burstWriters is how many clients make the sources of a burst at once.
const burstWriters = 16

// burst makes n sources as fast as it can and returns the time from the first
// request to the last mirror.
func (m *mirrors) burst(ctx context.Context, side string, round, n int) (time.Duration, error) {
	names := make([]string, n)
	for i := range names {
		names[i] = fmt.Sprintf("%s-burst-%d-%d", side, round, i)
	}
	began := time.Now()
	if err := parallel(ctx, burstWriters, n, func(i int) error { return m.make(ctx, side, names[i]) }); err != nil {
		return 0, err
	}
	last, err := m.all(ctx, names)
	return last.Sub(began), err
}

// measureEvents times one event after the other, all sides in turn, so that what
// else the machine does hits them alike.
func measureEvents(ctx context.Context, b *bench) error {
	n := b.size(500, 200, 50)
	m, err := b.startMirrors(ctx)
	if err != nil {
		return err
	}
	took := map[string][]time.Duration{}
	for i := range n {
		for _, side := range sides() {
			d, err := m.one(ctx, side, fmt.Sprintf("event-%d", i))
			if err != nil {
				return err
			}
			took[side] = append(took[side], d)
		}
	}
	for _, at := range parts() {
		hook := percentile(took[sideHook], at.part)
		for _, side := range []string{sideApply, sideCreate} {
			bare := percentile(took[side], at.part)
			ratio := float64(hook) / float64(bare)
			b.table.add(row{
				what:     fmt.Sprintf("one event, %s of %d, beside %s", at.name, n, strings.ReplaceAll(side, "-", " ")),
				starling: millis(hook), bare: millis(bare), ratio: times(ratio), aim: verdict("≤ 1.3×", ratio <= 1.3),
			})
		}
	}
	return m.end(ctx)
}

// measureBurst lets the sides take turns, each first in as many rounds as the
// others. Its ratios are those of one round each, as what else the machine does
// moves the rates from round to round.
func measureBurst(ctx context.Context, b *bench) error {
	n, rounds := b.size(1000, 300, 100), b.size(6, 3, 3)
	m, err := b.startMirrors(ctx)
	if err != nil {
		return err
	}
	rates, ratios := map[string][]float64{}, map[string][]float64{}
	for round := range rounds + 1 {
		rate := map[string]float64{}
		for turn := range sides() {
			side := sides()[(round+turn)%len(sides())]
			took, err := m.burst(ctx, side, round, n)
			if err != nil {
				return err
			}
			rate[side] = float64(n) / took.Seconds()
			if err := pause(ctx, time.Second/2); err != nil {
				return err
			}
		}
		b.say("burst %d: %s %s, %s %s, %s %s", round, sideHook, perSecond(rate[sideHook]),
			sideApply, perSecond(rate[sideApply]), sideCreate, perSecond(rate[sideCreate]))
		if round == 0 {
			continue // the server grows to its size
		}
		for _, side := range sides() {
			rates[side] = append(rates[side], rate[side])
			ratios[side] = append(ratios[side], rate[sideHook]/rate[side])
		}
	}
	for _, side := range []string{sideApply, sideCreate} {
		ratio := percentile(ratios[side], 0.5)
		b.table.add(row{
			what:     fmt.Sprintf("burst of %d, beside %s", n, strings.ReplaceAll(side, "-", " ")),
			starling: perSecond(percentile(rates[sideHook], 0.5)), bare: perSecond(percentile(rates[side], 0.5)),
			ratio: times(ratio), aim: verdict("≥ 0.8×", ratio >= 0.8),
		})
	}
	return m.end(ctx)
}

// part is a percentile by its name.
type part struct {
	name string
	part float64
}

func parts() []part { return []part{{"p50", 0.5}, {"p99", 0.99}} }

// percentile returns the smallest value that at least this part of all values does
// not exceed.
func percentile[T time.Duration | float64](values []T, part float64) T {
	sorted := slices.Sorted(slices.Values(values))
	i := int(part*float64(len(sorted))+0.999999) - 1
	return sorted[min(max(i, 0), len(sorted)-1)]
}
