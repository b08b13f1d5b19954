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
)

// quarantineAfter is how many processes may end uncleanly while a hook runs, with no
// success of that hook in between, before it is run no more.
const quarantineAfter = 2

// marks notes on disk which hooks are running, so that a hook that takes the process
// with it (memory that no limit saw in time, a fault of the runtime) is known
// afterwards. A file for each hook, no API write; a process that stops as it should
// leaves none. A file is made with the first run and stays open: what a run then costs
// is two writes of one byte, which matters to hooks that answer requests.
type marks struct {
	dir string
	// tree is part of each mark's name: a changed module tree gives every hook
	// a fresh chance.
	tree string

	mu      sync.Mutex
	running map[string]*running // hooks that have run, by id
	unclean map[string]int      // earlier processes that ended so, by mark
}

// running is a hook that runs, or has.
type running struct {
	mark string
	runs int      // under way
	file *os.File // begins with markRunning or markIdle
}

const (
	markRunning = '1'
	markIdle    = '0'
)

// openMarks reads what earlier processes have left behind.
func openMarks(dir, tree string) (*marks, error) {
	m := &marks{dir: filepath.Join(dir, "runs"), tree: tree, running: map[string]*running{}, unclean: map[string]int{}}
	if err := os.MkdirAll(m.dir, 0o700); err != nil {
		return nil, fmt.Errorf("--state-dir: %w", err)
	}
	files, err := os.ReadDir(m.dir)
	if err != nil {
		return nil, fmt.Errorf("--state-dir: %w", err)
	}
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
		case "unclean":
			data, err := os.ReadFile(filepath.Join(m.dir, f.Name()))
			n, bad := strconv.Atoi(strings.TrimSpace(string(data)))
			if err == nil && bad == nil && n > 0 && n < 1000 {
				m.unclean[mark] += n
			}
		}
	}
	for mark, n := range m.unclean {
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

// quarantined says why a hook must not run, or "".
func (m *marks) quarantined(hook string) string {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.quarantinedLocked(m.mark(hook))
}

// quarantinedIn is quarantined for another tree.
func (m *marks) quarantinedIn(tree, hook string) string {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.quarantinedLocked(markOf(tree, hook))
}

func (m *marks) quarantinedLocked(mark string) string {
	if n := m.unclean[mark]; n >= quarantineAfter {
		return fmt.Sprintf("quarantined: %d times in a row starling was killed while it ran; change the hook, or remove %s and restart", n, m.file(mark, "unclean"))
	}
	return ""
}

// begin marks a run of the hook.
func (m *marks) begin(hook string) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	r := m.running[hook]
	if r != nil && r.runs == 0 && r.mark != m.mark(hook) {
		if err := m.close(hook, r); err != nil { // that of another tree
			return err
		}
		r = nil
	}
	if r == nil {
		r = &running{mark: m.mark(hook)}
		m.running[hook] = r
	}
	if r.runs == 0 {
		if err := m.show(hook, r); err != nil {
			return err // there is no run
		}
	}
	r.runs++
	return nil
}

// show writes the mark of a hook that runs.
func (m *marks) show(hook string, r *running) error {
	if r.file != nil {
		return r.set(markRunning)
	}
	file, err := os.OpenFile(m.file(r.mark, "running"), os.O_CREATE|os.O_TRUNC|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	r.file = file
	_, err = file.WriteString(string(markRunning) + " " + hook)
	return err
}

func (r *running) set(state byte) error {
	_, err := r.file.WriteAt([]byte{state}, 0)
	return err
}

// end takes the mark away. A success clears what earlier processes had against the
// hook.
func (m *marks) end(hook string, succeeded bool) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	r := m.running[hook]
	if r == nil {
		return nil // cleared meanwhile
	}
	var errs []error
	if r.runs--; r.runs <= 0 && r.file != nil {
		errs = append(errs, r.set(markIdle))
	}
	if succeeded && m.unclean[r.mark] > 0 {
		delete(m.unclean, r.mark)
		errs = append(errs, m.remove(r.mark, "unclean"))
	}
	return errors.Join(errs...)
}

// clear takes all marks away: this process ends as it should, whatever still runs.
func (m *marks) clear() error {
	m.mu.Lock()
	defer m.mu.Unlock()
	var errs []error
	for _, r := range m.running {
		if r.file != nil {
			errs = append(errs, r.file.Close(), m.remove(r.mark, "running"))
		}
	}
	clear(m.running)
	return errors.Join(errs...)
}

// use has hooks marked as those of another tree from now on. A hook that runs keeps its
// mark until it has ended; one that does not run any more loses it.
func (m *marks) use(tree string) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.tree = tree
	var errs []error
	for hook, r := range m.running {
		if r.runs <= 0 {
			errs = append(errs, m.close(hook, r))
		}
	}
	return errors.Join(errs...)
}

func (m *marks) close(hook string, r *running) error {
	delete(m.running, hook)
	if r.file == nil {
		return nil
	}
	return errors.Join(r.file.Close(), m.remove(r.mark, "running"))
}

func (m *marks) mark(hook string) string { return markOf(m.tree, hook) }

func markOf(tree, hook string) string {
	sum := sha256.Sum256([]byte(tree + "\x00" + hook))
	return hex.EncodeToString(sum[:16])
}

func (m *marks) file(mark, kind string) string { return filepath.Join(m.dir, mark+"."+kind) }

func (m *marks) remove(mark, kind string) error {
	if err := os.Remove(m.file(mark, kind)); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	return nil
}
