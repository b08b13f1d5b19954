package engine

import (
	"time"

	"go.starlark.net/starlark"

	"github.com/starling-operator/starling/builtins"
	"github.com/starling-operator/starling/runtime/effect"
	"github.com/starling-operator/starling/runtime/engine/releases"
	"github.com/starling-operator/starling/runtime/engine/subjects"
	"github.com/starling-operator/starling/runtime/engine/userconfig"
	"github.com/starling-operator/starling/runtime/generation"
	hooks "github.com/starling-operator/starling/runtime/hook"
	"github.com/starling-operator/starling/runtime/reconcile"
)

// Input is something that happened. Drivers hand inputs to [Engine.Handle] one at a time.
type Input interface{ input() }

// Start begins the work: the Lease is held, and what earlier processes kept has been read.
type Start struct {
	Generation *generation.Generation
	// Kept is what [Save] kept, by module and key.
	Kept map[string]map[string][]byte
	// Barred says why hooks must not run, by their ids; all others may.
	Barred map[string]string
	// Sets are the field managers of hooks that have applied sets of objects which go with them, by module.
	Sets map[string][]string
	// Installed are the releases of this instance, from its records.
	Installed []ReleaseRef
	// Standby says that another process holds the Lease: see standby.go. Such an engine
	// never leads; the one that does begins with another Start.
	Standby bool
	// Numbers is the highest that [View.Numbers] of earlier engines of the process has said: other ones come.
	Numbers uint64
	// Stays is Until of [Stays], from the beginning.
	Stays string
}

// Stays says that the tree takes nothing away for now, because another process may have a newer one. Until says for
// people what ends that, and why it is so; empty: it takes away again. Users switch modules off all the same.
type Stays struct{ Until string }

// Kept is all that is kept of a module now, for an engine that stands by: it takes the place of what
// was kept of it before.
type Kept struct {
	Module string
	Data   map[string][]byte
}

// Reload puts the next generation into the place of the one before, module by module: see package adoption. Answered
// by [Adopted], or by [Refused] when it has no module. Modules whose pointers are those of before are not touched.
type Reload struct {
	Generation *generation.Generation
	// Barred is that of [Start].
	Barred map[string]string
}

// ReleaseRef names one release of one module.
type ReleaseRef = releases.Ref

// Config is the state of the user's ConfigMap and of the Module objects.
type Config userconfig.Input

// ConfigObject is what a Module object asks for.
type ConfigObject = userconfig.Object

// Reconcile has a module looked at now: all that waits for its next try is tried again.
type Reconcile struct{ Module string }

// RunNow has the hooks of a module run, as if all that triggers them had come, and looks at its
// release; with Hook that one runs alone. [View.Runnable] says beforehand which will.
type RunNow struct{ Module, Hook string }

// ConfigState says what is known of the user's ConfigMap.
type ConfigState = userconfig.State

// The states of the user's ConfigMap.
const (
	ConfigPresent    = userconfig.Present
	ConfigMissing    = userconfig.Missing
	ConfigUnreadable = userconfig.Unreadable
)

// WatchSynced says that a watch holds all there is. Served is false for a kind that
// the API server does not serve: it counts as synced and empty.
type WatchSynced struct {
	ID     string
	Served bool
	// Objects is all there is, for a watch with Each.
	Objects []Object
}

// Object is one object of a watch with [StartWatch].Each.
type Object = subjects.Object

// WatchChanged carries changes after the first sync, in order.
type WatchChanged struct {
	ID     string
	Events []builtins.Event
}

// WatchFailed says that a watch has trouble; an empty Reason says it is over.
type WatchFailed struct {
	ID, Reason string
	// Lacks: its snapshot lacks objects that are there, so that no run may see it.
	Lacks bool
	// Refused: Starling may not list its kind. That does not pass by itself, as other trouble does.
	Refused bool
}

// Tick says that the time of the last [Wake] has come.
type Tick struct{}

// RunDone ends a [RunHook].
type RunDone struct {
	Run     uint64
	Effects effect.Effects
	// Response is what a request run answered.
	Response builtins.Response
	// Waits says why a controller has not done all about its parent, or "". A parent that is being deleted
	// stays until nothing is left to be done.
	Waits string
	// Children says that the parent of a controller has children, or may have some once Effects are written: a
	// parent without any needs no finalizer.
	Children bool
	// Actions are what a controller has decided about its parent.
	Actions []reconcile.Action
	// Lookups are where the functions of a controller have looked, Due is when one that has asked for a time looks
	// again; zero: none has.
	Lookups []effect.Lookup
	Due     time.Time
	// Writes say what the writes of children in Effects are about, in their order.
	Writes []reconcile.Write
	// Observed is what a run has observed about a parent; nil: nothing.
	Observed *builtins.Observed
	// Gone says that the object of the run is not there any more: there was no run.
	Gone bool
	// Incomplete says that a snapshot was complete as the run was wanted, and is not any more: there was no run.
	Incomplete bool
	// Err is why it has failed. Writes of a controller are made all the same.
	Err error
	// Seen is what the run knows of secrets, to be hidden in errors about its effects; nil: it knows of none.
	Seen *hooks.Seen
	Took time.Duration
}

// Unheld ends an [Unhold].
type Unheld struct {
	Op uint64
	// Unwatched are objects whose cleanup is due, see [Unhold.Cleans].
	Unwatched []Unwatched
	Err       error
}

