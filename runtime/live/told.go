package live

import (
	"crypto/sha256"
	"encoding/json"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/rs/zerolog"

	"github.com/starling-operator/starling/modules/values"
	"github.com/starling-operator/starling/runtime/apply"
	"github.com/starling-operator/starling/runtime/effect"
	"github.com/starling-operator/starling/runtime/engine"
	"github.com/starling-operator/starling/runtime/record"
)

// maxTold is how many objects of one run have a line.
const maxTold = 10

// teller says, line by line, what is done, for a person at a terminal: runs of hooks, the values that
// they set, the objects that they write, and what a release waits for. The log tells of releases and of
// all that fails. Runs that come again and again and change nothing have no line: a run has one when
// something has come of it, and the first run of each hook has one anyway. A nil teller says nothing.
type teller struct {
	log zerolog.Logger

	mu    sync.Mutex
	hooks map[string]bool
	// runs have ended, and what they ask for is not carried out yet.
	runs map[uint64]*toldRun
	// writing are those whose objects are being written, by their subjects, see [effect.Cause].
	writing map[string]*toldRun
	// last is what a subject has set, and what an object was, when that was told.
	last map[string][sha256.Size]byte
}

// toldRun is a run that people hear of, or will if something comes of it.
type toldRun struct {
	hook, cause string
	subject     string
	took        time.Duration
	told        bool
	values      []effect.ValueOp
	objects     int // that it has written
}

func newTeller(log *zerolog.Logger) *teller {
	if log == nil {
		return nil
	}
	return &teller{log: *log, hooks: map[string]bool{}, runs: map[uint64]*toldRun{}, writing: map[string]*toldRun{}, last: map[string][sha256.Size]byte{}}
}

// ran takes in the end of a run.
func (t *teller) ran(a engine.RunHook, done engine.RunDone) {
	if t == nil || done.Err != nil {
		return
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	r := &toldRun{hook: a.Hook.ID, cause: record.Cause(a.Events), subject: a.Hook.ID, took: done.Took, values: done.Effects.Values}
	if a.Key != "" {
		r.subject += " of " + a.Key
	}
	if !t.hooks[r.hook] {
		t.hooks[r.hook] = true
		t.tell(r)
	}
	if len(done.Effects.Writes)+len(r.values) == 0 {
		return
	}
	if len(t.runs) >= remembered { // of most of them nothing has come
		clear(t.runs)
	}
	t.runs[a.Run] = r
}

// tell says that there was a run, once.
func (t *teller) tell(r *toldRun) {
	if r.told {
		return
	}
	r.told = true
	line := t.line(r)
	if r.cause != "" {
		line = line.Str("for", r.cause)
	}
	line.Stringer("took", r.took.Round(time.Millisecond)).Msg("ran")
}

func (t *teller) line(r *toldRun) *zerolog.Event {
	line := t.log.Info().Str("hook", r.hook)
	if r.subject != r.hook {
		line = line.Str("object", strings.TrimPrefix(r.subject, r.hook+" of "))
	}
	return line
}

// commit has the objects of a run written.
func (t *teller) commit(a engine.Commit, write func() error) error {
	if t == nil {
		return write()
	}
	t.mu.Lock()
	r := t.runs[a.Run]
	if r != nil {
		t.writing[r.subject] = r
	}
	t.mu.Unlock()
	err := write()
	if r == nil {
		return err
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	delete(t.writing, r.subject)
	if more := r.objects - maxTold; more > 0 {
		t.line(r).Int("more", more).Msg("wrote more objects")
	}
	if err != nil || len(r.values) == 0 {
		delete(t.runs, a.Run)
	}
	return err
}

// wrote takes in an object that a run has written: as it is now, or nil when it is gone.
func (t *teller) wrote(ref effect.Ref, obj map[string]any, cause *effect.Cause) {
	if t == nil || cause == nil {
		return
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	r := t.writing[cause.Run]
	if r == nil || !t.differs(ref.APIVersion+" "+ref.String(), written(obj, effect.Manager(r.hook))) {
		return
	}
	t.tell(r)
	if r.objects++; r.objects > maxTold {
		return
	}
	what := "wrote "
	switch metadata, _ := obj["metadata"].(map[string]any); {
	case obj == nil:
		what = "deleted "
	case metadata["deletionTimestamp"] != nil:
		what = "deletes "
	}
	t.line(r).Msg(what + ref.String())
}

// saved takes in that what some runs have set is kept.
func (t *teller) saved(a engine.Save, err error) {
	if t == nil {
		return
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	for _, run := range a.Runs {
		r := t.runs[run]
		delete(t.runs, run)
		if r == nil || err != nil || !t.differs(r.subject, r.values) {
			continue
		}
		t.tell(r)
		var paths []string
		for _, op := range r.values {
			paths = append(paths, values.PathString(op.Path))
		}
		slices.Sort(paths)
		paths = slices.Compact(paths)
		if more := len(paths) - maxTold; more > 0 {
			paths = append(paths[:maxTold], "…")
		}
		t.line(r).Msg("set " + strings.Join(paths, ", ")) // without the values: some are secret
	}
}

// waits says that a release waits, once; the log says how that ends.
func (t *teller) waits(ref engine.ReleaseRef, what string) func() {
	if t == nil {
		return func() {}
	}
	return sync.OnceFunc(func() {
		t.log.Info().Str("module", ref.Module).Str("release", ref.Namespace+"/"+ref.Name).Msg(what)
	})
}

// differs says whether something is not as it was when it was asked for last.
func (t *teller) differs(name string, v any) bool {
	text, err := json.Marshal(v)
	sum := sha256.Sum256(text)
	if before, known := t.last[name]; known && err == nil && before == sum {
		return false
	}
	if len(t.last) >= remembered {
		clear(t.last)
	}
	t.last[name] = sum
	return true
}

// written is what a write may have changed of an object. Others write its status; the API server notes
// when the manager has changed something.
func written(obj map[string]any, manager string) any {
	if obj == nil {
		return nil
	}
	rest, given := effect.WithMetadata(obj)
	delete(rest, "status")
	for _, key := range []string{"resourceVersion", "managedFields", "generation"} {
		delete(given, key)
	}
	var own []any
	for entry := range apply.Entries(obj) {
		if entry["manager"] == manager {
			own = append(own, entry)
		}
	}
	return []any{rest, own}
}
