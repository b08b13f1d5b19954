package workloads

import (
	"fmt"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/starling-operator/starling/runtime/sim/store"
)

// Mover has the controllers work on a store. It is the loop of their actions; nothing is
// decided here. It is not safe for concurrent use.
type Mover struct {
	// Store is the cluster, Now its clock. Both are required.
	Store *store.Store
	Now   func() time.Time
	// Warn is told of writes that the API server refuses; nil: nobody is.
	Warn func(text string)
	// Options may change between two moves: they hold for what begins later.
	Options Options
	// Failures say which Pods fail.
	Failures Failures
	// Shuffle puts the controllers into another order before each move, as [rand.Shuffle]
	// does; nil: the order is that of [Controllers].
	Shuffle func(n int, swap func(i, j int))

	hadNodes bool
	last     *State
	// rest is the version of the cluster in which no controller wanted anything.
	rest string
	next time.Time
}

// Next is when a controller has to look again though nothing has changed; zero: never.
func (m *Mover) Next() time.Time { return m.next }

// Wake has the next move look at everything, after a change of the options or failures.
func (m *Mover) Wake() { m.rest = "" }

// Move lets the first controller that wants something do it, and says whether there was one.
func (m *Mover) Move() bool {
	version := m.Store.Version()
	if version == m.rest && (m.next.IsZero() || m.Now().Before(m.next)) {
		return false
	}
	state, err := m.state()
	if err != nil {
		m.warn("workloads do not move: " + err.Error())
		m.rest, m.next = version, time.Time{}
		return false
	}
	m.next = time.Time{}
	for _, c := range m.order() {
		result := c.Step(state)
		m.next = Earlier(m.next, result.Next)
		for _, w := range result.Writes {
			err := m.carryOut(c, w)
			if err != nil && !apierrors.HasStatusCause(err, corev1.NamespaceTerminatingCause) {
				m.warn(fmt.Sprintf("%s: %s %s: %s", c.Name, w.Verb, w.Object.GetName(), err))
			}
		}
		if m.Store.Version() != version {
			return true
		}
	}
	m.rest = version
	return false
}

func (m *Mover) order() []Controller {
	if m.Shuffle == nil {
		return Controllers
	}
	out := slices.Clone(Controllers)
	m.Shuffle(len(out), func(i, j int) { out[i], out[j] = out[j], out[i] })
	return out
}

func (m *Mover) warn(text string) {
	if m.Warn != nil {
		m.Warn(text)
	}
}

// state reads what the controllers look at.
func (m *Mover) state() (*State, error) {
	s := m.last.next()
	s.Now, s.Options = m.Now(), m.Options
	for _, gvk := range Kinds {
		k, ok := m.Store.KindOf(gvk)
		if !ok {
			continue
		}
		list, err := m.Store.List(store.Target{GVR: k.GVR(), Spared: true}, store.ListOptions{})
		if err != nil {
			return nil, err
		}
		if err := s.Add(gvk, list.Items); err != nil {
			return nil, err
		}
	}
	m.hadNodes = m.hadNodes || len(s.Nodes) > 0
	s.Nodeless = !m.hadNodes
	s.Failing = m.Failures.Of(s.Pods)
	m.last = s
	return s, nil
}

func (m *Mover) carryOut(c Controller, w Write) error {
	k, ok := m.Store.KindOf(w.Object.GetObjectKind().GroupVersionKind())
	if !ok {
		return fmt.Errorf("%T is of no kind that is served", w.Object)
	}
	m.Store.As(c.Name)
	defer m.Store.As("")
	t := store.Target{GVR: k.GVR(), Namespace: w.Object.GetNamespace(), Name: w.Object.GetName(), Spared: true}
	if w.Verb == Delete {
		_, err := m.Store.Delete(t, store.DeleteOptions{Propagation: metav1.DeletePropagationBackground, UID: string(w.Object.GetUID())})
		return err
	}
	obj, err := runtime.DefaultUnstructuredConverter.ToUnstructured(w.Object)
	if err != nil {
		return err
	}
	switch o := (store.WriteOptions{Manager: c.Manager}); w.Verb {
	case Create:
		t.Name = "" // as in the URL of a create
		_, err = m.Store.Create(t, obj, o)
	case UpdateStatus:
		t.Subresource = "status"
		_, err = m.Store.Update(t, obj, o)
	default:
		_, err = m.Store.Update(t, obj, o)
	}
	return err
}
