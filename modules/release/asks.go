package release

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"io"
	"maps"
	"net/http"
	"reflect"
	"slices"
	"strings"
	"sync"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/discovery"

	"github.com/starling-operator/starling/modules/chart"
	"github.com/starling-operator/starling/modules/helm"
	"github.com/starling-operator/starling/runtime/effect"
)

// A chart that asks what the API server serves is rendered again when the answer changes
// (docs/decisions/0097-charts-that-ask-are-rendered-again.md).

// resting is what a release rests on beside its inputs: an answer, which may be another one by now.
type resting struct {
	answer string // "" when there was none
	again  func(context.Context) (string, error)
	// looked is what was looked up; nil: the answer is about what the API server serves.
	looked []effect.Ref
}

// rest notes what a release rests on.
func (m *Manager) rest(in *sync.Map, ref Ref, on *resting) {
	if _, before := in.Swap(ref, on); !before {
		m.lookSoon()
	}
}

// ask notes what the chart of a release asks, with the answer of now. The error says why there is none.
func (m *Manager) ask(ref Ref, f chart.Facts) error {
	if !f.Asks {
		m.questions.Delete(ref)
		return nil
	}
	answer, err := m.answer(f)
	m.rest(&m.questions, ref, &resting{answer: answer, again: func(context.Context) (string, error) { return m.answer(f) }})
	return err
}

func (m *Manager) answer(f chart.Facts) (string, error) {
	caps, err := m.capabilities()
	if err != nil {
		return "", err
	}
	m.capsMu.Lock()
	defer m.capsMu.Unlock()
	if err := f.Unanswered(m.failed); err != nil {
		return "", err
	}
	return caps.KubeVersion.Version + "\n" + f.Answer(caps), nil
}

// Recheck names the modules whose charts get another answer now than their releases rest on, each change once: about
// what the API server serves, or from their lookups. All says that each chart got an answer. A request that fails
// decides nothing.
func (m *Manager) Recheck(ctx context.Context, lookups bool) (modules []string, all bool) {
	in := &m.questions
	if lookups {
		in = &m.followed
	}
	rests := map[Ref]*resting{}
	for ref, on := range in.Range {
		rests[ref.(Ref)] = on.(*resting)
	}
	all = true
	for _, ref := range slices.SortedFunc(maps.Keys(rests), func(a, b Ref) int { return strings.Compare(recordKey(a), recordKey(b)) }) {
		was := rests[ref]
		now, err := was.again(ctx)
		if all = all && err == nil; err == nil && now != was.answer && in.CompareAndSwap(ref, was, &resting{now, was.again, was.looked}) {
			modules = append(modules, ref.Module)
		}
	}
	slices.Sort(modules)
	return slices.Compact(modules), all
}

// followSoon and followLate are how long Follow waits between two looks.
const (
	followSoon = time.Second
	followLate = 10 * time.Second
	// followLookups is how long it waits between two looks at what charts have looked up.
	followLookups = time.Minute
	// followTimeout bounds one request of a look.
	followTimeout = 10 * time.Second
)

// Follow calls tell for each module that [Manager.Recheck] names, as soon as Starling has changed what is served, and
// within seconds when others have, and once a minute where it is for lookups. It returns when
// ctx has ended. While no chart asks, it asks nothing.
func (m *Manager) Follow(ctx context.Context, tell func(module string)) {
	var seen [2]string
	lookups := time.Now()
	for wait := time.Duration(0); ; {
		select {
		case <-ctx.Done():
			return
		case <-m.asks:
			wait = followSoon
		case <-time.After(cmp.Or(wait, time.Hour)):
			wait = min(2*wait, followLate)
			seen = m.lookAgain(ctx, seen)
		}
		if !m.Asks() && len(m.LookedUp()) == 0 {
			wait = 0
		}
		modules, _ := m.Recheck(ctx, false)
		if time.Since(lookups) >= followLookups {
			lookups = time.Now()
			changed, _ := m.Recheck(ctx, true)
			modules = append(modules, changed...)
		}
		for _, module := range modules {
			tell(module)
		}
	}
}

