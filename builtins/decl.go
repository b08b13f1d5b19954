package builtins

import (
	"slices"
	"time"

	"go.starlark.net/starlark"

	"github.com/starling-operator/starling/builtins/crd"
	"github.com/starling-operator/starling/modules/release/owned"
	"github.com/starling-operator/starling/runtime/effect"
)

// File collects what one .star file declares while it loads.
type File struct {
	// Path is the file's path in the tree, with slashes: "web/hooks/nodes.star".
	Path string
	// Role says what the file may declare.
	Role Role
	// Module is set by a call of module(); nil without one.
	Module *ModuleDecl
	// CRDs are the kinds in the order of their crd() calls.
	CRDs []crd.Definition
	// Hooks are the hooks in the order of their hook() calls.
	Hooks []*HookDecl
}

// Role is what a .star file is for. It follows from the path alone. A test of a
// library has two: it is a module by itself.
type Role int

const (
	// RoleModule is a module.star: it calls module().
	RoleModule Role = 1 << iota
	// RoleHooks is a file whose hook() calls register hooks.
	RoleHooks
	// RoleLib is a file that only others load: it declares nothing.
	RoleLib Role = 0
)

// Ways to treat changes of others in objects of a release, see [ModuleDecl].
const (
	// DriftRepair puts them right.
	DriftRepair = "repair"
	// DriftReport shows them.
	DriftReport = "report"
	// DriftIgnore does not look for them.
	DriftIgnore = "ignore"
)

// ModuleDecl is one call of module().
type ModuleDecl struct {
	Enabled  bool
	Weight   *int // nil: not ordered by weight
	After    []string
	Requires []string // each is a [Requirement]
	// LostUninstalls: while a requirement does not hold, the release goes; else it stays as it is.
	LostUninstalls bool
	Namespace      string // empty: the operator's
	ValuesKey      string // empty: values at the root
	Release        string // empty: the module's name
	Adopt          bool   // take over what is there
	ForceCRDs      bool   // update definitions whatever becomes of their objects
	Wait           bool   // wait for the release's objects to be ready
	Rollback       bool   // a revision that fails is rolled back
	Test           bool   // tests of the chart decide whether a revision is good; with Wait
	Timeout        time.Duration
	// Drift says what becomes of changes of others in objects of the release: [DriftReport],
	// [DriftIgnore], or else they are put right. Ignore is left to others in any case.
	Drift  string
	Ignore []owned.Ignore
	Grants []Grant
	// Lookup is what the chart may look up, Installs which objects the release may hold
	// beside [Everyday] ones.
	Lookup, Installs []Grant
	// Labels are put on all that the module makes: objects of the release, of crds/ and of hooks.
	Labels map[string]string
	// CRDFilter are patterns of names, see [path.Match]: files of crds/ that are left out.
	CRDFilter []string
	// Exports are paths of the module's values that other modules may read, as dotted text.
	Exports []string
	// Config are paths of the user's config that the hooks may change, as dotted text.
	Config []string
	// Hosts are where http.get and http.send may go to, HostSources where more of them are written.
	Hosts       effect.Hosts
	HostSources []HostSource
	// Chart is of a registry or a chart repository, in the place of one in the folder.
	Chart RemoteChart
	Pos   string // "file:line" of the call
}

// Grant allows hooks of one module some verbs on some objects.
type Grant struct {
	APIVersion string
	Kind       string
	// Verbs as written: RBAC's, plus apply (create, patch) and write. Of a lookup they are
	// get and list; an install has none.
	Verbs []string
	// Namespaces: nil means the module's own only; ["*"] means all.
	Namespaces []string
	// Names: nil means all.
	Names []string
	// Labels is a label selector as kubectl takes it; empty means all.
	Labels string
	// Owned means only objects that hooks of the module have made.
	Owned bool
}

