//go:build unix

package chart

import (
	"bytes"
	"os"
	"strconv"
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

// limitAddresses has the system refuse this process more than so many bytes of addresses. Go reserves addresses before
// it uses them, and what is reserved counts against no other limit when it is used.
func limitAddresses(most uint64) {
	var l syscall.Rlimit
	if err := syscall.Getrlimit(syscall.RLIMIT_AS, &l); err == nil {
		l.Cur = min(most, l.Max)
		_ = syscall.Setrlimit(syscall.RLIMIT_AS, &l) // without it the other limits stand alone
	}
}

// addressesOfProcess is how many bytes of addresses this process has; 0 where the system does not say.
func addressesOfProcess() uint64 {
	text, _ := os.ReadFile("/proc/self/statm") // only Linux has it
	first, _, _ := bytes.Cut(text, []byte(" "))
	pages, _ := strconv.ParseUint(string(first), 10, 64)
	return pages * uint64(os.Getpagesize())
}

// offerToTheKiller has the kernel end this process before its parent when memory is used up. Only Linux has the file.
func offerToTheKiller() { _ = os.WriteFile("/proc/self/oom_score_adj", []byte("1000"), 0o644) }
