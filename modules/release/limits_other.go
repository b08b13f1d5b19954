//go:build !unix

package release

import "time"

// processorTime is not known here.
func processorTime() time.Duration { return 0 }

func limitMemory(uint64) {}

func offerToTheKiller() {}
