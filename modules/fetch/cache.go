package fetch

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"math/rand/v2"
	"net/http"
	"os"
	"path"
	"path/filepath"
	"sync"
	"time"

	"github.com/rs/zerolog"

	"github.com/starling-operator/starling/modules/helm"
	"github.com/starling-operator/starling/modules/tree"
)

// CacheOptions configures [NewCache].
type CacheOptions struct {
	// Dir is the folder of the archives; it is made with the first one.
	Dir string
	// Timeout bounds one try; default one minute.
	Timeout time.Duration
	// Retry is the time after a first try that failed, default 5 s. It doubles up to 5 minutes.
	Retry time.Duration
	// Wait is for how long readers wait together, once in half a minute, for archives that nobody has
	// asked for before: a new version of a chart is no error for as long as it takes to come. Default 5 s.
	Wait time.Duration
	// Transport carries the requests; nil means [http.DefaultTransport].
	Transport http.RoundTripper
	Log       zerolog.Logger
}

// Cache keeps archives of charts for a process, and gets those that it lacks: only the bytes that
// a lock names.
type Cache struct {
	o       CacheOptions
	changed chan struct{}
	asked   chan *wish
	slots   chan struct{}

	mu     sync.Mutex
	wishes map[tree.Locked]*wish // of archives that are not there
	// kept are the files of the folder that the last lock names, by name.
	kept map[string]bool
	// until is for how long readers wait, or did wait last.
	until time.Time
}

// wish is an archive that somebody has asked for. err is how the last try has ended; tried is closed
// once the first one has.
type wish struct {
	locked tree.Locked
	err    error
	tried  chan struct{}
	once   sync.Once
}

func (w *wish) end() { w.once.Do(func() { close(w.tried) }) }

const (
	maxRetry = 5 * time.Minute
	// keepFor is how long an archive stays that no lock names any more: somebody may go back to it.
	keepFor = 7 * 24 * time.Hour
	// waitAgain is how long readers do not wait after they did.
	waitAgain = 30 * time.Second
	// tries is how many archives are fetched at once.
	tries = 4
)

// NewCache returns a cache that gets nothing yet: see [Cache.Run].
func NewCache(o CacheOptions) *Cache {
	o.Timeout, o.Retry, o.Wait = cmp.Or(o.Timeout, time.Minute), cmp.Or(o.Retry, 5*time.Second), cmp.Or(o.Wait, 5*time.Second)
	return &Cache{
		o: o, changed: make(chan struct{}, 1), asked: make(chan *wish, 1000), slots: make(chan struct{}, tries),
		wishes: map[tree.Locked]*wish{},
	}
}

// Changed hears that an archive has come, or that another error keeps it away.
func (c *Cache) Changed() <-chan struct{} { return c.changed }

// Archive returns the archive that the lock names. The error of one that is not there says why; it
// is fetched while [Cache.Run] goes on. It is a [tree.Options.Archives].
func (c *Cache) Archive(l tree.Locked) ([]byte, error) {
	if data, err := c.read(l); err == nil {
		return data, nil
	}
	w, until := c.wish(l)
	if !until.IsZero() {
		select {
		case <-w.tried:
		case <-time.After(time.Until(until)):
		}
		if data, err := c.read(l); err == nil {
			return data, nil
		}
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	return nil, fmt.Errorf("%s of %s: %w", l.File(), l.URL, w.err)
}

// wish notes that somebody asks for an archive. It returns for how long a reader waits for it; the
// zero time for one that was asked for before.
func (c *Cache) wish(l tree.Locked) (*wish, time.Time) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if w := c.wishes[l]; w != nil {
		return w, time.Time{}
	}
	w := &wish{locked: l, err: errors.New("it is being fetched"), tried: make(chan struct{})}
	select {
	case c.asked <- w:
		c.wishes[l] = w
	default: // the next read of the tree asks again
		return w, time.Time{}
	}
	if now := time.Now(); now.Sub(c.until) > waitAgain {
		c.until = now.Add(c.o.Wait)
	}
	return w, c.until
}

