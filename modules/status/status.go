// Package status holds what a running instance answers about itself: plain data. Its JSON form is what `starling get
// -o json` prints, so a field that has been released keeps its name and meaning. Nothing here ever holds values or the
// content of Secrets.
package status

import (
	"strings"
	"time"
)

// Status is the whole answer of one instance.
type Status struct {
	// Instance is "<operator namespace>/<name>".
	Instance string `json:"instance"`
	// Version of the binary.
	Version string `json:"version"`
	// Simulated is true of a starling dev: its cluster is simulated, and its clock stands still.
	Simulated bool `json:"simulated,omitempty"`
	// Leader is true while this process holds the Lease and may write.
	Leader bool `json:"leader"`
	// Holder is the host, in a cluster the pod, of the process that holds the Lease, while that is another one.
	Holder string `json:"holder,omitempty"`
	// Ready is true once this process holds the Lease and every module is
	// released, off, or has a reason; of one that stands by, once it answers reviews.
	Ready bool `json:"ready"`
	// Generation is the number of the module tree in force, from 1; 0 before the first.
	Generation int `json:"generation"`
	// ReloadFailed says why the module tree as it is now is not in force, or which of its
	// modules stay as they were, and why; nil while all of it is in force.
	ReloadFailed *ReloadFailure `json:"reloadFailed,omitempty"`
	// Config is what became of the user's config.
	Config Config `json:"config"`
	// Paused is true when all modules are paused.
	Paused bool `json:"paused,omitempty"`
	// Modules are sorted by name.
	Modules []Module `json:"modules"`
	// Hooks are sorted by module, then by id; global hooks first.
	Hooks []Hook `json:"hooks"`
}

// ReloadFailure is why a change of the module tree is not in force, or not all of it.
type ReloadFailure struct {
	Reason string `json:"reason"`
	// Since is when the tree stopped being as the one in force.
	Since time.Time `json:"since"`
}

// ConfigState says whether the user's config is in force.
type ConfigState string

const (
	// ConfigOK: the config was read and is in force, apart from the parts that Problems name.
	ConfigOK ConfigState = "ok"
	// ConfigMissing: there has been no config since the start; the values of the tree are in force.
	ConfigMissing ConfigState = "missing"
	// ConfigHeld: the config is gone or cannot be read; the last one stays in force.
	ConfigHeld ConfigState = "held"
)

// Config is the state of the user's config.
type Config struct {
	State ConfigState `json:"state"`
	// Reason says why the state is not ok.
	Reason string `json:"reason,omitempty"`
	// Problems are the parts that were refused; for those the last good ones stay in force.
	Problems []string `json:"problems,omitempty"`
	// Unknown are keys that no module has, and sections in whose place a Module object speaks: they count for nothing.
	// Problems have them too.
	Unknown []string `json:"unknown,omitempty"`
}

// ModuleState says what a module is doing.
type ModuleState string

const (
	// ModuleOff: switched off; a release that is there stays unless Reason says otherwise.
	ModuleOff ModuleState = "off"
	// ModuleWaiting: enabled() waits for something; nothing is installed, upgraded or uninstalled. Or readiness()
	// does; the release is as it should be. Or a newer module tree has made the release, and it stays as it is.
	ModuleWaiting ModuleState = "waiting"
	// ModuleStarting: watches or first hook runs are not done yet.
	ModuleStarting ModuleState = "starting"
	// ModuleBlocked: a module that it requires is not Ready.
	ModuleBlocked ModuleState = "blocked"
	// ModuleReleasing: Helm installs or upgrades.
	ModuleReleasing ModuleState = "releasing"
	// ModuleReady: the release, if there is one, is that of the chart and values as they are
	// now. Drifted says which of its objects others have changed.
	ModuleReady ModuleState = "ready"
	// ModuleFailed: the last try of a hook, of the values or of the release failed; there is a next one.
	ModuleFailed ModuleState = "failed"
	// ModuleBroken: the module cannot be used as it is in the tree.
	ModuleBroken ModuleState = "broken"
	// ModulePaused: hooks run, the release is left alone.
	ModulePaused ModuleState = "paused"
	// ModuleUninstalling: its release is being removed.
	ModuleUninstalling ModuleState = "uninstalling"
)

// Module is one module of the tree.
type Module struct {
	Name  string      `json:"name"`
	State ModuleState `json:"state"`
	// Reason explains the state in one line: "off: add `fooEnabled: true` to values.yaml or module(enabled=True)".
	Reason string `json:"reason,omitempty"`
	// Enabled is the answer of the switches, and of enabled() where there is one.
	Enabled bool `json:"enabled"`
	// Release is nil when nothing is installed, or nothing is known yet.
	Release *Release `json:"release,omitempty"`
	// Released: it is that of the chart and values as they are now, though readiness() may wait. Objects of another one are
	// not put right.
	Released bool `json:"released,omitempty"`
	// Drifted are the objects of the release that somebody has changed, and that are not put right
	// yet, or that somebody changes again and again.
	Drifted []Drifted `json:"drifted,omitempty"`
	// Unseen says of which objects of the release nobody knows whether others have changed them, and why; Problems have
	// it, too.
	Unseen []string `json:"unseen,omitempty"`
	// LastError is the error of the last try; empty after a success.
	LastError string `json:"lastError,omitempty"`
	// NextTry is when a failed step is tried again. Stalled: none is before somebody changes something.
	NextTry *time.Time `json:"nextTry,omitempty"`
	Stalled bool       `json:"stalled,omitempty"`
	// PendingMessages is how many messages of http.send wait.
	PendingMessages int `json:"pendingMessages,omitempty"`
	// Since is when the state was entered.
	Since time.Time `json:"since,omitzero"`
	// Problems are findings that do not stop the module, such as refused values while the last good ones are in force.
	Problems []string `json:"problems,omitempty"`
	// Unknown are fields that the API server has dropped from the objects of the release, and keys of lists that the
	// chart has twice; Problems have them too.
	Unknown []string `json:"unknown,omitempty"`
	// Upgrading: it is ready, and a look at its release is under way, of its values as they are now.
	Upgrading bool `json:"upgrading,omitempty"`
	// Config is what became of that which the user asks for of this module.
	Config ModuleConfig `json:"config,omitzero"`
}

