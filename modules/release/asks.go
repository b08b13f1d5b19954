package release

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"io"
	"net/http"
	"net/url"
	"reflect"
	"slices"
	"strings"
	"time"

	"k8s.io/client-go/discovery"

	"github.com/starling-operator/starling/modules/chart"
	"github.com/starling-operator/starling/modules/helm"
)

// A chart that asks what the API server serves is rendered again when the answer changes
// (docs/decisions/0097-charts-that-ask-are-rendered-again.md).

// question is what a chart has asked, and the answer that its release rests on; "" when there was none.
type question struct {
	chart.Facts
	answer string
}

// ask notes what the chart of a release asks, with the answer of now. The error says why there is none.
func (m *Manager) ask(ref Ref, f chart.Facts) error {
	if !f.Asks {
		m.questions.Delete(ref)
		return nil
	}
	answer, err := m.answer(f)
	if _, before := m.questions.Swap(ref, question{f, answer}); !before {
		m.lookSoon()
	}
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

// Recheck names the modules whose charts get another answer now than their releases rest on, each change once. All
// says that each chart got one.
func (m *Manager) Recheck() (modules []string, all bool) {
	all = true
	m.questions.Range(func(ref, of any) bool {
		was := of.(question)
		now, err := m.answer(was.Facts)
		if all = all && err == nil; err == nil && now != was.answer && m.questions.CompareAndSwap(ref, was, question{was.Facts, now}) {
			modules = append(modules, ref.(Ref).Module)
		}
		return true
	})
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
// within seconds when others have, and once a minute for those that [Manager.RecheckLookups] names. It returns when
// ctx has ended. While no chart asks, it asks nothing.
func (m *Manager) Follow(ctx context.Context, tell func(module string)) {
	var seen [2]string
	lookups := time.Now()
	for wait := time.Duration(0); ; {
		timer := time.NewTimer(cmp.Or(wait, time.Hour))
		select {
		case <-ctx.Done():
			timer.Stop()
			return
		case <-m.asks:
			timer.Stop()
			wait = followSoon
		case <-timer.C:
			wait = min(2*wait, followLate)
			seen = m.lookAgain(ctx, seen)
		}
		if !m.Asks() && len(m.LookedUp()) == 0 {
			wait = 0
		}
		modules, _ := m.Recheck()
		if time.Since(lookups) >= followLookups {
			lookups = time.Now()
			modules = append(modules, m.RecheckLookups(ctx)...)
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
	at, err := url.JoinPath(m.host, path)
	if err != nil {
		return "", err
	}
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, at, nil)
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
