package proxy

import (
	"fmt"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"regexp"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"
)

// mostUnrest is how long a kill waits for AtRest.
const mostUnrest = 4 * time.Minute

// Killer kills a process at one of its writes. Those of the Lease do not count. It may stand before several
// processes, of which one writes at a time.
type Killer struct {
	// Counts says whether a write to this path counts; nil: all do.
	Counts func(path string) bool
	// AtRest says that the process may be killed: it is waited for, and no write that does not count is under way
	// then. Nil: at once.
	AtRest func() bool

	killed atomic.Int64
	others sync.RWMutex // held for reading during a write that does not count

	mu        sync.Mutex // held during a write, so that they come one after another
	countdown int        // writes until the kill; 0 and below: no kill
	known     map[string]bool
	after     bool      // the write reaches the API server, its answer does not come back
	last      time.Time // the last write
	seen      []string  // the writes since the change
	at        []string  // the writes at which processes were killed
}

// Fault is what a process stands behind that kill ends.
func (k *Killer) Fault(kill func()) Fault {
	return Fault{Name: "kills", On: But(Writes, Leases), Strike: func(w http.ResponseWriter, r *http.Request, next http.Handler, _ *rand.Rand) {
		k.serve(w, r, next, kill)
	}}
}

func (k *Killer) serve(w http.ResponseWriter, req *http.Request, next http.Handler, kill func()) {
	killed := k.killed.Load()
	if k.Counts != nil && !k.Counts(req.URL.Path) {
		k.others.RLock()
		defer k.others.RUnlock()
		if k.killed.Load() != killed {
			panic(http.ErrAbortHandler)
		}
		next.ServeHTTP(w, req)
		return
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.killed.Load() != killed { // it may come from the one that is dead
		panic(http.ErrAbortHandler)
	}
	k.last = time.Now()
	at, times := write(req), 1
	for _, seen := range k.seen {
		if seen == at {
			times++
		}
	}
	k.seen = append(k.seen, at)
	k.countdown--
	if key := fmt.Sprint(at, " ", min(times, 2)); k.known == nil && k.countdown != 0 || k.known != nil && k.known[key] {
		next.ServeHTTP(w, req)
		return
	} else if k.known != nil {
		k.known[key] = true
	}
	if k.after {
		next.ServeHTTP(httptest.NewRecorder(), req)
	}
	k.at, k.known = append(k.at, at), nil
	k.others.Lock()
	for began := time.Now(); k.AtRest != nil && !k.AtRest() && time.Since(began) < mostUnrest; {
		k.others.Unlock()
		time.Sleep(20 * time.Millisecond)
		k.others.Lock()
	}
	kill()
	k.killed.Add(1)
	k.others.Unlock()
	panic(http.ErrAbortHandler)
}

var numbers = regexp.MustCompile(`\.v[0-9]+$|^(events/).*`)

// write is what a write is called: without its namespace, and without numbers that are others each time.
func write(req *http.Request) string {
	_, object, namespaced := strings.Cut(req.URL.Path, "/namespaces/")
	if _, object, _ = strings.Cut(object, "/"); !namespaced {
		object = req.URL.Path
	}
	return req.Method + " " + numbers.ReplaceAllString(object, "$1")
}

// KillAt kills the process at the n-th write after a change, all of which is there before the first write; n = 0:
// at none. It returns how many were killed before.
func (k *Killer) KillAt(n int, after bool, change func()) int64 { return k.arm(n, nil, after, change) }

// KillNew does the same at the first write that is not in known, and adds it there; of one that comes several times
// after a change the first two. So a process is killed at each write, in whatever order they come.
func (k *Killer) KillNew(known map[string]bool, after bool, change func()) int64 {
	return k.arm(0, known, after, change)
}

func (k *Killer) arm(n int, known map[string]bool, after bool, change func()) int64 {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.countdown, k.known, k.after, k.seen = n, known, after, nil
	change()
	k.last = time.Now()
	return k.killed.Load()
}

// Spare kills no process any more. It returns how many were killed.
func (k *Killer) Spare() int64 { return k.KillAt(0, false, func() {}) }

// Killed is how many processes were killed. A write that came from one of them is dropped.
func (k *Killer) Killed() int64 { return k.killed.Load() }

// At are the writes at which processes were killed.
func (k *Killer) At() []string {
	k.mu.Lock()
	defer k.mu.Unlock()
	return slices.Clone(k.at)
}

// Keys are the writes since the last change, as KillNew has them in known.
func (k *Killer) Keys() (keys []string) {
	k.mu.Lock()
	defer k.mu.Unlock()
	times := map[string]int{}
	for _, at := range k.seen {
		if times[at]++; times[at] <= 2 {
			keys = append(keys, fmt.Sprint(at, " ", times[at]))
		}
	}
	return keys
}

// Written is how many writes there were since the last change, or since Spare.
func (k *Killer) Written() int {
	k.mu.Lock()
	defer k.mu.Unlock()
	return len(k.seen)
}

// Rests is nil when nothing was written for a while.
func (k *Killer) Rests(long time.Duration) error {
	k.mu.Lock()
	defer k.mu.Unlock()
	if since := time.Since(k.last); since < long {
		return fmt.Errorf("it has written %s ago", since)
	}
	return nil
}
