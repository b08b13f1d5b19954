package watch

import (
	"cmp"
	"context"
	"io"
	"runtime"
	"slices"
	"sync"
	"time"

	"github.com/starling-operator/starling/runtime/cluster"
	"github.com/starling-operator/starling/runtime/effect"
	"github.com/starling-operator/starling/runtime/lane"
	"go.starlark.net/starlark"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/klog/v2"
)

// Client is what a manager needs of [cluster.Client].
type Client interface {
	Mapping(ctx context.Context, apiVersion, kind string) (cluster.Mapping, error)
	Served(ctx context.Context, apiVersion string) (map[string]cluster.Mapping, error)
	Each(ctx context.Context, m cluster.Mapping, namespace string, o metav1.ListOptions, fn func(map[string]any) error) (string, error)
	Watch(ctx context.Context, m cluster.Mapping, namespace string, o metav1.ListOptions) (io.ReadCloser, error)
	Explain(err error, verb string, m cluster.Mapping, namespace string) error
}

// Options says how to watch. Client and Sink are required.
type Options struct {
	Client Client
	Sink   Sink
	// Backoff is the delay between attempts to list and watch again. The zero value means
	// 200 ms to 10 s.
	Backoff lane.Backoff
	// Recheck is the delay between looks for a kind that is not served. The zero value means
	// 250 ms to 10 s.
	Recheck lane.Backoff
	// Idle is how long a watch may be silent before it is opened anew. The API
	// server sends a bookmark a minute, so silence means a dead connection. 0
	// means 3 minutes.
	Idle time.Duration
	// Held is how many bytes of memory all snapshots may hold; one watch may hold half
	// of it. 0 means two fifths of the memory limit of the process, or 4 GiB.
	Held int64
}

// Manager runs watches. Make it with [New], end it with [Manager.Shutdown]. All
// methods are safe for concurrent use, and none waits for the network.
type Manager struct {
	o      Options
	ctx    context.Context
	cancel context.CancelFunc
	wg     sync.WaitGroup

	held budget // what all snapshots hold, see [Options].Held

	// mu guards what follows. Locks are taken in the order manager, stream,
	// subscription; the sink is called with none of them held.
	mu        sync.Mutex
	closed    bool
	subs      map[string]*subscription
	streams   map[streamKey]*stream
	resolvers map[string]*resolver // by apiVersion
	// turns bound how many filters of one module run at a time, by module: its share of
	// the processor.
	turns map[string]*turns
	// refused are those that may not have the streams that they need.
	refused map[*subscription]bool
}

// turns are those of one module, as long as it has watches.
type turns struct {
	tokens  chan struct{}
	watches int
}

// turnsOf returns those of the module of one more watch. Called with m.mu held.
func (m *Manager) turnsOf(module string) chan struct{} {
	t := m.turns[module]
	if t == nil {
		t = &turns{tokens: make(chan struct{}, max(1, runtime.GOMAXPROCS(0)/2))}
		m.turns[module] = t
	}
	t.watches++
	return t.tokens
}

// New makes a manager with no watches.
func New(o Options) *Manager {
	o.Backoff = cmp.Or(o.Backoff, lane.Backoff{Min: 200 * time.Millisecond, Max: 10 * time.Second, Factor: 2})
	o.Recheck = cmp.Or(o.Recheck, lane.Backoff{Min: 250 * time.Millisecond, Max: 10 * time.Second, Factor: 2})
	o.Idle = cmp.Or(o.Idle, 3*time.Minute)
	// client-go logs what the sink is told anyway.
	ctx, cancel := context.WithCancel(klog.NewContext(context.Background(), klog.Logger{}))
	return &Manager{
		o: o, ctx: ctx, cancel: cancel,
		held:      budget{limit: cmp.Or(o.Held, heldLimit()), views: map[*view]held{}},
		subs:      map[string]*subscription{},
		streams:   map[streamKey]*stream{},
		resolvers: map[string]*resolver{},
		turns:     map[string]*turns{},
		refused:   map[*subscription]bool{},
	}
}

