package main

import (
	"fmt"
	"strings"
	"time"
)

const (
	scaleSources = "bench-scale"
	scaleInOne   = 10 // hooks of one module
)

// load is one thing that one process carries many of. Times are those of the processor, so that other work on
// the machine changes them little.
type load struct {
	name, what string
	tree       map[string]string
	// plays are served by the bench; nil: the API server has all that is watched.
	plays *played
	// runs are those after which the start is over, events how many changes follow, each of which is one run
	// more. 0 runs: readiness is the end of the start.
	runs, events int
}

// loads are the measures; size makes them small with -quick.
func loads(size func(n int) int) []load {
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
		return map[string]string{"scale/module.star": plainModule, "scale/hooks/look.star": text}
	}
	many := map[string]string{}
	for i := range size(2000) / scaleInOne {
		name := fmt.Sprintf("scale%d", i)
		many[name+"/module.star"] = plainModule
		many[name+"/hooks/look.star"] = "def look(ctx):\n    pass\n\n" +
			`[hook(look, name = "look%d" % i, on = [` + sources + fmt.Sprintf("]) for i in range(%d)]\n", scaleInOne)
	}
	const all = `], for_each = "all"`
	namespaces := `k8s.watch("v1", "Namespace", name = "all",
    filter = lambda o: {"name": o.metadata.name, "team": o.metadata.labels.get("team")})`
	state := `ctx.state.set("stamp", ctx.object["stamp"])`
	values := `values.set(["by", ctx.key], {"stamp": ctx.object["stamp"]})`
	return []load{
		{name: "nothing", what: "one module without a hook", tree: map[string]string{"scale/module.star": plainModule}},
		{
			name: "objects", what: fmt.Sprintf("%d watched objects of 1 KiB in one snapshot", size(100_000)),
			tree:  one(hook(`log.debug("seen", n = len(ctx.snapshots["all"]))`, sources+"]")),
			plays: configMaps(size(100_000)), runs: 1,
		},
		{
			name: "each-objects", what: fmt.Sprintf("for_each over %d watched objects", size(100_000)),
			tree:  one(hook("pass", sources+all)),
			plays: configMaps(size(100_000)), runs: size(100_000), events: size(10_000),
		},
		{
			name: "namespaces", what: fmt.Sprintf("for_each over %d namespaces", size(10_000)),
			tree: one(hook("pass", namespaces+all)), runs: size(10_000),
			plays: &played{path: "/api/v1/namespaces", apiVersion: "v1", kind: "Namespace", name: "team", count: size(10_000)},
		},
		{
			name: "state", what: fmt.Sprintf("for_each with state of %d keys", size(10_000)),
			tree:  one(hook(state, sources+all+", parallel = 4")),
			plays: configMaps(size(10_000)), runs: size(10_000), events: size(2_000),
		},
		{
			name: "keys", what: fmt.Sprintf("for_each with values and state of %d keys", size(10_000)),
			tree:  one(hook(values+"\n    "+state, sources+all+", parallel = 4")),
			plays: configMaps(size(10_000)), runs: size(10_000), events: size(2_000),
		},
		{
			name: "hooks", what: fmt.Sprintf("%d hooks of %d modules on one watch of 100 objects", size(2000), len(many)/2),
			tree: many, plays: configMaps(100), runs: size(2000),
		},
	}
}

// scale measures what one process carries. Objects are played where the API server would need more of
// the machine than Starling.
func (b *bench) scale() {
	if b.needsLinux("what one process carries") {
		return
	}
	b.namespaces(scaleSources)
	r := b.startRelay()
	for _, m := range loads(func(n int) int { return b.size(n, n/100) }) {
		b.scope(func() { r.carry(m) })
	}
}

func (r *relay) carry(m load) {
	b := r.b
	r.plays(m.plays)
	r.take()
	add := func(what, value string) {
		b.add(what, value, "")
		b.say("%s: %s", what, value)
	}
	s := r.begin("scale-"+m.name, m.tree)
	s.ready()
	s.ran(m.runs, time.Second/2)
	r.quiet(s) // what is kept is written
	used := b.cpu(s.Process())
	add(m.what+", processor time of the start", seconds(used))
	add("… requests to the API server", fmt.Sprint(len(r.take())))

	b.settle()
	r.take()
	lasts := b.lasts(30, 1)
	used = b.cpuOf(func() { b.pause(lasts) }, s.Process())
	memory := b.memory(s.PID())
	add(fmt.Sprintf("… resident memory without the program file (peak %s)", mebibytes(memory.Peak)),
		mebibytes(memory.Own()))
	add(fmt.Sprintf("… at rest for %s, of a core", wholeSeconds(lasts)), percent(used.Seconds()/lasts.Seconds()))
	add("… requests meanwhile but those for the Lease", fmt.Sprint(len(r.take())))
	if m.events == 0 {
		return
	}

	runs := s.runs()
	used = b.cpuOf(func() {
		for i := range m.events {
			m.plays.change(i)
			if i%50 == 49 {
				b.pause(10 * time.Millisecond)
			}
		}
		s.ran(runs+m.events, time.Second/2)
		r.quiet(s)
	}, s.Process())
	add(fmt.Sprintf("… processor time of one event and its run, mean of %d", m.events),
		micros(used/time.Duration(m.events)))
	add("… requests of these events", fmt.Sprint(len(r.take())))
}