// read returns an archive of the folder: bytes that the lock does not name are none.
func (c *Cache) read(l tree.Locked) ([]byte, error) {
	f, err := os.Open(filepath.Join(c.o.Dir, path.Base(l.Archive())))
	if err != nil {
		return nil, err
	}
	defer f.Close()
	data, err := io.ReadAll(io.LimitReader(f, tree.MaxFileBytes+1))
	if err != nil {
		return nil, err
	}
	if digest(data) != l.Digest {
		return nil, errors.New("it holds other bytes")
	}
	return data, nil
}

// Keep is told which archives the tree names that is in force now. Others are fetched no more; those
// of the tree before stay, and so do all that are younger than a week. An error leaves a file there
// until the next call.
func (c *Cache) Keep(t *tree.Tree) {
	named := map[tree.Locked]bool{}
	now := map[string]bool{}
	for _, m := range t.Modules {
		if m.Locked != nil {
			named[*m.Locked], now[path.Base(m.Locked.Archive())] = true, true
		}
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	maps.DeleteFunc(c.wishes, func(l tree.Locked, _ *wish) bool { return !named[l] })
	files, _ := os.ReadDir(c.o.Dir)
	for _, f := range files {
		info, err := f.Info()
		if err == nil && !now[f.Name()] && !c.kept[f.Name()] && time.Since(info.ModTime()) > keepFor {
			_ = os.Remove(filepath.Join(c.o.Dir, f.Name()))
		}
	}
	c.kept = now
}

// Run gets what is asked for until ctx ends: each archive for itself, so one that does not come
// keeps no other one waiting.
func (c *Cache) Run(ctx context.Context) {
	for {
		select {
		case <-ctx.Done():
			return
		case w := <-c.asked:
			go c.get(ctx, w)
		}
	}
}

// get tries until the archive is there, no lock names it any more, or ctx ends.
func (c *Cache) get(ctx context.Context, w *wish) {
	defer w.end()
	for delay := c.o.Retry; ; delay = min(2*delay, maxRetry) {
		select {
		case c.slots <- struct{}{}:
		case <-ctx.Done():
			return
		}
		err := c.try(ctx, w.locked)
		<-c.slots
		if ctx.Err() != nil || c.note(w, err) {
			return
		}
		w.end()
		select {
		case <-time.After(delay + rand.N(delay/5+1)):
		case <-ctx.Done():
			return
		}
	}
}

// note takes in how a try has ended, and reports whether it was the last one.
func (c *Cache) note(w *wish, err error) (done bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	log := c.o.Log.With().Str("chart", w.locked.URL).Str("version", w.locked.Version).Logger()
	switch {
	case c.wishes[w.locked] != w: // no lock names it any more
		return true
	case err == nil:
		delete(c.wishes, w.locked)
		log.Info().Msg("the archive of a chart is fetched")
	default:
		failed := fmt.Errorf("it cannot be fetched, and is tried again: %w", err)
		if failed.Error() == w.err.Error() {
			return false
		}
		w.err = failed
		log.Warn().Msg(failed.Error())
	}
	select {
	case c.changed <- struct{}{}:
	default: // somebody will look anyway
	}
	return err == nil
}

// try gets an archive once and keeps it.
func (c *Cache) try(ctx context.Context, l tree.Locked) error {
	ctx, cancel := context.WithTimeout(ctx, c.o.Timeout)
	defer cancel()
	f := &fetcher{o: Options{Transport: c.o.Transport}, indexes: map[string]*helm.Index{}, maxIndex: maxIndexBeside}
	d := dependencyOf(l.URL, l.Version)
	from, sum, err := l.ArchiveURL, "", error(nil)
	if from == "" {
		from, sum, err = f.find(ctx, d, l.Digest)
	}
	var data []byte
	if err == nil {
		data, err = f.chart(ctx, d, l, from, sum)
	}
	switch {
	case err != nil && errors.Is(ctx.Err(), context.DeadlineExceeded):
		return fmt.Errorf("%w: not done within %s", err, c.o.Timeout)
	case err != nil:
		return err
	}
	if err := os.MkdirAll(c.o.Dir, 0o700); err != nil {
		return err
	}
	root, err := os.OpenRoot(c.o.Dir)
	if err != nil {
		return err
	}
	defer root.Close()
	return replace(root, path.Base(l.Archive()), data)
}