// Start begins a watch. A watch with the same ID is stopped first.
func (m *Manager) Start(spec Spec) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.closed {
		return
	}
	if old := m.subs[spec.ID]; old != nil {
		m.remove(old)
	}
	sub := newSubscription(spec, m.o.Sink)
	sub.turn = m.turnsOf(spec.Module)
	m.subs[spec.ID] = sub
	if !m.share(sub) {
		m.look(sub)
	}
	if len(m.refused) > 0 {
		m.askAgain()
	}
}

// share puts a subscription at once on streams that are all there, so that it has them
// before a watch that must be stopped gives them up. Called with m.mu held.
func (m *Manager) share(sub *subscription) bool {
	mapping, known := m.streaming(sub.spec)
	if !known || sub.spec.NamespaceLabels != "" {
		return false
	}
	at, err := place(sub.spec, mapping)
	if err != nil {
		return false
	}
	for _, key := range at.keys(sub.spec, namespacesOf(sub.spec, mapping)) {
		if m.streams[key] == nil {
			return false
		}
	}
	if _, err := m.attach(sub, mapping); err != nil {
		return false
	}
	m.wg.Go(sub.flush)
	return true
}

// streaming finds the kind of a watch among those that are streamed.
func (m *Manager) streaming(spec Spec) (cluster.Mapping, bool) {
	for key, s := range m.streams {
		if key.apiVersion == spec.APIVersion && key.kind == spec.Kind {
			return s.mapping, true
		}
	}
	return cluster.Mapping{}, false
}

// Stop ends a watch. A stream that nobody shares any more ends with it.
func (m *Manager) Stop(id string) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if sub := m.subs[id]; sub != nil {
		m.remove(sub)
		if len(m.refused) > 0 {
			m.askAgain()
		}
	}
}

// remove is called with m.mu held.
func (m *Manager) remove(sub *subscription) {
	sub.stop()
	delete(m.subs, sub.spec.ID)
	delete(m.refused, sub)
	if t := m.turns[sub.spec.Module]; t != nil && sub.turn != nil {
		if t.watches--; t.watches == 0 {
			delete(m.turns, sub.spec.Module)
		}
	}
	if r := m.resolvers[sub.spec.APIVersion]; r != nil {
		delete(r.waiting, sub)
	}
	if sub.following != nil {
		m.remove(sub.following)
	}
	m.detach(sub)
}

// detach takes a subscription off its streams and returns what it kept there.
// Called with m.mu held.
func (m *Manager) detach(sub *subscription) []*row {
	var rows []*row
	for _, p := range sub.allParts() {
		rows = append(rows, m.leave(sub, p)...)
	}
	slices.SortFunc(rows, compareRows)
	sub.place = nil
	return rows
}

// leave takes a subscription off one stream and returns what it kept there and has
// told of. Called with m.mu held.
func (m *Manager) leave(sub *subscription, p *part) []*row {
	rows, empty := p.stream.leave(sub, p.view)
	if empty && m.streams[p.stream.key] == p.stream {
		p.stream.cancel()
		delete(m.streams, p.stream.key)
	}
	if !sub.drop(p) {
		return nil
	}
	return rows
}

// Snapshot returns what a watch keeps, sorted by namespace and name, each value
// frozen. It is empty before the first sync, for an unknown ID, and for a kind
// that is not served. Others may have the same slice: it must not be changed. It waits
// until the watch's own filter has seen what was written, see [Manager.Observe].
func (m *Manager) Snapshot(id string) []starlark.Value {
	parts, _ := m.parts(id)
	if len(parts) == 1 {
		return read(parts[0], true, (*view).snapshot)
	}
	return results(rowsOf(parts, true, (*view).all))
}

// About returns what a watch keeps of the objects of which an event wakes a key, see [Spec].Wakes, without
// those that wake all, sorted by namespace and name. It goes through no others.
func (m *Manager) About(id, key string) []starlark.Value {
	parts, _ := m.parts(id)
	return results(rowsOf(parts, true, func(v *view) []*row { return v.about(key) }))
}

// Entries returns what a watch keeps with the names of the objects, in the order of
// [Manager.Snapshot].
func (m *Manager) Entries(id string) []Entry {
	parts, _ := m.parts(id)
	rows := rowsOf(parts, false, (*view).all)
	out := make([]Entry, len(rows))
	for i, r := range rows {
		out[i] = r.entry()
	}
	return out
}

