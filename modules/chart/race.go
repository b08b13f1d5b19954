//go:build race

package chart

// raced says that the race detector is there: it takes terabytes of addresses beside the
// heap, so that the system can limit none.
const raced = true
