package main

import (
	"context"
	"fmt"
	"strings"
	"time"
)

const (
	scaleSources = "bench-scale"
	scaleInOne   = 10 // hooks of one module
)

// scale is one thing that one process carries many of. Times are those of the processor, so that other work on
// the machine changes them little.
type scale struct {
	name, what string
	tree       map[string]string
	// plays are served by the bench; nil: the API server has all that is watched.
	plays *played
	// runs are those after which the start is over, events how many changes follow, each of which is one run
	// more. 0 runs: readiness is the end of the start.
	runs, events int
}

// scales are the measures, a hundredth of each if quick.
func scales(quick bool) []scale {
	size := func(n int) int {
		if quick {
			return n / 100
		}
		return n
	}
	configMaps := func(n int) *played {
		return &played{path: "/api/v1/namespaces/" + scaleSources + "/configmaps", apiVersion: "v1", kind: "ConfigMap",
			namespace: scaleSources, name: "object", text: strings.Repeat("x", 1024), count: n}
	}
	const sources = `k8s.watch("v1", "ConfigMap", name = "all", namespaces = ["` + scaleSources + `"],
    filter = lambda o: {"name": o.metadata.name, "stamp": o.data["stamp"]})`
	hook := func(body, rest string) string {
		return "def look(ctx):\n    " + body + "\n\nhook(look, on = [" + rest + ")\n"
	}
	one := func(text string) map[string]string {
		return map[string]string{"scale/module.star": "module(enabled = True)\n", "scale/hooks/look.star": text}
	}
	many := map[string]string{}
	for i := range size(2000) / scaleInOne {
		name := fmt.Sprintf("scale%d", i)
		many[name+"/module.star"] = "module(enabled = True)\n"
		many[name+"/hooks/look.star"] = "def look(ctx):\n    pass\n\n[hook(look, name = \"look%d\" % i, on = [" + sources + "]) for i in range(" + fmt.Sprint(scaleInOne) + ")]\n"
	}
	namespaces := &played{path: "/api/v1/namespaces", apiVersion: "v1", kind: "Namespace", name: "team", count: size(10_000)}
	return []scale{
		{name: "objects", what: fmt.Sprintf("%d watched objects of 1 KiB in one snapshot", size(100_000)),
			tree: one(hook(`log.debug("seen", n = len(ctx.snapshots["all"]))`, sources+"]")), plays: configMaps(size(100_000)), runs: 1},
		{name: "each-objects", what: fmt.Sprintf("for_each over %d watched objects", size(100_000)),
			tree: one(hook("pass", sources+`], for_each = "all"`)), plays: configMaps(size(100_000)), runs: size(100_000), events: size(10_000)},
		{name: "namespaces", what: fmt.Sprintf("for_each over %d namespaces", size(10_000)),
			tree:  one(hook("pass", `k8s.watch("v1", "Namespace", name = "all", filter = lambda o: {"name": o.metadata.name, "team": o.metadata.labels.get("team")})], for_each = "all"`)),
			plays: namespaces, runs: size(10_000)},
		{name: "state", what: fmt.Sprintf("for_each with state of %d keys", size(10_000)),
			tree: one(hook(`ctx.state.set("stamp", ctx.object["stamp"])`, sources+`], for_each = "all", parallel = 4`)), plays: configMaps(size(10_000)), runs: size(10_000), events: size(2_000)},
		{name: "keys", what: fmt.Sprintf("for_each with values and state of %d keys", size(10_000)),
			tree: one(hook(`values.set(["by", ctx.key], {"stamp": ctx.object["stamp"]})
    ctx.state.set("stamp", ctx.object["stamp"])`, sources+`], for_each = "all", parallel = 4`)), plays: configMaps(size(10_000)), runs: size(10_000), events: size(2_000)},
		{name: "hooks", what: fmt.Sprintf("%d hooks of %d modules on one watch of 100 objects", size(2000), size(2000)/scaleInOne),
			tree: many, plays: configMaps(100), runs: size(2000)},
	}
}

