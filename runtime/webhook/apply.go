package webhook

import (
	"cmp"
	"context"
	"encoding/base64"
	"errors"
	"maps"
	"reflect"
	"slices"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/starling-operator/starling/runtime/cluster"
	"github.com/starling-operator/starling/runtime/effect"
	"github.com/starling-operator/starling/runtime/object"
)

// fieldManager owns what this package writes.
const fieldManager = "starling-webhooks"

func instanceSelector(instance string) string { return effect.InstanceLabel + "=" + instance }

// reconcile makes the cluster what want says. It writes what differs, nothing else.
// waiting says that a kind is not served yet.
func (m *Manager) reconcile(ctx context.Context, w want) (waiting bool, err error) {
	live := map[effect.Ref]map[string]any{}
	for id, kind := range map[string]string{watchValidating: kindValidating, watchMutating: kindMutating} {
		for _, v := range m.watches.Snapshot(id) {
			obj := v.(*object.Object).Map()
			live[refOf(kind, obj)] = obj
		}
	}
	s := shape{namespace: m.o.Namespace, instance: m.o.Instance, reach: m.o.Reach, bundle: m.certs.bundle}
	var failed []error
	try := func(about string, err error) {
		if m.tell(about, err) != nil {
			failed = append(failed, err)
		}
	}
	registered := map[string]error{}
	put := func(obj map[string]any) (err error) {
		ref := refOf(obj["kind"].(string), obj)
		if !holds(live[ref], obj) {
			err = m.apply(ctx, ref, obj)
		}
		delete(live, ref)
		return err
	}
	if w.modules {
		try("Module objects", put(s.modules(effect.Instance{Namespace: m.o.Namespace, Name: m.o.Name})))
	}
	for _, b := range w.all {
		if b.binding.Admission == nil {
			continue
		}
		about := b.hook.ID + " " + b.binding.Name
		resource, err := m.resource(ctx, b)
		if errors.Is(err, cluster.ErrNotServed) {
			waiting = true
			if m.known[about] != err.Error() {
				m.known[about] = err.Error()
				m.o.Log.Info().Str("module", b.hook.Module).Msg("webhooks: waits for " + b.binding.Admission.Kind + " to be served")
			}
			continue
		}
		var obj map[string]any
		if err == nil {
			obj, err = s.admission(b.hook, b.binding, resource, b.labels)
		}
		if err == nil {
			err = put(obj)
		}
		registered[b.hook.ID] = cmp.Or(registered[b.hook.ID], err)
		try(about, err)
	}
	away := m.away
	m.away = map[string]time.Time{}
	for ref, obj := range live { // the kind of one that a binding names may not be found now
		try(ref.String(), m.unwanted(ctx, ref, obj, w, away))
	}
	for _, c := range m.conversions(ctx, w, s) {
		registered[c.hook] = cmp.Or(registered[c.hook], c.err)
		try(c.definition, c.err)
	}
	for hook := range m.unregistered {
		if _, wanted := registered[hook]; !wanted {
			registered[hook] = nil
		}
	}
	m.account(registered)
	return waiting, errors.Join(failed...)
}

// account tells of each hook, once, why it is not registered, and then that it is. An API server in trouble is news of a
// hook at the third try.
func (m *Manager) account(registered map[string]error) {
	for hook, err := range registered {
		was, failed := m.unregistered[hook]
		switch {
		case cluster.InTrouble(err) && m.attempt < 2:
		case err == nil && failed:
			delete(m.unregistered, hook)
			m.o.Registered(hook, nil)
		case err != nil && was != err.Error():
			m.unregistered[hook] = err.Error()
			m.o.Registered(hook, err)
		}
	}
}

// again is when to try again after an error.
func (m *Manager) again(now time.Time) time.Time {
	m.attempt++
	return now.Add(min(time.Second<<min(m.attempt-1, 10), maxDelay))
}

// tell logs an error of something once, and returns it.
func (m *Manager) tell(about string, err error) error {
	if err == nil {
		delete(m.known, about)
		return nil
	}
	if m.known[about] != err.Error() {
		m.known[about] = err.Error()
		m.o.Log.Error().Msg("webhooks: " + err.Error())
	}
	return err
}

// refOf names an object of a kind.
func refOf(kind string, obj map[string]any) effect.Ref {
	ref := effect.RefOf(obj)
	ref.APIVersion, ref.Kind = registration, kind
	return ref
}

// resource is that of the kind of a binding, "" when it names resources itself.
func (m *Manager) resource(ctx context.Context, b bound) (string, error) {
	a := b.binding.Admission
	if a.Rules != nil {
		return "", nil
	}
	mapping, err := m.o.Client.Mapping(ctx, a.APIVersion, a.Kind)
	return mapping.GVR.Resource, err
}

// holds says whether a live object has all that is wanted of it.
func holds(live, obj map[string]any) bool {
	if live == nil || !reflect.DeepEqual(live["webhooks"], obj["webhooks"]) {
		return false
	}
	has, _ := live["metadata"].(map[string]any)
	wants, _ := obj["metadata"].(map[string]any)
	for _, part := range []string{"labels", "annotations"} {
		there, _ := has[part].(map[string]any)
		for key, value := range wants[part].(map[string]any) {
			if there[key] != value {
				return false
			}
		}
	}
	return true
}