// ModuleConfig is what became of the user's config and of the Module object of one module.
type ModuleConfig struct {
	// Generation is the metadata.generation of the Module object that was taken in; 0 without one.
	Generation int64 `json:"generation,omitempty"`
	// Refused are parts that are not in force; Problems have them too.
	Refused []string `json:"refused,omitempty"`
	// Unused are parts of the ConfigMap that do not count, because the Module object says
	// something too; Problems have them too.
	Unused []string `json:"unused,omitempty"`
}

// Drifted is an object of a release that is not as Starling has left it.
type Drifted struct {
	// Object is "Kind namespace/name".
	Object string `json:"object"`
	// Missing: it was deleted.
	Missing bool `json:"missing,omitempty"`
	// By are others that manage fields of it, the one that has written last first.
	By []string `json:"by,omitempty"`
	// Contested: the first of By changes the same field again and again, so that each repair waits longer.
	Contested bool `json:"contested,omitempty"`
	// Fields are the paths of those that are contested, the one that was changed last first; none: the object as a
	// whole, or nobody knows which.
	Fields []string `json:"fields,omitempty"`
	// Remedy says, for people, how to end the contest; "" where there is none.
	Remedy string `json:"remedy,omitempty"`
}

// Contest is what is contested of an object, as module(ignore=) names it: "Deployment/web spec.replicas".
func (d Drifted) Contest() string {
	kind, name, _ := strings.Cut(d.Object, " ")
	what := kind + "/" + name[strings.LastIndexByte(name, '/')+1:]
	if len(d.Fields) > 0 {
		what += " " + d.Fields[0]
	}
	return what
}

// Release is a Helm release.
type Release struct {
	Name      string `json:"name"`
	Namespace string `json:"namespace"`
	// Revision is 0 until this process has seen the release.
	Revision int `json:"revision"`
}

// HookState says what a hook is doing.
type HookState string

const (
	// HookWaiting: it has not run yet; its watches have not synced.
	HookWaiting HookState = "waiting"
	// HookQueued: it is in line.
	HookQueued HookState = "queued"
	// HookRunning: a run is under way.
	HookRunning HookState = "running"
	// HookOK: the last run succeeded.
	HookOK HookState = "ok"
	// HookFailed: the last run failed.
	HookFailed HookState = "failed"
	// HookOff: its module is off.
	HookOff HookState = "off"
)

// Hook is one hook.
type Hook struct {
	// ID is "file:function" or the name that the hook gave itself.
	ID string `json:"id"`
	// Module is the module's name, "global" for global hooks.
	Module string    `json:"module"`
	State  HookState `json:"state"`
	// Reason says why the hook waits, where that is known.
	Reason string `json:"reason,omitempty"`
	// LastRun is when the last run began.
	LastRun *time.Time `json:"lastRun,omitempty"`
	// Duration of the last run, with its commit.
	Duration Duration `json:"duration,omitzero"`
	// LastError is the error of the last run; empty after a success.
	LastError string `json:"lastError,omitempty"`
	// Attempt counts the tries of the run that fails, from 1; 0 after a success.
	Attempt int `json:"attempt,omitempty"`
	// NextTry is when the run that failed is repeated.
	NextTry *time.Time `json:"nextTry,omitempty"`
	// NextRun is when the first of its schedules is due.
	NextRun *time.Time `json:"nextRun,omitempty"`
	// Runs counts the finished runs since the process started, Failures those that failed.
	Runs     int `json:"runs"`
	Failures int `json:"failures"`
	// Usage is what its runs have taken since the process started.
	Usage Usage `json:"usage,omitzero"`
	// Objects counts those that the hook has runs for, with for_each, Failing
	// those whose last run failed; nil for other hooks.
	Objects *int `json:"objects,omitempty"`
	Failing *int `json:"failing,omitempty"`
	// Snapshots are the numbers of objects in the snapshots, by binding.
	Snapshots map[string]int `json:"snapshots,omitempty"`
	// NotServed are the kinds that the hook watches and the API server does not serve, as "apiVersion/Kind", sorted.
	NotServed []string `json:"notServed,omitempty"`
}

// Duration is a time.Duration whose JSON form is text: "1.5s".
type Duration time.Duration

// MarshalText writes the duration as "1.5s".
func (d Duration) MarshalText() ([]byte, error) { return []byte(time.Duration(d).String()), nil }

// UnmarshalText reads what MarshalText wrote.
func (d *Duration) UnmarshalText(text []byte) error {
	v, err := time.ParseDuration(string(text))
	*d = Duration(v)
	return err
}
