package release

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net/http"
	"sync"
	"time"

	"github.com/rs/zerolog"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/dynamic"
	corev1client "k8s.io/client-go/kubernetes/typed/core/v1"
	"k8s.io/client-go/metadata"
	"k8s.io/client-go/rest"

	"github.com/starling-operator/starling/modules/chart"
	"github.com/starling-operator/starling/modules/helm"
	"github.com/starling-operator/starling/modules/release/owned"
	"github.com/starling-operator/starling/modules/tree"
	"github.com/starling-operator/starling/runtime/cluster"
	"github.com/starling-operator/starling/runtime/effect"
)

// Options says where a [Manager] works and as whom.
type Options struct {
	// Config reaches the API server. Its RateLimiter holds for all releases together.
	Config *rest.Config
	// Client keeps the records.
	Client *cluster.Client
	// Discovery and Mapper are shared by all releases. Mapper is built over Discovery.
	Discovery discovery.CachedDiscoveryInterface
	Mapper    meta.ResettableRESTMapper
	// Instance is the value of the label starling.dev/instance, at most 63 characters.
	Instance string
	// Namespace is the operator's own; the records are kept there.
	Namespace string
	// Name is the instance's name; the records are in Secrets "<Name>-releases-1" and so on.
	Name string
	// History is how many revisions of a release are kept; 0 means [DefaultHistory].
	History int
	// Converts says of which CustomResourceDefinitions the conversion is set by
	// somebody else, whatever crds/ says; nil: of none.
	Converts func(crd string) bool
	// Folders are those of the modules of the tree, with Err where one is broken. Nil: nobody knows which modules there are.
	Folders func() []*tree.Module
	// Await waits in a simulated cluster for what a Job or Pod of a chart's hooks comes to: until look says that it is
	// done, or within a time of the cluster, and then ends the action with the error timeout. Nil: the cluster is real.
	Await func(ctx context.Context, timeout error, within time.Duration, look func() (done bool, err error)) error
	// Seal tells what hooks of a module have made; nil believes all marks.
	Seal *effect.Seal
	// Others says whether another Starling goes by an object, so that no chart may hold it.
	Others func(effect.Ref) bool
	// Older says that another process has led with a newer module tree, and until when nothing is taken back to the one
	// of this process; "": none has. Nil: none has.
	Older func() string
	// Now is the clock; nil: that of the machine.
	Now func() time.Time
	// Renderer evaluates charts under limits; nil: they are evaluated without any.
	Renderer *chart.Renderer
	Log      zerolog.Logger
}

// DefaultHistory is how many revisions of a release are kept where nothing is said.
const DefaultHistory = 10

const (
	defaultTimeout = 10 * time.Minute
	// grace is how long an action that is stopped has to write down that it failed.
	grace = 2 * time.Second
)

// Manager keeps releases. It is safe for concurrent use, one action a release at a time. Its clients are client-go's,
// over the transport of package cluster with that one's fence.
type Manager struct {
	o       Options
	http    *http.Client
	core    corev1client.CoreV1Interface
	meta    metadata.Interface
	dynamic dynamic.Interface
	records *records
	glances glances
	crds    crdMemory
	facts   sync.Map // Ref → chart.Facts
	current sync.Map // Ref → deployed
	// kindless are the releases whose repair has met a kind that is not served.
	kindless sync.Map // Ref → nothing
	// hookless are the modules whose next uninstall runs no hooks of the chart, see [Manager.Again].
	hookless sync.Map // Ref of the module alone → nothing
	// again are the modules whose rollback somebody wants tried anew, see [Manager.Again].
	again sync.Map // Ref of the module alone → nothing
	// ending are the uninstalls that are under way.
	ending sync.Map // module → its end
	// claims are the objects that releases wait for, see [claims].
	claims sync.Map // Ref → claims
	// told are the fields, left to other writers, that repairs have named in the log.
	told sync.Map // text → nothing
	// questions are those of charts about the API server, see [Manager.ask].
	questions sync.Map // Ref → *resting
	// followed is what charts have looked up, see [reconcile.follow].
	followed sync.Map // Ref → *resting

	// stopped ends with Fence, which waits for the end of all actions. No action begins once mu was held for the end of
	// stopped.
	stopped context.Context
	stop    context.CancelCauseFunc
	mu      sync.Mutex
	actions sync.WaitGroup

	capsMu sync.Mutex
	caps   *helm.Capabilities
	stale  bool             // discovery was forgotten since
	failed map[string]error // group-versions that the API server did not tell of
	// asks has a signal when a chart has asked, or discovery was forgotten.
	asks chan struct{}
}

