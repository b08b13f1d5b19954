package main

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/starling-operator/starling/e2e/cluster"
)

const (
	eachSources = "bench-each"
	eachMirrors = "bench-each-mirrors"
	// eachWorkers is how many objects either side works on at a time: the default of
	// for_each.
	eachWorkers = 4
	// eachRequests is how many requests one event of a child may cost.
	eachRequests = 2
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
		{
			name: "each-state", stateful: true, aim: 1.3,
			what: "for_each with values and state over %d objects, first pass from the start of the process",
		},
	}
}

// tree is a small controller: a mirror for each ConfigMap with the label.
func (k eachKind) tree() map[string]string {
	are := map[bool]string{true: "True", false: "False"}
	return map[string]string{
		"each/module.star": moduleWith(mayApply(eachMirrors)),
		"each/hooks/mirror.star": text("each.star",
			"STATEFUL", are[k.stateful], "CHILDREN", are[k.children], "WORKERS", fmt.Sprint(eachWorkers)),
	}
}

// pair measures a hook or controller of Starling and one with client-go beside each other, each on its own objects.
type pair struct {
	b       *bench
	objects int
	stamps  int // so far, of all changes
	// seen says what has come of the objects.
	seen *witness
}

func pairSides() []string { return []string{sideHook, sideController} }

func objectName(side string, i int) string { return fmt.Sprintf("%s-%d", side, i) }

// names are those of the objects of a side.
func (x *pair) names(side string) []string {
	names := make([]string, x.objects)
	for i := range names {
		names[i] = objectName(side, i)
	}
	return names
}

// spread is the name of an object of a side, another one at each step: of all objects, or of one part of several.
func (x *pair) spread(side string, n, part, parts int) string {
	size := x.objects / parts
	return objectName(side, n*7919%size+part*size)
}

// makeAll makes the objects of both sides.
func (x *pair) makeAll(create func(side, name string) error) {
	for _, side := range pairSides() {
		x.b.each(writers, x.objects, func(i int) error {
			name := objectName(side, i)
			if err := create(side, name); err != nil {
				return fmt.Errorf("object %s: %w", name, err)
			}
			return nil
		})
	}
}

// startSide starts a side of a round.
type startSide func(side string) *cluster.Process

// rounds times the first pass of both sides, from the start of the process to its last object, in rounds in which
// either side is first as often as the other, and adds the middle. begin makes a round ready; of the last one both
// sides go on running.
func (x *pair) rounds(rounds int, what string, aim float64, begin func(round int) startSide) {
	sum := map[string]time.Duration{}
	for round := range rounds {
		sides := pairSides()
		if round%2 == 1 {
			slices.Reverse(sides)
		}
		one := func() {
			start := begin(round)
			for _, side := range sides {
				p := start(side)
				_, last := x.seen.all(x.names(side)...)
				took := last.Sub(p.Began)
				sum[side] += took
				x.b.say("first pass of %s: %s, %s of processor time", side, seconds(took), seconds(x.b.cpu(p)))
				x.b.pause(time.Second) // the API server has its own work to end
			}
		}
		if round < rounds-1 {
			x.b.scope(one)
		} else {
			one()
		}
	}
	n := time.Duration(rounds)
	addBeside(x.b, what, seconds, sum[sideHook]/n, sum[sideController]/n, aim)
}

// changeOne says how one object of a side is changed at a step, and what is seen when that is over.
type changeOne func(side string, n int) (do func() error, until string)

// changes has somebody change one object of a side after the other, the sides in turn, until that is seen, and adds
// the rows with their aims.
func (x *pair) changes(what string, n int, w *witness, change changeOne, p50, p99 float64) {
	took := map[string][]time.Duration{}
	for i := range n {
		for _, side := range pairSides() {
			do, until := change(side, i)
			took[side] = append(took[side], w.after(do, until))
		}
	}
	x.b.addParts(what, took[sideHook], took[sideController], p50, p99)
}

