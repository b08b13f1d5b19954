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
// config. All of them are records of one file, without an API write, and a process that stops as it should
// leaves none. Each time costs two writes of one byte, which matters to hooks that answer requests, and to the start of a
// thousand modules. A filter of a list, which comes again at once, costs two writes in all: its mark stays until it rests
// for a moment, or until something else begins.
//
// A mark is that of a name and of the digest of its code: an edit gives a fresh chance,
// and one of other code changes nothing.
type Marks struct {
	dir string

	mu      sync.Mutex
	book    markBook
	running map[string]*running // what is evaluated, or was, by mark
	latest  map[string]string   // the mark that was begun last, by its name
	unclean map[string]int      // earlier processes that ended so, by mark
	// inherited are those that the Lease tells of: with this state folder or another one. None of them runs.
	inherited leaseMarks
	asked     map[string]bool // inherited ones of what is still evaluated, or would be
	led       time.Time       // since when this process has the Lease; zero: it has not
	write     func()          // has the Lease carry what is under way; nil: it is not ours
	looks     bool            // a look at what is under way comes
	rests     []*running      // what has ended a moment ago, with its mark in the book
	hooks     map[string]bool // the marks of the hooks in force; nil: nobody knows them yet
	ended     string          // the last holder of the Lease of this folder that has ended as it should
	// alone is held by all that load, and by one that was there when a process ended
	// alone: the next time it is known which of them it was.
	alone sync.RWMutex
	stay  bool // Clear takes nothing away
	over  bool // the Lease is given back, and carries nothing that runs: reviews may be answered on
	// uncounted is why ends of the last process are known to this one alone.
	uncounted error
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
	passed  bool
	rests   bool      // it has ended, and its mark is in the book
	since   time.Time // it is under way
	carried bool      // the Lease says so
	record  int       // its place in the book, or noRecord
}

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
	if ended, err := os.ReadFile(filepath.Join(m.dir, endedName)); err == nil {
		m.ended = string(ended)
	}
	m.book.path = filepath.Join(m.dir, bookName)
	left, err := readMarks(m.book.path) // by the last process
	if err != nil {
		return nil, fmt.Errorf("--state-dir: %w", err)
	}
	for mark := range left {
		m.unclean[mark]++
	}
	for _, f := range files {
		mark, counts := strings.CutSuffix(f.Name(), uncleanSuffix)
		if !counts {
			continue
		}
		if info, err := f.Info(); err == nil && time.Since(info.ModTime()) > forgetAfter {
			if err := m.remove(mark); err != nil {
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
	for mark := range left {
		// Whole or not at all: a process that is killed here must not lose the count.
		next := m.file(mark) + ".new"
		err := os.WriteFile(next, []byte(strconv.Itoa(m.unclean[mark])), 0o600)
		if err == nil {
			err = os.Rename(next, m.file(mark))
		}
		if err != nil { // a disk that is full is no reason not to begin: the Lease has counts, too
			_ = os.Remove(next)
			m.uncounted = fmt.Errorf("--state-dir: %w", err)
		}
	}
	// First the counts, then the marks: a crash in between counts twice, which errs on the
	// safe side.
	if err := m.book.close(); err != nil {
		return nil, fmt.Errorf("--state-dir: %w", err)
	}
	return m, nil
}

// Uncounted says why what ended the last process cannot be noted for the next one, nil when it is.
func (m *Marks) Uncounted() error { return m.uncounted }

// quarantined says why something must not be evaluated, or "".
func (m *Marks) quarantined(what, digest string) string {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.why(markOf(what, digest))
}

// why is quarantined for a mark. Called with the mutex held, as all below that take a mark.
func (m *Marks) why(mark string) string {
	n, inherited := m.unclean[mark], m.inherited.Unclean[mark]
	if inherited > 0 && m.asked != nil {
		m.asked[mark] = true
	}
	if n > 0 { // it is still there; where that cannot be noted, it is forgotten early
		_ = os.Chtimes(m.file(mark), time.Time{}, time.Now())
	}
	var by []string
	if n >= quarantineAfter {
		by = append(by, m.file(mark))
	}
	if inherited >= quarantineAfter {
		by = append(by, "the annotation "+marksAnnotation+" of the Lease")
	}
	if by == nil {
		return ""
	}
	return fmt.Sprintf("quarantined: %d times in a row starling was killed while it ran; change it, or remove %s and restart", max(n, inherited), strings.Join(by, " and "))
}

// barred is quarantined for a hook.
func (m *Marks) barred(h *generation.Hook) string { return m.quarantined(h.ID, h.Digest) }

// begin marks that something is evaluated.
func (m *Marks) begin(what, digest string) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	_, err := m.beginMark(what, markOf(what, digest))
	return err
}

func (m *Marks) beginMark(what, mark string) (*running, error) {
	r := m.running[mark]
	if r == nil {
		r = &running{what: what, record: noRecord}
		m.running[mark] = r
	}
	m.replace(what, mark)
	if r.times <= r.waiting {
		if !r.rests {
			if time.Since(r.since) > restsFor { // else they take turns
				m.rest() // what ends the process now is not that
			}
			if err := m.book.begin(mark, what, &r.record); err != nil {
				return nil, err // there is no run
			}
		}
		r.since, r.carried, r.rests = time.Now(), false, false
		m.lookIn(carriedAfter)
	}
	r.times++
	r.gone = false
	return r, nil
}

// replace has the mark of other code of this name go as soon as it does not run.
func (m *Marks) replace(what, mark string) {
	before := m.latest[what]
	if before == mark {
		return
	}
	m.latest[what] = mark
	if old := m.running[before]; old != nil {
		if old.gone = true; old.times <= 0 {
			m.drop(before, old)
		}
	}
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
	if r.times--; r.times <= r.waiting {
		errs = append(errs, m.book.end(r.record))
	}
	if r.times <= 0 && r.gone {
		m.drop(mark, r)
	}
	if succeeded {
		m.inherited.drop(mark)
	}
	if succeeded && m.unclean[mark] > 0 {
		delete(m.unclean, mark)
		errs = append(errs, m.remove(mark))
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
			m.drop(markOf(what, digest), r) // it is loaded once
		}
	}, nil
}

