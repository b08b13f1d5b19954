//go:build e2e

package main

import (
	"os"
	"strings"
	"testing"
)

// The bare sides of a section are this program.
func TestMain(m *testing.M) {
	if is, err := runBare(os.Args[1:]); is {
		os.Exit(exitCode(err))
	}
	os.Exit(m.Run())
}

// With -quick the sections of many modules measure all of their rows.
func TestQuick(t *testing.T) {
	measure(t, "heal,each,thousand,global,controllers",
		"a deleted Deployment of one of 10 modules", "… an edited field of it", "10 modules at rest for 3 s, requests",
		"memory per 10000 watched objects",
		"for_each over 200 objects", "for_each with values and state over 200 objects", "… one change, p50",
		"one event of a child among 200 objects, runs", "… requests, p50",
		"30 modules of one object and one watch, first install", "30 modules of one object and one watch, unchanged, from the lease",
		"… resident memory with one module", "… processor at rest", "… one event, p50 of 20, beside 10 modules",
		"a global value that one of 30 charts reads", "… releases that were looked at", "… requests for the other modules",
		"… until the release has its revision",
		"a controller of 50 parents with 3 children each, first pass", "… one event of a child, runs", "… one parent changed, to its child, p50",
		"… one child edited by hand, to its repair, p50", "… restart with nothing changed", "… memory per 10000 children", "desired of examples/application, p50 of 5",
		"… restart, requests that are no lists", "… at rest for 3 s, requests")
}

// The same for long ways to the API server, and for what one process carries. It takes four minutes, which make e2e
// spares.
func TestQuickFar(t *testing.T) {
	measure(t, "distance,scale",
		"10 ms away: one event, p50", "10 ms away: burst of", "10 ms away: for_each over", "10 ms away: for_each with values and state",
		"10 ms away: 10 modules of 4 objects", "10 ms away: k8s.apply_set of 200 members, all new", "… one changed, requests",
		"one module without a hook, processor time of the start", "… requests meanwhile but those for the Lease", "… at rest for 1 s",
		"1000 watched objects of 1 KiB in one snapshot", "for_each over 1000 watched objects", "… processor time of one event and its run",
		"for_each over 100 namespaces", "for_each with state of 100 keys", "for_each with values and state of 100 keys", "20 hooks of 2 modules")
}

// measure runs sections, and wants these rows with numbers.
func measure(t *testing.T, names string, want ...string) {
	t.Chdir("..")
	chosen, err := choose(sections(), names)
	if err != nil {
		t.Fatal(err)
	}
	var out strings.Builder
	if err := run(&out, chosen, true, 0); err != nil {
		t.Fatal(err)
	}
	t.Log("\n" + out.String())
	rows := strings.Split(out.String(), "\n")
	for _, want := range want {
		found := false
		for _, row := range rows {
			if rest, ok := strings.CutPrefix(row, want); ok {
				found = found || len(strings.Fields(rest)) > 0
			}
		}
		if !found {
			t.Errorf("there is no row %q", want)
		}
	}
}
