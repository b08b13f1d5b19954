// Package reload notices that a module tree on disk has changed, and hands over each new
// state of it, whole or not at all.
//
// A tree may be a plain folder, a mounted ConfigMap or projected volume (whose ..data link
// is replaced), or lie behind a link that git-sync replaces. Changes are heard of from
// the file system, and looked for again and again, because a file system may be silent.
// Changes that come at once are taken together; for changes without end it waits only so long.
package reload

import (
	"cmp"
	"context"
	"time"

	"github.com/rs/zerolog"

	"github.com/starling-operator/starling/modules/tree"
)

// Options configures [Run]. Dir, Changed and Failed are required.
type Options struct {
	// Dir is the folder of the module tree, or a link to it, or several, see [tree.Folders].
	Dir string
	// Tree is how it is read.
	Tree tree.Options
	// Digest is that of the tree that is known already.
	Digest string
	// Files are others, by their paths: what becomes of them is a change, too.
	Files []string
	// Wake says that what [tree.Options.Archives] gives has changed; nil: nobody does.
	Wake <-chan struct{}
	// Changed takes a tree that is not as the last one. Nothing is noticed before it
	// returns, and nothing is missed.
	Changed func(ctx context.Context, t *tree.Tree)
	// Failed is told why the folder cannot be read as a whole, once for each
	// reason; Changed follows when it can be again, with the same tree perhaps.
	Failed func(err error)
	// Quiet is how long nothing must have changed before the tree is read; default
	// 200 ms. MaxWait is how long changes that do not stop are waited for, and for
	// how long a folder may be unreadable before that is a failure; default 2 s.
	Quiet, MaxWait time.Duration
	// Poll is how often the tree is read without a reason; default 10 s. A large tree of
	// which changes are heard is read less often, see pollAfter.
	Poll time.Duration
	Log  zerolog.Logger

	// notifier hears of changes; nil: that of the system.
	notifier notifier
}

// watcher is one [Run].
type watcher struct {
	o        Options
	notifier notifier
	watched  places
	blind    bool // the log has said that folders cannot be watched

	digest string // of what was handed over last
	beside string // that of Files which was handed over last
	failed string // what was told last, "" once the tree could be read
	since  time.Time
}

// Run watches until ctx ends.
func Run(ctx context.Context, o Options) {
	o.Quiet, o.MaxWait, o.Poll = cmp.Or(o.Quiet, 200*time.Millisecond), cmp.Or(o.MaxWait, 2*time.Second), cmp.Or(o.Poll, 10*time.Second)
	w := &watcher{o: o, notifier: o.notifier, digest: o.Digest, beside: digestOf(o.Files)}
	if w.notifier == nil {
		n, err := newSystemNotifier()
		if err != nil {
			w.unseeing(err)
			n = deaf{}
		}
		w.notifier = n
	}
	defer w.notifier.close()
	w.loop(ctx)
}

// loop waits for changes and looks at them.
func (w *watcher) loop(ctx context.Context) {
	poll := time.NewTimer(w.o.Poll)
	defer poll.Stop()
	// quiet ends a row of changes, which began at first.
	quiet := time.NewTimer(0)
	defer quiet.Stop()
	first := time.Now() // the tree may have changed since it was read
	for {
		select {
		case <-ctx.Done():
			return
		case name := <-w.notifier.events():
			if !w.watched.wants(name) {
				continue
			}
			now := time.Now()
			if first.IsZero() {
				first = now
			}
			quiet.Reset(min(w.o.Quiet, w.o.MaxWait-now.Sub(first)))
			continue
		case <-w.o.Wake:
		case <-quiet.C:
		case <-poll.C:
		}
		first = time.Time{}
		began := time.Now()
		if !w.look(ctx) {
			first = time.Now().Add(w.o.Quiet - w.o.MaxWait) // it has been waited for already
			quiet.Reset(w.o.Quiet)
		}
		poll.Reset(pollAfter(w.o.Poll, time.Since(began), w.blind))
	}
}

const (
	// pollShare is how many times as long as one look at the tree nobody looks at it.
	pollShare = 500
	maxPoll   = 5 * time.Minute
)

// pollAfter is how long nobody looks at the tree without a reason, after a look that has
// taken so long. Where changes are heard of, as next to everywhere, looks without a reason
// take no more than 0.2 % of a processor.
func pollAfter(poll, took time.Duration, blind bool) time.Duration {
	if blind {
		return poll
	}
	return max(poll, min(pollShare*took, maxPoll))
}

// look reads the tree and hands it over if it is another one. It returns false when it
// must be looked at again soon.
func (w *watcher) look(ctx context.Context) (done bool) {
	w.place() // first: what changes from now on is heard of
	beside, again, o := digestOf(w.o.Files), w.failed != "", w.o.Tree
	if beside == w.beside && !again {
		o.Known = w.digest
	}
	t, err := stable(w.o.Dir, o, w.digest)
	if ctx.Err() != nil {
		return true
	}
	if err != nil {
		// A folder that is just being replaced is no failure.
		if w.since.IsZero() {
			w.since = time.Now()
		}
		if time.Since(w.since) < w.o.MaxWait {
			return false
		}
		if w.failed != err.Error() {
			w.failed = err.Error()
			w.o.Failed(err)
		}
		return true
	}
	w.since, w.failed = time.Time{}, ""
	if t.Digest != w.digest || beside != w.beside || again {
		w.digest, w.beside = t.Digest, beside
		w.o.Changed(ctx, t)
	}
	return true
}

// place watches the folders that there are now.
func (w *watcher) place() {
	now := placesOf(w.o.Dir)
	for _, file := range w.o.Files {
		now.follow(file)
	}
	for dir := range w.watched {
		if _, still := now[dir]; !still {
			w.notifier.remove(dir)
		}
	}
	for dir := range now {
		// Again, too: the folder of that name may be another one.
		if err := w.notifier.add(dir); err != nil {
			w.unseeing(err)
		}
	}
	w.watched = now
}

// unseeing says once that changes are found late.
func (w *watcher) unseeing(err error) {
	if !w.blind {
		w.blind = true
		w.o.Log.Warn().Err(err).Stringer("every", w.o.Poll).Msg("folders of the module tree cannot be watched; they are read again and again instead")
	}
}
