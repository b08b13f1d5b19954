package chart

import (
	"os"
	"runtime/debug"
	"runtime/metrics"
	"sync/atomic"
	"time"
	"unsafe"
)

// The limits of the process that evaluates one chart after the other.
const (
	// maxRenderTime is how much processor time one job may take: wall time would count
	// what a busy machine does beside it.
	maxRenderTime = 10 * time.Second
	// maxRenderMemory is how much memory is in use at most, in objects and stacks.
	maxRenderMemory = 256 << 20
	// leastRenderMemory is what a chart of 5 MiB needs.
	leastRenderMemory = 32 << 20
	// arena is how many addresses Go takes at once for its heap. A process gets one, and
	// moreArenas beside it for a large job: what maxRenderMemory needs, with garbage and gaps.
	arena      = 64 << 20
	moreArenas = 4
	// piece is a part of an arena that is taken and not used.
	piece = 1 << 20
	// besideHeap are addresses for what is kept beside the heap, as stacks of threads where
	// there is C: less than an arena.
	besideHeap = arena - 4<<20
	// maxRenderStack is that of one goroutine.
	maxRenderStack = 64 << 20
	// watchEvery is how often the limits are looked at.
	watchEvery = 20 * time.Millisecond

	exitTime   = 71
	exitMemory = 72
)

// processLimits watches over this process.
type processLimits struct {
	// time is the processor time of one job.
	time time.Duration
	// memory is what is in use at most, in objects and stacks.
	memory atomic.Uint64
	// until is the processor time at which the job is stopped; 0 without one.
	until atomic.Int64
	// filled are the pieces of the first arena.
	filled [][]byte
	// before is how much memory Go had before the first chart, and addresses how many
	// addresses the process had; 0 without a limit of them. Most of both is never touched.
	before, addresses uint64
}

// limitProcess sets limits and begins to watch; most is the processor time of one job.
func limitProcess(most time.Duration) *processLimits {
	debug.SetMaxStack(maxRenderStack)
	offerToTheKiller()
	l := &processLimits{time: most}
	l.memory.Store(maxRenderMemory)
	l.fill()
	l.before = takenByGo()
	if !raced {
		l.addresses = addressesOfProcess()
	}
	l.allow(0)
	go l.watch()
	return l
}

// fill takes what is left of the arena where Go began its heap, at random, so that each
// process has one whole arena. Memory that is not written to takes addresses only.
func (l *processLimits) fill() {
	debug.SetGCPercent(-1)
	for range arena/piece + 1 { // the last one is in the next arena
		l.filled = append(l.filled, make([]byte, piece))
		if arenaOf(l.filled[len(l.filled)-1]) != arenaOf(l.filled[0]) {
			break
		}
	}
	// The filled memory counts as heap; without it this is Go's usual 100.
	debug.SetGCPercent(100 * 16 / (16 + len(l.filled)*piece>>20))
}

func arenaOf(p []byte) uintptr { return uintptr(unsafe.Pointer(&p[0])) / arena }

// allow says how many arenas the heap may have beside the one: one call can take gigabytes
// before anything else gets to run, and then the system refuses it.
func (l *processLimits) allow(arenas uint64) {
	heap := min(arena/2+arenas*arena*3/4, l.memory.Load()*7/8)
	debug.SetMemoryLimit(int64(l.before + heap))
	if l.addresses > 0 {
		limitAddresses(l.addresses + arenas*arena + besideHeap)
	}
}

// most says how much memory a chart may take.
func (l *processLimits) most(memory uint64) {
	l.memory.Store(min(memory, maxRenderMemory))
	l.allow(0)
}

func (l *processLimits) begin() { l.until.Store(int64(processorTime() + l.time)) }
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
		if heap[0].Value.Uint64()+heap[1].Value.Uint64() > l.memory.Load()+uint64(len(l.filled)*piece) {
			os.Exit(exitMemory)
		}
	}
}

// takenByGo is what counts against the limit of debug.SetMemoryLimit.
func takenByGo() uint64 {
	all := []metrics.Sample{{Name: "/memory/classes/total:bytes"}, {Name: "/memory/classes/heap/released:bytes"}}
	metrics.Read(all)
	return all[0].Value.Uint64() - all[1].Value.Uint64()
}
