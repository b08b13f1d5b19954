package webhook

import (
	"bytes"
	"context"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/rs/zerolog"
	"go.starlark.net/starlark"

	"github.com/starling-operator/starling/runtime/cluster"
	"github.com/starling-operator/starling/runtime/effect"
	"github.com/starling-operator/starling/runtime/generation"
	"github.com/starling-operator/starling/runtime/object"
	"github.com/starling-operator/starling/runtime/tlsfiles"
	"github.com/starling-operator/starling/runtime/watch"
)

// Options configures a [Manager]. All fields but Always, CertDir, ClientCA, CheckModule, Unreachable,
// Registered, TookOver, Expires, Leader, Serving, Stays and Now are required.
type Options struct {
	Client     *cluster.Client
	Generation *generation.Generation
	// Namespace and Name are the instance, Instance its label.
	Namespace, Name, Instance string
	Endpoint
	Answer Answer
	// CheckModule reviews Module objects while hooks are asked, too; nil: there are none.
	CheckModule CheckModule
	// Observe is told of each request that was answered. It must not block.
	Observe func(Observation)
	// Expires is told when the certificate that is served ends.
	Expires func(time.Time)
	// Leader is where the process that leads listens, HOST:PORT: it is asked what no hook of this process answers.
	// "": that is this process, or the address is not known. Nil: nobody is asked.
	Leader func() string
	// Registered is told, once, why the API server does not ask a hook, and then, with nil, that it does.
	Registered func(hook string, err error)
	// TookOver is told of a definition that somebody else has converted before, and who.
	TookOver func(definition effect.Ref, from string)
	// Grace is how long a module must be gone from the tree before what it has registered goes. Stays says of one that
	// it does not go yet; it is asked again after as long.
	Grace time.Duration
	Stays func(module string) bool
	Log   zerolog.Logger
	// Now is the clock; nil means time.Now.
	Now func() time.Time
}

// Manager runs the server. Once [Manager.Lead] is called it also keeps certificates, webhook configurations and the
// conversions of CustomResourceDefinitions as they should be; before that it writes nothing.
type Manager struct {
	o       Options
	gen     atomic.Pointer[generation.Generation]
	server  *server
	source  source
	watches *watch.Manager
	signal  chan struct{}
	leads   atomic.Pointer[context.Context] // of what it writes; nil: it does not lead
	ready   atomic.Bool                     // see [Manager.Ready]

	mu sync.Mutex
	// served are the hooks that take requests now, by module. A module of which nothing was said yet is not in it.
	served map[string][]*generation.Hook
	// waits are hooks that nothing is known about yet, while others of their module are known.
	waits map[string][]*generation.Hook
	// inherited are modules of which that was said before this manager led: they are answered, and their
	// registrations stay as they are.
	inherited map[string]bool
	// keeps: registrations of hooks that the tree lacks stay, see [Manager.TakeAway].
	keeps  bool
	synced map[string]bool // watches
	broken map[string]error

	// The fields below belong to the goroutine of Run.
	listens   bool // with a certificate or without
	running   bool // it answers
	watching  bool
	led       *context.Context // as which it looked last, see leads
	looked    time.Time        // for certificates, the last time
	converted []string         // definitions that are watched
	certs     certificates
	published []byte // the bundle that all objects have
	known     map[string]string
	// unregistered are the hooks that could not be registered, with the reason that was told.
	unregistered map[string]string
	attempt      int
	away         map[string]time.Time // modules that are not in the tree, with when they go
}

const (
	watchValidating  = "validating"
	watchMutating    = "mutating"
	watchDefinitions = "definitions"

	maxDelay = 30 * time.Second
	// leastPause lies between two looks.
	leastPause = 10 * time.Millisecond
	// lookForKind is how often a kind is looked for that is not served.
	lookForKind = 10 * time.Second
)

