package engine

import (
	"os"
	"strconv"
)

// seeds returns how many seeds a random test tries: n, times SEEDS, which make random sets.
func seeds(n uint64) uint64 {
	if times, err := strconv.ParseUint(os.Getenv("SEEDS"), 10, 16); err == nil {
		return n * times
	}
	return n
}