// Positions returns how far a watch has come.
func (m *Manager) Positions(id string) Positions {
	out := Positions{}
	parts, _ := m.parts(id)
	for _, p := range parts {
		out[p.stream.key.namespace] = read(p, false, func(*view) uint64 { return p.stream.position })
	}
	return out
}

// Complete says whether there is such a watch, and all that there is is in its snapshot.
func (m *Manager) Complete(id string) bool {
	_, synced := m.parts(id)
	return synced
}

// Find returns what a watch keeps of one object. Known is false when there is no such
// watch, or it is not complete.
func (m *Manager) Find(id, namespace, name string) (found Entry, there, known bool) {
	parts, synced := m.parts(id)
	for _, p := range parts {
		find := func(v *view) *row { _, r := v.find(objectKey{namespace, name}); return r }
		if r := read(p, true, find); r != nil {
			return r.entry(), true, true
		}
	}
	return Entry{}, false, synced
}

// Lacking names an object that the snapshot of a watch with [Spec].Each lacks, because the
// filter has never given a result for it; "" when there is none.
func (m *Manager) Lacking(id string) string {
	parts, _ := m.parts(id)
	for _, p := range parts {
		if name := read(p, false, (*view).lacking); name != "" {
			return name
		}
	}
	return ""
}

// Size returns how many objects a watch keeps.
func (m *Manager) Size(id string) int {
	n := 0
	parts, _ := m.parts(id)
	for _, p := range parts {
		n += read(p, false, func(v *view) int { return len(v.rows) })
	}
	return n
}

// Bytes returns about how many bytes of memory a watch keeps; what it shares with others counts in
// full.
func (m *Manager) Bytes(id string) (bytes int64) {
	parts, _ := m.parts(id)
	for _, p := range parts {
		bytes += m.held.of(p.view)
	}
	return bytes
}

// parts are those of a watch that are synced, and whether there is such a watch, and all that there is is in them.
func (m *Manager) parts(id string) (parts []*part, synced bool) {
	m.mu.Lock()
	sub := m.subs[id]
	m.mu.Unlock()
	if sub == nil {
		return nil, false
	}
	return sub.syncedParts()
}

// read returns what is in the view of a part; settled: once its filter has seen what this process has written.
func read[T any](p *part, settled bool, of func(*view) T) T {
	s := p.stream
	s.mu.Lock()
	defer s.mu.Unlock()
	if settled {
		s.settle(p.view)
	}
	return of(p.view)
}

// rowsOf returns rows of all parts, sorted.
func rowsOf(parts []*part, settled bool, of func(*view) []*row) (rows []*row) {
	for _, p := range parts {
		rows = read(p, settled, func(v *view) []*row { return append(rows, of(v)...) })
	}
	if len(parts) > 1 {
		slices.SortFunc(rows, compareRows)
	}
	return rows
}

// Observe takes the API server's answer to our own write into all watches
// that see the object, if it is newer than what they have: the next snapshot is
// never older than the write. It gives the events that the stream would give, and
// the stream then does not repeat them. obj nil says that the object is gone, unless
// what was seen of it since the write was asked for is another one. Cause goes with the events.
func (m *Manager) Observe(ref effect.Ref, obj map[string]any, cause *effect.Cause, asked time.Time) {
	for _, s := range m.covering(ref) {
		s.observe(ref, obj, cause, asked)
	}
}

// covering are the streams of the kind that an object belongs to.
func (m *Manager) covering(ref effect.Ref) (found []*stream) {
	m.mu.Lock()
	defer m.mu.Unlock()
	for key, s := range m.streams {
		if key.apiVersion == ref.APIVersion && key.kind == ref.Kind && s.covers(ref) {
			found = append(found, s)
		}
	}
	return found
}

// Kick looks for kinds that are not served now, because CRDs have just been
// applied, and begins anew with short delays.
func (m *Manager) Kick() {
	m.mu.Lock()
	defer m.mu.Unlock()
	for _, r := range m.resolvers {
		r.kicked = true
		signal(r.wake)
	}
}

// Shutdown stops all watches and waits until their goroutines have ended.
func (m *Manager) Shutdown() {
	m.mu.Lock()
	m.closed = true
	for _, sub := range m.subs {
		sub.stop()
	}
	m.mu.Unlock()
	m.cancel()
	m.wg.Wait()
}
