package engine

import (
	"time"

	"go.starlark.net/starlark"

	"github.com/starling-operator/starling/builtins"
	"github.com/starling-operator/starling/runtime/effect"
	"github.com/starling-operator/starling/runtime/engine/layers"
	"github.com/starling-operator/starling/runtime/generation"
	hooks "github.com/starling-operator/starling/runtime/hook"
	"github.com/starling-operator/starling/runtime/reconcile"
)

// Action is something that the engine wants done. A driver starts it and hands
// the matching input back; actions that say nothing of an answer have none.
type Action interface{ action() }

// StartWatch starts a watch of a hook; [WatchSynced], [WatchChanged] and [WatchFailed] follow.
type StartWatch struct {
	ID    string
	Hook  *generation.Hook
	Watch *builtins.WatchBinding
	// Each has the events and the first sync tell of each object. Finalizer is
	// that of the hook's cleanup, or "": events tell whether objects have it.
	Each      bool
	Finalizer string
}

// StopWatch ends a watch.
type StopWatch struct{ ID string }

// RunHook calls a hook; answered by [RunDone].
type RunHook struct {
	Run    uint64
	Hook   *generation.Hook
	Module *generation.Module
	// Generation is the one that both are of; nil: the one in force.
	Generation *generation.Generation
	Events     []builtins.Event
	// Watches are the ids of the hook's watches by binding; the snapshots are read from them as the run begins.
	Watches map[string]string
	// Synced by binding: false for a kind that is not served.
	Synced map[string]bool
	// Unsynced are kinds of which nobody knows which children a controller has: one that it owned before, not
	// listed yet, or one that is not served any more.
	Unsynced []reconcile.Kind
	// Unserved are bindings of reads= whose kind was served, and is not any more.
	Unserved []string
	Attempt  int
	// Failed says why the run before this one has failed, of a controller alone; "" when it has not.
	Failed string
	// Past is what a controller's earlier runs about the parent have left.
	Past hooks.Past
	// Observed is what was observed about the parent last; nil: nothing.
	Observed *builtins.Observed
	// Now is the run's time.
	Now time.Time
	// Namespace is the default namespace of the run.
	Namespace string
	// Values are what the run sees as values; nil for a conversion, which sees none.
	Values *layers.Sight
	// Config is what the user set for the module.
	Config map[string]any
	// Memory is what the hook remembers; only read.
	effect.Memory
	// Secrets are those of Values.
	Secrets layers.Secrets
	// Switches are the `<camelName>Enabled` of all modules: global hooks may set them.
	Switches []string
	// Key is the object that the run is about, with for_each: the one of this namespace and name in the snapshot of
	// the binding Each. Object is that object where it is not there any more.
	Key                         string
	Each                        string
	ObjectNamespace, ObjectName string
	Object                      starlark.Value
	// Cleanup has the hook's cleanup called.
	Cleanup bool
	// Request is what the run answers; nil for any other run.
	Request *builtins.Request
}

// Serve says which hooks of a module answer requests from now on: those with bindings that take some. It replaces the
// Serve of the module before it. None: the module's webhooks must be removed.
type Serve struct {
	Module *generation.Module
	Hooks  []*generation.Hook
	// Waits are hooks that nothing is known about yet: their webhooks stay as they are.
	Waits []*generation.Hook
}

// Respond ends a [Requested].
type Respond struct {
	ID       uint64
	Response builtins.Response
	Err      error
}

// Commit writes the objects that a run asked for, in order. The first error ends it. Answered by [Committed].
type Commit struct {
	Run    uint64
	Module string
	Hook   *generation.Hook
	Writes []effect.Write
	// Cause is that of the events which the writes lead to.
	Cause *effect.Cause
	// Seen is what must be hidden in an error; nil: there is nothing.
	Seen *hooks.Seen
}

// Uncommitted says that a hook has succeeded, and what it asked for was refused or could
// not be written: its run has failed.
type Uncommitted struct {
	Run          uint64
	Module, Hook string
	// Allowed: the hook has allow_failure=. Lost: another writer came first, and the run is repeated: no failure.
	Allowed, Lost bool
	Err           error
}

// Save keeps data for a module in the place of all that was kept; answered by [Saved].
// Nil data removes all that was kept.
type Save struct {
	Op     uint64
	Module string
	// Runs end with it; Hooks are theirs.
	Runs  []uint64
	Hooks []*generation.Hook
	Data  map[string][]byte
}

// Unhold takes a finalizer off all objects of a kind; answered by [Unheld].
type Unhold struct {
	Op uint64
	// Module and Hook are for the log.
	Module, Hook     string
	APIVersion, Kind string
	Finalizer        string
	// Watch is the id of a watch whose objects keep it, or "". It fails when that watch has ended.
	Watch string
	// Cleans: the others keep it, too, and are named in the answer, since somebody cleans up. So are objects without it
	// that have rows in Children, watches of what a controller has made: while its module was off, nobody held them.
	Cleans   bool
	Children []string
}

// Evaluate calls def enabled() and def readiness() of a module.star; answered by [Evaluated].
type Evaluate struct {
	Op     uint64
	Module *generation.Module
	Values map[string]any
	// Config is what config.get sees. Only read.
	Config map[string]any
	// Secrets are those of Values.
	Secrets layers.Secrets
}

