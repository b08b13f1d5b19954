package sim

import (
	"strings"
	"sync"

	"golang.org/x/sync/errgroup"
	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/starling-operator/starling/runtime/sim/store"
)

// readsAhead is how many reads of a real cluster go side by side.
const readsAhead = 8

// Ahead reads side by side what will be asked for one after the other. A world that lies over
// no real cluster has nothing to read. Once done is called, answers that nobody has asked for are
// dropped: they grow old.
func (w *World) Ahead(reads []store.Read) (done func()) {
	if a, is := w.o.Origin.(interface{ ahead([]store.Read) func() }); is {
		return a.ahead(w.store.Unknown(reads))
	}
	return func() {}
}

func (f forked) ahead(reads []store.Read) func() { return f.w.Ahead(reads) }

func (l live) ahead(reads []store.Read) func() {
	var all errgroup.Group
	all.SetLimit(readsAhead)
	var refused sync.Map // kinds: one refusal is enough
	for _, r := range reads {
		all.Go(func() error {
			if _, is := refused.Load(r.Kind.GVR()); is || l.ctx.Err() != nil {
				return nil
			}
			var a answer
			if r.Name != "" {
				a.one, a.err = l.Get(r.Kind, r.Namespace, r.Name)
			} else {
				a.all, a.err = l.List(r.Kind, r.Namespace, r.Selection)
			}
			if apierrors.IsForbidden(a.err) {
				refused.Store(r.Kind.GVR(), true)
			}
			l.early.put(r, a)
			return nil
		})
	}
	_ = all.Wait() // an answer has its error
	return l.early.forget
}

// early are answers that came before they were asked for. Each is given once.
type early struct {
	mu      sync.Mutex
	answers map[string]answer
}

type answer struct {
	one map[string]any
	all []map[string]any
	err error
}

func (e *early) put(r store.Read, a answer) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.answers == nil {
		e.answers = map[string]answer{}
	}
	e.answers[keyOf(r)] = a
}

func (e *early) take(r store.Read) (answer, bool) {
	e.mu.Lock()
	defer e.mu.Unlock()
	a, is := e.answers[keyOf(r)]
	delete(e.answers, keyOf(r))
	return a, is
}

func (e *early) forget() {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.answers = nil
}

func keyOf(r store.Read) string {
	return strings.Join([]string{r.Kind.GVR().String(), r.Namespace, r.Name, r.Selection.Labels, r.Selection.Fields}, "\n")
}
