package builtins

import (
	"context"
	"io"
	"time"

	"go.starlark.net/starlark"

	"github.com/starling-operator/starling/builtins/spec"
	"github.com/starling-operator/starling/runtime/effect"
	"github.com/starling-operator/starling/runtime/reconcile"
)

// Context is what one thread may reach. It serves one thread at a time.
type Context struct {
	Phase spec.Phase
	// File collects what the file declares, in spec.InLoad.
	File *File
	// Files are those of the module that the file belongs to, in spec.InLoad. The script host sets it.
	Files Files
	// Run is what the call serves, in spec.InRun and spec.InEnabled (which only reads values there).
	Run *Run
	// Test is what the call serves in spec.InTest.
	Test *Test
	// Log takes log lines. It is never nil.
	Log Logger
	// Ctx ends with the run or the loading that the thread belongs to: for builtins
	// that take long. The script host sets it; nil means no end.
	Ctx context.Context
	// Room says whether the thread may go on to make so many bytes at once, or which limit it would pass; with 0,
	// whether it may go on. It may wait. The script host sets it; nil means no limit.
	Room func(bytes int) error

	logged int // bytes
}

// Files reads what lies below the folder of one module. Errors are for people.
type Files interface {
	// Read returns the file at a path, "templates/a.txt".
	Read(path string) ([]byte, error)
	// Match returns the files that a pattern names, "crds/*.yaml", by their paths.
	Match(pattern string) (map[string][]byte, error)
}

// contextKey is the thread-local name of the Context.
const contextKey = "starling.context"

// Attach gives t the context c. A context serves one thread at a time.
func Attach(t *starlark.Thread, c *Context) { t.SetLocal(contextKey, c) }

// From returns the context of t, or nil when none was attached.
func From(t *starlark.Thread) *Context {
	c, _ := t.Local(contextKey).(*Context)
	return c
}

// Level is how much a log line matters.
type Level int

// The levels, least first.
const (
	LevelDebug Level = iota
	LevelInfo
	LevelWarn
	LevelError
)

func (l Level) String() string { return [...]string{"debug", "info", "warn", "error"}[l] }

// Field is one keyword argument of a log call. Value is plain data.
type Field struct {
	Key   string
	Value any
}

// Logger takes the log lines of hooks. Fields are in the order of the call.
type Logger interface {
	Log(level Level, msg string, fields []Field)
}

// Silent is a [Logger] to which nobody listens.
type Silent struct{}

// Log implements [Logger].
func (Silent) Log(Level, string, []Field) {}

// Run is one call of a hook, or of enabled(): what it may see, what it may do, and what it has done so far.
type Run struct {
	// Ctx bounds live reads; nil means no bound.
	Ctx context.Context
	// Module is the module's name, "global" for global hooks.
	Module string
	// Hook is the hook's id, unique in its module.
	Hook string
	// Global is true for hooks under global/.
	Global bool
	// Namespace is where references without one point: the module's, for global hooks the operator's.
	Namespace string
	// Now is ctx.now and time.now().
	Now time.Time
	// Random is where random values come from; nil means the system's own source.
	Random io.Reader
	// Grants are those of the module. Free is true for a run that they do not bind: of somebody who tries things out.
	Grants []Grant
	Free   bool
	// Labels are put on objects that the run makes.
	Labels map[string]string
	// Instance is whose run it is: no grant covers what belongs to it.
	Instance effect.Instance
	// Seal tells marks of hooks that made an object from what others wrote; nil believes all.
	Seal *effect.Seal
	// Compose returns the effective values as this run sees them, given its own changes so far. It is called when
	// something changed, and its result is only read. Nil means no values.
	Compose func(own []effect.ValueOp) (map[string]any, error)
	// Config is what the user set, for config.get, with what the run changes of it. Its data is only read.
	Config map[string]any
	// Reader reads the live cluster; nil where that is not allowed.
	Reader Reader
	// Scope asks whether a kind is namespaced; its errors are as those of [Reader]. Nil means that all are.
	Scope func(apiVersion, kind string) (namespaced bool, err error)
	// Enabled holds the <camelName>Enabled names of all modules: a global hook may set them, another may not.
	Enabled []string
	// Key is the object that the run is about, with for_each; Cleanup says that it is let go when the run succeeds.
	Key     string
	Cleanup bool
	// Owns are the kinds of which a controller may want children, in spec.InDesired, Fields those of which it
	// may want fields; nil: all. Namespace is that of the parent there, if it has one.
	Owns, Fields []reconcile.Kind
	// Progressing is what progressing(…) has said in spec.InDesired.
	Progressing string
	// Calls says that a call(…) is made, in spec.InObserve.
	Calls bool
	// State is what the hook remembers, by key. Only read.
	State map[string]any
	// Request is what a request run answers; nil for any other run.
	Request *Request
	// HTTP makes the requests of http.get; nil where that is not allowed.
	HTTP Fetcher
	// Answerer answers k8s.exec, k8s.logs, k8s.ask and k8s.token; nil: nobody does.
	Answerer Answerer
	// Env looks up an environment variable, for env; nil: none may be read.
	Env func(name string) (string, error)
	// Hosts are where requests of the module may go to.
	Hosts effect.Hosts
	// HostSources say where more of them are written.
	HostSources []HostSource
	// Defaults adds the defaults of a schema to Config, for HostSources; nil: there is none.
	Defaults func(config map[string]any) map[string]any
	// MayConfigure are the paths of Config that the run may change, as dotted text.
	MayConfigure []string
	// Response is what a request run answers, as far as builtins have said.
	Response Response
	// Effects is what the run has asked for so far.
	Effects effect.Effects
	// Limits bounds the run; zero fields have defaults.
	Limits Limits

	view  valueView
	bytes int          // size of all effects
	found effect.Hosts // by HostSources; nil: not looked for yet
}

// Limits bounds what one run may ask for.
type Limits struct {
	// MaxWrites is how many object writes, value changes and metric changes a run may record, each; 0 means 10,000.
	MaxWrites int
	// MaxBytes is the size of all effects together; 0 means 32 MiB.
	MaxBytes int
	// LogBytes is how much a run may log; 0 means 1 MiB.
	LogBytes int
}

func (l Limits) maxWrites() int { return orDefault(l.MaxWrites, 10_000) }
func (l Limits) maxBytes() int  { return orDefault(l.MaxBytes, 32<<20) }
func (l Limits) logBytes() int  { return orDefault(l.LogBytes, 1<<20) }

func orDefault(n, dflt int) int {
	if n <= 0 {
		return dflt
	}
	return n
}

// Reader reads live objects, as the cluster has them before the run's writes. The text that it returns is kept and
// shown to Starlark lazily: nobody may change it afterwards. An error with a method Unreadable() bool that returns
// true says that nobody serves the kind, or that RBAC forbids to read it.
type Reader interface {
	// Get returns the object, or nil when it is not there.
	Get(ctx context.Context, ref effect.Ref) (map[string]any, error)
	// List returns the objects of a kind, sorted by namespace and name. Nil namespaces means all; labels and fields are
	// selectors as kubectl takes them.
	List(ctx context.Context, apiVersion, kind string, namespaces []string, labels, fields string) ([]map[string]any, error)
}

func (r *Run) context() context.Context {
	if r.Ctx == nil {
		return context.Background()
	}
	return r.Ctx
}
