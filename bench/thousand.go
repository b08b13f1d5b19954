package main

import (
	"context"
	"encoding/json"
	"fmt"
	"runtime"
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
		name, value := moduleName(i), "{{ .Values.color }}"
		if name == m.reader() {
			value = `{{ .Values.global.` + stampKey + ` | default "0" }}`
		}
		tree[name+"/module.star"] = fmt.Sprintf("module(enabled = True, namespace = %q, %s)\n", m.namespace(), mirrorGrants)
		tree[name+"/hooks/mirror.star"] = mirrorHook(m.side(i))
		tree[name+"/chart/Chart.yaml"] = "apiVersion: v2\nname: " + name + "\nversion: 1.0.0\n"
		tree[name+"/chart/values.yaml"] = "color: blue\n"
		tree[name+"/chart/templates/configmap.yaml"] = "apiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: {{ .Release.Name }}\n" +
			"data:\n  " + stampKey + ": " + `"` + value + `"` + "\n"
	}
	return tree
}

// thousand is the name of the instance of a thousand modules.
const thousand = "thousand"

// thousand installs the modules of the sections thousand and global, once. They stay: the
// control plane ends after these sections, and to delete them takes minutes.
func (b *bench) thousand(ctx context.Context) (many, error) {
	m := many{thousand, 1000}
	if b.quick {
		m.modules = 30
	}
	if b.installed {
		return m, nil
	}
	if err := b.makeNamespaces(ctx, m.namespace()); err != nil {
		return m, err
	}
	first, err := b.converge(ctx, m.name, m.modules, m.tree())
	if err != nil {
		return m, err
	}
	b.installed = true
	b.table.add(row{
		what:     fmt.Sprintf("%d modules of one object and one watch, first install", m.modules),
		starling: seconds(first.sinceStart),
	})
	b.say("%d modules, first install: %s, resident %s", m.modules, seconds(first.sinceStart), mebibytes(first.memory.now))
	return m, b.waitObjects(ctx, m)
}

// waitObjects lets the instance make its Module objects, so that later starts meet them.
func (b *bench) waitObjects(ctx context.Context, m many) error {
	s, err := b.startStarling(ctx, m.name, nil)
	if err != nil {
		return err
	}
	began := time.Now()
	for missing := m.modules; missing > 0; {
		if err := pause(ctx, time.Second); err != nil {
			return err
		}
		var list struct {
			Items []struct {
				Status struct{ State status.ModuleState }
			}
		}
		data, err := b.client.CoreV1().RESTClient().Get().AbsPath("/apis/starling.dev/v1alpha1/modules").DoRaw(ctx)
		if err != nil {
			continue // the definition may not be served yet
		}
		if err := json.Unmarshal(data, &list); err != nil {
			return err
		}
		missing = m.modules
		for _, o := range list.Items {
			if o.Status.State == status.ModuleReady {
				missing--
			}
		}
	}
	b.say("%d modules: each has its Module object after %s", m.modules, seconds(time.Since(began)))
	return s.stop()
}

// measureThousand looks at what grows with the number of modules: the start, memory, the
// processor at rest, and the way of one event.
func measureThousand(ctx context.Context, b *bench) error {
	m, err := b.thousand(ctx)
	if err != nil {
		return err
	}
	if err := b.addStarts(ctx, m); err != nil {
		return err
	}
	one, ten := many{"one", 1}, many{"ten", 10}
	if err := b.makeNamespaces(ctx, one.namespace(), ten.namespace(), sourceNamespace, mirrorNamespace); err != nil {
		return err
	}
	running := map[string]*starling{}
	for _, x := range []many{m, one, ten} {
		s, err := b.startStarling(ctx, x.name, x.tree())
		if err != nil {
			return err
		}
		if err := s.ready(ctx); err != nil {
			return err
		}
		running[x.name] = s
	}
	if err := b.addAtRest(ctx, running, m, one); err != nil {
		return err
	}
	if err := b.addEventsAmong(ctx, m, ten); err != nil {
		return err
	}
	for _, s := range running {
		if err := s.stop(); err != nil {
			return err
		}
	}
	return b.removeNamespaces(ctx, one.namespace(), ten.namespace(), sourceNamespace, mirrorNamespace)
}

