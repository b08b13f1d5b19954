package release

import (
	"context"
	"maps"
	"sync"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"

	"github.com/starling-operator/starling/modules/helm"
	"github.com/starling-operator/starling/runtime/effect"
)

const (
	// glanceWindow is how long the answer of a list may be used.
	glanceWindow = 10 * time.Second
	// glanceBurst is how many releases of a namespace, or namespaces, are read one by one
	// within a window before they are listed.
	glanceBurst = 8
	// glancePage is how many revisions one request asks for. The API server reads them
	// whole, up to 1 MiB each, though it sends their metadata alone.
	glancePage = 100
	// glanceTimeout bounds a list, glanceWait how long others wait for it: then they read by themselves.
	glanceTimeout = 30 * time.Second
	glanceWait    = 2 * time.Second
)

// glances reads the newest revisions of many releases with one list, when many are asked
// for at once, as at a start. The answer is good for one decision only: that a release is
// as it should be. All else is decided on what is read then.
type glances struct {
	mu sync.Mutex
	// reads counts the releases that were read one by one, by namespace, since began.
	reads map[string]int
	began time.Time
	// lists are by namespace, "" for all of them.
	lists map[string]*listed
	// refused says that a list of all namespaces is not allowed.
	refused bool
}

// listed is one list. An entry is taken out when it is used, or when its release may have been written since.
type listed struct {
	// done ends when the answer is there: nobody holds the mutex for a request.
	done  chan struct{}
	at    time.Time
	found map[releaseName]revision
	// gone are the releases that may have been written before the answer was there.
	gone map[releaseName]bool
}

type releaseName struct{ namespace, name string }

// Expect reads what the releases that there are will soon ask for, and returns when it has that: what the API server
// serves, the records, and where releases are many, a list of them. An error is that of the next call that asks.
func (m *Manager) Expect(ctx context.Context, refs []Ref) {
	if m.o.Await != nil || len(refs) == 0 {
		return
	}
	var beside sync.WaitGroup
	defer beside.Wait()
	beside.Go(func() { _, _ = m.capabilities() })
	beside.Go(func() { _, _ = m.records.get(ctx, refs[0]) })
	many := map[string]int{}
	for _, ref := range refs {
		many[ref.Namespace]++
	}
	few := 0
	for namespace, n := range many {
		if n <= glanceBurst {
			few++
		} else {
			m.listOnce(ctx, namespace)
		}
	}
	if few > glanceBurst {
		m.listOnce(ctx, "")
	}
}

// glance returns the newest revision of a release as a list has shown it; false: nobody knows, read it.
func (m *Manager) glance(ctx context.Context, ref Ref) (revision, bool) {
	if m.o.Await != nil { // the same requests each time, whatever the time
		return revision{}, false
	}
	g := &m.glances
	g.mu.Lock()
	g.age()
	all, of := g.lists[""], g.lists[ref.Namespace]
	namespace, list := "", false
	if all == nil && of == nil {
		g.reads[ref.Namespace]++
		switch {
		case g.reads[ref.Namespace] > glanceBurst:
			namespace, list = ref.Namespace, true
		case len(g.reads) > glanceBurst && !g.refused:
			list = true
		}
	}
	g.mu.Unlock()
	if list {
		of = m.listOnce(ctx, namespace)
	}
	at := releaseName{ref.Namespace, ref.Name}
	for _, l := range []*listed{all, of} {
		if l == nil || !l.wait(ctx) {
			continue
		}
		g.mu.Lock()
		found, ok := l.found[at]
		delete(l.found, at)
		g.mu.Unlock()
		if ok {
			return found, true
		}
	}
	return revision{}, false
}

// wait says that the answer is there, soon.
func (l *listed) wait(ctx context.Context) bool {
	ctx, cancel := context.WithTimeout(ctx, glanceWait)
	defer cancel()
	select {
	case <-l.done:
		return true
	case <-ctx.Done():
		return false
	}
}

// listOnce lists the revisions of a namespace, or waits for a list that is under way. It returns nil
// when there is none.
func (m *Manager) listOnce(ctx context.Context, namespace string) *listed {
	g := &m.glances
	g.mu.Lock()
	g.age()
	l := g.lists[namespace]
	if l == nil && namespace == "" && g.refused {
		g.mu.Unlock()
		return nil
	}
	begun := l != nil
	if !begun {
		l = &listed{done: make(chan struct{}), gone: map[releaseName]bool{}}
		g.lists[namespace] = l
	}
	g.mu.Unlock()
	if begun {
		l.wait(ctx)
		return l
	}
	bounded, cancel := context.WithTimeout(ctx, glanceTimeout)
	defer cancel()
	all, err := m.revisionsIn(bounded, namespace, metav1.ListOptions{
		// A revision that is superseded has a newer one.
		LabelSelector: labels.Set{"owner": "helm", effect.InstanceLabel: m.o.Instance}.String() + ",status!=" + string(helm.StatusSuperseded),
		Limit:         glancePage,
	})
	g.mu.Lock()
	defer g.mu.Unlock()
	if err != nil { // each is read by itself until the next window
		m.o.Log.Debug().Err(err).Str("namespace", namespace).Msg("releases are read one by one")
		if namespace == "" && apierrors.IsForbidden(err) {
			g.refused = true
			delete(g.lists, namespace)
		}
	}
	l.at, l.found = time.Now(), map[releaseName]revision{}
	for at, list := range all {
		if !l.gone[at] {
			l.found[at] = list[0]
		}
	}
	close(l.done)
	return l
}

// age drops what is too old.
func (g *glances) age() {
	if time.Since(g.began) > glanceWindow {
		g.began, g.reads = time.Now(), map[string]int{}
	}
	maps.DeleteFunc(g.lists, func(_ string, l *listed) bool { return !l.at.IsZero() && time.Since(l.at) > glanceWindow })
}

// forget drops the entries of a release that may have been written since, those of lists that are
// under way, too. It waits for nothing.
func (g *glances) forget(ref Ref) {
	g.mu.Lock()
	defer g.mu.Unlock()
	for _, list := range g.lists {
		at := releaseName{ref.Namespace, ref.Name}
		delete(list.found, at)
		list.gone[at] = true
	}
}
