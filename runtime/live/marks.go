package live

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/starling-operator/starling/runtime/generation"
)

// quarantineAfter is how many processes may end uncleanly while something is evaluated,
// with no success of it in between, before it is evaluated no more.
const quarantineAfter = 2

// forgetAfter is how long a count stays of what is not evaluated any more: an edit that is
// taken back finds it again.
const forgetAfter = 30 * 24 * time.Hour

// Marks notes on disk what of the modules is being evaluated, so that what takes the
// process with it (memory that no limit saw in time, a fault of the runtime) is known
// afterwards: a run of a hook, a filter, enabled(), the load of a module, a section of the
// config. A file for each, no API write; a process that stops as it should leaves none. A file is made with the
// first time and stays open: what each time then costs is two writes of one byte, which
// matters to filters, and to hooks that answer requests.
//
// A mark is that of a name and of the digest of its code: an edit gives a fresh chance,
// and one of other code changes nothing.
type Marks struct {
	dir string

	mu      sync.Mutex
	running map[string]*running // what is evaluated, or was, by mark
	latest  map[string]string   // the mark that was begun last, by its name
	unclean map[string]int      // earlier processes that ended so, by mark
	// alone is held by all that load, and by one that was there when a process ended
	// alone: the next time it is known which of them it was.
	alone sync.RWMutex
	stay  bool // Clear takes nothing away
}

// running is something that is evaluated, or was.
type running struct {
	what  string
	times int // under way
	// waiting is how many of them only wait, or waited when they were given up.
	waiting int
	gone    bool // it is not there any more, or another one has its name
	// passed says that it went well, and that what earlier processes have against it is
	// cleared once this one has ended as it should.
	passed bool
	file   *os.File // begins with markRunning or markIdle
}

const (
	markRunning = '1'
	markIdle    = '0'
)

// OpenMarks reads what earlier processes have left behind in a state folder.
func OpenMarks(dir string) (*Marks, error) {
	m := &Marks{dir: filepath.Join(dir, "runs"), running: map[string]*running{}, latest: map[string]string{}, unclean: map[string]int{}}
	if err := os.MkdirAll(m.dir, 0o700); err != nil {
		return nil, fmt.Errorf("--state-dir: %w", err)
	}
	files, err := os.ReadDir(m.dir)
	if err != nil {
		return nil, fmt.Errorf("--state-dir: %w", err)
	}
	fresh := map[string]bool{} // those that the last process has left
	for _, f := range files {
		mark, kind, _ := strings.Cut(f.Name(), ".")
		switch kind {
		case "running":
			data, err := os.ReadFile(filepath.Join(m.dir, f.Name()))
			if err == nil && len(data) > 0 && data[0] == markIdle {
				if err := m.remove(mark, "running"); err != nil {
					return nil, fmt.Errorf("--state-dir: %w", err)
				}
				continue
			}
			m.unclean[mark]++
			fresh[mark] = true
		case "unclean":
			if info, err := f.Info(); err == nil && time.Since(info.ModTime()) > forgetAfter {
				if err := m.remove(mark, "unclean"); err != nil {
					return nil, fmt.Errorf("--state-dir: %w", err)
				}
				continue
			}
			data, err := os.ReadFile(filepath.Join(m.dir, f.Name()))
			n, bad := strconv.Atoi(strings.TrimSpace(string(data)))
			if err == nil && bad == nil && n > 0 && n < 1000 {
				m.unclean[mark] += n
			}
		}
	}
	for mark := range fresh {
		n := m.unclean[mark]
		// First the count, then the mark: a crash in between counts twice, which
		// errs on the safe side.
		if err := os.WriteFile(m.file(mark, "unclean"), []byte(strconv.Itoa(n)), 0o600); err != nil {
			return nil, fmt.Errorf("--state-dir: %w", err)
		}
		if err := m.remove(mark, "running"); err != nil {
			return nil, fmt.Errorf("--state-dir: %w", err)
		}
	}
	return m, nil
}

// quarantined says why something must not be evaluated, or "".
func (m *Marks) quarantined(what, digest string) string {
	m.mu.Lock()
	defer m.mu.Unlock()
	mark := markOf(what, digest)
	n := m.unclean[mark]
	if n > 0 { // it is still there; where that cannot be noted, it is forgotten early
		_ = os.Chtimes(m.file(mark, "unclean"), time.Time{}, time.Now())
	}
	if n >= quarantineAfter {
		return fmt.Sprintf("quarantined: %d times in a row starling was killed while it ran; change it, or remove %s and restart", n, m.file(mark, "unclean"))
	}
	return ""
}

// barred is quarantined for a hook.
func (m *Marks) barred(h *generation.Hook) string { return m.quarantined(h.ID, h.Digest) }

// begin marks that something is evaluated.
func (m *Marks) begin(what, digest string) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	mark := markOf(what, digest)
	r := m.running[mark]
	if r == nil {
		r = &running{what: what}
		m.running[mark] = r
	}
	if err := m.replace(what, mark); err != nil {
		return err
	}
	if r.times <= r.waiting {
		if err := m.show(mark, what, r); err != nil {
			return err // there is no run
		}
	}
	r.times++
	r.gone = false
	return nil
}

