package watch

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/starling-operator/starling/runtime/cluster"
	"go.starlark.net/starlark"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/labels"
)

const (
	// MaxNames is how many names of a watch have a stream each, in each namespace. Past
	// it the streams bring all objects there, and the names are selected here.
	MaxNames = 16
	// MaxStreams bounds the streams of a process, MaxModuleStreams those of a module. The first
	// fewStreams of a module, and as many as a module may have of Starling itself, are there
	// whatever others have.
	MaxStreams       = 2500
	MaxModuleStreams = 250
	fewStreams       = 10
)

// placement is what the streams of one subscription have in common.
type placement struct {
	mapping cluster.Mapping
	labels  labels.Selector
	fields  fields.Selector
	names   []string // "" alone: all
}

// attach puts a subscription on its streams and returns those that are new. Called
// with m.mu held.
func (m *Manager) attach(sub *subscription, mapping cluster.Mapping) ([]*stream, error) {
	at, err := place(sub.spec, mapping)
	if err != nil {
		return nil, err
	}
	sub.begin()
	sub.place = at
	if mapping.Namespaced && sub.spec.NamespaceLabels != "" {
		if sub.following == nil {
			if err := m.follow(sub); err != nil {
				return nil, err
			}
		}
		return m.match(sub), nil
	}
	return m.open(sub, namespacesOf(sub.spec, mapping)), nil
}

// namespacesOf are those that a watch has a stream for each; "" alone is one for all.
func namespacesOf(spec Spec, mapping cluster.Mapping) []string {
	namespaces := spec.Namespaces
	if !mapping.Namespaced || len(namespaces) == 0 || slices.Contains(namespaces, "*") {
		return []string{""}
	}
	return unique(without(namespaces, spec.ExcludeNamespaces))
}

// keys are those of the streams of a watch in some namespaces.
func (at *placement) keys(spec Spec, namespaces []string) (keys []streamKey) {
	for _, namespace := range namespaces {
		for _, name := range at.names {
			keys = append(keys, streamKey{
				apiVersion: spec.APIVersion, kind: spec.Kind,
				namespace: namespace, name: name, labels: at.labels.String(), fields: at.fields.String(), metadata: spec.Metadata,
			})
		}
	}
	return keys
}

// place reads the selectors of a watch.
func place(spec Spec, mapping cluster.Mapping) (*placement, error) {
	mapping.Metadata = spec.Metadata
	at := &placement{mapping: mapping, names: unique(spec.Names)}
	if len(at.names) == 0 || len(at.names) > MaxNames {
		at.names = []string{""}
	}
	var err error
	if at.labels, err = labels.Parse(spec.Labels); err != nil {
		return nil, fmt.Errorf("the label selector %q is not valid: %w", spec.Labels, err)
	}
	if at.fields, err = fields.ParseSelector(spec.Fields); err != nil {
		return nil, fmt.Errorf("the field selector %q is not valid: %w", spec.Fields, err)
	}
	return at, nil
}

// open puts a subscription on the streams of namespaces, beside those it is on, and
// returns the streams that are new. Called with m.mu held.
func (m *Manager) open(sub *subscription, namespaces []string) []*stream {
	keys := sub.place.keys(sub.spec, namespaces)
	if err := m.tooMany(sub, keys); err != nil {
		m.refused[sub] = true
		sub.failed(&sub.refused, err)
		return nil
	}
	delete(m.refused, sub)
	sub.failed(&sub.refused, nil)
	sub.expect(len(sub.allParts()) + len(keys))
	var started []*stream
	for _, key := range keys {
		s := m.streams[key]
		if s == nil {
			s = m.newStream(key, sub.place)
			m.streams[key] = s
			started = append(started, s)
		}
		s.join(sub)
	}
	return started
}

// tooMany says why a subscription may not have these streams, too. Called with m.mu held.
func (m *Manager) tooMany(sub *subscription, keys []streamKey) error {
	const hint = "watch fewer namespaces, or all of them and leave objects out with labels= or filter="
	fresh := 0
	all := map[streamKey]bool{} // of the module
	for _, key := range keys {
		all[key] = true
		if m.streams[key] == nil {
			fresh++
		}
	}
	full := fresh > 0 && len(m.streams)+fresh > MaxStreams
	if sub.spec.Module == "" && !full {
		return nil
	}
	for _, other := range m.subs {
		if other.turn == sub.turn {
			for _, p := range other.allParts() {
				all[p.stream.key] = true
			}
		}
	}
	few := fewStreams
	if sub.spec.Module == "" {
		few = MaxModuleStreams
	}
	switch {
	case full && len(all) > few:
		return fmt.Errorf("%d more watches on the API server would make more than %d in this process; %s", fresh, MaxStreams, hint)
	case sub.spec.Module != "" && len(all) > MaxModuleStreams && len(keys) > 1:
		return fmt.Errorf("the module would have %d watches on the API server, and may have %d; %s", len(all), MaxModuleStreams, hint)
	}
	return nil
}

