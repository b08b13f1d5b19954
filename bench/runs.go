package main

import (
	"fmt"
	"strings"
	"time"
)

const runsNamespace = "bench-runs"

// snapshotSize is how many objects the snapshot of a hook has that runs again and again.
const snapshotSize = 1000

// again are hooks of one line whose runs ask for the next ones as soon as they may: in
// 100 ms. They are so many, or their objects are, that one is always due.
type again struct {
	name, what, body string
	each, empty      int // hooks with for_each, and without
}

func agains() []again {
	snapshot := fmt.Sprintf("runs a second of three empty hooks with for_each over %d objects", snapshotSize)
	reads := `seen = [o for o in ctx.snapshots["all"] if o["text"] == "x"]`
	return []again{
		{"snapshot", snapshot, "pass", 3, 0},
		{"reads", "… that read the snapshot object by object", reads, 3, 0},
		{"empty", "runs a second of 3000 empty hooks of one module", "pass", 0, 3000},
	}
}

// againAndAgain counts the runs of hooks while one run is always due. No write
// and no request is part of them: what is measured is all that Starling does for a run.
func (b *bench) againAndAgain() {
	lasts := b.lasts(10, 1)
	b.namespaces(runsNamespace)
	b.each(writers, snapshotSize, func(i int) error {
		data := map[string]string{"text": strings.Repeat("x", 100)}
		return b.createConfigMap(runsNamespace, fmt.Sprintf("object-%d", i), "bench", "runs", data)
	})
	for _, a := range agains() {
		s := b.startReady("again-"+a.name, map[string]string{
			a.name + "/module.star": plainModule,
			a.name + "/hooks/again.star": text("again.star",
				"BODY", a.body, "EACH", fmt.Sprint(a.each), "EMPTY", fmt.Sprint(a.empty)),
		})
		// The first runs make the process as large as it gets.
		b.pause(lasts / 5)
		runs, began := 0.0, time.Now()
		used := b.cpuOf(func() { runs = float64(s.costs(func() { b.pause(lasts) }, runsMetric)[0]) }, s.Process())
		took := time.Since(began)
		if runs == 0 {
			b.Fatalf("hook again of module %s has not run", a.name)
		}
		what := a.what
		if used > 0 {
			what += fmt.Sprintf(" (%.0f µs of processor time a run)", float64(used.Microseconds())/runs)
		}
		b.add(what, perSecond(runs/took.Seconds()), "")
		b.say("%s: %s", what, perSecond(runs/took.Seconds()))
		s.stop()
	}
}