// replace has the mark of other code of this name go as soon as it does not run.
func (m *Marks) replace(what, mark string) error {
	before := m.latest[what]
	if before == mark {
		return nil
	}
	m.latest[what] = mark
	old := m.running[before]
	if old == nil {
		return nil
	}
	if old.gone = true; old.times > 0 {
		return nil
	}
	return m.close(before, old)
}

// show writes the mark of what is evaluated.
func (m *Marks) show(mark, what string, r *running) error {
	if r.file != nil {
		return r.set(markRunning)
	}
	file, err := os.OpenFile(m.file(mark, "running"), os.O_CREATE|os.O_TRUNC|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	r.file = file
	_, err = file.WriteString(string(markRunning) + " " + what)
	return err
}

func (r *running) set(state byte) error {
	_, err := r.file.WriteAt([]byte{state}, 0)
	return err
}

// end takes the mark away. A success clears what earlier processes had against it.
func (m *Marks) end(what, digest string, succeeded bool) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	mark := markOf(what, digest)
	r := m.running[mark]
	if r == nil {
		return nil // cleared meanwhile
	}
	var errs []error
	if r.times--; r.times <= r.waiting && r.file != nil {
		errs = append(errs, r.set(markIdle))
	}
	if r.times <= 0 && r.gone {
		errs = append(errs, m.close(mark, r))
	}
	if succeeded && m.unclean[mark] > 0 {
		delete(m.unclean, mark)
		errs = append(errs, m.remove(mark, "unclean"))
	}
	return errors.Join(errs...)
}

// Loading marks that a module is loaded; see [generation.Options]. loaded must be called
// when that has ended, with whether it went well.
func (m *Marks) Loading(module, digest string) (loaded func(ok bool), err error) {
	what := "load of " + module
	if why := m.quarantined(what, digest); why != "" {
		return nil, errors.New(strings.Replace(why, "while it ran", "while it was loaded", 1))
	}
	m.mu.Lock()
	suspect := m.unclean[markOf(what, digest)] > 0
	m.mu.Unlock()
	leave := m.alone.RUnlock
	if suspect {
		m.alone.Lock()
		leave = m.alone.Unlock
	} else {
		m.alone.RLock()
	}
	if err := m.begin(what, digest); err != nil {
		return func(bool) { leave() }, nil // as Evaluating
	}
	return func(ok bool) {
		defer leave()
		_ = m.end(what, digest, ok) // a mark that stays counts once
		m.mu.Lock()
		defer m.mu.Unlock()
		if r := m.running[markOf(what, digest)]; r != nil && r.times <= 0 {
			_ = m.close(markOf(what, digest), r) // it is loaded once
		}
	}, nil
}

// Evaluating marks that something else of a module is evaluated: a filter, enabled(),
// chart_values(), values. The caller calls ended at its end, with whether it went well; an
// error says why it must not begin. Without a mark, where the disk is full, it goes on: hooks
// do, too, and they tell of it.
func (m *Marks) Evaluating(what, digest string) (ended func(ok bool), err error) {
	if why := m.quarantined(what, digest); why != "" {
		return nil, errors.New(why)
	}
	if err := m.begin(what, digest); err != nil {
		return func(bool) {}, nil
	}
	return func(ok bool) {
		_ = m.end(what, digest, false) // a mark that stays counts once
		// A filter that passes many objects may end the process at another one each time.
		m.mu.Lock()
		defer m.mu.Unlock()
		if r := m.running[markOf(what, digest)]; r != nil {
			r.passed = r.passed || ok
		}
	}, nil
}

// Clear takes all marks away: this process ends as it should, whatever still runs.
func (m *Marks) Clear() error {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.stay {
		return nil
	}
	var errs []error
	for mark, r := range m.running {
		if r.passed && m.unclean[mark] > 0 {
			errs = append(errs, m.remove(mark, "unclean"))
		}
		errs = append(errs, m.close(mark, r))
	}
	return errors.Join(errs...)
}

// Stay has the marks of what goes on stay for the next process: this one ends because
// something of it hangs.
func (m *Marks) Stay() {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.stay = true
}

// use has the marks of all but these hooks, and of filters, go as soon as they do not run.
func (m *Marks) use(gen *generation.Generation) error {
	stay := map[string]bool{}
	for _, module := range gen.All() {
		for _, h := range module.Hooks {
			stay[markOf(h.ID, h.Digest)] = true
		}
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	var errs []error
	for mark, r := range m.running {
		if stay[mark] {
			continue
		}
		if r.gone = true; r.times <= 0 {
			errs = append(errs, m.close(mark, r))
		}
	}
	return errors.Join(errs...)
}

func (m *Marks) close(mark string, r *running) error {
	delete(m.running, mark)
	if m.latest[r.what] == mark {
		delete(m.latest, r.what)
	}
	if r.file == nil {
		return nil
	}
	return errors.Join(r.file.Close(), m.remove(mark, "running"))
}

func markOf(what, digest string) string {
	sum := sha256.Sum256([]byte(digest + "\x00" + what))
	return hex.EncodeToString(sum[:16])
}

func (m *Marks) file(mark, kind string) string { return filepath.Join(m.dir, mark+"."+kind) }

func (m *Marks) remove(mark, kind string) error {
	if err := os.Remove(m.file(mark, kind)); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	return nil
}
