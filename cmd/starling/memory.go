package main

import (
	"os"
	"runtime/debug"
)

// heapGrowth is how much the heap may grow between two collections, in percent of
// what is in use; Go's default is 100. docs/decisions/0008 has what it costs and
// gives.
const heapGrowth = 50

// tuneMemory collects garbage earlier than Go would, unless $GOGC says how.
func tuneMemory() {
	if os.Getenv("GOGC") == "" {
		debug.SetGCPercent(heapGrowth)
	}
}