// New returns a Manager. It reads nothing from the cluster; an error means that Config cannot be used.
func New(o Options) (*Manager, error) {
	o.History = cmp.Or(o.History, DefaultHistory)
	if o.Now == nil {
		o.Now = time.Now
	}
	if o.Older == nil {
		o.Older = func() string { return "" }
	}
	m := &Manager{o: o, asks: make(chan struct{}, 1)}

	config := rest.CopyConfig(o.Config)
	config.Wrap(func(next http.RoundTripper) http.RoundTripper { return patient{next} })
	var err error
	if m.http, err = rest.HTTPClientFor(config); err != nil {
		return nil, fmt.Errorf("the connection to the API server: %w", err)
	}
	if m.core, err = corev1client.NewForConfigAndClient(config, m.http); err != nil {
		return nil, err
	}
	if m.meta, err = metadata.NewForConfigAndClient(metadata.ConfigFor(config), m.http); err != nil {
		return nil, err
	}
	if m.dynamic, err = dynamic.NewForConfigAndClient(dynamic.ConfigFor(config), m.http); err != nil {
		return nil, err
	}
	m.Begin()
	return m, nil
}

// Begin has the manager work again after [Manager.Fence] has returned nil. It knows nothing of any release: another
// process may have worked on it.
func (m *Manager) Begin() {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.stopped, m.stop = context.WithCancelCause(context.Background())
	m.records = m.newRecords()
	m.glances = glances{lists: map[string]*listed{}}
	m.crds.begin()
	for _, of := range m.remembered() {
		of.Clear()
	}
}

// remembered is what is known of each release, by its Ref.
func (m *Manager) remembered() []*sync.Map {
	return []*sync.Map{&m.facts, &m.current, &m.kindless, &m.claims, &m.questions, &m.followed}
}

// Ref names a release and the module it belongs to.
type Ref struct {
	Module    string `json:"module"`
	Name      string `json:"name"`
	Namespace string `json:"namespace"`
}

func (r Ref) String() string { return r.Name + " in namespace " + r.Namespace }

// Target is what a release should be.
type Target struct {
	chart.Input
	// Secrets returns texts of the values that are known to be secret; nil: none are.
	Secrets func() []string
	// Adopt takes over a release that was installed with helm, and objects of the
	// chart's names that are there already, made by any tool.
	Adopt bool
	// ForceCRDs is Force of [CRDOptions].
	ForceCRDs bool
	// Wait waits until the objects are ready before the release counts as deployed.
	Wait bool
	// Rollback goes back to the last revision that was deployed when one fails.
	Rollback bool
	// Timeout ends the whole action, waits and hooks included; 0 means 10 minutes.
	Timeout time.Duration
	// Ignore is what drift does not count in.
	Ignore []owned.Ignore
	// IgnoreDrift leaves the objects without the label by which they are watched, and
	// Result.Objects empty: for charts that a policy forbids other labels.
	IgnoreDrift bool
	// Standing returns Seen of the objects that are there as the revision Of has left them: they are written only if
	// the chart changes them. Nil: none are known.
	Standing func() Objects
}

// Ref names the target's release.
func (t Target) Ref() Ref { return Ref{Module: t.Module, Name: t.Name, Namespace: t.Namespace} }

// Results of a [Manager.Reconcile].
const (
	ActionUnchanged = "unchanged"
	ActionInstalled = "installed"
	ActionUpgraded  = "upgraded"
	// ActionRolledBack is that of a revision that brings back an earlier one.
	ActionRolledBack = "rolled back"
)

// Result is how a release stands after a reconcile.
type Result struct {
	// Action is one of ActionUnchanged, ActionInstalled, ActionUpgraded, ActionRolledBack.
	Action string
	// Reason says why, for people: "inputs unchanged", "manifest changed", …
	Reason string
	// Revision is Helm's number of the last revision; after an error 0 where it is not known.
	Revision int
	// RolledBack says, for people, which revision has failed, why, and which one the release is back at; "": it is as its
	// inputs say.
	RolledBack string
	// Objects are those of the release, by which drift is found.
	Objects Objects
	// Unknown says, for people, which fields the API server has dropped from the objects of the release:
	// "web/templates/a.yaml:7: Deployment web has no field spec.replcias: …".
	Unknown []string
	// Undone are the fields that others had changed since the revision before and that this one has given its values, by
	// object; an object that was gone has none. They are there after an error, too.
	Undone map[Key][]owned.Edit
}

