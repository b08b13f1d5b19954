package live

import (
	"cmp"
	"encoding/json"
	"fmt"
	"hash/fnv"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"time"
)

// The Lease carries marks from one process to the next, which may have another state folder: those that are under way
// as it is renewed. A renewal is written anyway; one that is written early, for a mark that is some time old, is
// the only request that this costs. Code that takes the process with it sooner is known by the state folder alone.

// marksAnnotation is where a Lease carries them.
const marksAnnotation = "starling.dev/marks"

const (
	// carriedAfter is how long a mark is under way before a renewal is written for it.
	carriedAfter = 200 * time.Millisecond
	// staysUnasked is how long a count stays of what nobody evaluates any more: it may come back.
	staysUnasked = time.Hour
)

// maxCarried is how many marks of each kind a Lease carries.
const maxCarried = 64

// leaseMarks is what a Lease carries.
type leaseMarks struct {
	// Running are the marks that were under way at the last renewal.
	Running []string `json:"running,omitempty"`
	// Unclean is how many processes have ended uncleanly with a mark under way.
	Unclean map[string]int `json:"unclean,omitempty"`
	// Counted are the last of these processes, by mark: one that has lost its Lease may live.
	Counted map[string][]string `json:"counted,omitempty"`
}

// maxCounted is how many processes are named for a mark.
const maxCounted = 2 * quarantineAfter

// count counts a process that has not ended as it should.
func (l *leaseMarks) count(mark, holder string) {
	if l.Unclean == nil {
		l.Unclean = map[string]int{}
	}
	if l.Counted == nil {
		l.Counted = map[string][]string{}
	}
	l.Unclean[mark]++
	named := append(l.Counted[mark], holder)
	l.Counted[mark] = named[max(0, len(named)-maxCounted):]
}

// without takes back what was counted of a process that is there.
func (l *leaseMarks) without(own string) {
	for mark, named := range l.Counted {
		others := slices.DeleteFunc(slices.Clone(named), func(holder string) bool { return holder == own })
		if left := l.Unclean[mark] - (len(named) - len(others)); left > 0 {
			l.Unclean[mark], l.Counted[mark] = left, others
		} else {
			l.drop(mark)
		}
	}
}

func (l *leaseMarks) drop(mark string) {
	delete(l.Unclean, mark)
	delete(l.Counted, mark)
}

// readLeaseMarks reads an annotation. One that is broken says nothing.
func readLeaseMarks(text string) (l leaseMarks) {
	_ = json.Unmarshal([]byte(text), &l)
	return l
}

// inherit takes in what the Lease of the last holder says. One that has given it back has left nothing under way.
func (m *Marks) inherit(text, holder, own string) {
	left := readLeaseMarks(text)
	left.without(own)
	if holder == "" || holder != m.ended {
		for _, mark := range left.Running {
			left.count(mark, holder)
		}
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	m.inherited, m.asked, m.led = left, map[string]bool{}, time.Now()
}

// endedName is the file with the name of the last holder of the Lease that has lost it and has ended as it
// should, with this state folder: the API server may have been away.
const endedName = "ended"

// End notes that this process ends as it should, though it cannot say so in the Lease.
func (m *Marks) End(holder string) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.stay {
		return nil
	}
	return os.WriteFile(filepath.Join(m.dir, endedName), []byte(holder), 0o600)
}

// keep takes back what somebody has taken out of the Lease of this process: people, or a process that lives. This one
// may have lost the Lease and have it again: then nobody had it in between.
func (m *Marks) keep(text string) {
	left := readLeaseMarks(text)
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.led.IsZero() {
		m.asked, m.led = map[string]bool{}, time.Now()
	}
	for mark, n := range m.inherited.Unclean {
		switch there := left.Unclean[mark]; {
		case there <= 0:
			m.inherited.drop(mark)
		case there < n && m.inherited.Counted != nil:
			m.inherited.Unclean[mark], m.inherited.Counted[mark] = there, left.Counted[mark]
		}
	}
}

// hear takes in what the Lease of the process that leads says: what it must not evaluate, this one must not either.
func (m *Marks) hear(text, own string) {
	left := readLeaseMarks(text)
	left.without(own)
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.led.IsZero() {
		m.inherited = left
	}
}

// renew has a renewal be written now, if the Lease is held.
func (m *Marks) renew() {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.write != nil {
		go m.write()
	}
}

// hurry has a renewal be written, by write, once a mark has been under way for a while; nil: no more.
func (m *Marks) hurry(write func()) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.write = write
	m.lookIn(carriedAfter)
}

// lookIn looks at the marks once in a while, as long as any is under way. It is called with the mutex held.
func (m *Marks) lookIn(d time.Duration) {
	if m.write == nil || m.looks {
		return
	}
	m.looks = true
	time.AfterFunc(d, func() {
		m.mu.Lock()
		m.looks = false
		now, write, next := time.Now(), m.write, time.Duration(0)
		due := false
		for _, r := range m.running {
			if r.times <= r.waiting || r.carried {
				continue
			}
			if left := carriedAfter - now.Sub(r.since); left > 0 {
				next = max(next, left)
			} else {
				due = true
			}
		}
		if next > 0 {
			m.lookIn(next)
		}
		m.mu.Unlock()
		if due && write != nil {
			write()
		}
	})
}

// carry is what the Lease carries from now on, "" for nothing. Counts of what is not there any more go in a while.
func (m *Marks) carry() string {
	m.mu.Lock()
	defer m.mu.Unlock()
	l := leaseMarks{Unclean: map[string]int{}, Counted: map[string][]string{}}
	for mark, r := range m.running {
		if r.carried = !m.over && r.times > r.waiting; r.carried {
			l.Running = append(l.Running, mark)
		}
	}
	slices.SortFunc(l.Running, m.before)
	l.Running = l.Running[:min(len(l.Running), maxCarried)]
	slices.Sort(l.Running)
	for _, mark := range slices.SortedFunc(maps.Keys(m.inherited.Unclean), m.before) {
		stays := m.hooks == nil || m.hooks[mark] || m.asked[mark] || time.Since(m.led) < staysUnasked
		if stays && len(l.Unclean) < maxCarried {
			l.Unclean[mark] = m.inherited.Unclean[mark]
			if named := m.inherited.Counted[mark]; len(named) > 0 {
				l.Counted[mark] = named
			}
		}
	}
	if len(l.Running)+len(l.Unclean) == 0 {
		return ""
	}
	text, _ := json.Marshal(l) // texts and numbers
	return string(text)
}

// before orders marks where the Lease has no room for all: first come those that count already, then all others in an
// order that differs from one process to the next, so that none stays hidden behind others.
func (m *Marks) before(a, b string) int {
	place := func(mark string) uint64 {
		h := fnv.New64a()
		_, _ = fmt.Fprint(h, mark, m.led.UnixNano())
		return h.Sum64()
	}
	return cmp.Or(cmp.Compare(m.inherited.Unclean[b], m.inherited.Unclean[a]), cmp.Compare(place(a), place(b)))
}
