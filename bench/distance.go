package main

import (
	"fmt"
	"strings"
	"time"

	"github.com/starling-operator/starling/e2e/cluster"
)

// distance is how much longer a request and its answer take in the section distance.
const distance = 10 * time.Millisecond

// farAway measures sections once more with the API server far away, for either side.
// Those that need no distance have their aims elsewhere.
func (b *bench) farAway() {
	_, kubeconfig := cluster.NewLongLine(b, b.kubeconfig, distance)
	defer b.through(kubeconfig)()
	b.far = true
	defer func() { b.far = false }()
	from := len(b.table.rows)
	for _, measure := range []func(){b.events, b.burst, b.forEach, b.modules} {
		b.scope(measure)
	}
	for i := range b.table.rows[from:] {
		b.table.rows[from+i].aim = ""
	}
	b.scope(b.sets)
	for i := range b.table.rows[from:] {
		if r := &b.table.rows[from+i]; !strings.HasPrefix(r.what, "…") {
			r.what = fmt.Sprintf("%d ms away: %s", distance.Milliseconds(), r.what)
		}
	}
}
