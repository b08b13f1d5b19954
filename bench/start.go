package main

import (
	"fmt"
	"strings"
	"time"
)

const (
	startNamespace = "bench-start"
	// hooksPerKind on ten kinds makes fifty hooks.
	hooksPerKind = 5
	// restAim is the processor time of hooks that counts as none: a thousandth of one core.
	restAim = 1e-3
)

// startKinds are ten kinds that every cluster serves, and has objects of.
func startKinds() [][2]string {
	return [][2]string{
		{"v1", "ConfigMap"}, {"v1", "Secret"}, {"v1", "Service"}, {"v1", "ServiceAccount"}, {"v1", "Namespace"},
		{"v1", "Node"}, {"apps/v1", "Deployment"},
		{"rbac.authorization.k8s.io/v1", "Role"}, {"rbac.authorization.k8s.io/v1", "ClusterRole"},
		{"scheduling.k8s.io/v1", "PriorityClass"},
	}
}

// startTree is a module a kind, each with hooks that watch it in the whole cluster and
// write one ConfigMap each, of these names.
func startTree() (tree map[string]string, results []string) {
	tree = map[string]string{}
	for _, kind := range startKinds() {
		module := strings.ToLower(kind[1])
		// The second grant is for the hooks that watch Secrets.
		tree[module+"/module.star"] = moduleWith(mayApply(startNamespace) + " + " +
			`[grant("v1", "Secret", verbs = ["list", "watch"], namespaces = ["*"])]`)
		for i := range hooksPerKind {
			name := fmt.Sprintf("%s-%d", module, i)
			results = append(results, name)
			tree[fmt.Sprintf("%s/hooks/result%d.star", module, i)] = text("start.star",
				"NAME", name, "VERSION", kind[0], "KIND", kind[1])
		}
	}
	return tree, results
}

// starts times how long fifty hooks need from the start of the process to what they
// are for: the first object that one of them writes, and the last.
func (b *bench) starts() {
	tree, results := startTree()
	b.namespaces(startNamespace)
	var firsts, lasts []time.Duration
	for range b.size(5, 1) {
		w := b.observe(startNamespace)
		s := b.start(instance{name: "start", tree: tree})
		first, last := w.all(results...)
		firsts, lasts = append(firsts, first.Sub(s.Process().Began)), append(lasts, last.Sub(s.Process().Began))
		w.stop()
		s.stop() // this gives the lease back
		b.deleteConfigMaps(startNamespace, "bench=start")
	}
	b.add(fmt.Sprintf("%d hooks on %d kinds, from the start of the process to the first result, p50 of %d",
		len(results), len(startKinds()), len(firsts)), seconds(middle(firsts)), "")
	b.add("… to the result of the last hook", seconds(middle(lasts)), "")
}

// atRest adds up the processor time of fifty hooks that have nothing to do, beside a
// starling without hooks, which has its lease to keep.
func (b *bench) atRest() {
	if b.needsLinux("processor at rest") {
		return
	}
	b.namespaces(startNamespace)
	tree, results := startTree()
	rest, idle := b.startReady("rest", tree), b.startReady("idle", map[string]string{"idle/module.star": plainModule})
	part, took := b.partAtRest(b.lasts(60, 10), rest, idle)
	b.addRow(row{
		what: fmt.Sprintf("processor at rest in %s, %d hooks on %d kinds, beside none",
			wholeSeconds(took), len(results), len(startKinds())),
		starling: percent(part[0]), bare: percent(part[1]), aim: verdict("≤ 0.1 % more", part[0]-part[1] <= restAim),
	})
}

// partAtRest returns the part of one core that each starling takes while no hook runs, and
// over how long that was. A hook that runs meanwhile is an error.
func (b *bench) partAtRest(lasts time.Duration, all ...*starling) (part []float64, took time.Duration) {
	runs, used := make([]int, len(all)), make([]time.Duration, len(all))
	for i, s := range all {
		// The recorder takes its time with the runs of the start: it gets little of the processor.
		b.waitSteady("all is recorded", b.settle, func() int { return s.counted("starling_records_total") })
		runs[i] = s.runs()
	}
	began := time.Now()
	for i, s := range all {
		used[i] = b.cpu(s.Process())
	}
	b.pause(lasts)
	for i, s := range all {
		used[i] = b.cpu(s.Process()) - used[i]
	}
	took = time.Since(began)
	for i, s := range all {
		part = append(part, used[i].Seconds()/took.Seconds())
		if n := s.runs() - runs[i]; n != 0 {
			b.Fatalf("the hooks of %s did not rest: %d runs in %s", s.name, n, took.Round(time.Second))
		}
	}
	return part, took
}
