package modules

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/rs/zerolog"
	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/starling-operator/starling/runtime/cluster"
	"github.com/starling-operator/starling/runtime/effect"
	"github.com/starling-operator/starling/runtime/lane"
)

// Writer is what a [Manager] needs of a client.
type Writer interface {
	Write(ctx context.Context, manager string, w effect.Write) (map[string]any, error)
}

// Options configures a [Manager]. All fields are required.
type Options struct {
	Instance effect.Instance
	Client   Writer
	// Define applies the definition, and returns nil when it is there and must not be applied.
	Define func(ctx context.Context) error
	// Objects are all that there are, of any instance, by name; false: they are not known.
	Objects func() (map[string]Object, bool)
	// Facts are those of all modules, by name; false: they are not known yet. Ready says that all
	// modules have been looked at once; stays that the tree may lack modules of a newer one.
	Facts func(ctx context.Context) (facts map[string]Facts, ready, stays, known bool)
	// Elsewhere says whether another instance may have a module of the tree, because it is not one of
	// this instance.
	Elsewhere func(module string) bool
	// Reconcile has a module looked at now; how is the value of the annotation. It does not wait.
	Reconcile func(module, how string)
	// Event makes an Event about the object of a module. It does not wait.
	Event func(about effect.Ref, e effect.Event)
	Log   zerolog.Logger
}

// Manager keeps the objects of one instance as they should be: one loop, at most one write of a
// status per object and second, and none while nothing changes.
type Manager struct {
	o       Options
	changed chan struct{}
	entries map[string]*entry
	last    string    // the module that was written last
	began   time.Time // when the modules were known first
	retry   lane.Retry

	mu    sync.Mutex
	taken map[string]string // modules whose names have objects of other instances, and why
}

const (
	// pause is the least time between two rounds, longest the most.
	pause   = time.Second
	longest = time.Hour
	// mostWrites is how many objects are written in one round; mostEarly while modules are on
	// their way for the first time, which goes before.
	mostWrites = 50
	mostEarly  = 10
)

// backoff spaces out writes that fail.
var backoff = lane.Backoff{Min: 2 * time.Second, Max: 5 * time.Minute, Factor: 2}

// New returns a manager that does nothing before [Manager.Run].
func New(o Options) *Manager {
	return &Manager{o: o, changed: make(chan struct{}, 1), entries: map[string]*entry{}}
}

// Changed says that modules or objects may not be as they were. It does not wait.
func (m *Manager) Changed() {
	select {
	case m.changed <- struct{}{}:
	default:
	}
}

// Problem says why a module has no object; empty: it has one, or will have.
func (m *Manager) Problem(module string) string {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.taken[module]
}

// Run works until ctx ends. When it is called again it goes by nothing that it knew before.
func (m *Manager) Run(ctx context.Context) {
	m.entries, m.last, m.began, m.retry = map[string]*entry{}, "", time.Time{}, lane.Retry{}
	m.define(ctx)
	for ctx.Err() == nil {
		next := m.round(ctx, time.Now())
		if !sleep(ctx, pause, nil) || !sleep(ctx, time.Until(next), m.changed) {
			return
		}
	}
}

// sleep waits for that long, or for wake. It returns false when ctx has ended.
func sleep(ctx context.Context, wait time.Duration, wake <-chan struct{}) bool {
	timer := time.NewTimer(wait)
	defer timer.Stop()
	select {
	case <-ctx.Done():
		return false
	case <-timer.C:
	case <-wake:
	}
	return true
}

// define applies the definition.
func (m *Manager) define(ctx context.Context) {
	for retry := (lane.Retry{}); ; {
		err := m.o.Define(ctx)
		switch {
		case err == nil || ctx.Err() != nil:
			return
		case apierrors.IsForbidden(err):
			m.o.Log.Warn().Err(err).Msg("there are no Module objects: apply deploy/crds.yaml, or say --module-objects=false")
			return
		}
		if retry.Attempt == 0 {
			m.o.Log.Warn().Err(err).Msg("the definition of Module objects is not applied yet")
		}
		retry.Failed(time.Now(), err, backoff, 0)
		if !sleep(ctx, time.Until(retry.At), nil) {
			return
		}
	}
}

// round looks at all objects, and writes some. Next is when another look is wanted, even if nothing
// has changed.
func (m *Manager) round(ctx context.Context, now time.Time) (next time.Time) {
	if m.retry.Waits(now) {
		return m.retry.At
	}
	next = now.Add(longest)
	objects, known := m.o.Objects()
	if !known {
		return next
	}
	facts, ready, stays, known := m.o.Facts(ctx)
	if !known {
		return next
	}
	if m.began.IsZero() {
		m.began = now
	}
	w := &world{instance: m.o.Instance, objects: objects, facts: facts, names: slices.Sorted(maps.Keys(facts)), elsewhere: m.o.Elsewhere, stays: stays, now: now}
	w.starting = !ready && now.Sub(m.began) < startFor
	m.note(w)
	left := mostWrites
	if !ready {
		left = mostEarly
	}
	for _, name := range m.turn(w) {
		e := m.entry(name)
		if e.retry.Waits(now) {
			next = earlier(next, e.retry.At)
			continue
		}
		s, soon := w.step(name, e)
		full := !s.idle() && left == 0
		if soon || full {
			next = now
		}
		if full {
			break
		}
		if s.idle() {
			continue
		}
		m.last = name
		left--
		err := m.carryOut(ctx, s, now)
		if err == nil {
			e.retry, m.retry = lane.Retry{}, lane.Retry{}
			continue
		}
		all := m.failed(err, e, now)
		if next = earlier(next, e.retry.At); all {
			break
		}
	}
	for name := range m.entries {
		if _, is := facts[name]; !is && objects[name].Name == "" {
			delete(m.entries, name)
		}
	}
	return next
}