// lookAgain forgets discovery when the API server serves something else than discovery has read. It returns the tags
// of its version and of what it serves; seen are those of the last look.
func (m *Manager) lookAgain(ctx context.Context, seen [2]string) [2]string {
	if !m.Asks() {
		return seen
	}
	now := seen
	requests, cancel := context.WithTimeout(ctx, followTimeout)
	defer cancel()
	for i, path := range [2]string{"version", "apis"} {
		tag, err := m.tagOf(requests, path, seen[i])
		if err != nil {
			return seen
		}
		now[i] = tag
	}
	if now == seen {
		return seen
	}
	m.capsMu.Lock()
	before := m.caps
	m.capsMu.Unlock()
	caps, failed, err := helm.CapabilitiesOf(discovery.NewDiscoveryClient(m.o.Discovery.RESTClient()), before)
	if err != nil {
		return seen
	}
	m.capsMu.Lock()
	same := !m.stale && m.caps != nil && reflect.DeepEqual(*m.caps, *caps) && len(m.failed) == len(failed)
	m.capsMu.Unlock()
	if !same {
		m.ResetDiscovery()
	}
	return now
}

// Asks says whether some chart does.
func (m *Manager) Asks() bool {
	for range m.questions.Range {
		return true
	}
	return false
}

// lookSoon has Follow look.
func (m *Manager) lookSoon() {
	select {
	case m.asks <- struct{}{}:
	default:
	}
}

// tagOf is the ETag of what is at a path of the API server, or a digest of it: it differs when that differs. Seen is the
// last answer: an API server that has no other one says so, and no more.
func (m *Manager) tagOf(ctx context.Context, path, seen string) (string, error) {
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, m.core.RESTClient().Get().AbsPath(path).URL().String(), nil)
	if err != nil {
		return "", err
	}
	r.Header.Set("Accept", "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList,application/json")
	if strings.HasPrefix(seen, `"`) {
		r.Header.Set("If-None-Match", seen)
	}
	resp, err := m.http.Do(r)
	if err != nil {
		return "", err
	}
	defer resp.Body.Close()
	h := sha256.New()
	_, err = io.Copy(h, resp.Body)
	switch tag := resp.Header.Get("ETag"); {
	case resp.StatusCode == http.StatusNotModified:
		return seen, nil
	case resp.StatusCode != http.StatusOK:
		return "", errors.New(resp.Status)
	case strings.HasPrefix(tag, `"`):
		return tag, err
	}
	return hex.EncodeToString(h.Sum(nil)), err
}

// A chart that looks things up is rendered again when the answers change, where the same answers give the same
// manifest. One that makes random values, too, waits for the next pass: each status that moves would give it other
// ones.

// mostFollowed is how many objects a lookup may have found that is made again.
const mostFollowed = 100

// follow notes the lookups of a render, which [Manager.Follow] makes again. same: it gave the expected manifest.
func (r *reconcile) follow(of rendering, same bool) {
	answers := maps.Clone(of.answers)
	maps.DeleteFunc(answers, func(_ effect.Ref, f found) bool { return f.objects > mostFollowed })
	if !same || len(answers) == 0 {
		r.m.followed.Delete(r.t.Ref())
		return
	}
	t, looked := Target{Input: chart.Input{Namespace: r.t.Namespace, Lookup: r.t.Lookup}}, slices.SortedFunc(maps.Keys(answers), effect.Ref.Compare)
	r.m.rest(&r.m.followed, r.t.Ref(), &resting{digestOf(answers), func(ctx context.Context) (string, error) {
		l := &lookups{m: r.m, target: t}
		for _, of := range looked {
			if _, err := l.find(ctx, of); err != nil && !apierrors.IsNotFound(err) {
				return "", err
			}
		}
		return digestOf(l.answers), nil
	}, looked})
}

// LookedUp are the kinds of what is followed.
func (m *Manager) LookedUp() []schema.GroupVersionKind {
	kinds := map[schema.GroupVersionKind]bool{}
	for _, on := range m.followed.Range {
		for _, of := range on.(*resting).looked {
			kinds[schema.FromAPIVersionAndKind(of.APIVersion, of.Kind)] = true
		}
	}
	return slices.SortedFunc(maps.Keys(kinds), func(a, b schema.GroupVersionKind) int { return strings.Compare(a.String(), b.String()) })
}