// nextStamp returns one that no object has had.
func (x *pair) nextStamp() string {
	x.stamps++
	return strconv.Itoa(x.stamps)
}

// addEvents counts the runs and the requests that one event of a child leads to: at most one run, and at least as many
// as least.
func (x *pair) addEvents(s *starling, n int, what string, least float64, change func(n int) error) {
	s.rests()
	var runs, asked []float64
	for i := range n {
		costs := s.costs(func() {
			x.b.check(change(i))
			x.b.pause(time.Second / 2)
		}, runsMetric, requestsMetric)
		runs, asked = append(runs, float64(costs[0])), append(asked, float64(costs[1]))
	}
	// Renewing the Lease is no part of the middle.
	most, requests := slices.Max(runs), middle(asked)
	x.b.add(what+", runs, at most", fmt.Sprint(most), verdict("1", most >= least && most <= 1))
	x.b.add("… requests, p50", fmt.Sprint(requests), verdict(fmt.Sprintf("≤ %d", eachRequests), requests <= eachRequests))
}

// forEach times for_each over many objects, without and with values and state.
func (b *bench) forEach() {
	x := &pair{b: b, objects: b.size(5000, 200)}
	b.namespaces(eachSources, eachMirrors)
	x.makeAll(func(side, name string) error {
		data := map[string]string{"text": strings.Repeat("x", 200), stampKey: "0"}
		return b.createConfigMap(eachSources, name, sideLabel, side, data)
	})
	for _, kind := range eachKinds() {
		b.scope(func() { x.measure(kind) })
	}
	if !b.far {
		b.scope(x.measureChildren)
	}
}

// measure times the first pass and the way of one change. Far away, where the distance is most of it, and with state
// one round must do: each takes long. Each round has a name, so that none finds what an earlier one has kept.
func (x *pair) measure(kind eachKind) {
	rounds := x.b.sizeFar(2, 1, 2)
	if kind.stateful {
		rounds = 1
	}
	x.rounds(rounds, fmt.Sprintf(kind.what, x.objects), kind.aim, func(round int) startSide {
		name := fmt.Sprintf("%s-%d", kind.name, round)
		if x.b.far {
			name += "-far"
		}
		x.clearLater()
		x.seen = x.b.observe(eachMirrors)
		return func(side string) *cluster.Process {
			if side == sideHook {
				return x.b.start(instance{name: name, tree: kind.tree()}).Process()
			}
			args := []string{"-workers", strconv.Itoa(eachWorkers)}
			if kind.stateful {
				args = append(args, "-state", name)
			}
			return x.b.startBare(side, args...)
		}
	})
	x.changes("… one change, %s", x.b.size(200, 20), x.seen, func(side string, n int) (func() error, string) {
		name, stamp := x.spread(side, n, 0, 1), x.nextStamp()
		return func() error {
			return x.b.patchConfigMap(eachSources, name, `{"data":{%q:%q}}`, stampKey, stamp)
		}, stamped(name, stamp)
	}, kind.aim, 0)
}

// clearLater takes the mirrors away once the processes have ended.
func (x *pair) clearLater() {
	x.b.Cleanup(func() { x.b.deleteConfigMaps(eachMirrors, "bench=each") })
}

// measureChildren has the hook watch its mirrors, too, and changes one after the other.
func (x *pair) measureChildren() {
	x.clearLater()
	w := x.b.observe(eachMirrors)
	s := x.b.start(instance{name: "each-children", tree: eachKind{children: true}.tree()})
	w.all(x.names(sideHook)...)
	what := fmt.Sprintf("one event of a child among %d objects", x.objects)
	x.addEvents(s, x.b.size(40, 5), what, 1, func(n int) error {
		return x.b.patchConfigMap(eachMirrors, x.spread(sideHook, n, 0, 1), `{"metadata":{"annotations":{"note":"%d"}}}`, n)
	})
}