// addStarts times starts in which no module has changed.
func (b *bench) addStarts(ctx context.Context, m many) error {
	starts := 3
	if b.quick {
		starts = 1
	}
	var lease, process []time.Duration
	for range starts {
		c, err := b.converge(ctx, m.name, m.modules, nil)
		if err != nil {
			return err
		}
		lease, process = append(lease, c.sinceLease), append(process, c.sinceStart)
		b.say("%d modules, unchanged: %s from the lease, %s from the start of the process", m.modules, seconds(c.sinceLease), seconds(c.sinceStart))
	}
	took := percentile(lease, 0.5)
	b.table.add(row{
		what:     fmt.Sprintf("%d modules of one object and one watch, unchanged, from the lease, p50 of %d", m.modules, starts),
		starling: seconds(took), aim: verdict("≤ 1.5 s", took <= 1500*time.Millisecond),
	})
	b.table.add(row{what: "… from the start of the process", starling: seconds(percentile(process, 0.5))})
	return nil
}

// addAtRest reads the memory of instances that have nothing to do, and the processor time
// that they take.
func (b *bench) addAtRest(ctx context.Context, running map[string]*starling, m, one many) error {
	if runtime.GOOS != "linux" {
		b.table.add(row{what: "… at rest", starling: "read on Linux only"})
		return nil
	}
	if err := b.addMemory(ctx, running[m.name], "… resident memory", 130); err != nil {
		return err
	}
	if err := b.addMemory(ctx, running[one.name], "… resident memory with one module", 45); err != nil {
		return err
	}
	lasts := time.Minute
	if b.quick {
		lasts = 2 * time.Second
	}
	part, took, err := atRest(ctx, map[string]*starling{m.name: running[m.name], one.name: running[one.name]}, lasts)
	if err != nil {
		return err
	}
	b.table.add(row{
		what:     fmt.Sprintf("… processor at rest in %.0f s, beside one module", took.Seconds()),
		starling: percent(part[m.name]), bare: percent(part[one.name]), aim: verdict("≤ 0.3 %", part[m.name] <= 0.003),
	})
	b.say("%d modules at rest: %s, one: %s", m.modules, percent(part[m.name]), percent(part[one.name]))
	return nil
}

// addEventsAmong times one event after the other, each of the next module, in turn with an
// instance of few modules.
func (b *bench) addEventsAmong(ctx context.Context, m, few many) error {
	n := 300
	if b.quick {
		n = 20
	}
	x := &mirrors{b: b, client: b.client}
	var err error
	if x.witness, err = b.observe(ctx, mirrorNamespace); err != nil {
		return err
	}
	defer x.stop()
	const warm = 20
	took := map[string][]time.Duration{}
	for i := range warm + n {
		for _, side := range []many{m, few} {
			d, err := x.one(ctx, side.side(i+1), fmt.Sprintf("event-%d", i))
			if err != nil {
				return err
			}
			if i >= warm {
				took[side.name] = append(took[side.name], d)
			}
		}
	}
	for _, at := range parts() {
		all, some := percentile(took[m.name], at.part), percentile(took[few.name], at.part)
		r := row{
			what:     fmt.Sprintf("… one event, %s of %d, beside %d modules", at.name, n, few.modules),
			starling: millis(all), bare: millis(some), ratio: times(float64(all) / float64(some)),
		}
		if at.part == 0.5 {
			r.aim = verdict("≤ 1.1×", float64(all) <= 1.1*float64(some))
		}
		b.table.add(r)
	}
	return nil
}
