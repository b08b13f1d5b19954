package main

import (
	"fmt"
	"strings"
	"time"
)

const (
	sourceNamespace = "bench-sources"
	mirrorNamespace = "bench-mirrors"
	sideLabel       = "bench.starling.dev/side"
)

// The sides: the hook, and the bare ones of [bareSides]. Each sees the objects with its label.
const (
	sideHook       = "hook"
	sideApply      = "bare-apply"
	sideCreate     = "bare-create"
	sideSet        = "bare-set"
	sideController = "bare-controller"
	sideHealer     = "bare-healer"
	sideOwner      = "bare-owner"
	sideWebhook    = "bare-webhook"
)

// sides mirror ConfigMaps.
func sides() []string { return []string{sideHook, sideApply, sideCreate} }

// mirrors makes sources and sees mirrors.
type mirrors struct{ *witness }

// startMirrors starts every side and waits until each of them works.
func (b *bench) startMirrors() mirrors {
	b.namespaces(sourceNamespace, mirrorNamespace)
	m := mirrors{b.observe(mirrorNamespace)}
	b.startReady("mirror", map[string]string{
		"mirror/module.star":       moduleWith(mayApply(mirrorNamespace)),
		"mirror/hooks/mirror.star": text("mirror.star", "SIDE", sideHook),
	})
	for _, side := range sides()[1:] {
		b.startBareReady(side)
	}
	// Connections, caches and the server's own warming up are not measured.
	for i := range 20 {
		for _, side := range sides() {
			m.one(side, fmt.Sprintf("warm-%d", i))
		}
	}
	return m
}

// make creates a source of a side; its mirror has the same name.
func (m mirrors) make(side, name string) error {
	data := map[string]string{"text": strings.Repeat("x", 200)}
	return m.b.createConfigMap(sourceNamespace, name, sideLabel, side, data)
}

// one makes one source and returns how long its mirror took: from the request that
// makes the source to the news of the mirror, both at the same client.
func (m mirrors) one(side, name string) time.Duration {
	name = side + "-" + name
	return m.after(func() error { return m.make(side, name) }, name)
}

// burst makes n sources as fast as it can and returns the time from the first
// request to the last mirror.
func (m mirrors) burst(side string, round, n int) time.Duration {
	names := make([]string, n)
	for i := range names {
		names[i] = fmt.Sprintf("%s-burst-%d-%d", side, round, i)
	}
	return m.after(func() error {
		m.b.each(writers, n, func(i int) error { return m.make(side, names[i]) })
		return nil
	}, names...)
}

// events times one event after the other, all sides in turn, so that what
// else the machine does hits them alike.
func (b *bench) events() {
	n, m, took := b.sizeFar(500, 200, 50), b.startMirrors(), map[string][]time.Duration{}
	for i := range n {
		for _, side := range sides() {
			took[side] = append(took[side], m.one(side, fmt.Sprintf("event-%d", i)))
		}
	}
	for _, at := range parts() {
		for _, side := range sides()[1:] {
			what := "one event, %s, beside " + strings.ReplaceAll(side, "-", " ")
			b.addPart(at, what, took[sideHook], took[side], 1.3)
		}
	}
}

// burst lets the sides take turns, each first in as many rounds as the
// others. Its ratios are those of one round each, as what else the machine does
// moves the rates from round to round.
func (b *bench) burst() {
	n, rounds, m := b.sizeFar(1000, 300, 100), b.sizeFar(6, 3, 3), b.startMirrors()
	rates, ratios := map[string][]float64{}, map[string][]float64{}
	for round := range rounds + 1 {
		rate := map[string]float64{}
		for turn := range sides() {
			side := sides()[(round+turn)%len(sides())]
			rate[side] = float64(n) / m.burst(side, round, n).Seconds()
			b.pause(time.Second / 2)
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
	for _, side := range sides()[1:] {
		ratio := middle(ratios[side])
		b.addRow(row{
			what:     fmt.Sprintf("burst of %d, beside %s", n, strings.ReplaceAll(side, "-", " ")),
			starling: perSecond(middle(rates[sideHook])), bare: perSecond(middle(rates[side])),
			ratio: times(ratio), aim: verdict("≥ 0.8×", ratio >= 0.8),
		})
	}
}
