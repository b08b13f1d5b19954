package release

import (
	"context"
	"maps"
	"strconv"
	"sync"
	"time"

	helmrelease "helm.sh/helm/v3/pkg/release"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"

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
	// glanceTimeout bounds a list: others wait for it.
	glanceTimeout = 30 * time.Second
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

// listed is the answer of one list. An entry is taken out when it is used.
type listed struct {
	at    time.Time
	found map[releaseName]revision
}

type releaseName struct{ namespace, name string }

// Expect reads what the releases that there are will soon ask for, and returns when it has that:
// what the API server serves, the records, and where releases are many, a list of them. An error
// is that of the next call that asks.
func (m *Manager) Expect(ctx context.Context, refs []Ref) {
	if m.o.Lifeless || len(refs) == 0 {
		return
	}
	var beside sync.WaitGroup
	defer beside.Wait()
	beside.Go(func() { _, _ = m.capabilities() })
	beside.Go(func() { _, _ = m.records.get(ctx, refs[0]) })
	m.expectRevisions(ctx, refs)
}

func (m *Manager) expectRevisions(ctx context.Context, refs []Ref) {
	g := &m.glances
	g.mu.Lock()
	defer g.mu.Unlock()
	g.age()
	many := map[string]int{}
	for _, ref := range refs {
		many[ref.Namespace]++
	}
	few := 0
	for namespace, n := range many {
		switch {
		case n <= glanceBurst:
			few++
		case g.lists[namespace] == nil:
			m.listRevisions(ctx, namespace)
		}
	}
	if few > glanceBurst && g.lists[""] == nil && !g.refused {
		m.listRevisions(ctx, "")
	}
}

// glance returns the newest revision of a release as a list has shown it; false: nobody
// knows, read it.
func (m *Manager) glance(ctx context.Context, ref Ref) (revision, bool) {
	if m.o.Lifeless { // the same requests each time, whatever the time
		return revision{}, false
	}
	g := &m.glances
	g.mu.Lock()
	defer g.mu.Unlock()
	g.age()
	if g.lists[""] == nil && g.lists[ref.Namespace] == nil {
		g.reads[ref.Namespace]++
		switch {
		case g.reads[ref.Namespace] > glanceBurst:
			m.listRevisions(ctx, ref.Namespace)
		case len(g.reads) > glanceBurst && !g.refused:
			m.listRevisions(ctx, "")
		}
	}
	at := releaseName{ref.Namespace, ref.Name}
	for _, list := range g.lists {
		if found, ok := list.found[at]; ok {
			delete(list.found, at)
			return found, true
		}
	}
	return revision{}, false
}

// age drops what is too old.
func (g *glances) age() {
	if time.Since(g.began) > glanceWindow {
		g.began, g.reads = time.Now(), map[string]int{}
	}
	if g.lists == nil {
		g.lists = map[string]*listed{}
	}
	maps.DeleteFunc(g.lists, func(_ string, l *listed) bool { return time.Since(l.at) > glanceWindow })
}

// listRevisions lists the newest revisions of the instance's releases. After an error each
// is read by itself until the next window. It is called with the mutex held.
func (m *Manager) listRevisions(ctx context.Context, namespace string) {
	ctx, cancel := context.WithTimeout(ctx, glanceTimeout)
	defer cancel()
	g := &m.glances
	found := map[releaseName]revision{}
	o := metav1.ListOptions{
		// A revision that is superseded has a newer one.
		LabelSelector: labels.Set{"owner": "helm", effect.InstanceLabel: m.o.Instance}.String() + ",status!=" + string(helmrelease.StatusSuperseded),
		Limit:         glancePage,
	}
	for {
		page, err := m.meta.Resource(secretsResource()).Namespace(namespace).List(ctx, o)
		if err != nil {
			m.o.Log.Debug().Err(err).Str("namespace", namespace).Msg("releases are read one by one")
			if namespace == "" && apierrors.IsForbidden(err) {
				g.refused = true
				return
			}
			found = map[releaseName]revision{}
			break
		}
		for i := range page.Items {
			item := &page.Items[i]
			at := releaseName{item.Namespace, item.Labels["name"]}
			switch r, ok := revisionOf(item); {
			case !ok:
			case r.Number > found[at].Number:
				r.older(found[at])
				found[at] = r
			default:
				newest := found[at]
				newest.older(r)
				found[at] = newest
			}
		}
		if o.Continue = page.Continue; o.Continue == "" {
			break
		}
	}
	g.lists[namespace] = &listed{time.Now(), found}
}

// revisionOf reads the labels of a revision's Secret.
func revisionOf(item *metav1.PartialObjectMetadata) (revision, bool) {
	n, err := strconv.Atoi(item.Labels["version"])
	return revision{Number: n, Status: helmrelease.Status(item.Labels["status"]), Labels: item.Labels, UID: string(item.UID), Made: item.CreationTimestamp.Time}, err == nil && n > 0
}

// forget drops the entries of a release that may have been written since. It waits for a
// list that is under way.
func (g *glances) forget(ref Ref) {
	g.mu.Lock()
	defer g.mu.Unlock()
	for _, list := range g.lists {
		delete(list.found, releaseName{ref.Namespace, ref.Name})
	}
}