// Unwatched is an object that has a finalizer of Starling, and that the watch does not select any more.
type Unwatched struct {
	Namespace, Name string
	// Object is the object as it is.
	Object starlark.Value
}

// Requested says that somebody waits for an answer of a hook; answered by [Respond], once, whatever happens.
type Requested struct {
	// ID is the driver's, and not 0.
	ID uint64
	// Hook is the hook's id.
	Hook string
	// Request is what it answers; nil has the hook run, as if all that triggers it had come.
	Request *builtins.Request
	// Key is the object that a run of a hook with for_each is about; without Request only.
	Key string
}

// Committed ends a [Commit].
type Committed struct {
	Run uint64
	// Children say what has become of the writes of children, in their order; nil: none were tried.
	Children []effect.Fate
	Err      error
}

// Evaluated ends an [Evaluate].
type Evaluated struct {
	Op       uint64
	Decision builtins.Decision
	// Err is why enabled() has failed; with a Decision.Unready, which says so, why readiness() has.
	Err error
}

// SettingsChecked ends a [CheckSettings].
type SettingsChecked struct {
	Op uint64
	// Against says why the section must not be in force; "": it may.
	Against string
	Err     error
}

// CRDsApplied ends an [ApplyCRDs].
type CRDsApplied struct {
	Op  uint64
	Err error
}

// Released ends a [Release].
type Released struct {
	Op  uint64
	Err error
	// Changed is true when a revision was made.
	Changed bool
	// Revision is the release's revision now; 0: it is not known.
	Revision int
	// Unknown are fields of its objects that the API server has dropped, for people.
	Unknown []string
}

// Drift says which objects of a module's release are not as Starling has left them: all that differ
// now, in the place of those before.
type Drift struct {
	Module  string
	Objects []DriftObject
	// Going are those that are being deleted, and are there until their finalizers are gone.
	Going []effect.Ref
	// Verify says that there may be others, and that nobody knows which.
	Verify bool
	// Blind says why some objects are not watched, or "".
	Blind string
}

// Repaired ends a [Repair].
type Repaired struct {
	Op uint64
	// Err is about Failed; nil: about all.
	Err    error
	Failed []effect.Ref
	// Written are the objects that were not as they should be, and are again. Changes are of those whose fields
	// others had changed, as far as that is known.
	Written []effect.Ref
	Changes []Change
	// Left are fields that stay as other writers of the release have left them, and of which nobody was told yet.
	Left []Change
	// Lost says that Helm knows of no such release any more.
	Lost bool
	// Waits says what has to end before the rest can be put right, or "".
	Waits string
}

// Uninstalled ends an [Uninstall].
type Uninstalled struct {
	Op  uint64
	Err error
}

// Saved ends a [Save].
type Saved struct {
	Op  uint64
	Err error
}

// Sent says that messages which are kept have arrived, or are not tried any more.
type Sent struct {
	Module string
	// Sums are theirs, by their names.
	Sums map[string]string
}

// SetsRemoved ends a [RemoveSets].
type SetsRemoved struct {
	Op  uint64
	Err error
}

func (Start) input()        {}
func (Kept) input()         {}
func (Stays) input()        {}
func (Reload) input()       {}
func (Config) input()       {}
func (Reconcile) input()    {}
func (RunNow) input()       {}
func (WatchSynced) input()  {}
func (WatchChanged) input() {}
func (WatchFailed) input()  {}
func (Tick) input()         {}
func (RunDone) input()      {}
func (Requested) input()    {}
func (Committed) input()    {}
func (Drift) input()        {}
func (Sent) input()         {}

// answer is an input with the number of an action that waits: a run waits on until all of it is kept.
type answer interface{ op() uint64 }

func (in RunDone) op() uint64   { return in.Run }
func (in Committed) op() uint64 { return in.Run }

// seen is an input that a watch has brought.
type seen interface{ watch() string }

func (in WatchSynced) watch() string  { return in.ID }
func (in WatchChanged) watch() string { return in.ID }
func (in WatchFailed) watch() string  { return in.ID }

// aimed is an input that names a module, or a hook of one.
type aimed interface{ at() string }

func (in Kept) at() string      { return in.Module }
func (in Reconcile) at() string { return in.Module }
func (in RunNow) at() string    { return in.Module }
func (in Drift) at() string     { return in.Module }
func (in Sent) at() string      { return in.Module }
func (in Requested) at() string { return in.Hook }

func (Unheld) input()                 {}
func (in Unheld) op() uint64          { return in.Op }
func (Evaluated) input()              {}
func (in Evaluated) op() uint64       { return in.Op }
func (SettingsChecked) input()        {}
func (in SettingsChecked) op() uint64 { return in.Op }
func (CRDsApplied) input()            {}
func (in CRDsApplied) op() uint64     { return in.Op }
func (Released) input()               {}
func (in Released) op() uint64        { return in.Op }
func (Repaired) input()               {}
func (in Repaired) op() uint64        { return in.Op }
func (Uninstalled) input()            {}
func (in Uninstalled) op() uint64     { return in.Op }
func (Saved) input()                  {}
func (in Saved) op() uint64           { return in.Op }
func (SetsRemoved) input()            {}
func (in SetsRemoved) op() uint64     { return in.Op }
