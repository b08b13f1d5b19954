package cluster

import (
	"testing"
	"time"
)

func TestKernelBytes(t *testing.T) {
	const status = "Name:\tstarling\nVmHWM:\t   60904 kB\nVmRSS:\t   60000 kB\nThreads:\t9\n"
	for key, want := range map[string]int64{"VmRSS": 60000 << 10, "VmHWM": 60904 << 10, "Vm": 0, "Name": 0} {
		if got := kernelBytes([]byte(status), key); got != want {
			t.Errorf("%s is %d, want %d", key, got, want)
		}
	}
}

func TestKernelTime(t *testing.T) {
	const stat = "4711 (a ) strange (name) S 1 4711 4711 0 -1 4194560 9000 0 0 0 123 45 6 7 20 0 9 0 100 1 2 3"
	if got, err := kernelTime([]byte(stat)); err != nil || got != 1680*time.Millisecond {
		t.Errorf("got %s, %v", got, err)
	}
	if _, err := kernelTime([]byte("4711 (x) S 1")); err == nil {
		t.Error("half a line was read")
	}
}
