//go:build !unix

package chart

import "time"

// processorTime is not known here.
func processorTime() time.Duration { return 0 }

func limitAddresses(uint64) {}

func addressesOfProcess() uint64 { return 0 }

func offerToTheKiller() {}