// HookDecl is one call of hook().
type HookDecl struct {
	// ID is "file:function" with the file's path below the module's folder
	// ("hooks/nodes.star:discover"), or name= as given. Unique in its module.
	ID string
	// Fn takes ctx; nil for a hook whose only bindings are k8s.convert.
	Fn       starlark.Callable
	Bindings []Binding
	Timeout  time.Duration // wall time of one run
	Retry    Retry
	// Queue names the line of work that the hook waits in; empty is the module's.
	Queue string
	// AllowFailure lets a failed run count as done: it is not repeated, and holds
	// nothing back.
	AllowFailure bool
	// MinInterval is the mean time between two runs, with up to Burst runs in
	// a row; 0 means no limit.
	MinInterval time.Duration
	Burst       int
	// KeepValues adds what a run sets to what earlier runs have set, instead of
	// replacing it.
	KeepValues bool
	// ForEach is the name of the watch of which each object has its own runs,
	// up to Parallel at a time; empty: the hook's runs are about all there is.
	ForEach  string
	Parallel int
	// Cleanup takes ctx once an object of ForEach is being deleted, or no longer
	// watched; a finalizer keeps the object until it has succeeded. Nil: none.
	Cleanup starlark.Callable
	// Controller is that of a call of controller(), nil of hook().
	Controller *ControllerDecl
	Pos        string
}

// Cleans says whether something has to be done before an object of ForEach goes; a finalizer keeps it
// until then.
func (h *HookDecl) Cleans() bool { return h.Cleanup != nil || h.Decides() }

// Decides says whether the hook is a controller: one that observes the parents of another one is none.
func (h *HookDecl) Decides() bool { return h.Controller != nil && h.Controller.Observes == "" }

// AsksCleanup says whether a cleanup of the author looks at a parent that is being deleted, as that changes.
func (h *HookDecl) AsksCleanup() bool { return h.Controller != nil && h.Controller.Cleanup != nil }

// Owned returns the kinds that the hook may have as children, such as "apps/v1/Deployment", and, behind
// [FieldsBinding], the kinds in whose objects it may set fields.
func (h *HookDecl) Owned() (out []string) {
	if h.Controller == nil {
		return nil
	}
	for _, k := range h.Controller.Owns {
		out = append(out, k.APIVersion+"/"+k.Kind)
	}
	for _, k := range h.Controller.Fields {
		out = append(out, FieldsBinding+k.APIVersion+"/"+k.Kind)
	}
	return out
}

// Binding returns the binding of this name, or nil.
func (h *HookDecl) Binding(name string) *Binding {
	for i := range h.Bindings {
		if h.Bindings[i].Name == name {
			return &h.Bindings[i]
		}
	}
	return nil
}

// Retry says how a failed run is repeated: after Min, then Factor times longer
// each time, up to Max, each with up to 20 % jitter.
type Retry struct {
	Min, Max time.Duration
	Factor   float64
}

// DefaultRetry is retry() without arguments. Nobody changes it.
var DefaultRetry = Retry{Min: time.Second, Max: 5 * time.Minute, Factor: 2}

// Binding is what triggers a hook: exactly one of the pointers is set.
type Binding struct {
	// Name is unique in its hook: name= of a watch or schedule, else the
	// kind in lower case with a count when needed ("startup", "configmap",
	// "configmap-2").
	Name     string
	Startup  *StartupBinding
	Schedule *ScheduleBinding
	Watch    *WatchBinding
	Stage    *StageBinding
	// Those that take requests:
	Admission *AdmissionBinding
	Convert   *ConvertBinding
	Receive   *ReceiveBinding
}

// StartupBinding is startup(order=0).
type StartupBinding struct {
	Order int
	// WhenOff triggers in a module that is off, too. The hook has no other binding.
	WhenOff bool
}

// StageBinding is before_helm(order=0), after_helm(order=0) and the like: it
// triggers as something is about to be done, or has been.
type StageBinding struct {
	Stage Stage
	Order int
	// Always has a hook of after_helm run after each pass, whether or not the release has changed, and
	// one of before_all each time the user's config of global values has changed.
	Always bool
}

// Stage is when a [StageBinding] triggers. It is also the binding's name.
type Stage string

const (
	// StageBeforeHelm: before each candidate render of the module's chart.
	StageBeforeHelm Stage = "before_helm"
	// StageAfterHelm: after the release has really changed.
	StageAfterHelm Stage = "after_helm"
	// StageBeforeDelete: before the module's release is uninstalled.
	StageBeforeDelete Stage = "before_delete"
	// StageAfterDelete: after that.
	StageAfterDelete Stage = "after_delete"
	// StageBeforeAll: global hooks only, once, before any module starts.
	StageBeforeAll Stage = "before_all"
	// StageAfterAll: global hooks only, each time all modules have come to rest.
	StageAfterAll Stage = "after_all"
)

