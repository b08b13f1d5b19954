package cluster

import (
	"cmp"
	"context"
	"fmt"
	"sync"
	"time"

	"github.com/starling-operator/starling/runtime/effect"
)

// WriterOptions says for whom a [Writer] writes.
type WriterOptions struct {
	// Client reaches the API server.
	Client *Client
	// Namespace is the operator's; the records of sets are there.
	Namespace string
	// Name is the instance's name; names of records begin with it.
	Name string
	// Instance is the value of the label starling.dev/instance.
	Instance string
	// Observe is told of every object that was written: as it is now, or nil when
	// it is gone, of the write's cause, and of when it was asked for. Nil tells nobody.
	// Members of a set are written side by side, so that several goroutines may call it.
	Observe func(ref effect.Ref, obj map[string]any, cause *effect.Cause, asked time.Time)
	// Known returns an object as a watch shows it, nil where none does. It spares a read before a write
	// that holds for that version only, and before an Event, and the write of a status that stands. Nil knows none.
	Known func(ref effect.Ref) map[string]any
	// Warn is told, of a hook by its field manager, what people should know about its sets though nothing has
	// failed. Nil tells nobody.
	Warn func(manager, text string)
	// JQ runs the programs of jq patches: it returns what a program makes of an
	// object, which it leaves alone. It bounds them, and its errors are lines for
	// people that do not quote the object. Nil refuses such patches.
	JQ func(ctx context.Context, program string, obj map[string]any) (map[string]any, error)
	// Now is the clock of Events; nil means time.Now.
	Now func() time.Time
	// Pause waits between two looks at an object whose end is waited for; nil: by the
	// system's clock.
	Pause func(ctx context.Context, d time.Duration) error
	// SideBySide is how many members of a set are read, written or deleted at a time; 0
	// means 8. With 1 the order of all requests is the same each time.
	SideBySide int
}

// Writer carries out the writes of hooks: those of one object, Events, and sets.
// Only the holder of the Lease may write. It is safe for concurrent use.
type Writer struct {
	o WriterOptions

	reading sync.Mutex // held while the records are read

	mu sync.Mutex
	// hooks are by their field managers, nil until the records were read.
	hooks map[string]*hookSets
	// refused are the places that this process may not read, and when it was told so last.
	refused map[effect.Ref]time.Time
	// applied counts the sets that were applied.
	applied uint64
}

// NewWriter makes a writer. It does no I/O.
func NewWriter(o WriterOptions) *Writer {
	if o.Observe == nil {
		o.Observe = func(effect.Ref, map[string]any, *effect.Cause, time.Time) {}
	}
	if o.Warn == nil {
		o.Warn = func(string, string) {}
	}
	if o.Now == nil {
		o.Now = time.Now
	}
	if o.Pause == nil {
		o.Pause = Pause
	}
	o.SideBySide = cmp.Or(o.SideBySide, defaultSideBySide)
	w := &Writer{o: o}
	w.Forget()
	return w
}

// Forget drops all that is known of sets: another process may have written them.
func (w *Writer) Forget() {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.hooks, w.refused = nil, map[effect.Ref]time.Time{}
}

// Write carries out one write of a hook whose field manager is manager. Errors are
// as those of [Client.Write].
func (w *Writer) Write(ctx context.Context, manager string, wr effect.Write) error {
	switch wr.Kind {
	case effect.WriteEvent:
		if wr.Event == nil {
			return fmt.Errorf("an event about %s says nothing", wr.Ref)
		}
		return w.event(ctx, manager, wr)
	case effect.WriteSet:
		if wr.Set == nil {
			return fmt.Errorf("a set without a name cannot be applied")
		}
		return w.set(ctx, manager, wr)
	case effect.WriteChildren:
		_, err := w.Children(ctx, manager, wr)
		return err
	case effect.WriteConfig:
		return w.config(ctx, manager, wr)
	case effect.WriteAddFinalizer, effect.WriteRemoveFinalizer:
		return w.finalizer(ctx, manager, wr)
	}
	if w.statusStands(manager, wr) {
		return nil
	}
	p, err := w.o.Client.begin(ctx, manager, wr)
	if err != nil {
		return err
	}
	p.jq = w.o.JQ
	asked := time.Now()
	obj, err := p.run(ctx)
	if err != nil {
		return err
	}
	if obj != nil && wr.Wait > 0 {
		// Watches tell of its end, and of one that has its name since.
		return w.gone(ctx, wr, uidOf(obj))
	}
	if obj != nil || wr.Kind == effect.WriteDelete {
		w.o.Observe(wr.Ref, obj, wr.Cause, asked)
	}
	return nil
}

// observed carries out one write of one object, and has observed what is there now.
func (w *Writer) observed(ctx context.Context, manager string, wr effect.Write, cause *effect.Cause) (map[string]any, error) {
	asked := time.Now()
	obj, err := w.o.Client.Write(ctx, manager, wr)
	if err == nil {
		w.o.Observe(wr.Ref, obj, cause, asked)
	}
	return obj, err
}
