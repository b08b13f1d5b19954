//go:build unix

package release

import (
	"os"
	"syscall"
	"time"
)

// processorTime is what this process has taken so far.
func processorTime() time.Duration {
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
		return 0
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}

// limitMemory has the system refuse this process more than so many bytes of data: one
// call can take gigabytes before anything else gets to run. Where that cannot be set, the
// other limits stand alone.
func limitMemory(most uint64) {
	_ = syscall.Setrlimit(syscall.RLIMIT_DATA, &syscall.Rlimit{Cur: most, Max: most})
}

// offerToTheKiller has the kernel end this process before its parent when memory is used
// up. Only Linux has the file.
func offerToTheKiller() {
	_ = os.WriteFile("/proc/self/oom_score_adj", []byte("1000"), 0o644)
}