// CheckSettings calls def settings_check(old, new) of a module.star; answered by [SettingsChecked]. Until then
// what was in force of the module's config stays so.
type CheckSettings struct {
	Op     uint64
	Module *generation.Module
	// Question tells it from earlier ones.
	Question string
	// Old is the section of the user's config that is in force, New the one that would be; nil: none. Only read.
	Old, New map[string]any
}

// ApplyCRDs applies a module's crds/; answered by [CRDsApplied].
type ApplyCRDs struct {
	Op     uint64
	Module *generation.Module
}

// Release installs or upgrades a module's release; answered by [Released].
type Release struct {
	Op     uint64
	Module *generation.Module
	Ref    ReleaseRef
	// Drift says what becomes of changes of others, as module(drift=…) does.
	Drift string
	// Cause is that of the change of values that has led to it; nil: nothing that a hook has set.
	Cause *effect.Cause
	// Values are what the chart sees, `global` included; read only.
	Values map[string]any
	// Secrets are those of Values.
	Secrets layers.Secrets
}

// Overtake ends what a [Release] waits for: nobody wants what it makes any more. Its writes go on.
type Overtake struct {
	// Op is that of the Release.
	Op uint64
}

// Repair puts objects of a module's release right that are not as Starling has left them. It makes no
// revision. Answered by [Repaired].
type Repair struct {
	Op     uint64
	Module *generation.Module
	Ref    ReleaseRef
	// Drift is [builtins.DriftRepair], or [builtins.DriftReport]: nothing is written then.
	Drift string
	// Objects are those that differ; nil: nobody knows which, so all are looked at.
	Objects []DriftObject
	// Secrets are those of the values that the chart has seen.
	Secrets layers.Secrets
}

// Refs names the objects; nil: all of the release.
func (r Repair) Refs() (refs []effect.Ref) {
	for _, o := range r.Objects {
		refs = append(refs, o.Ref)
	}
	return refs
}

// Uninstall takes a release away; answered by [Uninstalled].
type Uninstall struct {
	Op  uint64
	Ref ReleaseRef
	// GiveBack leaves the release as it is: it is not one of this instance any more, and another one
	// that has the module may take it over.
	GiveBack bool
	// Timeout bounds it; 0 means the driver's default.
	Timeout time.Duration
}

// Publish changes the metrics of a hook, or with a Key those of one of its objects.
type Publish struct {
	Module, Hook, Key string
	Metrics           []effect.Metric
}

// Send sends the messages of a run that is committed, or those that an earlier process has kept. Each that is
// kept is answered by [Sent].
type Send struct {
	Module, Hook string
	Messages     []Message
}

// Message is a message that has to arrive.
type Message struct {
	effect.Message
	// At is when the hook has said it.
	At time.Time
	// Name is that under which it is kept, and Sum tells it from others of that name; "" both: it is in memory alone.
	Name, Sum string
}

// Unpublish takes away the metrics of a module's hooks, or those of one object of one hook.
type Unpublish struct{ Module, Hook, Key string }

// DropSets forgets sets of objects that have an owner: those of an object that is gone, or with an empty Key those of
// all objects but Keys.
type DropSets struct {
	Module, Hook, Key string
	Keys              map[string]bool
}

// RemoveSets deletes the sets of objects that hooks have applied, as far as they are not to
// be kept; Managers are the hooks' field managers. Answered by [SetsRemoved].
type RemoveSets struct {
	Op       uint64
	Module   string
	Managers []string
}

// Adopted says that a generation is in force from now on: what follows is carried
// out with it. Of modules that are held it has the earlier version.
type Adopted struct{ Generation *generation.Generation }

// Refused says why a generation is not: the one before goes on.
type Refused struct {
	Generation *generation.Generation
	Reason     string
}

// Gone says that a hook, or with an empty Hook a whole module, is not in the tree any more.
type Gone struct{ Module, Hook string }

// Wake asks for a [Tick] at that time. It replaces the Wake before it; a zero time asks for none.
type Wake struct{ At time.Time }

// Note is one line for the log.
type Note struct {
	Level        builtins.Level
	Module, Hook string
	Message      string
	// Config says that the user's ConfigMap is the cause: people look at it first.
	Config bool
	// Event is the reason of an Event that says the same; "": none does.
	Event string
	// Err is what Message was made from, when there is more to tell than one line; nil otherwise.
	Err error
}

func (StartWatch) action()    {}
func (StopWatch) action()     {}
func (RunHook) action()       {}
func (Serve) action()         {}
func (Unhold) action()        {}
func (Review) action()        {}
func (Respond) action()       {}
func (Commit) action()        {}
func (Uncommitted) action()   {}
func (Save) action()          {}
func (Evaluate) action()      {}
func (CheckSettings) action() {}
func (ApplyCRDs) action()     {}
func (Release) action()       {}
func (Overtake) action()      {}
func (Repair) action()        {}
func (Uninstall) action()     {}
func (Publish) action()       {}
func (Send) action()          {}
func (Unpublish) action()     {}
func (DropSets) action()      {}
func (RemoveSets) action()    {}
func (Adopted) action()       {}
func (Refused) action()       {}
func (Gone) action()          {}
func (Wake) action()          {}
func (Note) action()          {}