// New prepares a manager. With Always a port in use is an error at once. The address is not kept open before Run: a
// process that cannot answer had better refuse connections than let them wait.
func New(o Options) (*Manager, error) {
	if o.Now == nil {
		o.Now = time.Now
	}
	if o.Registered == nil {
		o.Registered = func(string, error) {}
	}
	if o.TookOver == nil {
		o.TookOver = func(effect.Ref, string) {}
	}
	if o.Expires == nil {
		o.Expires = func(time.Time) {}
	}
	m := &Manager{
		o: o, server: newServer(effect.Instance{Namespace: o.Namespace, Name: o.Name}, o.Client.Others, o.Answer, o.Observe, o.Log), signal: make(chan struct{}, 1),
		served: map[string][]*generation.Hook{}, waits: map[string][]*generation.Hook{}, synced: map[string]bool{}, broken: map[string]error{}, known: map[string]string{},
		unregistered: map[string]string{},
	}
	m.server.checkModule, m.server.lacks = o.CheckModule, m.Wake
	if names := o.Reach.names(o.Namespace); o.Leader != nil && len(names) > 0 {
		m.server.forwarder = newForwarder(o.Leader, names[0])
	}
	m.gen.Store(o.Generation)
	m.o.Generation = nil // there may soon be another one
	if o.ClientCA != "" {
		clients, err := tlsfiles.OpenAuthorities(o.ClientCA, clientsFlag)
		if err != nil {
			return nil, err
		}
		m.server.require(clients)
	}
	if o.CertDir != "" {
		m.source = &mounted{dir: o.CertDir}
	} else {
		m.source = &ownCertificates{
			store: newSecretStore(o.Client, o.Namespace, o.Name, o.Instance),
			who:   o.Namespace + "/" + o.Name, names: o.Reach.names(o.Namespace), log: o.Log,
		}
	}
	m.watches = watch.New(watch.Options{Client: o.Client, Sink: sink{m}})
	if o.Always {
		ln, err := m.listen()
		if err != nil {
			return nil, err
		}
		ln.Close()
	}
	return m, nil
}

// Serve says which hooks of a module take requests from now on, in place of those before, and of which
// that is not known yet: what these have registered stays as it is. It does not block.
func (m *Manager) Serve(module *generation.Module, hooks, waits []*generation.Hook) {
	m.mu.Lock()
	for _, h := range m.served[module.Name] {
		if slices.ContainsFunc(waits, func(other *generation.Hook) bool { return other.ID == h.ID }) {
			hooks = append(slices.Clip(hooks), h)
		}
	}
	m.served[module.Name], m.waits[module.Name] = hooks, waits
	delete(m.inherited, module.Name)
	m.mu.Unlock()
	m.Wake()
}

// Drain takes no more requests, for good, and waits until those under way are answered,
// or ctx ends. Registered webhooks stay.
func (m *Manager) Drain(ctx context.Context) { m.server.end.Drain(ctx) }

// Use has another generation in force. [Manager.Serve] says what its modules serve.
func (m *Manager) Use(g *generation.Generation) {
	m.gen.Store(g)
	m.mu.Lock()
	for name := range m.served {
		if g.Modules[name] == nil && (g.Global == nil || g.Global.Name != name) {
			delete(m.served, name)
			delete(m.waits, name)
		}
	}
	m.mu.Unlock()
	m.Wake()
}

// Wake has the manager look at everything, because kinds may have come.
func (m *Manager) Wake() {
	select {
	case m.signal <- struct{}{}:
	default:
	}
}

// sink takes notice of changes of our objects.
type sink struct{ m *Manager }

func (s sink) Synced(id string, _ bool) {
	s.m.mu.Lock()
	s.m.synced[id] = true
	s.m.mu.Unlock()
	s.m.Wake()
}

func (s sink) Changed(string, []watch.Event) { s.m.Wake() }

func (s sink) Failed(id string, err error, _ bool) {
	s.m.mu.Lock()
	defer s.m.mu.Unlock()
	if err == nil {
		delete(s.m.broken, id)
		return
	}
	if was := s.m.broken[id]; was == nil || was.Error() != err.Error() {
		s.m.broken[id] = err
		if id != watchDefinitions { // each conversion tells of it
			s.m.o.Log.Error().Msg("webhooks: " + err.Error())
		}
		s.m.Wake()
	}
}

// Run works until ctx ends.
func (m *Manager) Run(ctx context.Context) {
	defer m.watches.Shutdown()
	defer func() {
		if m.listens {
			m.server.end.Stop()
		}
	}()
	swept, found := false, make(chan map[string]map[string]any)
	for ctx.Err() == nil {
		var next time.Time
		bindings := bindingsOf(m.gen.Load())
		leads, before := m.leads.Load(), m.converted
		begins := leads != m.led && leads != nil
		if begins { // whether or not it was seen that another process led
			swept, m.certs.next = false, time.Time{} // what has fallen due of them is its work now
		}
		m.led = leads
		switch {
		case leads == nil:
			next = m.standBy(ctx, bindings)
		case len(bindings) > 0 || m.o.Always || m.watching:
			m.watch(bindings)
			next = m.step(*leads)
		case swept:
			next = m.o.Now().Add(time.Hour)
		default:
			m.ready.Store(true) // nobody asks
			if swept = m.sweep(*leads); !swept {
				next = m.again(m.o.Now())
			}
		}
		if m.o.Unreachable == "" && (begins || leads != nil && !slices.Equal(before, m.converted)) {
			go func() { // definitions are many
				names, _ := converted(ctx, m.o.Client, m.o.Instance) // without the right it has converted none
				select {
				case found <- names:
				case <-ctx.Done():
				}
			}()
		}
		for _, at := range m.away {
			if at.After(m.o.Now()) && at.Before(next) {
				next = at
			}
		}
		timer := time.NewTimer(max(next.Sub(m.o.Now()), leastPause))
		select {
		case <-ctx.Done():
		case <-m.signal:
		case names := <-found:
			m.deserted(names)
		case <-timer.C:
		}
		timer.Stop()
	}
}