// Global says whether the stage is one of global hooks, or of modules' hooks.
func (s Stage) Global() bool { return s == StageBeforeAll || s == StageAfterAll }

// ScheduleBinding is schedule(cron, …).
type ScheduleBinding struct {
	Cron string // 5 fields, or 6 with seconds first
	// Timezone is an IANA name; the fields are read in it.
	Timezone string
	// Jitter delays each tick by less than this, each by its own time.
	Jitter time.Duration
	// CatchUp makes up, once, for ticks that came while nothing ran
	// (missed="once").
	CatchUp bool
}

// WatchBinding is k8s.watch(...).
type WatchBinding struct {
	APIVersion string
	Kind       string
	Namespaces []string // nil: all
	Names      []string // nil: all
	Labels     string   // a label selector as kubectl takes it; empty: all
	// ExcludeNamespaces are taken away from Namespaces, or from all.
	ExcludeNamespaces []string
	// NamespaceLabels is a label selector of namespaces; empty: all. It is
	// followed as namespaces change.
	NamespaceLabels string
	// Fields is a field selector with = and != only; empty: all.
	Fields string
	// Filter turns an object into what is kept of it; nil keeps the object.
	// None leaves the object out.
	Filter starlark.Callable
	// FilterFields, the other form of filter=: keeps these paths plus identity
	// and labels. Nil when Filter is set or nothing was given.
	FilterFields []string
	// FilterID identifies the filter: equal ids keep equal results. It holds the
	// position of the function and a digest of what it closes over, or the fields.
	// The code is not in it before the whole generation is loaded, which puts a
	// digest of it into the place of the file's path.
	FilterID string
	// Wakes says which objects of for_each an event of an object is for: None, a key or a list of
	// keys. Nil: its owners among them, or all when it has none.
	Wakes starlark.Callable
	// WakesID is for Wakes what FilterID is for Filter.
	WakesID string
	// WakesAll: each event is for all of them (wakes="all").
	WakesAll bool
	// KeepObject has events carry the object, too (keep="object").
	KeepObject bool
	// KeepBoth has results hold the object, too (keep="both"); KeepObject is true then.
	KeepBoth bool
	// Old has modified events carry the result of before (old=True).
	Old bool
	// Events are the changes that trigger: added, modified, deleted, in this
	// order. Nil means all, an empty list none.
	Events []string
	// Quiet: the first complete snapshot does not trigger (sync=False).
	Quiet bool
	// NoGate: the chart does not wait for the run that this watch triggers first (gate=False).
	NoGate bool
	// Require: a kind that is not served is waited for; else it counts as synced
	// and empty.
	Require bool
	// Read is the name in ctx.reads of the controller whose functions look rows up, by Index and by name;
	// "" for any other watch.
	Read  string  `json:",omitempty"`
	Index []Index `json:",omitempty"`
	// Former: of children of a kind that a controller does not own any more. No run waits for it. No builtin
	// makes one.
	Former bool `json:",omitempty"`
	// HoldsFields: of objects of others of which a controller sets fields. No builtin makes one.
	HoldsFields bool `json:",omitempty"`
	Pos         string
}

// Triggers says whether a change ("added", "modified", "deleted") triggers.
func (w *WatchBinding) Triggers(change string) bool {
	return w.Events == nil || slices.Contains(w.Events, change)
}

// Decision is what def enabled() of a module.star answered, and def readiness().
type Decision struct {
	Answer Answer
	Reason string
	// Unready says why the module is not ready for others by readiness(), or "".
	Unready string `json:",omitempty"`
}

// Answer is one of enabled()'s three answers.
type Answer int

const (
	// AnswerOn: True.
	AnswerOn Answer = iota
	// AnswerWaiting: waiting("…"). Nothing is installed, upgraded or uninstalled.
	AnswerWaiting
	// AnswerDisabled: disabled("…") or False. The release is uninstalled.
	AnswerDisabled
)