func earlier(a, b time.Time) time.Time {
	if b.Before(a) {
		return b
	}
	return a
}

// failed notes a write that has failed, and logs the first one. All says that others would fail in
// the same way.
func (m *Manager) failed(err error, e *entry, now time.Time) (all bool) {
	all = !apierrors.IsInvalid(err) && !apierrors.IsConflict(err) && !apierrors.IsRequestEntityTooLargeError(err) && !apierrors.IsInternalError(err)
	if e.retry.Attempt == 0 && m.retry.Attempt == 0 && !errors.Is(err, cluster.ErrFenced) {
		m.o.Log.Warn().Err(err).Msg("a Module object is not as it should be")
	}
	e.retry.Failed(now, err, backoff, 0)
	if all {
		m.retry.Failed(now, err, backoff, 0)
	}
	return all
}

// turn are the names of all modules and objects, after that of the last write.
func (m *Manager) turn(w *world) []string {
	names := slices.Clone(w.names)
	for name := range w.objects {
		if _, is := w.facts[name]; !is {
			names = append(names, name)
		}
	}
	slices.Sort(names)
	at, found := slices.BinarySearch(names, m.last)
	if found {
		at++
	}
	return slices.Concat(names[at:], names[:at])
}

func (m *Manager) entry(name string) *entry {
	if m.entries[name] == nil {
		m.entries[name] = &entry{}
	}
	return m.entries[name]
}

// note notes which modules cannot have an object.
func (m *Manager) note(w *world) {
	taken := map[string]string{}
	for _, name := range w.names {
		o := w.objects[name]
		if owner, ours := o.Owner(w.instance); !ours && owner != "" {
			taken[name] = fmt.Sprintf("it has no Module object: Module %s belongs to instance %s", name, owner)
		}
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	m.taken = taken
}

// carryOut does what a step says.
func (m *Manager) carryOut(ctx context.Context, s step, now time.Time) error {
	e := m.entry(s.module)
	write := func(w effect.Write) (map[string]any, error) {
		w.Ref = ref(s.module)
		return m.o.Client.Write(ctx, "", w)
	}
	if s.isNew {
		made, err := write(effect.Write{Kind: effect.WriteCreate, Object: m.newObject(s), IfAbsent: true})
		if err != nil || made == nil {
			return err // nil: somebody was faster
		}
		if s.uid = effect.At[string](made, "metadata", "uid"); s.status != nil && s.create == nil {
			s.status.ObservedGeneration = effect.At[int64](made, "metadata", "generation")
			s.status.stamp(s.status, now)
		}
	}
	if s.patch != nil {
		if _, err := write(effect.Write{Kind: effect.WritePatch, Patch: &effect.Patch{Type: effect.PatchMerge, Body: s.patch}}); err != nil {
			return err
		}
		if s.reconcile != "" { // once a round at most; who asks from now on is heard in the next one
			m.o.Reconcile(s.module, s.reconcile)
		}
	}
	if s.delete != nil {
		_, err := write(effect.Write{Kind: effect.WriteDelete, Unchanged: s.delete})
		if err == nil {
			e.status = &Status{} // people know of all that there was
			m.tell(s)
		}
		return err
	}
	if s.status == nil {
		return nil
	}
	plain, want := s.status.encode()
	answer, err := write(effect.Write{Kind: effect.WriteStatus, Force: true, Object: map[string]any{
		"apiVersion": APIVersion, "kind": Kind, "metadata": map[string]any{"name": s.module}, "status": plain,
	}})
	if apierrors.IsNotFound(err) {
		return nil // it was deleted meanwhile, which the watch will say
	}
	if err != nil {
		return err
	}
	e.status, e.wrote, e.answer, e.moving = s.status, want, textOf(effect.At[map[string]any](answer, "status")), time.Time{}
	e.failing = s.failing
	m.tell(s)
	return nil
}

func (m *Manager) tell(s step) {
	for _, ev := range s.events {
		ev.UID = s.uid
		m.o.Event(ref(s.module), ev)
	}
}

// newObject is an object with all that is in force by an earlier one of its name.
func (m *Manager) newObject(s step) map[string]any {
	obj := map[string]any{
		"apiVersion": APIVersion, "kind": Kind,
		"metadata": map[string]any{"name": s.module, "labels": map[string]any{effect.InstanceLabel: m.o.Instance.Label()}},
	}
	if s.create != nil {
		obj["spec"] = s.create
	}
	return obj
}
