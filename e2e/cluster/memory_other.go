//go:build !linux

package cluster

import (
	"errors"
	"testing"
)

// MemoryGroup is a memory cgroup, which Linux alone has.
type MemoryGroup struct{}

// NewMemoryGroup says that there is none.
func NewMemoryGroup(testing.TB, int64) (*MemoryGroup, error) {
	return nil, errors.New("memory cgroups are there on Linux only")
}

// Peak is not known.
func (*MemoryGroup) Peak() int64 { return 0 }

// Kills is not known.
func (*MemoryGroup) Kills() (int, error) {
	return 0, errors.New("memory cgroups are there on Linux only")
}

// Command is the command line as it is.
func (*MemoryGroup) Command(program string, args ...string) (string, []string) { return program, args }