// watch follows our own objects, and the definitions that hooks convert.
func (m *Manager) watch(bindings []bound) {
	var crds []string
	for _, b := range bindings {
		if b.binding.Convert != nil {
			crds = append(crds, b.binding.Convert.CRD)
		}
	}
	if !m.watching {
		m.watching = true
		ours := instanceSelector(m.o.Instance)
		m.watches.Start(watch.Spec{ID: watchValidating, APIVersion: registration, Kind: kindValidating, Labels: ours})
		m.watches.Start(watch.Spec{ID: watchMutating, APIVersion: registration, Kind: kindMutating, Labels: ours})
	}
	if slices.Equal(crds, m.converted) {
		return
	}
	m.converted = crds
	m.watches.Stop(watchDefinitions)
	m.mu.Lock()
	m.synced[watchDefinitions] = false
	delete(m.broken, watchDefinitions)
	m.mu.Unlock()
	if len(crds) > 0 {
		m.watches.Start(watch.Spec{ID: watchDefinitions, APIVersion: definitions, Kind: kindDefinition, Names: crds, Filter: conversionOnly})
	}
}

// deserted tells of definitions that this instance converts and its tree does not. They are answered all the same: the
// API server's error says what to do.
func (m *Manager) deserted(ours map[string]map[string]any) {
	for name, is := range ours {
		var err error
		if converter(is) == m.o.Instance && !ofOthers(is) && !slices.Contains(m.converted, name) {
			m.o.Always = true
			err = fmt.Errorf("nobody converts %s %s any more, so its objects cannot be read but in their stored version: put the hook back, or end the conversion with `starling detach`", kindDefinition, name)
		}
		_ = m.tell("nobody converts "+name, err)
	}
}

// conversionOnly keeps of a definition what is looked at here.
func conversionOnly(obj map[string]any) (starlark.Value, bool, error) {
	annotations := effect.At[map[string]any](obj, "metadata", "annotations")
	return object.New(map[string]any{
		"name": effect.At[any](obj, "metadata", "name"), "instance": annotations[effect.ConvertedByAnnotation],
		"before": annotations[annotationBefore], "conversion": effect.At[any](obj, "spec", "conversion"), "others": ofOthers(obj),
	}), true, nil
}

// step does what there is to do and returns when to come again at the latest.
func (m *Manager) step(ctx context.Context) time.Time {
	now := m.o.Now()
	want := m.wanted()
	if m.o.Unreachable != "" {
		if len(want.all) > 0 {
			m.tell("reach", fmt.Errorf("nothing is registered: %s", m.o.Unreachable))
		}
		m.ready.Store(true)
		return now.Add(time.Hour)
	}
	if len(want.all) > 0 || want.converting || m.o.Always || m.running {
		m.server.setRoutes(want.routes)
		if err := m.serve(ctx, now); m.tell("serve", err) != nil {
			if !m.running {
				m.account(want.because(err))
			}
			return m.again(now)
		}
	}
	m.ready.Store(true)
	if !want.synced { // a watch wakes us
		if want.unseen != nil {
			m.account(want.because(want.unseen))
			return m.again(now)
		}
		return m.certificatesDue(now)
	}
	waiting, err := m.reconcile(ctx, want)
	if err != nil {
		return m.again(now)
	}
	m.attempt = 0
	if m.running && !bytes.Equal(m.published, m.certs.bundle) {
		m.published = m.certs.bundle
		m.certs.next = now // the next step of a rotation may be due
		return now
	}
	next := m.certificatesDue(now)
	if waiting && next.Sub(now) > lookForKind {
		next = now.Add(lookForKind)
	}
	return next
}

// certificatesDue is when something of the certificates falls due.
func (m *Manager) certificatesDue(now time.Time) time.Time {
	if m.running {
		return m.certs.next
	}
	return now.Add(time.Hour)
}