// askAgain looks whether watches that were refused may have their streams now. Called with
// m.mu held, after others have given some up.
func (m *Manager) askAgain() {
	if m.closed {
		return
	}
	for _, id := range slices.Sorted(maps.Keys(m.subs)) {
		sub := m.subs[id]
		if !m.refused[sub] || sub.place == nil {
			continue
		}
		var started []*stream
		if sub.following != nil {
			started = m.match(sub)
		} else {
			started = m.open(sub, namespacesOf(sub.spec, sub.place.mapping))
		}
		for _, s := range started {
			s.start()
		}
		m.wg.Go(sub.flush)
	}
}

// follow starts to watch the namespaces that a subscription's NamespaceLabels
// match. All such watches share one stream. Called with m.mu held.
func (m *Manager) follow(sub *subscription) error {
	selector, err := labels.Parse(sub.spec.NamespaceLabels)
	if err != nil {
		return fmt.Errorf("the label selector %q of namespaces is not valid: %w", sub.spec.NamespaceLabels, err)
	}
	only := sub.spec.Namespaces
	if slices.Contains(only, "*") {
		only = nil
	}
	not := sub.spec.ExcludeNamespaces
	spec := Spec{
		// No name of a hook or a binding holds a NUL.
		ID: sub.spec.ID + "\x00namespaces", APIVersion: "v1", Kind: "Namespace", Metadata: true,
		FilterID: fmt.Sprintf("namespaces %q %q %q", selector, unique(only), unique(not)),
		Filter: func(obj map[string]any) (starlark.Value, bool, error) {
			key, _, set := identity(obj)
			keep := selector.Matches(set) && !slices.Contains(not, key.name) && (len(only) == 0 || slices.Contains(only, key.name))
			return starlark.None, keep, nil
		},
	}
	sub.following = newSubscription(spec, guide{m, sub})
	m.subs[spec.ID] = sub.following
	m.look(sub.following)
	return nil
}

// guide is the sink of a watch on namespaces: it moves the subscription that they
// are for.
type guide struct {
	m   *Manager
	sub *subscription
}

func (g guide) Synced(string, bool)     { g.move() }
func (g guide) Changed(string, []Event) { g.move() }

func (g guide) Failed(_ string, err error, _ bool) {
	g.sub.failed(&g.sub.guide, err)
	g.sub.flush()
}

// move opens and closes streams so that they are those of the namespaces that match
// now.
func (g guide) move() {
	var started []*stream
	g.m.mu.Lock()
	if !g.m.closed && g.m.subs[g.sub.spec.ID] == g.sub && g.sub.place != nil {
		started = g.m.match(g.sub)
		if len(g.m.refused) > 0 {
			g.m.askAgain()
		}
	}
	g.m.mu.Unlock()
	for _, s := range started {
		s.start()
	}
	g.sub.flush()
}

// match does the work of [guide.move] and returns the streams to start. Called with
// m.mu held.
func (m *Manager) match(sub *subscription) []*stream {
	parts, known := sub.following.syncedParts()
	if !known {
		return nil
	}
	rows := rowsOf(parts, false, (*view).all)
	want := make(map[string]bool, len(rows))
	for _, r := range rows {
		want[r.name] = true
	}
	for _, p := range sub.allParts() {
		namespace := p.stream.key.namespace
		if _, ok := want[namespace]; ok {
			want[namespace] = false // open already
			continue
		}
		var events []Event
		for _, r := range m.leave(sub, p) {
			events = append(events, r.event(Deleted))
		}
		sub.left(events)
	}
	var fresh []string
	for _, r := range rows {
		if want[r.name] {
			fresh = append(fresh, r.name)
		}
	}
	return m.open(sub, fresh)
}

// matchFields says whether an object matches a field selector, as far as that can
// be told: the API server knows fields that are not in the object as they are
// called.
func matchFields(selector fields.Selector, obj map[string]any) (matches, known bool) {
	if obj == nil {
		return true, true
	}
	for _, r := range selector.Requirements() {
		var at any = obj
		for key := range strings.SplitSeq(r.Field, ".") {
			m, _ := at.(map[string]any)
			at = m[key]
		}
		value, ok := at.(string)
		if !ok || value == "" || obj["kind"] == "Event" {
			return false, false
		}
		equal := r.Operator != "!="
		if (value == r.Value) != equal {
			return false, true
		}
	}
	return true, true
}

func unique(list []string) []string { return slices.Compact(slices.Sorted(slices.Values(list))) }

func without(list, not []string) []string {
	return slices.DeleteFunc(slices.Clone(list), func(s string) bool { return slices.Contains(not, s) })
}