// measureScale measures what one process carries. Objects are played where the API server would need more of
// the machine than Starling.
func measureScale(ctx context.Context, b *bench) error {
	if err := b.makeNamespaces(ctx, scaleSources); err != nil {
		return err
	}
	r, err := b.startRelay()
	if err != nil {
		return err
	}
	defer r.close()
	defer b.through(r.kubeconfig)()
	for _, s := range append([]scale{{name: "nothing", what: "one module without a hook", tree: map[string]string{"scale/module.star": "module(enabled = True)\n"}}}, scales(b.quick)...) {
		if err := b.measureOneScale(ctx, r, s); err != nil {
			return fmt.Errorf("%s: %w", s.name, err)
		}
	}
	return nil
}

func (b *bench) measureOneScale(ctx context.Context, r *relay, m scale) error {
	r.mu.Lock()
	r.plays = m.plays
	r.mu.Unlock()
	r.take()
	s, err := b.startStarling(ctx, "scale-"+m.name, m.tree)
	if err != nil {
		return err
	}
	if err := s.ready(ctx); err != nil {
		return err
	}
	if err := s.ran(ctx, m.runs); err != nil {
		return err
	}
	if err := s.quiet(ctx, r); err != nil { // what is kept is written
		return err
	}
	used, err := s.cpu()
	if err != nil {
		return err
	}
	asked := len(r.take())
	b.addScale(m.what+", processor time of the start", seconds(used))
	b.addScale("… requests to the API server", fmt.Sprint(asked))
	if err := b.settle(ctx); err != nil {
		return err
	}
	if err := b.restOf(ctx, s, r); err != nil {
		return err
	}
	if m.events > 0 {
		if err := b.eventsOf(ctx, s, r, m); err != nil {
			return err
		}
	}
	return s.stop()
}

// ran waits until hooks have had so many runs.
func (s *starling) ran(ctx context.Context, n int) error {
	for late := time.Now().Add(patience); ; {
		runs, err := s.runs()
		if err != nil || runs >= n {
			return err
		}
		if time.Now().After(late) {
			return fmt.Errorf("%d of %d runs within %s", runs, n, patience)
		}
		if err := pause(ctx, time.Second/2); err != nil {
			return err
		}
	}
}

// restOf adds the memory of a process that has nothing to do, and what it costs meanwhile.
func (b *bench) restOf(ctx context.Context, s *starling, r *relay) error {
	lasts := 30 * time.Second
	if b.quick {
		lasts = time.Second
	}
	r.take()
	before, err := s.cpu()
	if err != nil {
		return err
	}
	if err := pause(ctx, lasts); err != nil {
		return err
	}
	after, err := s.cpu()
	if err != nil {
		return err
	}
	m, err := s.memory()
	if err != nil {
		return err
	}
	b.addScale(fmt.Sprintf("… resident memory without the program file (peak %s)", mebibytes(m.peak)), mebibytes(m.now-m.file))
	b.addScale(fmt.Sprintf("… at rest for %.0f s, of a core", lasts.Seconds()), percent((after-before).Seconds()/lasts.Seconds()))
	b.addScale("… requests meanwhile but those for the Lease", fmt.Sprint(len(r.take())))
	return nil
}

// eventsOf changes objects, fifty at a time, and adds what each change costs.
func (b *bench) eventsOf(ctx context.Context, s *starling, r *relay, m scale) error {
	runs, err := s.runs()
	if err != nil {
		return err
	}
	before, err := s.cpu()
	if err != nil {
		return err
	}
	for i := range m.events {
		m.plays.change(i)
		if i%50 == 49 {
			if err := pause(ctx, 10*time.Millisecond); err != nil {
				return err
			}
		}
	}
	if err := s.ran(ctx, runs+m.events); err != nil {
		return err
	}
	if err := s.quiet(ctx, r); err != nil {
		return err
	}
	after, err := s.cpu()
	if err != nil {
		return err
	}
	each := (after - before) / time.Duration(m.events)
	b.addScale(fmt.Sprintf("… processor time of one event and its run, mean of %d", m.events), micros(each))
	b.addScale("… requests of these events", fmt.Sprint(len(r.take())))
	return nil
}

func (b *bench) addScale(what, value string) {
	b.table.add(row{what: what, starling: value})
	b.say("%s: %s", what, value)
}
