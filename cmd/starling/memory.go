package main

import (
	"os"
	"runtime/debug"
)

// heapGrowth is how much the heap may grow between two collections, in percent of
// what is in use; Go's default is 100. docs/decisions/0008 has what it costs and
// gives.
const heapGrowth = 50

// requestGrowth is heapGrowth once requests of the API server are answered: a review is
// garbage as soon as it is answered, and with heapGrowth a seventh of the time that
// answers take goes to collecting it.
const requestGrowth = 100

// testGrowth is heapGrowth for commands that end soon, or serve somebody who waits: with
// heapGrowth nearly half of the time that tests take goes to collecting the garbage of
// clusters that are gone.
const testGrowth = 400

// tuneTests lets garbage lie until a test or two are done, unless $GOGC says how long.
func tuneTests() {
	if os.Getenv("GOGC") == "" {
		debug.SetGCPercent(testGrowth)
	}
}

// tuneRequests lets garbage lie longer from now on, unless $GOGC says how long.
func tuneRequests() {
	if os.Getenv("GOGC") == "" {
		debug.SetGCPercent(requestGrowth)
	}
}

// tuneMemory collects garbage earlier than Go would, unless $GOGC says how.
func tuneMemory() {
	if os.Getenv("GOGC") == "" {
		debug.SetGCPercent(heapGrowth)
	}
}
