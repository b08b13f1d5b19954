package main

import (
	"context"
	"fmt"
	"runtime"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
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
		{"v1", "ConfigMap"}, {"v1", "Secret"}, {"v1", "Service"}, {"v1", "ServiceAccount"}, {"v1", "Namespace"}, {"v1", "Node"},
		{"apps/v1", "Deployment"}, {"rbac.authorization.k8s.io/v1", "Role"}, {"rbac.authorization.k8s.io/v1", "ClusterRole"},
		{"scheduling.k8s.io/v1", "PriorityClass"},
	}
}

// resultNames are the ConfigMaps that the fifty hooks write, one each.
func resultNames() []string {
	var names []string
	for _, kind := range startKinds() {
		for i := range hooksPerKind {
			names = append(names, fmt.Sprintf("%s-%d", strings.ToLower(kind[1]), i))
		}
	}
	return names
}

// startTree is a module a kind, each with hooks that watch it in the whole cluster and
// write one ConfigMap.
func startTree() map[string]string {
	tree := map[string]string{}
	for _, kind := range startKinds() {
		name := strings.ToLower(kind[1])
		tree[name+"/module.star"] = `module(
    enabled = True,
    grants = [
        grant("v1", "ConfigMap", verbs = ["apply"], namespaces = ["` + startNamespace + `"]),
        grant("v1", "Secret", verbs = ["list", "watch"], namespaces = ["*"]), # for the hooks that watch them
    ],
)
`
		for i := range hooksPerKind {
			tree[fmt.Sprintf("%s/hooks/result%d.star", name, i)] = fmt.Sprintf(`def result(ctx):
    k8s.apply({
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": {"name": "%s-%d", "namespace": "%s", "labels": {"bench": "start"}},
        "data": {"first": ctx.snapshots["all"][0] if ctx.snapshots["all"] else ""},
    })

hook(result, on = [k8s.watch(%q, %q, name = "all", filter = lambda o: o.metadata.name)])
`, name, i, startNamespace, kind[0], kind[1])
		}
	}
	return tree
}

// measureStart times how long fifty hooks need from the start of the process to what they
// are for: the first object that one of them writes, and the last.
func measureStart(ctx context.Context, b *bench) error {
	starts := 5
	if b.quick {
		starts = 1
	}
	if err := b.makeNamespaces(ctx, startNamespace); err != nil {
		return err
	}
	var firsts, lasts []time.Duration
	for range starts {
		w, err := b.observe(ctx, startNamespace)
		if err != nil {
			return err
		}
		s, err := b.startStarling(ctx, "start", startTree())
		if err != nil {
			return err
		}
		last, err := w.all(ctx, resultNames())
		if err != nil {
			return err
		}
		firsts, lasts = append(firsts, w.first(resultNames()).Sub(s.began)), append(lasts, last.Sub(s.began))
		w.stop()
		// This gives the lease back.
		if err := s.stop(); err != nil {
			return err
		}
		if err := b.client.CoreV1().ConfigMaps(startNamespace).DeleteCollection(ctx, metav1.DeleteOptions{},
			metav1.ListOptions{LabelSelector: "bench=start"}); err != nil {
			return err
		}
	}
	b.table.add(row{
		what:     fmt.Sprintf("%d hooks on %d kinds, from the start of the process to the first result, p50 of %d", len(resultNames()), len(startKinds()), starts),
		starling: seconds(percentile(firsts, 0.5)),
	})
	b.table.add(row{what: "… to the result of the last hook", starling: seconds(percentile(lasts, 0.5))})
	return b.removeNamespaces(ctx, startNamespace)
}

// measureRest adds up the processor time of fifty hooks that have nothing to do, beside a
// starling without hooks, which has its lease to keep.
func measureRest(ctx context.Context, b *bench) error {
	if runtime.GOOS != "linux" {
		b.table.add(row{what: "processor at rest", starling: "read on Linux only"})
		return nil
	}
	lasts := 60 * time.Second
	if b.quick {
		lasts = 10 * time.Second
	}
	if err := b.makeNamespaces(ctx, startNamespace); err != nil {
		return err
	}
	trees := map[string]map[string]string{"rest": startTree(), "idle": {"idle/module.star": "module(enabled = True)\n"}}
	running := map[string]*starling{}
	for name, tree := range trees {
		s, err := b.startStarling(ctx, name, tree)
		if err != nil {
			return err
		}
		if err := s.ready(ctx); err != nil {
			return err
		}
		running[name] = s
	}
	part, took, err := atRest(ctx, running, lasts)
	if err != nil {
		return err
	}
	b.table.add(row{
		what:     fmt.Sprintf("processor at rest in %.0f s, %d hooks on %d kinds, beside none", took.Seconds(), len(resultNames()), len(startKinds())),
		starling: percent(part["rest"]), bare: percent(part["idle"]), aim: verdict("≤ 0.1 % more", part["rest"]-part["idle"] <= restAim),
	})
	for _, s := range running {
		if err := s.stop(); err != nil {
			return err
		}
	}
	return b.removeNamespaces(ctx, startNamespace)
}

// atRest returns the part of one core that each starling takes while no hook runs, and
// over how long that was. A hook that runs meanwhile is an error.
func atRest(ctx context.Context, running map[string]*starling, lasts time.Duration) (map[string]float64, time.Duration, error) {
	before := map[string]int{}
	for name, s := range running {
		if err := s.recorded(ctx); err != nil {
			return nil, 0, err
		}
		var err error
		if before[name], err = s.runs(); err != nil {
			return nil, 0, err
		}
	}
	began := time.Now()
	used, err := cpuOf(running)
	if err != nil {
		return nil, 0, err
	}
	if err := pause(ctx, lasts); err != nil {
		return nil, 0, err
	}
	after, err := cpuOf(running)
	if err != nil {
		return nil, 0, err
	}
	took := time.Since(began)
	part := map[string]float64{}
	for name, s := range running {
		part[name] = float64(after[name]-used[name]) / float64(took)
		runs, err := s.runs()
		if err != nil {
			return nil, 0, err
		}
		if runs != before[name] {
			return nil, 0, fmt.Errorf("the hooks of %s did not rest: %d runs in %s", name, runs-before[name], took.Round(time.Second))
		}
	}
	return part, took, nil
}

// recorded waits until a starling has recorded what its hooks did at the start: that takes
// little of the processor, and so its time.
func (s *starling) recorded(ctx context.Context) error {
	for before := -1; ; {
		if err := s.b.settle(ctx); err != nil {
			return err
		}
		now, err := s.counted("starling_records_total")
		if err != nil || now == before {
			return err
		}
		before = now
	}
}

// cpuOf is the processor time of each process so far.
func cpuOf(running map[string]*starling) (map[string]time.Duration, error) {
	out := map[string]time.Duration{}
	for name, s := range running {
		used, err := s.cpu()
		if err != nil {
			return nil, err
		}
		out[name] = used
	}
	return out, nil
}
