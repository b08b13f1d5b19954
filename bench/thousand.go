package main

import (
	"encoding/json"
	"fmt"
	"time"

	"github.com/starling-operator/starling/modules/status"
)

// many is an instance with many small modules: each has a chart with one object, and a
// hook with one watch, which has a stream to itself.
type many struct {
	name    string
	modules int
}

func (m many) namespace() string { return "bench-" + m.name }

// side is the label of the sources that a module mirrors.
func (m many) side(i int) string { return m.name + "-" + moduleName(i%m.modules) }

// reader is the one module whose chart reads a global value.
func (m many) reader() string { return moduleName(m.modules / 2) }

func (m many) tree() map[string]string {
	tree := map[string]string{}
	for i := range m.modules {
		name, value := moduleName(i), ".Values.color"
		if name == m.reader() {
			value = `.Values.global.stamp | default "0"`
		}
		tree[name+"/module.star"] = moduleWith(inNamespace(m.namespace()), mayApply(mirrorNamespace))
		tree[name+"/hooks/mirror.star"] = text("mirror.star", "SIDE", m.side(i))
		addChart(tree, name, smallChart(name, "color: blue\n", text("thousand.yaml", "VALUE", value)))
	}
	return tree
}

// thousand is the name of the instance of a thousand modules.
const thousand = "thousand"

// thousand installs the modules of the sections thousand and global, once. They stay: the
// control plane ends after these sections, and to delete them takes minutes.
func (b *bench) thousand() many {
	m := many{thousand, b.size(1000, 30)}
	if b.installed {
		return m
	}
	b.check(b.createNamespace(m.namespace()))
	first := b.converge(m.name, m.modules, m.tree())
	b.installed = true
	b.add(fmt.Sprintf("%d modules of one object and one watch, first install", m.modules), seconds(first.sinceStart), "")
	b.say("%d modules, first install: %s, resident %s", m.modules, seconds(first.sinceStart), mebibytes(first.memory.Now))
	b.waitObjects(m)
	return m
}

// waitObjects lets the instance make its Module objects, so that later starts meet them.
func (b *bench) waitObjects(m many) {
	s, began := b.start(instance{name: m.name}), time.Now()
	b.waitEvery(time.Second, "each module has its Module object", func() bool {
		var list struct {
			Items []struct {
				Status struct{ State status.ModuleState }
			}
		}
		data, err := b.client.CoreV1().RESTClient().Get().AbsPath("/apis/starling.dev/v1alpha1/modules").DoRaw(b.ctx)
		if err != nil {
			return false // the definition may not be served yet
		}
		b.check(json.Unmarshal(data, &list))
		ready := 0
		for _, o := range list.Items {
			if o.Status.State == status.ModuleReady {
				ready++
			}
		}
		return ready == m.modules
	})
	b.say("%d modules: each has its Module object after %s", m.modules, seconds(time.Since(began)))
	s.stop()
}

// manyModules looks at what grows with the number of modules: the start, memory, the
// processor at rest, and the way of one event.
func (b *bench) manyModules() {
	m := b.thousand()
	b.addStarts(m)
	one, ten := many{"one", 1}, many{"ten", 10}
	b.namespaces(one.namespace(), ten.namespace(), sourceNamespace, mirrorNamespace)
	all := b.startReady(m.name, m.tree())
	single := b.startReady(one.name, one.tree())
	b.startReady(ten.name, ten.tree())
	if !b.needsLinux("… at rest") {
		b.addMemory(all, "… resident memory", 130)
		b.addMemory(single, "… resident memory with one module", 45)
		part, took := b.partAtRest(b.lasts(60, 2), all, single)
		b.addRow(row{
			what:     fmt.Sprintf("… processor at rest in %s, beside one module", wholeSeconds(took)),
			starling: percent(part[0]), bare: percent(part[1]), aim: verdict("≤ 0.3 %", part[0] <= 0.003),
		})
		b.say("%d modules at rest: %s, one: %s", m.modules, percent(part[0]), percent(part[1]))
	}
	b.addEventsAmong(m, ten)
}

// addStarts times starts in which no module has changed.
func (b *bench) addStarts(m many) {
	var lease, process []time.Duration
	for range b.size(3, 1) {
		c := b.converge(m.name, m.modules, nil)
		lease, process = append(lease, c.sinceLease), append(process, c.sinceStart)
		b.say("%d modules, unchanged: %s from the lease, %s from the start of the process",
			m.modules, seconds(c.sinceLease), seconds(c.sinceStart))
	}
	took := middle(lease)
	what := "%d modules of one object and one watch, unchanged, from the lease, p50 of %d"
	b.add(fmt.Sprintf(what, m.modules, len(lease)), seconds(took), verdict("≤ 1.5 s", took <= 1500*time.Millisecond))
	b.add("… from the start of the process", seconds(middle(process)), "")
}

// addEventsAmong times one event after the other, each of the next module, in turn with an
// instance of few modules.
func (b *bench) addEventsAmong(m, few many) {
	const warm = 20
	x, took := mirrors{b.observe(mirrorNamespace)}, map[string][]time.Duration{}
	for i := range warm + b.size(300, 20) {
		for _, side := range []many{m, few} {
			d := x.one(side.side(i+1), fmt.Sprintf("event-%d", i))
			if i >= warm {
				took[side.name] = append(took[side.name], d)
			}
		}
	}
	b.addParts(fmt.Sprintf("… one event, %%s, beside %d modules", few.modules), took[m.name], took[few.name], 1.1, 0)
}
