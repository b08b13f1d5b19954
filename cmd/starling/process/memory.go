// Package process sets what is the process's and no single command's: its memory, its log, what of the environment
// hooks may read, and the processes that evaluate its charts.
package process

import (
	"context"
	"io/fs"
	"os"
	"path"
	"runtime"
	"runtime/debug"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"
)

// heapGrowth is how much the heap may grow between two collections, in percent of
// what is in use; Go's default is 100. docs/decisions/0008 has what it costs and
// gives.
const heapGrowth = 50

// requestGrowth is heapGrowth once requests of the API server are answered: a review is
// garbage as soon as it is answered, and with heapGrowth a fifth of the time that
// answers take goes to collecting it.
const requestGrowth = 200

// testGrowth is heapGrowth for commands that end soon, or serve somebody who waits: with
// heapGrowth nearly half of the time that tests take goes to collecting the garbage of
// clusters that are gone.
const testGrowth = 400

// unsampled ends the samples for profiles of the heap, a fiftieth of the time of tests: nobody can ask for them there.
var unsampled = sync.OnceFunc(func() { runtime.MemProfileRate = 0 })

// TuneTests lets garbage lie until a test or two are done, unless $GOGC says how long.
func TuneTests() {
	unsampled()
	if os.Getenv("GOGC") == "" {
		debug.SetGCPercent(testGrowth)
	}
}

// TestHeap is the heap past which runs of tests go one at a time: more than in a pod, for
// there is a cluster in memory per test, and garbage lies longer.
func TestHeap() uint64 { return uint64(min(2<<30, debug.SetMemoryLimit(-1)/5*2)) }

// TuneRequests lets garbage lie longer from now on, unless $GOGC says how long.
func TuneRequests() {
	if os.Getenv("GOGC") == "" {
		debug.SetGCPercent(requestGrowth)
	}
}

// restAfter is how long a process rests after its start before it gives back what that took.
const restAfter = 5 * time.Second

// ReleaseStart gives back to the system, once, the memory that the start alone took: garbage,
// stacks that have shrunk, and pages of the program.
func ReleaseStart(ctx context.Context, started func() bool) {
	look := time.NewTicker(restAfter)
	defer look.Stop()
	for was := false; ; {
		select {
		case <-look.C:
		case <-ctx.Done():
			return
		}
		is := started()
		if is && was {
			debug.FreeOSMemory()
			unmapProgram()
			return
		}
		was = is
	}
}

const (
	// usable is how much of a cgroup's memory is Go's, in percent. The rest is for the pages
	// of the program and for what the kernel keeps for the process.
	usable = 88
	// besideGo is that rest at least: in a small cgroup the kernel would take the pages of the program away
	// again and again, and the process would do nothing but read them. Processes that evaluate charts have
	// their part of it, too.
	besideGo = 88 << 20
	// leastOfGo is what Go gets at least: with less it would do nothing but collect garbage.
	leastOfGo = 32 << 20
)

// small says whether so much memory is little: the pages of the program are a good part of it.
func small(cgroup int64) bool { return cgroup-besideGo < cgroup/100*usable }

// limitOfGo is Go's memory limit in a cgroup with this one.
func limitOfGo(cgroup int64) int64 { return max(min(cgroup/100*usable, cgroup-besideGo), leastOfGo) }

// TuneMemory collects garbage earlier than Go would, unless $GOGC says how, and keeps
// within the memory limit of the cgroup, unless $GOMEMLIMIT names another. The limits of
// runs follow from it, see script.Governor.
func TuneMemory() {
	if os.Getenv("GOGC") == "" {
		debug.SetGCPercent(heapGrowth)
	}
	if own, err := os.ReadFile("/proc/self/cgroup"); err == nil {
		if limit := cgroupLimit(os.DirFS("/sys/fs/cgroup"), string(own)); limit > 0 {
			if os.Getenv("GOMEMLIMIT") == "" {
				debug.SetMemoryLimit(limitOfGo(limit))
			}
			if small(limit) {
				readPagesSingly()
			}
		}
	}
}

// cgroupLimit returns the least memory limit in bytes of the cgroup of a process and of
// those above it, 0 where there is none. own is its /proc/self/cgroup; in a container the
// path there is that of the host, and root shows the container's alone.
func cgroupLimit(root fs.FS, own string) int64 {
	least := int64(0)
	for line := range strings.Lines(own) {
		fields := strings.SplitN(strings.TrimSpace(line), ":", 3)
		if len(fields) != 3 {
			continue
		}
		dir, file := ".", "memory.max" // version 2
		switch {
		case slices.Contains(strings.Split(fields[1], ","), "memory"):
			dir, file = "memory", "memory.limit_in_bytes"
		case fields[1] != "":
			continue
		}
		for at := path.Clean("/" + fields[2]); ; at = path.Dir(at) {
			text, err := fs.ReadFile(root, path.Join(dir, at, file))
			if n, bad := strconv.ParseInt(strings.TrimSpace(string(text)), 10, 64); err == nil && bad == nil && n > 0 && n < unlimited && (least == 0 || n < least) {
				least = n
			}
			if at == "/" {
				break
			}
		}
	}
	return least
}

// unlimited is less than what version 1 shows where there is no limit.
const unlimited = 1 << 60
