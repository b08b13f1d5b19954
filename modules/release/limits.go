package release

import (
	"os"
	"runtime/debug"
	"runtime/metrics"
	"sync/atomic"
	"time"
)

// The limits of the process that evaluates one chart after the other.
const (
	// maxRenderTime is how much processor time one job may take: wall time would count
	// what a busy machine does beside it.
	maxRenderTime = 10 * time.Second
	// maxRenderMemory is how much memory is in use at most; hardRenderMemory is what the
	// process gets from the system at most, garbage and the program's own included.
	maxRenderMemory  = 256 << 20
	hardRenderMemory = 640 << 20
	// maxRenderStack is that of one goroutine.
	maxRenderStack = 64 << 20
	// watchEvery is how often the limits are looked at.
	watchEvery = 20 * time.Millisecond

	exitTime   = 71
	exitMemory = 72
)

// processLimits watches over this process.
type processLimits struct {
	// most is the processor time of one job.
	most time.Duration
	// until is the processor time at which the job is stopped; 0 without one.
	until atomic.Int64
}

// limitProcess sets limits and begins to watch; most is the processor time of one job.
func limitProcess(most time.Duration) *processLimits {
	debug.SetMaxStack(maxRenderStack)
	debug.SetGCPercent(100)
	debug.SetMemoryLimit(maxRenderMemory * 3 / 4)
	offerToTheKiller()
	limitMemory(hardRenderMemory)
	l := &processLimits{most: most}
	go l.watch()
	return l
}

func (l *processLimits) begin() { l.until.Store(int64(processorTime() + l.most)) }
func (l *processLimits) end()   { l.until.Store(0) }

func (l *processLimits) watch() {
	heap := []metrics.Sample{{Name: "/memory/classes/heap/objects:bytes"}, {Name: "/memory/classes/heap/stacks:bytes"}}
	for range time.Tick(watchEvery) {
		until := l.until.Load()
		if until == 0 {
			continue
		}
		if int64(processorTime()) > until {
			os.Exit(exitTime)
		}
		metrics.Read(heap)
		if heap[0].Value.Uint64()+heap[1].Value.Uint64() > maxRenderMemory {
			os.Exit(exitMemory)
		}
	}
}