func (m *Manager) apply(ctx context.Context, ref effect.Ref, obj map[string]any) error {
	asked := time.Now()
	got, err := m.o.Client.Write(ctx, fieldManager, effect.Write{Kind: effect.WriteApply, Ref: ref, Object: obj, Force: true})
	if err != nil {
		return err
	}
	m.watches.Observe(ref, got, nil, asked)
	m.o.Log.Debug().Str("object", ref.String()).Msg("webhooks: written")
	return nil
}

// unwanted deletes an object of ours, if it is known that no binding names it. One that
// stays is kept in step with the certificates.
func (m *Manager) unwanted(ctx context.Context, ref effect.Ref, obj map[string]any, w want, away map[string]time.Time) error {
	meta, _ := obj["metadata"].(map[string]any)
	module := labelOf(obj, effect.ModuleLabel)
	if m.removable(ref, module, w) && !m.returns(module, w, away) {
		asked := time.Now()
		// One that somebody has taken over since is not ours.
		unchanged := &effect.Unchanged{UID: effect.At[string](meta, "uid"), ResourceVersion: effect.At[string](meta, "resourceVersion")}
		if _, err := m.o.Client.Write(ctx, "", effect.Write{Kind: effect.WriteDelete, Ref: ref, Unchanged: unchanged}); err != nil {
			return err
		}
		m.watches.Observe(ref, nil, nil, asked)
		m.o.Log.Info().Str("module", module).Str("object", ref.String()).Msg("webhooks: removed")
		return nil
	}
	if !m.running {
		return nil
	}
	hooks, changed := trusting(obj["webhooks"], base64.StdEncoding.EncodeToString(m.certs.bundle))
	if !changed {
		return nil
	}
	return m.apply(ctx, ref, map[string]any{
		"apiVersion": registration, "kind": ref.Kind,
		"metadata": map[string]any{"name": ref.Name, "labels": meta["labels"], "annotations": meta["annotations"]},
		"webhooks": hooks,
	})
}

func labelOf(obj map[string]any, name string) string {
	return effect.At[string](obj, "metadata", "labels", name)
}

// trusting puts a bundle into copies of webhooks.
func trusting(webhooks any, bundle string) (out []any, changed bool) {
	list, _ := webhooks.([]any)
	for _, e := range list {
		hook, _ := object.CopyPlain(e).(map[string]any)
		client, _ := hook["clientConfig"].(map[string]any)
		if client != nil && client["caBundle"] != bundle {
			client["caBundle"], changed = bundle, true
		}
		out = append(out, hook)
	}
	return out, changed
}

// sweep removes what an earlier tree of this instance has left, when this one takes no
// requests at all. A process without the right to look has never made any.
func (m *Manager) sweep(ctx context.Context) (done bool) {
	w := m.wanted()
	if w.keeps {
		return false
	}
	done = true
	away := m.away
	m.away = map[string]time.Time{}
	for _, kind := range []string{kindValidating, kindMutating} {
		found, err := m.o.Client.List(ctx, registration, kind, nil, instanceSelector(m.o.Instance), "")
		if apierrors.IsForbidden(err) {
			return true
		}
		if m.tell(kind, err) != nil {
			done = false
			continue
		}
		for _, obj := range found {
			ref := refOf(kind, obj)
			done = m.tell(ref.String(), m.unwanted(ctx, ref, obj, w, away)) == nil && done
		}
	}
	return done && len(m.away) == 0
}

// returns says whether a module that is not in the tree may come back in a moment, or when something is mended: people
// may replace its folder slowly, and a policy must not be open meanwhile. away are those that were missing before.
func (m *Manager) returns(module string, w want, away map[string]time.Time) bool {
	if _, in := w.decided[module]; in || module == "" {
		return false
	}
	at, noted := away[module]
	if !noted || m.o.Stays != nil && m.o.Stays(module) {
		at = m.o.Now().Add(m.o.Grace)
	}
	m.away[module] = at
	return at.After(m.o.Now())
}

// removable says whether objects of a module that nobody wants may go: those of a module that was asked and wants
// none, or is not in the tree any more. A folder that holds nothing of a module, or one that does not load, tells
// nothing. The one for Module objects, of no module, goes once no module wants any. While another process may have a
// newer tree, nothing goes that this tree lacks.
func (m *Manager) removable(ref effect.Ref, module string, w want) bool {
	switch {
	case w.names[ref]: // that it could not be compared says nothing of it
		return false
	case w.keeps && !w.owns[ref.Name]:
		return false
	case module == "":
		return len(w.decided) > 0 && !slices.Contains(slices.Collect(maps.Values(w.decided)), false)
	}
	if known, in := w.decided[module]; in || len(w.decided) == 0 {
		return known
	}
	return !slices.Contains(w.gen.Tree.Hollow, module)
}
