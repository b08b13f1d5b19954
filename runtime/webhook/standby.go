package webhook

import (
	"bytes"
	"context"
	"encoding/base64"
	"time"

	"github.com/starling-operator/starling/runtime/effect"
	"github.com/starling-operator/starling/runtime/object"
)

// lookForCertificates is how often those that stand by look for certificates that should be there.
const lookForCertificates = 10 * time.Second

// Lead has the manager write from now on, until ctx ends: the Lease is held. [Manager.Serve] says again what modules serve;
// requests are answered as before until then. Hooks that the tree lacks stay registered until [Manager.TakeAway].
func (m *Manager) Lead(ctx context.Context) {
	m.mu.Lock()
	m.inherited, m.keeps = map[string]bool{}, true
	for name := range m.served {
		m.inherited[name] = true
	}
	m.mu.Unlock()
	m.leads.Store(&ctx)
	m.Wake()
}

// TakeAway has the manager delete registrations of hooks that the tree lacks: no other process has a newer tree.
func (m *Manager) TakeAway() {
	m.mu.Lock()
	m.keeps = false
	m.mu.Unlock()
	m.Wake()
}

// Yield has the manager write no more: the Lease is lost, or given back. It answers on, as one that stands by.
func (m *Manager) Yield() {
	m.leads.Store(nil)
	m.Wake()
}

// Ready says whether the manager has come to answer all that it may be asked.
func (m *Manager) Ready() bool { return m.ready.Load() }

// standBy answers with the certificates that the process that leads has made, once there are some; it listens before.
// It returns when to come again at the latest.
func (m *Manager) standBy(ctx context.Context, bindings []bound) time.Time {
	now := m.o.Now()
	if m.o.Unreachable != "" || len(bindings) == 0 && !m.o.Always && !m.running {
		m.ready.Store(true)
		return now.Add(time.Hour)
	}
	m.watch(bindings)
	want := m.wanted()
	m.server.setRoutes(want.routes)
	waiting := m.server.waiting.Load() > 0
	switch soon := m.looked.Add(lookSoon); {
	case m.tell("listen", m.open()) != nil:
		m.ready.Store(!m.registered())
		return m.again(now)
	case len(want.all) == 0 && !want.converting && !m.o.Always && !m.running && !waiting:
		m.ready.Store(true)
		return now.Add(time.Hour)
	case waiting && soon.After(now): // whoever asks must not have it look all the time
		return soon
	}
	again := m.looked.Add(lookForCertificates)
	outdated := m.outdated()
	if outdated && !now.Before(again) {
		m.certs.next = now
	}
	err := m.serve(ctx, now)
	// While the API server is told to ask nobody, there may be no certificate: the one that leads has another tree.
	m.ready.Store(m.running || !m.registered())
	if m.tell("serve", err) != nil {
		return m.again(now)
	}
	m.attempt = 0
	switch {
	case !m.running && m.server.waiting.Load() > 0:
		return now.Add(lookSoon)
	case !m.running || !m.certs.next.After(now):
		return now.Add(lookForCertificates) // certificates are not made yet, or have gone
	case outdated && again.After(now):
		return again
	}
	return m.certs.next
}

// look returns the certificates, and makes them if that is its work.
func (m *Manager) look(ctx context.Context, now time.Time) (certificates, error) {
	m.looked = now
	if m.led == nil {
		return m.source.find(ctx, now)
	}
	return m.source.look(ctx, now, m.published != nil && bytes.Equal(m.published, m.certs.bundle))
}

// registered says whether the API server is told to ask this instance, or may be.
func (m *Manager) registered() bool {
	m.mu.Lock()
	known := m.synced[watchValidating] && m.synced[watchMutating] && (m.synced[watchDefinitions] || len(m.converted) == 0)
	m.mu.Unlock()
	if !known || len(m.watches.Snapshot(watchValidating))+len(m.watches.Snapshot(watchMutating)) > 0 {
		return true
	}
	for _, v := range m.watches.Snapshot(watchDefinitions) {
		if v.(*object.Object).Map()["instance"] == m.o.Instance {
			return true
		}
	}
	return false
}

// outdated says whether the API server is told to trust other certificates than those that are
// served here: there are new ones.
func (m *Manager) outdated() bool {
	bundle := base64.StdEncoding.EncodeToString(m.certs.bundle)
	other := func(client any) bool {
		c, is := client.(map[string]any)
		return is && c["caBundle"] != bundle
	}
	for _, id := range []string{watchValidating, watchMutating} {
		for _, v := range m.watches.Snapshot(id) {
			hooks, _ := v.(*object.Object).Map()["webhooks"].([]any)
			for _, hook := range hooks {
				if h, _ := hook.(map[string]any); other(h["clientConfig"]) {
					return true
				}
			}
		}
	}
	for _, v := range m.watches.Snapshot(watchDefinitions) {
		obj := v.(*object.Object).Map()
		webhook := effect.At[map[string]any](obj, "conversion", "webhook")
		if obj["instance"] == m.o.Instance && other(webhook["clientConfig"]) {
			return true
		}
	}
	return false
}
