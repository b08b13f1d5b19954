package sim

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"slices"
	"strings"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/starling-operator/starling/runtime/engine"
	"github.com/starling-operator/starling/runtime/executor"
	"github.com/starling-operator/starling/runtime/generation"
	"github.com/starling-operator/starling/runtime/lane"
	"github.com/starling-operator/starling/runtime/reconcile"
)

// chaos is what a seed makes of the order in which things happen.
type chaos struct {
	r *rand.Rand
	// Trace is what was done to the world, for people, who may hear of it at once, too.
	trace []string
	say   func(string)
	// tries are the last repeated run of each hook about each object, refused the children of parents that could not
	// be written, where nothing else has failed. Late is what waits longer than it may: see [World.heed].
	tries   map[lane.ID]engine.RunHook
	refused map[lane.ID][]reconcile.Failure
	late    []string
}

func newChaos(seed uint64, say func(string)) *chaos {
	return &chaos{r: rand.New(rand.NewPCG(seed, 0)), say: say, tries: map[lane.ID]engine.RunHook{}, refused: map[lane.ID][]reconcile.Failure{}}
}

func (c *chaos) chance(n int) bool { return c.r.IntN(n) == 0 }

func (c *chaos) note(format string, a ...any) {
	c.trace = append(c.trace, fmt.Sprintf(format, a...))
	c.say(c.trace[len(c.trace)-1])
}

// errInjected is how a call fails that a seed has chosen. The author of a hook cannot
// know of it: whatever comes of it alone is no mistake of theirs.
var errInjected = errors.New("injected by the seed")

// Injected says that a run has failed by the seed's will.
func Injected(err error) bool {
	var refused apierrors.APIStatus
	return errors.As(err, &refused) && strings.Contains(refused.Status().Message, errInjected.Error())
}

// Trace is what the seed has done to the world, in order.
func (w *World) Trace() []string {
	if w.chaos == nil {
		return nil
	}
	return w.chaos.trace
}

const (
	// maxDisturbed bounds the steps of one time of trouble.
	maxDisturbed = 300
	// maxMending is how long after it what has failed may take to succeed.
	maxMending = time.Hour
	// minTries is how many tries it gets, however long they take.
	minTries = 3
	// maxTroubles bounds the times of trouble, one at each next try of what has failed.
	maxTroubles = 6
)

// disturb lets things happen in an order of the seed: actions wait for others, changes
// are told late, doubled or merged, calls to the API server fail, the process is killed. So may be
// tries of what has failed, at their times.
func (w *World) disturb(ctx context.Context) error {
	for range 1 + w.chaos.r.IntN(maxTroubles) {
		if err := w.trouble(ctx); err != nil {
			return err
		}
		next := w.engine.NextRetry()
		if next.IsZero() || next.After(w.now.Add(maxMending)) {
			break
		}
		if due := w.due(); !due.IsZero() && due.Before(next) {
			next = due
		}
		w.reach(next)
	}
	return nil
}

// trouble disturbs what happens at one time.
func (w *World) trouble(ctx context.Context) error {
	c := w.chaos
	for range maxDisturbed {
		if err := ctx.Err(); err != nil {
			return err
		}
		switch {
		case c.chance(12):
			verb := []string{"apply", "create", "patch", "delete", "get", "list", "write", "write"}[c.r.IntN(8)]
			after := c.r.IntN(3) // in the middle of a commit, too
			c.note("%s fails", []string{"the next " + verb, "the second " + verb + " from now", "the third " + verb + " from now"}[after])
			w.store.FailAfter(verb, "*", apierrors.NewInternalError(errInjected), after)
		case c.chance(40):
			c.note("starling is killed and started again")
			w.Stop()
			clear(c.refused)
			w.store.ClearFaults() // a start that cannot read what was kept tries until it can
			if err := w.Begin(ctx); err != nil {
				return err
			}
		case c.chance(6):
			w.repeat("")
		case w.moving != nil && c.chance(3) && w.move(): // its workloads move while it works
		case c.chance(2) && w.look():
		case len(w.pending) > 0:
			i := c.r.IntN(len(w.pending))
			a := w.pending[i]
			w.pending = slices.Delete(w.pending, i, i+1)
			if name := actionName(a); i > 0 && name != "" {
				c.note("%s comes before %d others", name, i)
			}
			if commit, is := a.(engine.Commit); is && c.chance(3) {
				c.note("it fails, and something comes meanwhile")
				w.repeat(commit.Hook.ID)
				w.store.FailAfter("write", "*", apierrors.NewInternalError(errInjected), 0)
			}
			// Nobody tries again what may fail: that its author has said so is no mistake.
			w.store.SpareSeeded(mayFail(a))
			in := w.carryOut(ctx, a)
			w.store.SpareSeeded(false)
			if in != nil {
				w.handle(in)
			}
		case !w.look():
			w.heedChildren(ctx)
			return nil
		}
	}
	return nil
}