// Evaluating marks that something else of a module is evaluated: a filter, enabled(),
// chart_values(), values. The caller calls ended at its end, with whether it went well; an
// error says why it must not begin. Without a mark, where the disk is full, it goes on: hooks
// do, too, and they tell of it.
func (m *Marks) Evaluating(what, digest string) (ended func(ok bool), err error) {
	mark := markOf(what, digest)
	m.mu.Lock()
	defer m.mu.Unlock()
	if why := m.why(mark); why != "" {
		return nil, errors.New(why)
	}
	r, err := m.beginMark(what, mark)
	if err != nil {
		return func(bool) {}, nil
	}
	return func(ok bool) {
		m.mu.Lock()
		defer m.mu.Unlock()
		if m.running[mark] != r {
			return // cleared meanwhile
		}
		// A filter that passes many objects may end the process at another one each time.
		r.passed = r.passed || ok
		m.endSoon(mark, r)
	}, nil
}

// Clear takes all marks away: this process ends as it should, whatever still runs.
func (m *Marks) Clear() error {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.stay {
		return nil
	}
	m.over = true
	var errs []error
	for mark, r := range m.running {
		if r.passed && m.unclean[mark] > 0 {
			errs = append(errs, m.remove(mark))
		}
		m.drop(mark, r)
	}
	return errors.Join(append(errs, m.book.close())...)
}

// yield says that this process has the Lease no more.
func (m *Marks) yield() {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.led = time.Time{}
}

// Stay has the marks of what goes on stay for the next process: this one ends because
// something of it hangs.
func (m *Marks) Stay() {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.stay = true
}

// use has the marks of all but these hooks, and of filters, go as soon as they do not run.
func (m *Marks) use(gen *generation.Generation) {
	stay := map[string]bool{}
	for _, h := range gen.Hooks() {
		stay[markOf(h.ID, h.Digest)] = true
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	m.hooks = stay
	for mark, r := range m.running {
		if stay[mark] {
			continue
		}
		if r.gone = true; r.times <= 0 {
			m.drop(mark, r)
		}
	}
}

// drop forgets what does not run; another one may have its record.
func (m *Marks) drop(mark string, r *running) {
	m.endRest(r)
	delete(m.running, mark)
	if m.latest[r.what] == mark {
		delete(m.latest, r.what)
	}
	m.book.free(r.record)
}

func markOf(what, digest string) string {
	sum := sha256.Sum256([]byte(digest + "\x00" + what))
	return hex.EncodeToString(sum[:16])
}

const uncleanSuffix = ".unclean"

// file is where the count of a mark stands.
func (m *Marks) file(mark string) string { return filepath.Join(m.dir, mark+uncleanSuffix) }

// remove drops the count of a mark.
func (m *Marks) remove(mark string) error { return removeFile(m.file(mark)) }

func removeFile(path string) error {
	if err := os.Remove(path); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	return nil
}