// ErrFenced is the cause of every error after [Manager.Fence].
var ErrFenced = errors.New("starling is stopping")

// Fence ends all writing: what runs is stopped and its release marked failed where that is possible within two
// seconds, what comes later is refused with ErrFenced. It returns when nothing is under way any more, or with ctx.
// Call it before the Lease is given back.
func (m *Manager) Fence(ctx context.Context) error {
	m.mu.Lock()
	m.stop(ErrFenced)
	m.mu.Unlock()
	idle := make(chan struct{})
	go func() {
		m.actions.Wait()
		close(idle)
	}()
	select {
	case <-idle:
		return nil
	case <-ctx.Done():
		return fmt.Errorf("releases are still being written: %w", ctx.Err())
	}
}

// Forget drops what is remembered of a module that is gone, but for its definitions, see [Manager.ForgetCRDs].
func (m *Manager) Forget(module string) {
	for _, of := range m.remembered() {
		for ref := range of.Range {
			if ref.(Ref).Module == module {
				of.Delete(ref)
			}
		}
	}
}

// enter begins a public operation. ctx gets the bound of timeout, by default 10 minutes, and ends with Fence; leave is
// called with the error of the operation.
func (m *Manager) enter(ctx context.Context, timeout time.Duration) (_ context.Context, leave func(*error), err error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.stopped.Err() != nil {
		return nil, nil, context.Cause(m.stopped)
	}
	m.actions.Add(1)
	timeout = cmp.Or(timeout, defaultTimeout)
	ctx, cancel := context.WithCancelCause(ctx)
	ctx, end := context.WithTimeoutCause(ctx, timeout, errTimeout(timeout))
	unhook := context.AfterFunc(m.stopped, func() { cancel(context.Cause(m.stopped)) })
	return ctx, func(err *error) {
		if ctx.Err() == nil { // else somebody has ended it
			*err = passing(*err)
		}
		unhook()
		end()
		cancel(nil)
		m.actions.Done()
	}, nil
}

// errTimeout is the cause of a context that ends after it.
type errTimeout time.Duration

func (e errTimeout) Error() string { return fmt.Sprintf("timed out after %s", time.Duration(e)) }

// ResetDiscovery forgets what the API server serves, so that it is read anew.
// Call it when a CustomResourceDefinition or an APIService came or went.
func (m *Manager) ResetDiscovery() {
	m.o.Discovery.Invalidate()
	m.o.Mapper.Reset()
	m.capsMu.Lock()
	m.stale = true
	m.capsMu.Unlock()
	m.lookSoon()
}

// capabilities is what charts see as .Capabilities, read once and kept until
// ResetDiscovery, or until discovery has forgotten it, as for a kind that others have brought.
func (m *Manager) capabilities() (*helm.Capabilities, error) {
	m.capsMu.Lock()
	defer m.capsMu.Unlock()
	if m.caps != nil && !m.stale && m.o.Discovery.Fresh() {
		return m.caps, nil
	}
	caps, failed, err := helm.CapabilitiesOf(m.o.Discovery, m.caps)
	if err != nil {
		return nil, err
	}
	m.caps, m.failed, m.stale = caps, failed, false
	return caps, nil
}

// validateName refuses what Helm or a label could not hold.
func validateName(ref Ref) error {
	if len(ref.Name) > 53 {
		return fmt.Errorf("release name %q has %d characters; helm allows 53", ref.Name, len(ref.Name))
	}
	if len(validation.IsDNS1123Subdomain(ref.Name)) > 0 {
		return fmt.Errorf("release name %q: use lower case letters, digits, '-' and '.'", ref.Name)
	}
	if ref.Namespace == "" {
		return fmt.Errorf("release %s has no namespace", ref.Name)
	}
	if errs := validation.IsValidLabelValue(ref.Module); len(errs) > 0 {
		return fmt.Errorf("module name %q cannot be a label: %s", ref.Module, errs[0])
	}
	return nil
}