// mayFail says whether an action is of a hook that is not tried again.
func mayFail(a engine.Action) bool {
	switch a := a.(type) {
	case engine.RunHook:
		return a.Hook.AllowFailure
	case engine.Commit:
		return a.Hook.AllowFailure
	case engine.Save:
		return slices.ContainsFunc(a.Hooks, func(h *generation.Hook) bool { return h.AllowFailure })
	}
	return false
}

// actionName is an action in people's words, "" when its place in the order says nothing.
func actionName(a engine.Action) string {
	switch a := a.(type) {
	case engine.StartWatch:
		return "the watch " + a.ID
	case engine.RunHook:
		return strings.TrimSpace("the run of " + a.Hook.ID + " " + a.Key)
	case engine.Commit:
		return "the commit of " + a.Hook.ID
	case engine.Save:
		return "what is kept of " + a.Module
	case engine.Evaluate:
		return "enabled() and readiness() of " + a.Module.Name
	case engine.CheckSettings:
		return "settings_check() of " + a.Module.Name
	case engine.ApplyCRDs:
		return "the definitions of " + a.Module.Name
	case engine.Release:
		return "the release of " + a.Module.Name
	case engine.Repair:
		return "the repair of release " + a.Ref.Name
	case engine.Uninstall:
		return "the end of the release " + a.Ref.Name
	}
	return ""
}

// repeat tells of changes that were told before, as a watch that lists anew may: one of a hook, or any.
func (w *World) repeat(hook string) {
	ids := slices.DeleteFunc(w.watchIDs(), func(id string) bool { return hook != "" && engine.WatchHook(id) != hook })
	if len(ids) == 0 {
		return
	}
	f := w.watches[ids[w.chaos.r.IntN(len(ids))]]
	entries := f.local.Entries()
	if !f.synced || !f.served || len(entries) == 0 {
		return
	}
	e := entries[w.chaos.r.IntN(len(entries))]
	w.chaos.note("%s is told of %s/%s again", f.spec.ID, e.Namespace, e.Name)
	w.handle(executor.Again(f.spec.ID, e))
}

// settleFailures waits until what has failed has succeeded, or it is clear that it will not.
func (w *World) settleFailures(ctx context.Context) error {
	w.store.ClearFaults()
	end := w.now.Add(maxMending)
	for tries := 0; ; tries++ {
		if err := w.settle(ctx); err != nil {
			return err
		}
		next := w.engine.NextRetry()
		if next.IsZero() || next.After(end) && tries >= minTries {
			return nil
		}
		// Schedules and requeues that fall due meanwhile come first.
		for !w.due().IsZero() && w.due().Before(next) {
			if err := w.tick(ctx); err != nil {
				return err
			}
		}
		w.now = next
		w.wakeAt = time.Time{}
		w.handle(engine.Tick{})
	}
}

// tick moves the clock to the next time that the engine, or a controller of the cluster,
// waits for.
func (w *World) tick(ctx context.Context) error {
	w.reach(w.due())
	return w.settle(ctx)
}

// reach moves the clock to a time, at which the engine may have waited for it.
func (w *World) reach(at time.Time) {
	if at.After(w.now) {
		w.now = at
	}
	if !w.wakeAt.IsZero() && !w.wakeAt.After(w.now) {
		w.wakeAt = time.Time{}
		w.handle(engine.Tick{})
	}
}

// Mend lets what has failed succeed and workloads come to rest, then has another process
// look at what is there, in a plain order.
func (w *World) Mend(ctx context.Context) error {
	w.chaos = nil
	if err := w.comeToRest(ctx); err != nil {
		return err
	}
	w.Stop()
	w.now = w.now.Add(mendAfter)
	if err := w.Begin(ctx); err != nil {
		return err
	}
	return w.comeToRest(ctx)
}

// mendAfter is how much later the other process looks: the status of a parent, which is written once a
// second at most, is due then.
const mendAfter = 2 * time.Second

// comeToRest waits until what has failed has succeeded, and until workloads rest; those that never
// do, as CronJobs, have an hour.
func (w *World) comeToRest(ctx context.Context) error {
	if err := w.settleFailures(ctx); err != nil || w.moving == nil {
		return err
	}
	w.moving.Shuffle = nil
	end := w.now.Add(maxMending)
	for n := 0; ; n++ {
		next := w.moving.Next()
		if next.IsZero() || next.After(end) {
			return nil
		}
		if n == maxSteps {
			return fmt.Errorf("workloads do not come to rest: they look again more than %d times in %s", maxSteps, maxMending)
		}
		if err := w.Advance(ctx, next.Sub(w.now)); err != nil {
			return err
		}
	}
}

// random is where the random values of a run come from: with a seed, the same for all
// runs of a hook, because their number is left to chance.
func (w *World) random(a engine.RunHook) io.Reader {
	n := 0
	if w.chaos == nil {
		for _, r := range w.Runs {
			if r.Hook == a.Hook.ID {
				n++
			}
		}
	}
	return w.o.Keys.From(rand.NewChaCha8(sha256.Sum256(fmt.Appendf(nil, "%s %s %d", a.Hook.ID, a.Key, n))))
}
