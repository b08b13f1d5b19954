//go:build race

package files

// raced says that the race detector is there: it takes memory outside the limit of a
// process, and ends one that has none left with other words.
const raced = true
